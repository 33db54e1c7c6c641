import type { ApiResponse } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { useAction } from '../components/action-button.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Badge, Card, DescriptionList, ErrorMessage, MutedText, Timestamp } from '../components/ui.tsx'
import { formatCount, formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'

type Plan = ApiResponse<'/api/me/plan', 'get'>
type Settings = ApiResponse<'/api/settings', 'get'>

export function SettingsSection({ me }: SectionProps) {
  const plan = useQuery({ queryKey: [ACCOUNT_KEY, 'plan'], queryFn: () => api.get('/api/me/plan') })
  const settings = useQuery({ queryKey: [ACCOUNT_KEY, 'settings'], queryFn: () => api.get('/api/settings') })
  return (
    <>
      <Card title="Settings">
        <QueryResult query={settings}>
          {(current) => <SettingsForm settings={current} mayChange={mayControl(me)} />}
        </QueryResult>
      </Card>
      <Card title="Plan" note={plan.data && <Badge tone="neutral">{plan.data.plan}</Badge>}>
        <QueryResult query={plan}>{(current) => <PlanView plan={current} />}</QueryResult>
      </Card>
    </>
  )
}

const selfApprovals: { value: Settings['self_approval']; text: string }[] = [
  {
    value: 'single_key',
    text: 'The only key with the scope control may decide about what it asked for itself. With a second one, each decides about the other.',
  },
  { value: 'never', text: 'Nobody decides about what they asked for. With a single key nothing can be approved.' },
]

function SettingsForm({ settings, mayChange }: { settings: Settings; mayChange: boolean }) {
  const [choice, setChoice] = useState<Settings['self_approval']>()
  const save = useAction((body: Settings) => api.put('/api/settings', { body }))
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    save.mutate({ self_approval: choice ?? settings.self_approval }, { onSuccess: () => setChoice(undefined) })
  }
  return (
    <form onSubmit={submit} aria-label="Settings">
      <fieldset className="check-boxes" disabled={!mayChange}>
        <legend>May a key approve what it asked for?</legend>
        {selfApprovals.map(({ value, text }) => (
          <label key={value} className="consent">
            <input
              type="radio"
              name="self_approval"
              checked={(choice ?? settings.self_approval) === value}
              onChange={() => setChoice(value)}
            />
            <span>
              <code>{value}</code> <span className="muted">{text}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {save.error && <ErrorMessage>{save.error.message}</ErrorMessage>}
      {mayChange ? (
        <div className="row">
          <button type="submit" disabled={save.isPending}>
            Save settings
          </button>
          <span role="status">{save.isSuccess && choice === undefined && 'Saved.'}</span>
        </div>
      ) : (
        <MutedText>This key lacks the scope control, so it cannot change settings.</MutedText>
      )}
      <MutedText>
        Each change is in the <a href={routeHref(['account', 'audit'], { type: 'settings.updated' })}>audit trail</a>{' '}
        with the key that made it.
      </MutedText>
    </form>
  )
}

const nameOf = (text: string) => text.replaceAll('_', ' ')

function PlanView({ plan: { features, limits, usage, renews_at } }: { plan: Plan }) {
  const usedOf = (used: number, limit: number | undefined) =>
    limit === undefined ? formatCount(used) : `${formatCount(used)} of ${formatCount(limit)}`
  const { api_keys, webhook_subscriptions, ...otherLimits } = limits
  return (
    <>
      <DescriptionList
        items={[
          ['Since', <Timestamp key="since" at={usage.since} />],
          ['Runs', formatCount(usage.runs)],
          ['Spent', formatUsdc(usage.spend_usdc)],
          ['Live keys', usedOf(usage.api_keys, api_keys)],
          ['Webhooks', usedOf(usage.webhook_subscriptions, webhook_subscriptions)],
          ...Object.entries(otherLimits).map(([name, limit]): [string, string] => [
            `Limit of ${nameOf(name)}`,
            limit === 0 ? 'none' : formatCount(limit),
          ]),
          ['Next period', renews_at && <Timestamp key="renews" at={renews_at} />],
        ]}
      />
      <h3>Features</h3>
      <ul className="feature-list">
        {Object.entries(features).map(([name, isIncluded]) => (
          <li key={name}>
            <Badge tone={isIncluded ? 'success' : 'neutral'}>
              {nameOf(name)}
              {!isIncluded && ': not in this plan'}
            </Badge>
          </li>
        ))}
      </ul>
    </>
  )
}
