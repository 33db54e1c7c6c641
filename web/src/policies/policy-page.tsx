import type { Policy } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api, hasStatus } from '../api.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { CopyButton } from '../components/copy-button.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Badge, Card, DescriptionList, Id, MutedText, Timestamp } from '../components/ui.tsx'
import { navigate, routeHref } from '../route.ts'
import { NoPolicy, usePolicy } from './policy-editor-page.tsx'
import { describeIdentity, PolicyContentList } from './policy-list.tsx'
import { RefusalList } from './refusal-changes.tsx'
import { SwitchButton } from './switch-button.tsx'
import { VersionsCard } from './versions-card.tsx'

/** One policy: what it says, its versions, and what it refused. */
export function PolicyPage({ me, id, query }: { me: SectionProps['me']; id: string; query: URLSearchParams }) {
  const policy = usePolicy(id)
  if (hasStatus(policy.error, 404) && !policy.data) return <NoPolicy id={id} />
  return (
    <QueryResult query={policy}>
      {(data) => (
        <>
          <PolicyCard me={me} policy={data} />
          <RefusalsCard me={me} policy={data} />
          <VersionsCard me={me} policy={data} query={query} />
        </>
      )}
    </QueryResult>
  )
}

function PolicyCard({ me, policy }: { me: SectionProps['me']; policy: Policy }) {
  const { id, name, status, mode, version } = policy
  return (
    <Card
      title={name}
      note={
        <a href={routeHref(['account', 'policies'])} className="muted">
          All policies
        </a>
      }
    >
      <p>
        <Badge tone={status === 'active' ? 'success' : 'neutral'}>{status}</Badge> version {version}, mode {mode}
      </p>
      <DescriptionList
        items={[
          [
            'Policy',
            <span key="id">
              <Id value={id} full /> <CopyButton text={id} label="the policy id" />
            </span>,
          ],
          ['For', describeIdentity(policy)],
          ['Limits and rules', <PolicyContentList key="content" {...policy} />],
          ['Audit trail', policy.audit_trail_required && 'answers wait until they stand in it'],
          ['Trades', policy.selectable && 'a trade may choose it'],
          ['Content hash', <Id key="hash" value={policy.content_hash} full />],
          ['Created', <Timestamp key="created" at={policy.created_at} />],
          ['Changed', <Timestamp key="changed" at={policy.updated_at} />],
        ]}
      />
      {status === 'deleted' ? (
        <MutedText>This policy is deleted. Its versions stay on record.</MutedText>
      ) : mayControl(me) ? (
        <div className="row">
          <a className="button" href={routeHref(['account', 'policies', id, 'edit'])}>
            Change
          </a>
          <SwitchButton policy={policy} />
          <ConfirmButton
            action={async () => {
              await api.delete('/api/policies/{id}', { path: { id } })
              navigate(routeHref(['account', 'policies']))
            }}
            title={`Delete ${name}?`}
            text={
              <p>Nothing is checked against it any more. Its versions stay on record. It cannot be brought back.</p>
            }
            confirmLabel="Delete the policy"
          >
            Delete
          </ConfirmButton>
        </div>
      ) : (
        <MutedText>This API key can view but not make changes.</MutedText>
      )}
    </Card>
  )
}

const DECISIONS_READ = 100
const DECISIONS_SHOWN = 5

/** What this policy refused lately, with the smallest change that would have allowed each. */
function RefusalsCard({ me, policy }: { me: SectionProps['me']; policy: Policy }) {
  const decisions = useQuery({
    queryKey: [ACCOUNT_KEY, 'decisions', 'newest'],
    queryFn: () => api.get('/api/decisions', { query: { limit: DECISIONS_READ } }),
  })
  return (
    <Card title="What it refused" note={`Of the newest ${DECISIONS_READ} refusals`}>
      <QueryResult query={decisions}>
        {({ decisions: list }) => {
          const own = list.filter(({ policy_results }) =>
            policy_results.some(
              (result) =>
                result.policy_id === policy.id && ['blocked', 'review_required'].includes(String(result.outcome)),
            ),
          )
          if (own.length === 0) return <MutedText>It has refused nothing lately.</MutedText>
          return (
            <ul className="cards">
              {own.slice(0, DECISIONS_SHOWN).map((decision) => (
                <li key={decision.decision_id}>
                  <p>
                    <a href={routeHref(['account', 'runs', decision.run_id])}>
                      <Id value={decision.run_id} />
                    </a>{' '}
                    {decision.amount_usdc} USDC by {decision.agent_id ?? decision.spender},{' '}
                    <Timestamp at={decision.created_at} />
                  </p>
                  <RefusalList me={me} decision={decision} policyId={policy.id} />
                </li>
              ))}
            </ul>
          )
        }}
      </QueryResult>
    </Card>
  )
}
