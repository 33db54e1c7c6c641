import { useState } from 'react'
import { Field } from '../components/form-fields.tsx'
import { readAt, setAt } from '../schema/json-path.ts'
import { fieldsAt, isObject, type Schema, type SchemaError } from '../schema/json-schema.ts'
import { type JsonPath, parseJsonText, pathAtCaret } from '../schema/json-text.ts'
import { requestSchemas } from '../schema/request-schemas.ts'
import type { PolicyDraft } from './policy-draft.ts'

/** The draft as text. Text that is no JSON object stays in the editor, and the draft keeps its last state. */
export function JsonEditor({
  schema,
  text,
  problems,
  onText,
}: {
  schema: Schema
  text: string
  problems: readonly SchemaError[]
  onText: (text: string) => void
}) {
  const [caret, setCaret] = useState(0)
  const parsed = parseJsonText(text)
  const value = 'value' in parsed ? parsed.value : undefined
  const caretPath = pathAtCaret(text, caret)
  // An existing policy has every field of its own already, so the fields of its limits are of more use.
  const isComplete = caretPath.length === 0 && isObject(value) && absentFields(schema, [], value).length === 0
  const path = isComplete ? ['constraints'] : caretPath
  const place = readAt(value, path)
  const absent = absentFields(schema, path, isObject(place) ? place : {})
  return (
    <div className="json-editor">
      <Field label="Policy as JSON">
        {(id) => (
          <textarea
            id={id}
            rows={22}
            spellCheck={false}
            value={text}
            onChange={({ target }) => {
              onText(target.value)
              setCaret(target.selectionStart)
            }}
            onSelect={({ currentTarget }) => setCaret(currentTarget.selectionStart)}
          />
        )}
      </Field>
      <div className="json-help">
        <div role="status">
          {'error' in parsed ? (
            <p className="error">
              Line {parsed.line}, column {parsed.column}: {parsed.error}
            </p>
          ) : problems.length === 0 ? (
            <p className="success-text">✓ The text fits the schema.</p>
          ) : (
            <ProblemList problems={problems} />
          )}
        </div>
        <h3>Fields that {path.length === 0 ? 'a policy' : <code>{path.join('.')}</code>} may have</h3>
        {absent.length === 0 ? (
          <p className="muted">None besides those that are there. Put the caret into another object.</p>
        ) : (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
          <section className="field-list" aria-label="Fields that can be added" tabIndex={0}>
            <ul className="plain-list">
              {absent.map(({ name, type, description, schema: fieldSchema }) => (
                <li key={name}>
                  <button
                    type="button"
                    className="link"
                    disabled={!isObject(place)}
                    onClick={() => onText(toText(setAt(value, [...path, name], exampleOf(fieldSchema)) as PolicyDraft))}
                  >
                    {name}
                  </button>{' '}
                  <span className="muted">
                    {type}. {description}
                  </span>
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </div>
  )
}

const absentFields = (schema: Schema, path: JsonPath, present: Record<string, unknown>) =>
  fieldsAt(requestSchemas, schema, path).filter(({ name }) => !(name in present))

export const toText = (draft: unknown) => JSON.stringify(draft, null, 2)

export const ProblemList = ({ problems }: { problems: readonly SchemaError[] }) => (
  <ul className="problem-list error" aria-label="Problems">
    {problems.map(({ path, message }) => (
      <li key={path}>
        {path && <code>{path}</code>} {message}
      </li>
    ))}
  </ul>
)

function exampleOf(schema: Schema): unknown {
  const literal = schema.enum ?? schema.anyOf?.[0]?.enum
  if (literal) return literal[0]
  if (schema.type === 'object') return {}
  if (schema.type === 'array') return schema.items?.type === 'object' ? [{}] : []
  if (schema.type === 'boolean') return true
  return schema.type === 'number' || schema.type === 'integer' ? (schema.minimum ?? 0) : schema.anyOf ? [] : ''
}
