import { useId } from 'react'
import { useLanes } from '../api.ts'
import { Field } from '../components/form-fields.tsx'
import { LinesInput, NumberInput, readNumber } from '../components/value-inputs.tsx'
import { readAmount } from '../money-text.ts'
import { setAt } from '../schema/json-path.ts'
import { isObject } from '../schema/json-schema.ts'
import { type DraftFormProps, problemAt } from './policy-draft.ts'
import { fieldType, isListOperator, operatorOf, ruleFields, ruleOperators } from './rule-fields.ts'

type Rule = Record<string, unknown>

const effects = ['deny', 'review', 'allow']
const newRule = (): Rule => ({ field: 'lane', op: 'eq', value: '', effect: 'deny' })

/** The rules of a policy as rows: field, operator, value, effect and reason. */
export function RuleRows({ draft, problems, onChange }: DraftFormProps) {
  const rules = Array.isArray(draft.rules) ? (draft.rules as unknown[]) : []
  const listId = useId()
  return (
    <fieldset>
      <legend>Rules</legend>
      <p className="muted empty">
        A rule applies when its condition is true. Where a policy has allow rules, one of them must apply.
      </p>
      <datalist id={listId}>
        {Object.entries(ruleFields).map(([name, { about }]) => (
          <option key={name} value={name}>
            {about}
          </option>
        ))}
        <option value="tags.project">a tag</option>
      </datalist>
      <ol className="rule-rows">
        {rules.map((rule, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a rule is known by its position alone
          <li key={index}>
            <RuleRow
              rule={isObject(rule) ? rule : {}}
              position={index + 1}
              listId={listId}
              problem={(field) => problemAt(problems, `rules[${index}].${field}`)}
              onChange={(next) => onChange(setAt(draft, ['rules', index], next))}
              onRemove={() => onChange(setAt(draft, ['rules', index], undefined))}
            />
          </li>
        ))}
      </ol>
      <button type="button" className="secondary" onClick={() => onChange({ ...draft, rules: [...rules, newRule()] })}>
        Add a rule
      </button>
    </fieldset>
  )
}

function RuleRow({
  rule,
  position,
  listId,
  problem,
  onChange,
  onRemove,
}: {
  rule: Rule
  position: number
  listId: string
  problem: (field: string) => string | undefined
  onChange: (rule: Rule) => void
  onRemove: () => void
}) {
  const set = (name: string, value: unknown) => onChange(setAt(rule, [name], value))
  const isList = isListOperator(rule.op)
  const setOperator = (op: string) => {
    const values = [rule.value ?? ''].flat().filter((value) => value !== '')
    onChange({ ...rule, op, value: isListOperator(op) ? values : (values[0] ?? '') })
  }
  const shared = (name: string) => {
    const fieldProblem = problem(name)
    return fieldProblem ? { problem: fieldProblem } : {}
  }
  return (
    <div className="filters rule-row">
      <Field label={`Rule ${position}: field`} {...shared('field')}>
        {(id, describedBy) => (
          <input
            id={id}
            aria-describedby={describedBy}
            list={listId}
            maxLength={70}
            value={String(rule.field ?? '')}
            onChange={({ target }) => set('field', target.value)}
          />
        )}
      </Field>
      <Field label="Operator" {...shared('op')}>
        {(id, describedBy) => (
          <select
            id={id}
            aria-describedby={describedBy}
            value={operatorOf(rule.op)}
            onChange={({ target }) => setOperator(target.value)}
          >
            {Object.entries(ruleOperators).map(([op, words]) => (
              <option key={op} value={op}>
                {words}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label={isList ? 'Values, one in each line' : 'Value'} {...shared('value')}>
        {(id, describedBy) => (
          <RuleValue id={id} describedBy={describedBy} rule={rule} onChange={(value) => set('value', value)} />
        )}
      </Field>
      <Field label="Effect" {...shared('effect')}>
        {(id) => (
          <select id={id} value={String(rule.effect)} onChange={({ target }) => set('effect', target.value)}>
            {effects.map((effect) => (
              <option key={effect}>{effect}</option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Reason (optional)" {...shared('reason')}>
        {(id) => (
          <input
            id={id}
            maxLength={500}
            value={String(rule.reason ?? '')}
            onChange={({ target }) => set('reason', target.value || undefined)}
          />
        )}
      </Field>
      <button type="button" className="secondary" aria-label={`Remove rule ${position}`} onClick={onRemove}>
        Remove
      </button>
    </div>
  )
}

function RuleValue({
  id,
  describedBy,
  rule,
  onChange,
}: {
  id: string
  describedBy: string | undefined
  rule: Rule
  onChange: (value: unknown) => void
}) {
  const lanes = useLanes()
  const type = fieldType(rule.field)
  const readEntry = type === 'text' ? (text: string): unknown => text : type === 'money' ? readAmount : readNumber
  if (isListOperator(rule.op))
    return <LinesInput id={id} describedBy={describedBy} value={rule.value} onChange={onChange} readEntry={readEntry} />
  if (type !== 'text')
    return <NumberInput id={id} describedBy={describedBy} value={rule.value} onChange={onChange} read={readEntry} />
  const field = String(rule.field)
  const suggestions =
    field === 'lane' || field === 'agent_id'
      ? (lanes.data?.agents ?? []).map(({ agent_id }) => agent_id)
      : (ruleFields[field]?.values ?? [])
  return (
    <>
      <input
        id={id}
        aria-describedby={describedBy}
        list={`${id}-values`}
        maxLength={200}
        value={String(rule.value ?? '')}
        onChange={({ target }) => onChange(target.value)}
      />
      <datalist id={`${id}-values`}>
        {suggestions.map((value) => (
          <option key={value} value={value} />
        ))}
      </datalist>
    </>
  )
}
