import type { Decision, Mandate } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { ACCOUNT_KEY, api } from '../api.ts'
import { QueryResult } from '../components/query-result.tsx'
import { Card } from '../components/ui.tsx'
import { refusingResults } from '../policies/smallest-change.ts'
import { routeHref } from '../route.ts'
import { draftAllowing, draftLike, emptyDraft, type MandateDraft } from './mandate-draft.ts'
import { MandateForm } from './mandate-form.tsx'

/** A new mandate: empty, like another, or one that would have allowed what a decision refused. */
export function NewMandatePage({ query }: { query: URLSearchParams }) {
  const [like, decisionId] = [query.get('like'), query.get('decision')]
  const model = useQuery({
    queryKey: [ACCOUNT_KEY, 'mandates', 'one', like],
    queryFn: () => api.get('/api/mandates/{id}', { path: { id: like! } }),
    enabled: like !== null,
  })
  const decision = useQuery({
    queryKey: [ACCOUNT_KEY, 'decisions', decisionId],
    queryFn: () => api.get('/api/decisions/{id}', { path: { id: decisionId! } }),
    enabled: decisionId !== null,
  })
  const sources = { model: like === null ? null : model.data, decision: decisionId === null ? null : decision.data }
  const isLoaded = sources.model !== undefined && sources.decision !== undefined
  return (
    <Card
      title="New mandate"
      note={
        <a href={routeHref(['account', 'mandates'])} className="muted">
          All mandates
        </a>
      }
    >
      <QueryResult
        query={{
          data: isLoaded
            ? toStart(sources.model ?? null, sources.decision ?? null, Number(query.get('rule') ?? 0))
            : undefined,
          error: model.error ?? decision.error,
          isFetching: model.isFetching,
        }}
      >
        {({ draft, words }) => (
          <>
            {words && <p>{words}</p>}
            <MandateForm initial={draft} />
          </>
        )}
      </QueryResult>
    </Card>
  )
}

/** What the form begins with, and what that changes, in words. */
export function toStart(
  model: Mandate | null,
  decision: Decision | null,
  position: number,
): { draft: MandateDraft; words?: string } {
  const draft = model ? draftLike(model) : emptyDraft()
  const result = decision && refusingResults(decision.policy_results)[position]
  if (!decision || !result) return { draft }
  if (model) {
    const allowed = draftAllowing(draft, result)
    return {
      draft: allowed.draft,
      words: `A mandate cannot be changed. This is a new one like ${model.name}, with one difference: ${allowed.words} Revoke the old one if it is not needed any more.`,
    }
  }
  const agent = decision.spender.startsWith('key:') ? (decision.agent_id ?? '') : decision.spender
  return {
    draft: {
      ...draft,
      name: `Mandate for ${agent}`,
      agent,
      maxAmount: decision.amount_usdc,
      payees: [decision.merchant],
    },
    words: `The refused payment needed a mandate. This one would cover it: ${decision.amount_usdc} USDC by ${agent} to ${decision.merchant}.`,
  }
}
