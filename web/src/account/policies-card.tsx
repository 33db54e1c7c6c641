import type { Answer } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { ActionButton } from '../parts/action.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { Pager, usePages } from '../parts/pages.tsx'
import { Card, Mark, When } from '../parts/parts.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { ACCOUNT, service } from '../service.ts'
import { mayControl } from './account-page.tsx'
import type { Me } from './sign-in.ts'

type Policy = Answer<'/api/policies', 'get'>['policies'][number]

export function PoliciesCard({ me }: { me: Me }) {
  const pages = usePages('')
  const policies = useQuery({
    queryKey: [ACCOUNT, 'policies', pages.cursor],
    queryFn: () => service.get('/api/policies', { query: { limit: 25, cursor: pages.cursor } }),
    placeholderData: keepPreviousData,
  })
  return (
    <Card title="Policies" note="Deny wins over review, review over allow">
      <Loaded query={policies}>
        {({ policies: list, next_cursor }) => (
          <>
            <Table
              label="Policies"
              columns={mayControl(me) ? [...columns, actions] : columns}
              rows={list}
              rowKey={({ id }) => id}
              empty="There are no policies: everything within the budgets is allowed."
            />
            <Pager pages={pages} next={next_cursor} />
          </>
        )}
      </Loaded>
    </Card>
  )
}

const columns: Column<Policy>[] = [
  { name: 'Policy', show: ({ name, version }) => `${name} (version ${version})`, wide: true },
  { name: 'Status', show: ({ status }) => <Mark tone={status === 'active' ? 'good' : 'plain'}>{status}</Mark> },
  { name: 'Mode', show: ({ mode }) => mode },
  { name: 'For', show: ({ identity_type, agent_id, key_prefix }) => agent_id ?? key_prefix ?? identity_type },
  {
    name: 'Says',
    show: ({ constraints, rules }) => (
      <ul className="bare">
        {Object.entries(constraints as Record<string, unknown>).map(([name, value]) => (
          <li key={name}>
            {name.replaceAll('_', ' ')}: <code>{JSON.stringify(value)}</code>
          </li>
        ))}
        {(rules as Record<string, unknown>[]).map((rule) => (
          <li key={JSON.stringify(rule)}>
            {String(rule.effect)} when{' '}
            <code>
              {String(rule.field)} {String(rule.op)} {JSON.stringify(rule.value)}
            </code>
            {rule.reason ? `: ${String(rule.reason)}` : ''}
          </li>
        ))}
      </ul>
    ),
    wide: true,
  },
  { name: 'Changed', show: ({ updated_at }) => <When at={updated_at} /> },
]

const actions: Column<Policy> = {
  name: 'Action',
  show: ({ id, status }) => (
    <ActionButton
      className="quiet"
      act={() =>
        service.patch('/api/policies/{id}', {
          path: { id },
          body: { status: status === 'active' ? 'inactive' : 'active' },
        })
      }
    >
      {status === 'active' ? 'Switch off' : 'Switch on'}
    </ActionButton>
  ),
}
