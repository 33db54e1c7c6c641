import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ACCOUNT_KEY, api } from '../api.ts'
import { useAction } from '../components/action-button.tsx'
import { Field } from '../components/form-fields.tsx'
import { ErrorMessage } from '../components/ui.tsx'
import { LinesInput, NumberInput, readNumber } from '../components/value-inputs.tsx'
import { navigate, routeHref } from '../route.ts'
import { literalsOf } from '../schema/json-schema.ts'
import { requestSchemas } from '../schema/request-schemas.ts'
import { findMandateProblems, type MandateCreate, type MandateDraft, toMandateCreate } from './mandate-draft.ts'

const helpOf = (name: string) => requestSchemas[name]?.description
const frequencies = (
  literalsOf(requestSchemas, requestSchemas.MandateAgentRecurrence!.properties!.frequency!) ?? []
).map(String)

type TextField = 'name' | 'agent' | 'notBefore' | 'notAfter' | 'startsAt' | 'expiresAt'
type AmountField = 'minAmount' | 'maxAmount' | 'budget' | 'maxOccurrences'

export function MandateForm({ initial }: { initial: MandateDraft }) {
  const [draft, setDraft] = useState(initial)
  const set = (change: Partial<MandateDraft>) => setDraft((current) => ({ ...current, ...change }))
  const problems = findMandateProblems(draft)
  const create = useAction(async (body: MandateCreate) => {
    const { id } = await api.post('/api/mandates', { body })
    navigate(routeHref(['account', 'mandates', id]))
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    create.mutate(toMandateCreate(draft))
  }
  const problemOf = (field: keyof MandateDraft) => {
    // An empty name is said by the browser when the form is sent.
    const fieldProblem = field === 'name' ? undefined : problems.find((problem) => problem.field === field)
    return fieldProblem ? { problem: `It ${fieldProblem.message}` } : {}
  }
  const text = (label: string, field: TextField, attributes: Record<string, unknown> = {}, help?: string) => (
    <Field label={label} help={help} {...problemOf(field)}>
      {(id, describedBy) => (
        <input
          id={id}
          aria-describedby={describedBy}
          maxLength={200}
          value={draft[field]}
          onChange={({ target }) => set({ [field]: target.value })}
          {...attributes}
        />
      )}
    </Field>
  )
  const amount = (label: string, field: AmountField, help?: string) => (
    <Field label={label} help={help} {...problemOf(field)}>
      {(id, describedBy) => (
        <NumberInput
          id={id}
          describedBy={describedBy}
          value={draft[field]}
          onChange={(value) => set({ [field]: value })}
          {...(field === 'maxOccurrences' && { read: readNumber })}
        />
      )}
    </Field>
  )
  return (
    <form className="mandate-form" onSubmit={submit} aria-label="Mandate">
      <fieldset className="filters">
        <legend>Who</legend>
        {text('Name', 'name', { required: true })}
        {text('Agent (empty: any)', 'agent', { placeholder: 'buyer-1' }, 'The spender, or the lane of a run.')}
        <HolderKey value={draft.holderKey} onChange={(holderKey) => set({ holderKey })} />
      </fieldset>
      <fieldset className="filters">
        <legend>How much</legend>
        {amount('One payment, at least (USDC)', 'minAmount')}
        {amount('One payment, at most (USDC)', 'maxAmount', helpOf('MandateAmountRange'))}
        {amount('All payments together (USDC)', 'budget', helpOf('MandateBudget'))}
      </fieldset>
      <fieldset className="filters">
        <legend>To whom</legend>
        <Field label="Payees, one in each line (empty: anybody)" help={helpOf('MandateAllowedPayees')}>
          {(id, describedBy) => (
            <LinesInput
              id={id}
              describedBy={describedBy}
              value={draft.payees}
              onChange={(payees) => set({ payees: payees as unknown[] })}
              placeholder="shop.example"
            />
          )}
        </Field>
      </fieldset>
      <fieldset className="filters">
        <legend>How often</legend>
        <Field label="Repeats" help={helpOf('MandateAgentRecurrence')}>
          {(id, describedBy) => (
            <select
              id={id}
              aria-describedby={describedBy}
              value={draft.frequency}
              onChange={({ target }) => set({ frequency: target.value })}
            >
              <option value="">as often as it likes</option>
              {frequencies.map((frequency) => (
                <option key={frequency} value={frequency}>
                  {frequency === 'ON_DEMAND' ? 'on demand' : `once ${frequency.toLowerCase()}`}
                </option>
              ))}
            </select>
          )}
        </Field>
        {amount('Payments in all (1: a single one)', 'maxOccurrences')}
      </fieldset>
      <fieldset className="filters">
        <legend>When</legend>
        {text('Not paid before', 'notBefore', { type: 'date' }, 'A day in UTC.')}
        {text('Not paid after', 'notAfter', { type: 'date' }, 'A day in UTC.')}
        {text('In force from', 'startsAt', { type: 'datetime-local' }, 'Empty: at once.')}
        {text('Expires', 'expiresAt', { type: 'datetime-local' }, 'Empty: after a year.')}
      </fieldset>
      <div className="row">
        <button type="submit" disabled={create.isPending || problems.some(({ field }) => field !== 'name')}>
          Create the mandate
        </button>
      </div>
      {create.error && <ErrorMessage>{create.error.message}</ErrorMessage>}
    </form>
  )
}

/** Only this key may spend under the mandate. The list of keys needs a scope that not every key has. */
function HolderKey({ value, onChange }: { value: string; onChange: (keyId: string) => void }) {
  const keys = useQuery({
    queryKey: [ACCOUNT_KEY, 'keys', 'of-mandates'],
    queryFn: () => api.get('/api/keys'),
    retry: false,
  })
  const options = (keys.data?.keys ?? []).map(({ key_id, name }) => ({ key_id, name }))
  return (
    <Field label="Held by key (empty: any)" help={requestSchemas.MandateCreate!.properties!.holder_key_id!.description}>
      {(id, describedBy) => (
        <>
          <input
            id={id}
            aria-describedby={describedBy}
            list={`${id}-keys`}
            maxLength={80}
            value={value}
            onChange={({ target }) => onChange(target.value.trim())}
          />
          <datalist id={`${id}-keys`}>
            {options.map(({ key_id, name }) => (
              <option key={key_id} value={key_id}>
                {name}
              </option>
            ))}
          </datalist>
        </>
      )}
    </Field>
  )
}
