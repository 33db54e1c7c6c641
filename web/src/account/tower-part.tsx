import type { Answer } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import type { FormEvent } from 'react'
import { ActionButton, useAction } from '../parts/action.tsx'
import { Field } from '../parts/fields.tsx'
import { count, duration, usdc } from '../parts/format.ts'
import { Loaded } from '../parts/loaded.tsx'
import { Bad, Card, Figures, Mark, Soft, When } from '../parts/parts.tsx'
import { Table } from '../parts/table.tsx'
import { link } from '../route.ts'
import { ACCOUNT, service, useLanes } from '../service.ts'
import { mayControl, type PartProps } from './account-page.tsx'
import { AlertRows } from './alerts-part.tsx'

type Tower = Answer<'/api/control-tower', 'get'>

export function TowerPart({ me }: PartProps) {
  const tower = useQuery({ queryKey: [ACCOUNT, 'tower'], queryFn: () => service.get('/api/control-tower') })
  const may = mayControl(me)
  return (
    <>
      <Card title="Now" note={tower.data && <When at={tower.data.as_of} />}>
        <Loaded query={tower}>{(view) => <Figures figures={figuresOf(view)} />}</Loaded>
      </Card>
      <Card title="Frozen agents" note="A frozen agent is refused everywhere at once">
        <Loaded query={tower}>{({ frozen_agents }) => <Frozen agents={frozen_agents} may={may} />}</Loaded>
        {may ? <FreezeForm /> : <Soft>This key may look but not steer.</Soft>}
      </Card>
      <Card title="Budgets at risk">
        <Loaded query={tower}>
          {({ budgets_at_risk }) => (
            <Table
              label="Budgets at risk"
              columns={[
                { name: 'Budget', show: ({ budget_id }) => budget_id },
                { name: 'For', show: ({ scope }) => `${scope.type} ${scope.id}`, wide: true },
                { name: 'Spent', show: ({ spent_usdc }) => usdc(spent_usdc), number: true },
                { name: 'Limit', show: ({ limit_usdc }) => usdc(limit_usdc), number: true },
                {
                  name: 'Runs out',
                  show: ({ forecast }) => (forecast ? <When at={forecast.exhausted_at} /> : 'not at this pace'),
                },
              ]}
              rows={budgets_at_risk}
              rowKey={({ budget_id }) => budget_id}
              empty="No budget is at risk."
            />
          )}
        </Loaded>
      </Card>
      <Card title="Newest alerts">
        <Loaded query={tower}>{({ alerts }) => <AlertRows alerts={alerts} may={may} />}</Loaded>
      </Card>
    </>
  )
}

function figuresOf({ spend, runs, approvals_pending, preauth, settlements_unknown, webhooks }: Tower) {
  const worry = (value: number) => (value > 0 ? ('warn' as const) : undefined)
  return [
    { name: 'Spent today', value: usdc(spend.today_usdc) },
    { name: 'Spent this month', value: usdc(spend.month_usdc) },
    { name: 'Runs today', value: count(runs.today) },
    { name: 'Runs this month', value: count(runs.month) },
    { name: 'Executing', value: count(runs.executing) },
    { name: 'Blocked today', value: count(runs.blocked_today), tone: worry(runs.blocked_today) },
    { name: 'Failed today', value: count(runs.failed_today), tone: worry(runs.failed_today) },
    { name: 'Escalated', value: count(runs.escalated), tone: worry(runs.escalated) },
    {
      name: 'Approvals waiting',
      value: <a href={link(['account', 'approvals'])}>{count(approvals_pending)}</a>,
      tone: worry(approvals_pending),
    },
    {
      name: 'Open pre-authorisations',
      value: `${count(preauth.open)}${preauth.oldest_age_s === null ? '' : `, oldest ${duration(preauth.oldest_age_s)}`}`,
      tone: worry(preauth.escalated),
    },
    { name: 'Settlements unknown', value: count(settlements_unknown), tone: worry(settlements_unknown) },
    {
      name: 'Webhooks',
      value: `${count(webhooks.active)} active, ${count(webhooks.failing)} failing`,
      tone: worry(webhooks.failing),
    },
  ]
}

function Frozen({ agents, may }: { agents: Tower['frozen_agents']; may: boolean }) {
  return (
    <Table
      label="Frozen agents"
      columns={[
        { name: 'Agent', show: ({ agent_id }) => <Mark tone="bad">{agent_id}</Mark> },
        { name: 'Why', show: ({ reason }) => reason, wide: true },
        { name: 'Since', show: ({ frozen_at }) => <When at={frozen_at} /> },
        ...(may
          ? [
              {
                name: 'Action',
                show: ({ agent_id }: { agent_id: string }) => (
                  <ActionButton
                    className="quiet"
                    act={() => service.post('/api/control-tower', { body: { action: 'unfreeze', agent_id } })}
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
    service.post('/api/control-tower', { body: { action: 'freeze', ...body } }),
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
      {freeze.error && <Bad>{freeze.error.message}</Bad>}
    </form>
  )
}
