import { Field } from '../components/form-fields.tsx'
import { setAt } from '../schema/json-path.ts'
import { literalsOf } from '../schema/json-schema.ts'
import { requestSchemas } from '../schema/request-schemas.ts'
import { ConstraintFields } from './constraint-fields.tsx'
import { type DraftFormProps, problemAt } from './policy-draft.ts'
import { RuleRows } from './rule-rows.tsx'

const { properties } = requestSchemas.PolicyCreate!
const optionsOf = (name: string) => (literalsOf(requestSchemas, properties![name]!) ?? []).map(String)

const modeHelp = {
  enforce: 'What breaks the policy is refused, or waits for a person.',
  warn: 'What breaks the policy goes on with a warning.',
  shadow: 'Nothing is refused; the results are recorded.',
} as Record<string, string>

/** The draft as a form. It changes what it shows and leaves everything else in the draft as it is. */
export function PolicyForm({ draft, problems, onChange, isNew }: DraftFormProps & { isNew: boolean }) {
  const set = (name: string, value: unknown) => onChange(setAt(draft, [name], value))
  return (
    <div className="policy-form">
      <div className="filters">
        <Field label="Name" problem={problemAt(problems, 'name')}>
          {(id, describedBy) => (
            <input
              id={id}
              aria-describedby={describedBy}
              maxLength={200}
              value={String(draft.name ?? '')}
              onChange={({ target }) => set('name', target.value)}
            />
          )}
        </Field>
        <Field label="Mode" help={modeHelp[String(draft.mode)]} problem={problemAt(problems, 'mode')}>
          {(id, describedBy) => (
            <select
              id={id}
              aria-describedby={describedBy}
              value={String(draft.mode ?? 'enforce')}
              onChange={({ target }) => set('mode', target.value)}
            >
              {optionsOf('mode').map((option) => (
                <option key={option}>{option}</option>
              ))}
            </select>
          )}
        </Field>
        {isNew && <IdentityFields draft={draft} problems={problems} onChange={onChange} />}
      </div>
      <div className="choices">
        {(['audit_trail_required', 'selectable'] as const).map((name) => (
          <label key={name} title={properties![name]!.description}>
            <input
              type="checkbox"
              checked={draft[name] === true}
              onChange={({ target }) => set(name, target.checked)}
            />
            {name === 'selectable' ? 'Trades may choose it' : 'Answers wait for the audit trail'}
          </label>
        ))}
      </div>
      <ConstraintFields draft={draft} problems={problems} onChange={onChange} />
      <RuleRows draft={draft} problems={problems} onChange={onChange} />
    </div>
  )
}

const identityFields: Record<string, { field: string; label: string; placeholder: string } | undefined> = {
  api_key: { field: 'api_key', label: 'API key (neither stored nor shown)', placeholder: 'csk_…' },
  agent: { field: 'agent_id', label: 'Which agent', placeholder: 'writer-v1' },
  spender: { field: 'identity_id', label: 'Which spender', placeholder: 'buyer-1' },
  team: { field: 'identity_id', label: 'Which team', placeholder: 'research' },
  tag: { field: 'identity_id', label: 'Which tag', placeholder: 'project=apollo' },
  merchant: { field: 'identity_id', label: 'Which merchant', placeholder: 'shop.example' },
}

/** Whom the policy is for. Another kind takes away what named the one before. */
function IdentityFields({ draft, problems, onChange }: DraftFormProps) {
  const type = String(draft.identity_type ?? 'tenant')
  const identity = identityFields[type]
  const choose = (next: string) => {
    const { api_key: _key, agent_id: _agent, identity_id: _identity, ...rest } = draft
    const field = identityFields[next]?.field
    onChange({ ...rest, identity_type: next, ...(field && { [field]: '' }) })
  }
  return (
    <>
      <Field label="For">
        {(id) => (
          <select id={id} value={type} onChange={({ target }) => choose(target.value)}>
            {optionsOf('identity_type').map((option) => (
              <option key={option} value={option}>
                {option === 'tenant' ? 'the whole organisation' : `one ${option.replace('_', ' ')}`}
              </option>
            ))}
          </select>
        )}
      </Field>
      {identity && (
        <Field label={identity.label} problem={problemAt(problems, identity.field)}>
          {(id, describedBy) => (
            <input
              id={id}
              aria-describedby={describedBy}
              type={identity.field === 'api_key' ? 'password' : 'text'}
              autoComplete="off"
              placeholder={identity.placeholder}
              value={String(draft[identity.field] ?? '')}
              onChange={({ target }) => onChange(setAt(draft, [identity.field], target.value))}
            />
          )}
        </Field>
      )}
    </>
  )
}
