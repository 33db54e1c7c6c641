import type { ReactNode } from 'react'

export type CheckBoxOption = { value: string; text?: ReactNode; disabled?: boolean }

/** Several choices of one name, each with what it means. */
export const CheckBoxes = ({
  legend,
  name,
  options,
  selected,
}: {
  legend: string
  name: string
  options: CheckBoxOption[]
  selected: readonly string[]
}) => (
  <fieldset className="check-boxes">
    <legend>{legend}</legend>
    {options.map(({ value, text, disabled }) => (
      <label key={value} className="consent">
        <input
          type="checkbox"
          name={name}
          value={value}
          defaultChecked={selected.includes(value)}
          disabled={disabled}
        />
        <span>
          <code>{value}</code> {text && <span className="muted">{text}</span>}
        </span>
      </label>
    ))}
  </fieldset>
)
