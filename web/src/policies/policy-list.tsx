import type { Policy } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, MutedText, Timestamp } from '../components/ui.tsx'
import { routeHref } from '../route.ts'
import { describeConstraint } from './constraint-text.ts'
import { describeRule } from './rule-fields.ts'
import { SwitchButton } from './switch-button.tsx'

export function PolicyList({ me }: Pick<SectionProps, 'me'>) {
  const pagination = usePagination('')
  const policies = useQuery({
    queryKey: [ACCOUNT_KEY, 'policies', pagination.cursor],
    queryFn: () => api.get('/api/policies', { query: { limit: 25, cursor: pagination.cursor } }),
    placeholderData: keepPreviousData,
  })
  const newPolicyHref = routeHref(['account', 'policies', 'new'])
  return (
    <Card title="Policies" note="Deny overrides review, review overrides allow">
      {mayControl(me) ? (
        <p>
          <a className="button" href={newPolicyHref}>
            New policy
          </a>
        </p>
      ) : (
        <MutedText>This API key can view but not make changes.</MutedText>
      )}
      <QueryResult query={policies}>
        {({ policies: policyList, next_cursor }) => (
          <>
            <Table
              label="Policies"
              columns={mayControl(me) ? [...columns, actionColumn] : columns}
              rows={policyList}
              rowKey={({ id }) => id}
              empty={
                <>
                  There are no policies: everything within the budgets is allowed.
                  {mayControl(me) && (
                    <>
                      {' '}
                      <a href={newPolicyHref}>Make the first one</a>; it is tried on your past runs before it counts.
                    </>
                  )}
                </>
              }
            />
            <Pager pagination={pagination} next={next_cursor} />
          </>
        )}
      </QueryResult>
    </Card>
  )
}

export const describeIdentity = ({ identity_type, agent_id, key_prefix, identity_id }: Policy): string =>
  identity_type === 'tenant'
    ? 'the whole organisation'
    : `${identity_type === 'api_key' ? 'key' : identity_type} ${agent_id ?? identity_id ?? `${key_prefix}…`}`

/** The limits and rules of a policy as short sentences. */
export const PolicyContentList = ({ constraints, rules }: Pick<Policy, 'constraints' | 'rules'>) => (
  <ul className="plain-list">
    {Object.entries(constraints as Record<string, unknown>).map(([name, value]) => (
      <li key={name}>{describeConstraint(name, value)}</li>
    ))}
    {(rules as Record<string, unknown>[]).map((rule, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: a rule is known by its position alone
      <li key={index}>
        {describeRule(rule)}
        {rule.reason ? `: ${String(rule.reason)}` : ''}
      </li>
    ))}
  </ul>
)

const columns: Column<Policy>[] = [
  {
    name: 'Policy',
    render: ({ id, name, version }) => (
      <>
        <a href={routeHref(['account', 'policies', id])}>{name}</a> <span className="muted">version {version}</span>
      </>
    ),
    wide: true,
  },
  {
    name: 'Status',
    render: ({ status }) => <Badge tone={status === 'active' ? 'success' : 'neutral'}>{status}</Badge>,
  },
  { name: 'Mode', render: ({ mode }) => mode },
  { name: 'For', render: describeIdentity, wide: true },
  { name: 'Rules', render: (policy) => <PolicyContentList {...policy} />, wide: true },
  { name: 'Changed', render: ({ updated_at }) => <Timestamp at={updated_at} /> },
]

const actionColumn: Column<Policy> = { name: 'Action', render: (policy) => <SwitchButton policy={policy} /> }
