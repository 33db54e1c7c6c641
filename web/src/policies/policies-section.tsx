import type { Policy } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { ActionButton } from '../components/action-button.tsx'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, Timestamp } from '../components/ui.tsx'

export function PoliciesSection({ me }: SectionProps) {
  const pagination = usePagination('')
  const policies = useQuery({
    queryKey: [ACCOUNT_KEY, 'policies', pagination.cursor],
    queryFn: () => api.get('/api/policies', { query: { limit: 25, cursor: pagination.cursor } }),
    placeholderData: keepPreviousData,
  })
  return (
    <Card title="Policies" note="Deny overrides review, review overrides allow">
      <QueryResult query={policies}>
        {({ policies: policyList, next_cursor }) => (
          <>
            <Table
              label="Policies"
              columns={mayControl(me) ? [...columns, actionColumn] : columns}
              rows={policyList}
              rowKey={({ id }) => id}
              empty="There are no policies: everything within the budgets is allowed."
            />
            <Pager pagination={pagination} next={next_cursor} />
          </>
        )}
      </QueryResult>
    </Card>
  )
}

const columns: Column<Policy>[] = [
  { name: 'Policy', render: ({ name, version }) => `${name} (version ${version})`, wide: true },
  {
    name: 'Status',
    render: ({ status }) => <Badge tone={status === 'active' ? 'success' : 'neutral'}>{status}</Badge>,
  },
  { name: 'Mode', render: ({ mode }) => mode },
  { name: 'For', render: ({ identity_type, agent_id, key_prefix }) => agent_id ?? key_prefix ?? identity_type },
  {
    name: 'Rules',
    render: ({ constraints, rules }) => (
      <ul className="plain-list">
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
  { name: 'Changed', render: ({ updated_at }) => <Timestamp at={updated_at} /> },
]

const actionColumn: Column<Policy> = {
  name: 'Action',
  render: ({ id, status }) => (
    <ActionButton
      className="secondary"
      action={() =>
        api.patch('/api/policies/{id}', {
          path: { id },
          body: { status: status === 'active' ? 'inactive' : 'active' },
        })
      }
    >
      {status === 'active' ? 'Switch off' : 'Switch on'}
    </ActionButton>
  ),
}
