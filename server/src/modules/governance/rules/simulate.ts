import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Db } from '../../../platform/db.ts'
import { usdcFromMicro } from '../../../platform/money.ts'
import { invalid } from '../../../platform/problem.ts'
import { readLineage } from '../../tenants/key-lineage.ts'
import { contentHash, type Policy, type PolicyContent } from './evaluate-policy.ts'
import { findPolicy, type PolicyRow } from './policies.store.ts'
import type { PolicyInput } from './policies.ts'
import { keysBoundBy, readKeys } from './rules-cache.store.ts'
import { readPastDecisions, type ServicePayee } from './simulate.store.ts'
import { type Change, type ReplayedDecision, recordedOutcome, replayDecisions } from './simulate-replay.ts'

type SimulateDeps = ServicePayee & { db: Db; draft(tenant: TenantCaller, input: PolicyInput): Promise<PolicyContent> }

export type SimulateInput = { policy: PolicyInput; replaces?: string; since?: string; until?: string; limit?: number }

const DEFAULT_LIMIT = 1_000

/** Replays a draft policy over the tenant's past decisions and reports what would have changed. */
export const createSimulate = (deps: SimulateDeps) => async (tenant: TenantCaller, input: SimulateInput) => {
  const replaces = input.replaces ?? null
  const replacedPolicy = replaces === null ? undefined : await findPolicy(deps.db, tenant.tenantId, replaces)
  if (replaces !== null && !replacedPolicy) throw invalid(`There is no policy '${replaces}'.`)
  const content = await readDraft(deps, tenant, input.policy, replacedPolicy)
  const [since, until] = [input.since, input.until].map((time) => (time === undefined ? undefined : new Date(time)))
  if (since && until && since > until) throw invalid('body/since is after body/until.')
  const keyIds =
    content.key_id === null
      ? new Set<string>()
      : keysBoundBy(content.key_id, readLineage(await readKeys(deps.db, tenant.tenantId)))
  const policy: Policy = {
    ...content,
    id: replaces ?? 'draft',
    version: 0,
    content_hash: contentHash(content),
    keyIds,
  }

  const { past, has_more } = await readPastDecisions(
    deps.db,
    tenant.tenantId,
    { since, until, limit: input.limit ?? DEFAULT_LIMIT, replaces },
    deps,
  )
  const replayedDecisions = await replayDecisions(policy, past, replaces)
  const { key_id: _, ...publicContent } = content
  return {
    policy: { ...publicContent, content_hash: policy.content_hash },
    replaces,
    since: since?.toISOString() ?? null,
    until: until?.toISOString() ?? null,
    considered: past.length,
    has_more,
    ...summarize(replayedDecisions),
    assumptions,
    results: replayedDecisions.map((decision) => toSimulationResult(decision, replaces)),
  }
}

/** Nobody can send the key of a policy again, so a draft without one keeps the key of the policy that it replaces. */
async function readDraft(
  deps: Pick<SimulateDeps, 'draft'>,
  tenant: TenantCaller,
  input: PolicyInput,
  replacedPolicy: PolicyRow | undefined,
): Promise<PolicyContent> {
  const keepsKey =
    replacedPolicy?.identity_type === 'api_key' && input.identity_type === 'api_key' && input.api_key === undefined
  if (!keepsKey) return deps.draft(tenant, input)
  const content = await deps.draft(tenant, { ...input, identity_type: 'tenant' })
  return {
    ...content,
    identity_type: 'api_key',
    key_id: replacedPolicy.key_id,
    key_prefix: replacedPolicy.key_prefix,
  }
}

const assumptions = [
  'The draft is assumed to be in force from the first replayed decision, with its counters at zero.',
  'Payments that were refused and would have been allowed are assumed to be paid in full.',
  'Approvals and overrides stay in effect.',
]

function summarize(replayedDecisions: readonly ReplayedDecision[]) {
  const withChange = (change: Change) => replayedDecisions.filter((decision) => decision.change === change)
  const sum = (decisions: readonly ReplayedDecision[]) =>
    decisions.reduce((total, decision) => total + countedMicro(decision), 0n)
  const recordedMicro = sum(replayedDecisions.filter(({ decision }) => decision.ran))
  const simulatedMicro = sum(replayedDecisions.filter(({ wouldRun }) => wouldRun))
  const [blocked, review, allowed] = [
    withChange('newly_blocked'),
    withChange('newly_review'),
    withChange('newly_allowed'),
  ]
  return {
    changed: blocked.length + review.length + allowed.length,
    newly_blocked: blocked.length,
    newly_review: review.length,
    newly_allowed: allowed.length,
    money: {
      recorded_usdc: usdcFromMicro(recordedMicro),
      simulated_usdc: usdcFromMicro(simulatedMicro),
      difference_usdc: usdcFromMicro(simulatedMicro - recordedMicro),
      newly_blocked_usdc: usdcFromMicro(sum(blocked)),
      newly_review_usdc: usdcFromMicro(sum(review)),
      newly_allowed_usdc: usdcFromMicro(sum(allowed)),
    },
  }
}

/** A run that uses a pre-authorisation is counted with the pre-authorisation, not twice. */
function countedMicro({ decision }: ReplayedDecision): bigint {
  if (decision.preauthId !== null) return 0n
  if (!decision.ran || decision.end === null) return decision.facts.amountMicro
  return decision.end.chargedMicro
}

const toSimulationResult = (
  { decision, results, outcome, wouldRun, change }: ReplayedDecision,
  replaces: string | null,
) => ({
  run_id: decision.runId,
  ...(decision.facts.kind === 'preauth' && { preauth_id: decision.id }),
  kind: decision.facts.kind,
  agent_id: decision.facts.agentId,
  amount_usdc: usdcFromMicro(decision.facts.amountMicro),
  decided_at: decision.facts.at.toISOString(),
  recorded: { outcome: decision.outcome, ran: decision.ran, policy_outcome: recordedOutcome(decision, replaces) },
  simulated: { outcome, would_run: wouldRun, policy_results: results },
  change,
})
