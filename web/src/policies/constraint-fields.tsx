import type { ReactNode } from 'react'
import { Field } from '../components/form-fields.tsx'
import { LinesInput, NumberInput, readNumber } from '../components/value-inputs.tsx'
import { setAt } from '../schema/json-path.ts'
import { isObject, type Schema } from '../schema/json-schema.ts'
import { constraintLabel } from './constraint-text.ts'
import { constraintSchemas, type DraftFormProps, problemAt } from './policy-draft.ts'

/** The limits of a policy. Every one that the API has can be added, with the API's own words as help. */
export function ConstraintFields({ draft, problems, onChange }: DraftFormProps) {
  const constraints = isObject(draft.constraints) ? draft.constraints : {}
  const absent = Object.keys(constraintSchemas).filter((name) => !(name in constraints))
  const set = (name: string, value: unknown) => onChange(setAt(draft, ['constraints', name], value))
  return (
    <fieldset>
      <legend>Limits</legend>
      {Object.keys(constraints).length === 0 && <p className="muted empty">No limit yet. Choose one below.</p>}
      <ul className="constraint-list">
        {Object.entries(constraints).map(([name, value]) => (
          <li key={name}>
            <ConstraintField
              name={name}
              value={value}
              problem={problemAt(problems, `constraints.${name}`)}
              onChange={(next) => set(name, next)}
            />
            <button
              type="button"
              className="secondary"
              aria-label={`Remove the limit ${constraintLabel(name)}`}
              onClick={() => set(name, undefined)}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      <Field label="Add a limit">
        {(id) => (
          <select
            id={id}
            value=""
            onChange={({ target }) => target.value && set(target.value, emptyValue(constraintSchemas[target.value]!))}
          >
            <option value="">choose…</option>
            {absent.map((name) => (
              <option key={name} value={name}>
                {constraintLabel(name)}
              </option>
            ))}
          </select>
        )}
      </Field>
    </fieldset>
  )
}

const emptyValue = (schema: Schema): unknown =>
  schema.type === 'boolean' ? true : schema.type === 'array' ? [] : schema.anyOf ? { start: 8, end: 18 } : ''

function ConstraintField({
  name,
  value,
  problem,
  onChange,
}: {
  name: string
  value: unknown
  problem: string | undefined
  onChange: (value: unknown) => void
}) {
  const schema = constraintSchemas[name]
  const input = (id: string, describedBy: string | undefined): ReactNode => {
    if (!schema) return <output id={id}>{JSON.stringify(value)}</output>
    if (schema.type === 'boolean')
      return (
        <select
          id={id}
          aria-describedby={describedBy}
          value={String(value)}
          onChange={({ target }) => onChange(target.value === 'true')}
        >
          <option value="true">yes</option>
          <option value="false">no</option>
        </select>
      )
    if (schema.type === 'array')
      return (
        <LinesInput
          id={id}
          describedBy={describedBy}
          value={value}
          onChange={onChange}
          placeholder="one in each line"
        />
      )
    if (schema.anyOf) return <HoursInput id={id} describedBy={describedBy} value={value} onChange={onChange} />
    const read = name.endsWith('_usdc') ? undefined : readNumber
    return <NumberInput id={id} describedBy={describedBy} value={value} onChange={onChange} {...(read && { read })} />
  }
  const help = schema?.description ?? 'The form does not know this field. It is kept as it is.'
  return (
    <Field label={constraintLabel(name)} help={help} {...(problem && { problem })}>
      {input}
    </Field>
  )
}

/** Hours from one to another, or a list of hours. */
function HoursInput({
  id,
  describedBy,
  value,
  onChange,
}: {
  id: string
  describedBy: string | undefined
  value: unknown
  onChange: (value: unknown) => void
}) {
  if (!isObject(value))
    return (
      <LinesInput
        id={id}
        describedBy={describedBy}
        value={value}
        onChange={onChange}
        readEntry={readNumber}
        placeholder="one hour in each line"
      />
    )
  return (
    <span className="row hours">
      <NumberInput
        id={id}
        describedBy={describedBy}
        value={value.start}
        read={readNumber}
        onChange={(start) => onChange({ ...value, start })}
      />
      <label htmlFor={`${id}-end`}>up to</label>
      <NumberInput
        id={`${id}-end`}
        value={value.end}
        read={readNumber}
        onChange={(end) => onChange({ ...value, end })}
      />
    </span>
  )
}
