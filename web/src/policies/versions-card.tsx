import type { ApiResponse, Policy } from '@countersign/sdk'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { FilterForm, Select } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, Id, MutedText, Timestamp, type Tone } from '../components/ui.tsx'
import { navigate, routeHref } from '../route.ts'
import { usePolicyVersions } from './policy-editor-page.tsx'
import { type Difference, findDifferences } from './value-diff.ts'

type Version = ApiResponse<'/api/policies/{id}/versions', 'get'>['versions'][number]

/** The versions of a policy, and what differs between any two of them. The two are in the address. */
export function VersionsCard({
  me,
  policy,
  query,
}: {
  me: SectionProps['me']
  policy: Policy
  query: URLSearchParams
}) {
  const versions = usePolicyVersions(policy.id)
  const canRestore = mayControl(me) && policy.status !== 'deleted'
  return (
    <Card title="Versions" note="Each change is a new version; none is lost">
      <QueryResult query={versions}>
        {({ versions: list, has_more }) => (
          <>
            <Table
              label="Versions"
              columns={canRestore ? [...columns, restoreColumn(policy)] : columns}
              rows={list}
              rowKey={({ version }) => String(version)}
              empty="There are no versions."
            />
            {has_more && <MutedText>The newest {list.length} are listed.</MutedText>}
            {list.length > 1 && <Comparison policyId={policy.id} versions={list} query={query} />}
          </>
        )}
      </QueryResult>
    </Card>
  )
}

const columns: Column<Version>[] = [
  { name: 'Version', render: ({ version }) => version },
  { name: 'Made', render: ({ created_at }) => <Timestamp at={created_at} /> },
  { name: 'By key', render: ({ changed_by }) => <Id value={changed_by} /> },
  { name: 'Content hash', render: ({ content_hash }) => <Id value={content_hash} /> },
]

const restoreColumn = (policy: Policy): Column<Version> => ({
  name: 'Action',
  render: ({ version, content_hash }) =>
    content_hash === policy.content_hash ? (
      <span className="muted">as now</span>
    ) : (
      <a href={routeHref(['account', 'policies', policy.id, 'edit'], { version: String(version) })}>
        Restore version {version}
      </a>
    ),
})

function Comparison({ policyId, versions, query }: { policyId: string; versions: Version[]; query: URLSearchParams }) {
  const numbers = versions.map(({ version }) => String(version))
  const choose = (name: string, fallback: string) => {
    const value = query.get(name)
    return value !== null && numbers.includes(value) ? value : fallback
  }
  const [from, to] = [choose('from', numbers[1]!), choose('to', numbers[0]!)]
  const contentOf = (version: string) => versions.find((candidate) => String(candidate.version) === version)!.content
  const differences = findDifferences(contentOf(from), contentOf(to))
  return (
    <>
      <h3>What changed</h3>
      <FilterForm
        key={`${from} ${to}`}
        onApply={(values) => navigate(routeHref(['account', 'policies', policyId], values))}
      >
        <Select label="From version" name="from" value={from} options={numbers} />
        <Select label="To version" name="to" value={to} options={numbers} />
      </FilterForm>
      <Table
        label={`Differences between version ${from} and version ${to}`}
        columns={differenceColumns}
        rows={differences}
        rowKey={({ path, kind, from: before, to: after }) => JSON.stringify([path, kind, before, after])}
        empty="The content is the same; the policy was switched on or off."
      />
    </>
  )
}

const kindTones: Record<Difference['kind'], Tone> = { added: 'success', removed: 'error', changed: 'warning' }
const renderValue = (value: unknown) =>
  value === undefined ? '' : <code className="wrap">{JSON.stringify(value)}</code>

const differenceColumns: Column<Difference>[] = [
  { name: 'Field', render: ({ path }) => <code className="wrap">{path}</code>, wide: true },
  { name: 'Change', render: ({ kind }) => <Badge tone={kindTones[kind]}>{kind}</Badge> },
  { name: 'Before', render: ({ from }) => renderValue(from), wide: true },
  { name: 'After', render: ({ to }) => renderValue(to), wide: true },
]
