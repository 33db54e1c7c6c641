import { useQuery } from '@tanstack/react-query'
import type { FormEvent } from 'react'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api, useLanes } from '../api.ts'
import { ActionButton, useAction } from '../components/action-button.tsx'
import { Field } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Table } from '../components/table.tsx'
import { Badge, Card, ErrorMessage, MutedText, StatList, Timestamp } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { AlertRows } from './alerts-section.tsx'
import { type ControlTower, toStats } from './control-tower-stats.tsx'

export function ControlTowerSection({ me }: SectionProps) {
  const tower = useQuery({ queryKey: [ACCOUNT_KEY, 'tower'], queryFn: () => api.get('/api/control-tower') })
  const canControl = mayControl(me)
  return (
    <>
      <Card title="Now" note={tower.data && <Timestamp at={tower.data.as_of} />}>
        <QueryResult query={tower}>{(view) => <StatList stats={toStats(view)} />}</QueryResult>
      </Card>
      <Card title="Frozen agents" note="Runs of a frozen agent are refused">
        <QueryResult query={tower}>
          {({ frozen_agents }) => <FrozenAgents agents={frozen_agents} canControl={canControl} />}
        </QueryResult>
        {canControl ? <FreezeForm /> : <MutedText>This API key can view but not make changes.</MutedText>}
      </Card>
      <Card title="Budgets at risk">
        <QueryResult query={tower}>
          {({ budgets_at_risk }) => (
            <Table
              label="Budgets at risk"
              columns={[
                { name: 'Budget', render: ({ budget_id }) => budget_id },
                { name: 'For', render: ({ scope }) => `${scope.type} ${scope.id}`, wide: true },
                { name: 'Spent', render: ({ spent_usdc }) => formatUsdc(spent_usdc), numeric: true },
                { name: 'Limit', render: ({ limit_usdc }) => formatUsdc(limit_usdc), numeric: true },
                {
                  name: 'Runs out',
                  render: ({ forecast }) => (forecast ? <Timestamp at={forecast.exhausted_at} /> : 'not at this pace'),
                },
              ]}
              rows={budgets_at_risk}
              rowKey={({ budget_id }) => budget_id}
              empty="No budget is at risk."
            />
          )}
        </QueryResult>
      </Card>
      <Card title="Latest alerts">
        <QueryResult query={tower}>{({ alerts }) => <AlertRows alerts={alerts} canControl={canControl} />}</QueryResult>
      </Card>
    </>
  )
}

function FrozenAgents({ agents, canControl }: { agents: ControlTower['frozen_agents']; canControl: boolean }) {
  return (
    <Table
      label="Frozen agents"
      columns={[
        { name: 'Agent', render: ({ agent_id }) => <Badge tone="error">{agent_id}</Badge> },
        { name: 'Reason', render: ({ reason }) => reason, wide: true },
        { name: 'Since', render: ({ frozen_at }) => <Timestamp at={frozen_at} /> },
        ...(canControl
          ? [
              {
                name: 'Action',
                render: ({ agent_id }: { agent_id: string }) => (
                  <ActionButton
                    className="secondary"
                    action={() => api.post('/api/control-tower', { body: { action: 'unfreeze', agent_id } })}
                  >
                    Unfreeze
                  </ActionButton>
                ),
              },
            ]
          : []),
      ]}
      rows={agents}
      rowKey={({ agent_id }) => agent_id}
      empty="No agent is frozen."
    />
  )
}

function FreezeForm() {
  const lanes = useLanes()
  const freeze = useAction((body: { agent_id: string; reason: string }) =>
    api.post('/api/control-tower', { body: { action: 'freeze', ...body } }),
  )
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const data = new FormData(form)
    freeze.mutate(
      { agent_id: String(data.get('agent_id')).trim(), reason: String(data.get('reason')).trim() },
      { onSuccess: () => form.reset() },
    )
  }
  return (
    <form className="filters" onSubmit={submit} aria-label="Freeze an agent">
      <Field label="Agent">
        {(id) => <input id={id} name="agent_id" list="lanes" maxLength={120} required placeholder="writer-v1" />}
      </Field>
      <datalist id="lanes">
        {lanes.data?.agents.map(({ agent_id }) => (
          <option key={agent_id} value={agent_id} />
        ))}
      </datalist>
      <Field label="Reason">{(id) => <input id={id} name="reason" maxLength={500} required />}</Field>
      <button type="submit" className="danger" disabled={freeze.isPending}>
        Freeze
      </button>
      {freeze.error && <ErrorMessage>{freeze.error.message}</ErrorMessage>}
    </form>
  )
}
