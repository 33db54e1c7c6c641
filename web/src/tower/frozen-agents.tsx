import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { ACCOUNT_KEY, api } from '../api.ts'
import { ActionButton, useAction } from '../components/action-button.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Field } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Table } from '../components/table.tsx'
import { Badge, Card, ErrorMessage, MutedText, Timestamp } from '../components/ui.tsx'
import type { ControlTower } from './tower-tiles.ts'

const unfreeze = (agent_id: string) => api.post('/api/control-tower', { body: { action: 'unfreeze', agent_id } })

export function FrozenAgentsCard({ canControl }: { canControl: boolean }) {
  const tower = useQuery({ queryKey: [ACCOUNT_KEY, 'tower'], queryFn: () => api.get('/api/control-tower') })
  return (
    <Card title="Frozen agents" note="Runs, payments and trades of a frozen agent or spender are refused">
      <QueryResult query={tower}>
        {({ frozen_agents }) => <FrozenAgents agents={frozen_agents} canControl={canControl} />}
      </QueryResult>
      {canControl ? <FreezeForm /> : <MutedText>This API key can view but not make changes.</MutedText>}
    </Card>
  )
}

const FrozenAgents = ({ agents, canControl }: { agents: ControlTower['frozen_agents']; canControl: boolean }) => (
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
                <ActionButton className="secondary" action={() => unfreeze(agent_id)}>
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

/** A name is picked from those seen or typed; a reason is required, and the freeze can be undone at once. */
function FreezeForm() {
  const names = useQuery({
    queryKey: [ACCOUNT_KEY, 'frozen', 'names'],
    queryFn: () => api.get('/api/control-tower/agents'),
  })
  const [agent, setAgent] = useState('')
  const [reason, setReason] = useState('')
  const [frozenName, setFrozenName] = useState<string>()
  const undo = useAction(async (name: string) => {
    await unfreeze(name)
    setFrozenName(undefined)
  })
  const name = agent.trim()
  const freeze = async () => {
    await api.post('/api/control-tower', { body: { action: 'freeze', agent_id: name, reason: reason.trim() } })
    setFrozenName(name)
    setAgent('')
    setReason('')
  }
  const pickable = (names.data?.names ?? []).filter(({ frozen }) => !frozen)
  return (
    <>
      {frozenName !== undefined && (
        <p className="notice" role="status">
          {frozenName} is frozen.{' '}
          <button type="button" className="secondary" disabled={undo.isPending} onClick={() => undo.mutate(frozenName)}>
            Undo
          </button>
        </p>
      )}
      {undo.error && <ErrorMessage>{undo.error.message}</ErrorMessage>}
      <form className="filters" onSubmit={(event) => event.preventDefault()} aria-label="Freeze an agent">
        <Field label="Agents and spenders seen">
          {(id) => (
            <select
              id={id}
              value={pickable.some((one) => one.name === agent) ? agent : ''}
              onChange={({ target }) => setAgent(target.value)}
            >
              <option value="">pick one</option>
              {pickable.map((one) => (
                <option key={one.name} value={one.name}>
                  {one.name} ({one.kind})
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Agent">
          {(id) => (
            <input
              id={id}
              name="agent_id"
              maxLength={120}
              required
              placeholder="or type a name"
              value={agent}
              onChange={({ target }) => setAgent(target.value)}
            />
          )}
        </Field>
        <Field label="Reason">
          {(id) => (
            <input
              id={id}
              name="reason"
              maxLength={500}
              required
              value={reason}
              onChange={({ target }) => setReason(target.value)}
            />
          )}
        </Field>
        <ConfirmButton
          action={freeze}
          title={`Freeze ${name}?`}
          text="From now on everything it asks for is refused, in every process. What it is doing already goes on."
          confirmLabel="Freeze now"
          disabled={name === '' || reason.trim() === ''}
        >
          Freeze
        </ConfirmButton>
      </form>
    </>
  )
}
