import { type ReactNode, useId } from 'react'

/** A label that belongs to its control, whatever the control is. */
export function Field({ label, children }: { label: string; children: (id: string) => ReactNode }) {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
    </div>
  )
}

export const Choice = ({
  label,
  name,
  value,
  options,
  all,
  onPick,
}: {
  label: string
  name: string
  value?: string
  options: readonly string[]
  /** What the empty choice is called; without it there is none. */
  all?: string
  onPick?: (value: string) => void
}) => (
  <Field label={label}>
    {(id) => (
      <select id={id} name={name} defaultValue={value ?? ''} onChange={(event) => onPick?.(event.target.value)}>
        {all !== undefined && <option value="">{all}</option>}
        {options.map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
    )}
  </Field>
)

/** A filter stands in the address: choosing applies at once; where something is typed there are buttons too. */
export function Filters({
  children,
  apply,
  typed = false,
}: {
  children: ReactNode
  apply: (values: Record<string, string>) => void
  typed?: boolean
}) {
  const read = (form: HTMLFormElement) =>
    apply(Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value).trim()])))
  return (
    <form
      className="filters"
      onSubmit={(event) => {
        event.preventDefault()
        read(event.currentTarget)
      }}
      onChange={(event) => {
        if (event.target instanceof HTMLSelectElement) read(event.currentTarget)
      }}
    >
      {children}
      {typed && (
        <>
          <button type="submit" className="quiet">
            Apply
          </button>
          <button type="button" className="quiet" onClick={() => apply({})}>
            Clear
          </button>
        </>
      )}
    </form>
  )
}
