import { type FormEvent, useState } from 'react'
import type { SectionProps } from '../account/section-props.ts'
import { api } from '../api.ts'
import { useAction } from '../components/action-button.tsx'
import { CheckBoxes } from '../components/check-boxes.tsx'
import { Field } from '../components/form-fields.tsx'
import { Card, ErrorMessage } from '../components/ui.tsx'
import { type NewKey, scopeMeanings, scopes, toNewKey } from './new-key.ts'

type Props = Pick<SectionProps, 'me'> & { onNewKey: (name: string, secret: string) => void }

export function NewKeyForm({ me, onNewKey }: Props) {
  const [problem, setProblem] = useState<string>()
  // The answer goes to the component that shows the key, so that no cache holds it.
  const createKey = useAction(async (body: NewKey) => {
    const { name, api_key } = await api.post('/api/keys', { body })
    onNewKey(name, api_key)
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const newKey = toNewKey(new FormData(form))
    setProblem(newKey.scopes.length === 0 ? 'Choose at least one scope.' : undefined)
    if (newKey.scopes.length === 0) return
    createKey.mutate(newKey, {
      onSuccess: () => {
        form.reset()
        scrollTo(0, 0)
      },
    })
  }
  const bondNote = (bond: string | null) => (bond === null ? 'any' : `${bond}, like your key`)
  return (
    <Card title="Create a key" note="For each agent, service or person its own">
      <form onSubmit={submit} aria-label="New key">
        <div className="form-grid">
          <Field label="Name">
            {(id) => <input id={id} name="name" maxLength={80} required placeholder="Fleet agent" autoComplete="off" />}
          </Field>
          <Field label="Expires (optional, your time)">
            {(id) => <input id={id} name="expires_at" type="datetime-local" />}
          </Field>
          <Field label="Spender (optional)">
            {(id) => <input id={id} name="spender" maxLength={120} placeholder={bondNote(me.spender)} />}
          </Field>
          <Field label="Team (optional)">
            {(id) => <input id={id} name="team" maxLength={120} placeholder={bondNote(me.team)} />}
          </Field>
          <Field label="Mandates (optional, ids)">
            {(id) => <input id={id} name="mandate_ids" placeholder="mnd_…, mnd_…" />}
          </Field>
        </div>
        <CheckBoxes
          legend="Scopes"
          name="scopes"
          selected={['read']}
          options={scopes.map((scope) => ({
            value: scope,
            text: me.scopes.includes(scope)
              ? scopeMeanings[scope]
              : `${scopeMeanings[scope]} (your key lacks it, so it cannot give it)`,
            disabled: !me.scopes.includes(scope),
          }))}
        />
        {(problem ?? createKey.error) && <ErrorMessage>{problem ?? createKey.error?.message}</ErrorMessage>}
        <button type="submit" disabled={createKey.isPending}>
          Create key
        </button>
      </form>
    </Card>
  )
}
