import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Db } from '../../platform/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import { findPolicy } from './policies.store.ts'
import type { PolicyInput } from './policies.ts'
import { contentHash, type Policy, type PolicyContent } from './policy.ts'
import { keySuccessors, readKeys } from './rules-cache.store.ts'
import { readPastDecisions, type ServicePayee } from './simulate.store.ts'
import { type Change, type ReplayedDecision, recordedOutcome, replayDecisions } from './simulate-replay.ts'

type Deps = ServicePayee & { db: Db; draft(tenant: TenantCaller, input: PolicyInput): Promise<PolicyContent> }

export type SimulateInput = { policy: PolicyInput; replaces?: string; since?: string; until?: string; limit?: number }

const DEFAULT_LIMIT = 1_000

/** A draft policy replayed over the tenant's past: which decisions would have been others, and what in money. */
export const createSimulate = (d: Deps) => async (tenant: TenantCaller, input: SimulateInput) => {
  const content = await d.draft(tenant, input.policy)
  const replaces = input.replaces ?? null
  if (replaces !== null && !(await findPolicy(d.db, tenant.tenantId, replaces)))
    throw invalid(`There is no policy '${replaces}'.`)
  const [since, until] = [input.since, input.until].map((time) => (time === undefined ? undefined : new Date(time)))
  if (since && until && since > until) throw invalid('body/since lies after body/until.')
  const keys =
    content.key_id === null ? new Set<string>() : keySuccessors(content.key_id, await readKeys(d.db, tenant.tenantId))
  const policy: Policy = {
    ...content,
    id: replaces ?? 'draft',
    version: 0,
    content_hash: contentHash(content),
    keyIds: keys,
  }

  const { past, has_more } = await readPastDecisions(
    d.db,
    tenant.tenantId,
    { since, until, limit: input.limit ?? DEFAULT_LIMIT },
    { network: d.network, payTo: d.payTo },
  )
  const replayed = replayDecisions(policy, past, replaces)
  const { key_id: _, ...shown } = content
  return {
    policy: { ...shown, content_hash: policy.content_hash },
    replaces,
    since: since?.toISOString() ?? null,
    until: until?.toISOString() ?? null,
    considered: past.length,
    has_more,
    ...summaryOf(replayed),
    assumptions,
    results: replayed.map((one) => resultOf(one, replaces)),
  }
}

const assumptions = [
  'The draft is taken to have been in force from the first decision that is replayed; its counters begin at zero there.',
  'What was refused and would have been allowed is taken to have been paid in full.',
  'What a person approved or overrode stays approved or overridden.',
]

function summaryOf(replayed: readonly ReplayedDecision[]) {
  const of = (change: Change) => replayed.filter((one) => one.change === change)
  const sum = (ones: readonly ReplayedDecision[]) => ones.reduce((total, one) => total + moneyOf(one), 0n)
  const recorded = sum(replayed.filter((one) => one.past.ran))
  const simulated = sum(replayed.filter((one) => one.wouldRun))
  const [blocked, review, allowed] = [of('newly_blocked'), of('newly_review'), of('newly_allowed')]
  return {
    changed: blocked.length + review.length + allowed.length,
    newly_blocked: blocked.length,
    newly_review: review.length,
    newly_allowed: allowed.length,
    money: {
      recorded_usdc: usdcFromMicro(recorded),
      simulated_usdc: usdcFromMicro(simulated),
      difference_usdc: usdcFromMicro(simulated - recorded),
      newly_blocked_usdc: usdcFromMicro(sum(blocked)),
      newly_review_usdc: usdcFromMicro(sum(review)),
      newly_allowed_usdc: usdcFromMicro(sum(allowed)),
    },
  }
}

/** A run that spends a pre-authorisation is that pre-authorisation's money; it is counted once. */
function moneyOf({ past }: ReplayedDecision): bigint {
  if (past.preauthId !== null) return 0n
  if (!past.ran || past.end === null) return past.facts.amountMicro
  return past.end.chargedMicro
}

const resultOf = ({ past, results, outcome, wouldRun, change }: ReplayedDecision, replaces: string | null) => ({
  run_id: past.runId,
  ...(past.facts.kind === 'preauth' && { preauth_id: past.id }),
  kind: past.facts.kind,
  agent_id: past.facts.agentId,
  amount_usdc: usdcFromMicro(past.facts.amountMicro),
  decided_at: past.facts.at.toISOString(),
  recorded: { outcome: past.outcome, ran: past.ran, policy_outcome: recordedOutcome(past, replaces) },
  simulated: { outcome, would_run: wouldRun, policy_results: results },
  change,
})
