import { type ReactNode, useId, useState } from 'react'

/** A label connected to its control by id, with help below it and what is wrong with its value. */
export function Field({
  label,
  help,
  problem,
  children,
}: {
  label: string
  help?: ReactNode
  problem?: string
  /** `describedBy` is the id of the help, for `aria-describedby`. */
  children: (id: string, describedBy: string | undefined) => ReactNode
}) {
  const id = useId()
  const helpId = help || problem ? `${id}-help` : undefined
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id, helpId)}
      {helpId && (
        <div id={helpId} className="field-help">
          {problem && <span className="error">{problem} </span>}
          {help}
        </div>
      )}
    </div>
  )
}

export const Select = ({
  label,
  name,
  value,
  options,
  emptyLabel,
  onSelect,
}: {
  label: string
  name: string
  value?: string
  options: readonly string[]
  /** Label of the empty option; without it there is no empty option. */
  emptyLabel?: string
  onSelect?: (value: string) => void
}) => (
  <Field label={label}>
    {(id) => (
      <select id={id} name={name} defaultValue={value ?? ''} onChange={(event) => onSelect?.(event.target.value)}>
        {emptyLabel !== undefined && <option value="">{emptyLabel}</option>}
        {options.map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
    )}
  </Field>
)

/** Filters live in the URL. A select applies at once; forms with text inputs also have buttons. */
export function FilterForm({
  children,
  onApply,
  hasButtons = false,
}: {
  children: ReactNode
  onApply: (values: Record<string, string>) => void
  hasButtons?: boolean
}) {
  const applyForm = (form: HTMLFormElement) =>
    onApply(Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value).trim()])))
  const form = (
    <form
      className="filters"
      onSubmit={(event) => {
        event.preventDefault()
        applyForm(event.currentTarget)
      }}
      onChange={(event) => {
        if (event.target instanceof HTMLSelectElement) applyForm(event.currentTarget)
      }}
    >
      {children}
      {hasButtons && (
        <>
          <button type="submit" className="secondary">
            Apply
          </button>
          <button type="button" className="secondary" onClick={() => onApply({})}>
            Clear
          </button>
        </>
      )}
    </form>
  )
  const [isOpen] = useState(() => !isPhone())
  if (!hasButtons) return form
  return (
    <details className="filter-box" open={isOpen}>
      <summary>Filters</summary>
      {form}
    </details>
  )
}

const isPhone = () => typeof matchMedia === 'function' && matchMedia('(max-width: 44rem)').matches
