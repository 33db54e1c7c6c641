import type { Policy } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { ACCOUNT_KEY, api, hasStatus } from '../api.ts'
import { QueryResult } from '../components/query-result.tsx'
import { Card, MutedText } from '../components/ui.tsx'
import { routeHref } from '../route.ts'
import { newDraft, toDraft } from './policy-draft.ts'
import { PolicyEditor } from './policy-editor.tsx'
import { applySmallestChange, refusingResults } from './smallest-change.ts'

export const NewPolicyPage = () => (
  <PolicyEditor
    name="new"
    initial={() => ({ draft: newDraft(), text: undefined, baseVersion: undefined, simulation: undefined })}
  />
)

export const usePolicy = (id: string) =>
  useQuery({
    queryKey: [ACCOUNT_KEY, 'policies', 'one', id],
    queryFn: () => api.get('/api/policies/{id}', { path: { id } }),
  })

export const usePolicyVersions = (id: string) =>
  useQuery({
    queryKey: [ACCOUNT_KEY, 'policies', 'versions', id],
    queryFn: () => api.get('/api/policies/{id}/versions', { path: { id }, query: { limit: 100 } }),
  })

export const NoPolicy = ({ id }: { id: string }) => (
  <Card title="Not found">
    <MutedText>
      There is no policy {id} in this organisation. <a href={routeHref(['account', 'policies'])}>All policies</a>
    </MutedText>
  </Card>
)

/** The editor of a policy: as it is, with an older version's content, or with the smallest change of a refusal made. */
export function EditPolicyPage({ id, query }: { id: string; query: URLSearchParams }) {
  const policy = usePolicy(id)
  if (hasStatus(policy.error, 404) && !policy.data) return <NoPolicy id={id} />
  const [version, decision] = [query.get('version'), query.get('decision')]
  return (
    <QueryResult query={policy}>
      {(data) =>
        data.status === 'deleted' ? (
          <NoPolicy id={id} />
        ) : version !== null ? (
          <RestoredVersion policy={data} version={Number(version)} />
        ) : decision !== null ? (
          <ChangedPolicy policy={data} decisionId={decision} position={Number(query.get('rule') ?? 0)} />
        ) : (
          <PolicyEditor name={id} policy={data} initial={() => startFrom(data)} />
        )
      }
    </QueryResult>
  )
}

const startFrom = (policy: Policy, draft = toDraft(policy)) => ({
  draft,
  text: undefined,
  baseVersion: policy.version,
  simulation: undefined,
})

function RestoredVersion({ policy, version }: { policy: Policy; version: number }) {
  const versions = usePolicyVersions(policy.id)
  return (
    <QueryResult query={versions}>
      {({ versions: list }) => {
        const old = list.find((candidate) => candidate.version === version)
        if (!old) return <MutedText>There is no version {version} of this policy.</MutedText>
        // Whether the policy is switched on is not part of a version.
        const draft = toDraft({ ...(old.content as Partial<Policy>), status: policy.status })
        return (
          <PolicyEditor
            name={`${policy.id} version ${version}`}
            policy={policy}
            initial={() => startFrom(policy, draft)}
            purpose={{
              title: `Restore version ${version}`,
              words: `The content of version ${version} becomes a new version.`,
            }}
          />
        )
      }}
    </QueryResult>
  )
}

function ChangedPolicy({ policy, decisionId, position }: { policy: Policy; decisionId: string; position: number }) {
  const decision = useQuery({
    queryKey: [ACCOUNT_KEY, 'decisions', decisionId],
    queryFn: () => api.get('/api/decisions/{id}', { path: { id: decisionId } }),
  })
  return (
    <QueryResult query={decision}>
      {(data) => {
        const result = refusingResults(data.policy_results)[position]
        const isOfRules = result?.smallest_change?.path?.startsWith('rules[') ?? false
        const change =
          !result || result.policy_id !== policy.id
            ? { reason: 'This decision was not made by this policy.' }
            : isOfRules && result.policy_version !== policy.version
              ? { reason: `The rules have changed since: that was version ${result.policy_version}.` }
              : applySmallestChange(toDraft(policy), result)
        if ('reason' in change)
          return (
            <PolicyEditor
              name={`${policy.id} ${decisionId} ${position}`}
              policy={policy}
              initial={() => startFrom(policy)}
              note={`Nothing was changed for you. ${change.reason}`}
            />
          )
        const refused = `${data.kind === 'preauth' ? 'the payment' : `the ${data.kind}`} of ${data.amount_usdc} USDC by ${data.agent_id ?? data.spender} to ${data.merchant}`
        return (
          <PolicyEditor
            name={`${policy.id} ${decisionId} ${position}`}
            policy={policy}
            initial={() => startFrom(policy, change.draft)}
            purpose={{
              title: 'Apply the smallest change',
              words: `${change.words} With that, this policy no longer refuses ${refused}, nor anything like it that stays within the new limit.`,
            }}
          />
        )
      }}
    </QueryResult>
  )
}
