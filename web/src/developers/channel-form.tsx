import { type FormEvent, useState } from 'react'
import { api } from '../api.ts'
import { useAction } from '../components/action-button.tsx'
import { Field, Select } from '../components/form-fields.tsx'
import { ErrorMessage, MutedText } from '../components/ui.tsx'
import { channelTypes, type NewChannel, toNewChannel } from './channel-target.ts'

const notes: Record<NewChannel['type'], string> = {
  email: 'Each person gets a link that shows the action and takes one decision.',
  slack: 'Any incoming webhook that takes the format of Slack. Whoever reads the channel can decide.',
  webhook: 'Signed like other webhooks; the signing secret is shown once.',
}

export function ChannelForm({ onSecret }: { onSecret: (name: string, secret: string) => void }) {
  const [type, setType] = useState<string>('email')
  // A secret in the answer goes to the component that shows it, so that no cache holds it.
  const create = useAction(async (body: NewChannel) => {
    const { name, signingSecret } = await api.post('/api/approval-channels', { body })
    if (signingSecret) onSecret(name, signingSecret)
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    create.mutate(toNewChannel(new FormData(form)), {
      onSuccess: () => {
        form.reset()
        setType('email')
        scrollTo(0, 0)
      },
    })
  }
  return (
    <form onSubmit={submit} aria-label="New channel">
      <div className="form-grid">
        <Select label="Type" name="type" value={type} options={channelTypes} onSelect={setType} />
        <Field label="Name (optional)">
          {(id) => <input id={id} name="name" maxLength={100} placeholder="On call" />}
        </Field>
      </div>
      {type === 'email' ? (
        <Field label="Recipients, one a line">
          {(id) => (
            <textarea id={id} name="recipients" rows={3} required placeholder="Grace Hopper <grace@example.com>" />
          )}
        </Field>
      ) : (
        <Field label="Address (https)">
          {(id) => <input id={id} name="url" type="url" maxLength={2048} required placeholder="https://…" />}
        </Field>
      )}
      <MutedText>
        {notes[type as NewChannel['type']]} Your key counts as the same identity as the recipients it adds: they cannot
        approve what it asked for.
      </MutedText>
      {create.error && <ErrorMessage>{create.error.message}</ErrorMessage>}
      <button type="submit" disabled={create.isPending}>
        Add channel
      </button>
    </form>
  )
}
