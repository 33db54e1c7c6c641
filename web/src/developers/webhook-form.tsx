import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ACCOUNT_KEY, api } from '../api.ts'
import { useAction } from '../components/action-button.tsx'
import { CheckBoxes } from '../components/check-boxes.tsx'
import { Field } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { ErrorMessage } from '../components/ui.tsx'
import { groupEventTypes } from './event-groups.ts'

export type WebhookDraft = { url: string; events: string[] }

const ALL_EVENTS = '*'

/** The address and the events of a webhook, new or changed. */
export function WebhookForm({
  label,
  submitLabel,
  draft,
  action,
  onDone,
}: {
  label: string
  submitLabel: string
  draft?: WebhookDraft
  action: (draft: WebhookDraft) => Promise<unknown>
  onDone?: () => void
}) {
  const eventTypes = useQuery({
    queryKey: [ACCOUNT_KEY, 'webhooks', 'event-types'],
    queryFn: () => api.get('/api/webhooks/event-types'),
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
  })
  const [isAll, setAll] = useState(draft?.events.includes(ALL_EVENTS) ?? false)
  const [problem, setProblem] = useState<string>()
  const save = useAction(action)
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const data = new FormData(form)
    const events = isAll ? [ALL_EVENTS] : data.getAll('events').map(String)
    setProblem(events.length === 0 ? 'Choose at least one event.' : undefined)
    if (events.length === 0) return
    save.mutate(
      { url: String(data.get('url')).trim(), events },
      {
        onSuccess: () => {
          if (!draft) {
            form.reset()
            setAll(false)
          }
          onDone?.()
        },
      },
    )
  }
  return (
    <form onSubmit={submit} aria-label={label}>
      <Field label="Address (https)">
        {(id) => (
          <input
            id={id}
            name="url"
            type="url"
            maxLength={2048}
            required
            defaultValue={draft?.url}
            placeholder="https://example.com/countersign"
          />
        )}
      </Field>
      <label className="consent all-events">
        <input type="checkbox" checked={isAll} onChange={(event) => setAll(event.target.checked)} />
        All events, those of later versions too
      </label>
      {!isAll && (
        <QueryResult query={eventTypes}>
          {({ event_types }) => (
            <div className="event-groups">
              {groupEventTypes(event_types).map(({ name, types }) => (
                <CheckBoxes
                  key={name}
                  legend={name}
                  name="events"
                  selected={draft?.events ?? []}
                  options={types.map(({ type, description }) => ({ value: type, text: description }))}
                />
              ))}
            </div>
          )}
        </QueryResult>
      )}
      {(problem ?? save.error) && <ErrorMessage>{problem ?? save.error?.message}</ErrorMessage>}
      <button type="submit" disabled={save.isPending}>
        {submitLabel}
      </button>
    </form>
  )
}
