import type { Decision } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { mayControl, mayMandate } from '../account/permissions.ts'
import type { Me } from '../account/sign-in.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { Badge, Card } from '../components/ui.tsx'
import { routeHref } from '../route.ts'
import { changeHref, type RefusingResult, refusingResults } from './smallest-change.ts'

/** What refused a run and the smallest change that would have allowed it; nothing for a run that was not refused. */
export function RefusalCard({ me, runId }: { me: Me; runId: string }) {
  const decisions = useQuery({
    queryKey: [ACCOUNT_KEY, 'decisions', 'of-run', runId],
    queryFn: () => api.get('/api/decisions', { query: { run_id: runId } }),
  })
  const [decision] = decisions.data?.decisions ?? []
  if (!decision) return null
  return (
    <Card title="What would have allowed it">
      {refusingResults(decision.policy_results).length !== 1 && <p>{decision.message}</p>}
      <RefusalList me={me} decision={decision} />
    </Card>
  )
}

/** The rules that refused, each with its smallest change and a link that opens the form with that change made. */
export function RefusalList({ me, decision, policyId }: { me: Me; decision: Decision; policyId?: string }) {
  const results = refusingResults(decision.policy_results)
  return (
    <ul className="plain-list refusals">
      {results.map((result, position) =>
        policyId !== undefined && result.policy_id !== policyId ? null : (
          // biome-ignore lint/suspicious/noArrayIndexKey: a result is known by its position in the decision
          <li key={position}>
            <Badge tone={result.outcome === 'blocked' ? 'error' : 'warning'}>{sourceOf(result)}</Badge> {result.reason}
            <ChangeLink me={me} decision={decision} result={result} position={position} />
          </li>
        ),
      )}
    </ul>
  )
}

function ChangeLink({
  me,
  decision,
  result,
  position,
}: {
  me: Me
  decision: Decision
  result: RefusingResult
  position: number
}) {
  const change = result.smallest_change
  if (!change) return null
  const href = changeHref(decision.decision_id, position, result)
  const isMandate = href?.startsWith(routeHref(['account', 'mandates'])) ?? false
  const isAllowed = isMandate ? mayMandate(me) : mayControl(me)
  return (
    <div className="row">
      <span>
        Smallest change: <strong>{change.text}</strong>
      </span>
      {href &&
        (isAllowed ? (
          <a className="button secondary" href={href}>
            {isMandate ? 'Make such a mandate' : 'Apply the smallest change'}
          </a>
        ) : (
          <span className="muted">This API key cannot make it.</span>
        ))}
    </div>
  )
}

const sourceOf = ({ policy_id, policy_name, budget_id, mandate_id, mandate_name, rule }: RefusingResult): string =>
  policy_id !== null
    ? `policy ${policy_name ?? policy_id}`
    : budget_id !== undefined
      ? `budget ${budget_id}`
      : mandate_id !== undefined
        ? `mandate ${mandate_name ?? mandate_id}`
        : rule
