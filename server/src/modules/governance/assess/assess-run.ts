import type { TenantCaller } from '../../../platform/auth-context.ts'
import { hashJson } from '../../../platform/canonical.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db.ts'
import type { Ids } from '../../../platform/ids.ts'
import type { Keys } from '../../../platform/keys.ts'
import { conflict, invalid } from '../../../platform/problem.ts'
import { spendsFrom } from '../counters/evaluate-budget.ts'
import type { ReadCounters } from '../counters/limit-counters.store.ts'
import { requireOverrideMatches } from '../grants/authorize.ts'
import { type Grants, readGrants, requirePreauthMatches } from '../grants/check-grants.ts'
import { isWaitingToRun } from '../grants/grants.store.ts'
import { policyIds, type RuleResult, worstOutcome } from '../rules/rule-result.ts'
import type { TenantRules } from '../rules/rules-cache.store.ts'
import type { RulesCache } from '../rules/rules-cache.ts'
import type {
  AllowedAssessment,
  Assessment,
  AssessmentRequest,
  AssessmentSummary,
  Offer,
  RefusedAssessment,
} from './assessment.ts'
import {
  applyGrant,
  budgetOutcome,
  counterChecks,
  findDecidingResult,
  isBudgetResult,
  isOverridable,
  needsApproval,
  needsOverride,
  policyHash,
  refusalError,
  refusalMessage,
  requiredHolds,
  requiredReview,
} from './assessment-outcome.ts'
import { boundTrace } from './bound-trace.ts'
import { evaluateRules, type RequestedPolicies, type RulesEvaluation } from './evaluate-rules.ts'
import { OWN_MERCHANT, type PaymentFacts } from './payment-facts.ts'
import { evaluateRequestBudget } from './request-budget.ts'

export type AssessDeps = {
  db: Db
  clock: Clock
  ids: Ids
  keys: Pick<Keys, 'signer' | 'fingerprint'>
  rulesCache: RulesCache
  readCounters: ReadCounters
  /** The network and address that runs are paid on. */
  network: string
  payTo: string
  /** The reason why the agent is frozen, if it is. */
  findFreeze(tenantId: string, agentId: string): Promise<{ reason: string } | undefined>
}

/** The rule results for one lane, with approvals and overrides applied to `results`. */
type LaneAssessment = {
  offer: Offer
  evaluation: RulesEvaluation
  results: RuleResult[]
  actionHash: string
  overrideUsed: boolean
}

/**
 * Assesses a run before any payment, so that a run that would be refused is never paid. It only reads: limits are
 * held when the run is admitted, and a refusal is recorded in its own transaction.
 */
export const createAssessRun =
  (deps: AssessDeps) =>
  async (request: AssessmentRequest, offer: Offer, { rulesChanged = false } = {}): Promise<Assessment> => {
    if (request.caller.kind === 'guest') return assessGuest(deps, request, offer)
    const tenant = request.caller
    if (rulesChanged) deps.rulesCache.invalidate(tenant.tenantId)
    const rules = await deps.rulesCache.get(tenant.tenantId, tenant.keyId)
    const grants = await readGrants(deps, tenant, request)
    const requestedPolicies = readRequestedPolicies(rules, request)

    const preferredAssessment = await assessLane(deps, { request, tenant, rules, grants, requestedPolicies }, offer)
    // An override or a pre-authorisation is bound to one lane and price, so the lane cannot be downgraded.
    const laneIsFixed = grants.override !== undefined || grants.preauth !== undefined
    const downgradedAssessment =
      !laneIsFixed && mayDowngrade(rules, request, preferredAssessment)
        ? await findCheaperLane(deps, { request, tenant, rules, grants, requestedPolicies }, offer)
        : undefined
    const laneAssessment = downgradedAssessment ?? preferredAssessment
    requireBudgetApplies(rules, request, laneAssessment)
    if (grants.approval) {
      if (grants.approval.action_hash !== laneAssessment.actionHash)
        throw conflict(
          'This approval is for another action: the request, the lane, the amount or the merchant differs.',
        )
      if (grants.approval.status === 'rejected') return toRejection(request, rules, grants, laneAssessment)
    }
    const assessment = toAssessment(deps, request, rules, grants, laneAssessment)
    if (assessment.refused || grants.preauth || !grants.approval) return assessment
    return (await isWaitingToRun(deps.db, grants.approval.run_id))
      ? { ...assessment, runId: grants.approval.run_id }
      : assessment
  }

/** A guest has no tenant rules: only the budget of its request applies. */
function assessGuest(deps: AssessDeps, request: AssessmentRequest, preferredOffer: Offer): Assessment {
  const tenantFields = {
    'policy.policy_ids': request.policy?.policy_ids,
    'budget.budget_id': request.budget?.budget_id,
    approval_id: request.approvalId,
    override_token: request.overrideToken,
    preauth_token: request.preauthToken,
  }
  const tenantField = Object.entries(tenantFields).find(([, value]) => value !== undefined)
  if (tenantField) throw invalid(`${tenantField[0]} needs an X-API-Key: it belongs to a tenant.`)
  const assessGuestLane = (offer: Offer): LaneAssessment => {
    const facts = runFacts(deps, request, offer, false)
    const results = evaluateRequestBudget(request.budget, offer)
    return {
      offer,
      evaluation: { facts, results, demands: [], policies: [] },
      results,
      actionHash: runActionHash(null, request, facts),
      overrideUsed: false,
    }
  }
  const rules: TenantRules = { version: 0n, policies: [], budgets: [], keyIds: new Set(), bytes: 0 }
  const laneAssessment = assessGuestLane(preferredOffer)
  const cheaper = mayDowngrade(rules, request, laneAssessment)
    ? cheaperLanes(preferredOffer)
        .map(assessGuestLane)
        .find((candidate) => !isRefused(candidate))
    : undefined
  return toAssessment(deps, request, rules, {}, cheaper ?? laneAssessment)
}

type LaneInput = {
  request: AssessmentRequest
  tenant: TenantCaller
  rules: TenantRules
  grants: Grants
  requestedPolicies: RequestedPolicies
}

async function assessLane(
  deps: AssessDeps,
  { request, tenant, rules, grants, requestedPolicies }: LaneInput,
  offer: Offer,
): Promise<LaneAssessment> {
  const { preauth, override, approval } = grants
  const facts = runFacts(deps, request, offer, preauth !== undefined)
  if (preauth)
    requirePreauthMatches(preauth, facts, {
      requestHash: request.requestHash,
      payTo: deps.payTo,
      network: deps.network,
    })
  if (override) requireOverrideMatches(override, facts)
  const freeze = await deps.findFreeze(tenant.tenantId, offer.agentId)
  const mandate = preauth?.mandate ?? null
  const evaluation = await evaluateRules(deps.readCounters, {
    rules,
    keyId: tenant.keyId,
    facts,
    requestedPolicies,
    mandate,
    heldScopes: preauth?.heldScopes ?? new Set(),
    freeze,
  })
  let results = [...evaluateRequestBudget(request.budget, offer), ...evaluation.results]
  // An approval or override given for the pre-authorisation also applies to the run that uses it.
  if (preauth?.override_id) results = applyGrant(results, needsOverride, preauth.override_id)
  if (preauth?.approval_id) results = applyGrant(results, needsApproval, preauth.approval_id)
  const overrideUsed = override !== undefined && results.some(needsOverride)
  if (overrideUsed) results = applyGrant(results, needsOverride, override.id)
  const requiredVotes = requiredReview(evaluation, results)?.approvalsRequired ?? 1
  if (approval?.status === 'approved' && approval.votes >= requiredVotes)
    results = applyGrant(results, needsApproval, approval.id)
  return { offer, evaluation, results, actionHash: runActionHash(tenant.tenantId, request, facts), overrideUsed }
}

async function findCheaperLane(deps: AssessDeps, input: LaneInput, offer: Offer): Promise<LaneAssessment | undefined> {
  for (const lane of cheaperLanes(offer)) {
    const laneAssessment = await assessLane(deps, input, lane)
    if (!isRefused(laneAssessment)) return laneAssessment
  }
  return undefined
}

const cheaperLanes = (offer: Offer): Offer[] =>
  offer.alternatives
    .filter((lane) => lane.priceMicro < offer.priceMicro)
    .map((lane) => ({
      ...offer,
      ...lane,
      route: { ...lane.route, downgraded_from: offer.agentId },
    }))

const isRefused = ({ results }: LaneAssessment) => findDecidingResult(results) !== null

/** A cheaper lane is tried only when budgets alone refuse the run and the caller did not fix lane or price. */
function mayDowngrade(rules: TenantRules, request: AssessmentRequest, { offer, results }: LaneAssessment): boolean {
  if (offer.explicit || offer.quoted || request.budget?.strict) return false
  const onBreach = new Map(rules.budgets.map((budget) => [budget.budgetId, budget.onBreach]))
  const refusingResults = results.filter(
    (result) => result.outcome === 'blocked' || result.outcome === 'review_required',
  )
  return (
    refusingResults.length > 0 &&
    refusingResults.every(
      (result) =>
        isBudgetResult(result) && (result.budget_id === undefined || onBreach.get(result.budget_id) === 'downgrade'),
    )
  )
}

const runFacts = (
  deps: AssessDeps,
  request: AssessmentRequest,
  offer: Offer,
  preauthorised: boolean,
): PaymentFacts => ({
  kind: request.kind,
  action: request.action,
  agentId: offer.agentId,
  amountMicro: offer.priceMicro,
  merchants: [OWN_MERCHANT, deps.payTo.toLowerCase()],
  network: deps.network,
  sessionId: request.sessionId === '' ? null : request.sessionId,
  at: deps.clock.now(),
  preauthorised,
})

/** Identifies the exact action; an approval is bound to this hash. */
const runActionHash = (tenantId: string | null, request: AssessmentRequest, facts: PaymentFacts): string =>
  hashJson({
    tenant_id: tenantId,
    kind: request.kind,
    request_hash: request.requestHash,
    agent_id: facts.agentId,
    amount: facts.amountMicro.toString(),
    merchant: facts.merchants[0],
  })

function readRequestedPolicies(rules: TenantRules, request: AssessmentRequest): RequestedPolicies {
  const { policy_ids = [], mode } = request.policy ?? {}
  const policies = policy_ids.map((id) => {
    const policy = rules.policies.find((candidate) => candidate.id === id)
    if (!policy) throw invalid(`There is no active policy '${id}'.`)
    return policy
  })
  return { policies, mode }
}

/** A budget named in the request must be one that the run spends from. */
function requireBudgetApplies(rules: TenantRules, request: AssessmentRequest, { evaluation }: LaneAssessment): void {
  const id = request.budget?.budget_id
  if (id === undefined) return
  const budget = rules.budgets.find((candidate) => candidate.budgetId === id)
  if (!budget) throw invalid(`There is no budget '${id}'.`)
  const applies =
    evaluation.results.some((result) => result.budget_id === id) || spendsFrom(budget, evaluation.facts, null)
  if (!applies)
    throw invalid(
      `The budget '${id}' is for the ${budget.scopeType} '${budget.scopeId}'; this run does not spend from it.`,
    )
}

function toSummary(
  request: AssessmentRequest,
  grants: Grants,
  { evaluation, results, overrideUsed }: LaneAssessment,
  decision: string,
  budget: string,
): AssessmentSummary {
  const { preauth, approval, override } = grants
  return {
    decision,
    budget_outcome: budget,
    policy_applied: boundTrace(results),
    policy_hash: policyHash(evaluation),
    mandate_id: preauth?.mandate_id ?? null,
    preauth_id: preauth?.id ?? null,
    override_id: overrideUsed ? override!.id : (preauth?.override_id ?? null),
    approval_id: approval?.id ?? preauth?.approval_id ?? null,
    ...((approval?.self_approved || (overrideUsed && override!.self_approved) || preauth?.selfApproved) && {
      self_approved: true as const,
    }),
    asked_by: request.caller.kind === 'tenant' ? request.caller.keyId : null,
    decided_at: evaluation.facts.at.toISOString(),
    merchant: OWN_MERCHANT,
  }
}

function toAssessment(
  deps: AssessDeps,
  request: AssessmentRequest,
  rules: TenantRules,
  grants: Grants,
  laneAssessment: LaneAssessment,
): Assessment {
  const decidingResult = findDecidingResult(laneAssessment.results)
  if (decidingResult) return toRefusal(request, rules, grants, laneAssessment, decidingResult)
  // Also true when the cheaper lane was quoted before and this is the paid request.
  const isDowngraded = laneAssessment.offer.route.downgraded_from !== undefined
  const budget = isDowngraded ? 'downgrade' : budgetOutcome(laneAssessment.results)
  const outcome = worstOutcome(laneAssessment.results)
  const decision = isDowngraded ? 'downgrade' : outcome === 'pass' ? 'approved' : outcome
  return {
    refused: false,
    offer: laneAssessment.offer,
    summary: toSummary(request, grants, laneAssessment, decision, budget),
    policyIds: policyIds(laneAssessment.results),
    holds: requiredHolds(laneAssessment.evaluation, laneAssessment.results, deps.ids),
    ...consumedGrants(request, rules, grants, laneAssessment),
  }
}

function consumedGrants(
  request: AssessmentRequest,
  rules: TenantRules,
  { approval, override, preauth }: Grants,
  laneAssessment: LaneAssessment,
): Pick<AllowedAssessment, 'grants' | 'locks' | 'runId'> {
  if (request.caller.kind === 'guest') return { grants: {}, locks: [] }
  const overrideId = laneAssessment.overrideUsed ? override!.id : undefined
  const { agentId, amountMicro } = laneAssessment.evaluation.facts
  return {
    grants: {
      rules_version: rules.version,
      action_hash: laneAssessment.actionHash,
      agent_id: agentId,
      amount_micro: amountMicro,
      merchant: OWN_MERCHANT,
      ...(approval && { approval_id: approval.id }),
      ...(overrideId && { override_id: overrideId }),
      ...(preauth && { preauth_id: preauth.id }),
    },
    locks: [
      ...(approval ? [`approval:${approval.id}`] : []),
      ...(overrideId ? [`override:${overrideId}`] : []),
      ...(preauth ? [`preauth:${preauth.id}`, ...preauth.locks] : []),
    ],
    ...(preauth && { runId: preauth.run_id }),
  }
}

function toRefusal(
  request: AssessmentRequest,
  rules: TenantRules,
  grants: Grants,
  laneAssessment: LaneAssessment,
  decidingResult: RuleResult,
): RefusedAssessment {
  const outcome = decidingResult.outcome === 'review_required' ? 'review_required' : 'blocked'
  return {
    refused: true,
    error: refusalError(decidingResult),
    message: refusalMessage(decidingResult),
    outcome,
    results: boundTrace(laneAssessment.results),
    policyIds: policyIds(laneAssessment.results),
    decided_by: decidingResult,
    facts: laneAssessment.evaluation.facts,
    actionHash: laneAssessment.actionHash,
    rulesVersion: rules.version,
    counterChecks: counterChecks(laneAssessment.evaluation, laneAssessment.results),
    overridable: isOverridable(laneAssessment.results),
    review: outcome === 'review_required' ? requiredReview(laneAssessment.evaluation, laneAssessment.results) : null,
    summary: toSummary(request, grants, laneAssessment, outcome, budgetOutcome(laneAssessment.results)),
  }
}

/** The approval was rejected, or expired before it was decided. */
function toRejection(
  request: AssessmentRequest,
  rules: TenantRules,
  grants: Grants,
  laneAssessment: LaneAssessment,
): RefusedAssessment {
  const approval = grants.approval!
  const resolution = approval.resolution === 'expired' ? 'expired before it was decided' : 'was rejected'
  return {
    refused: true,
    error: 'policy_blocked',
    message: `The approval ${approval.id} ${resolution}.`,
    outcome: 'rejected',
    results: boundTrace(laneAssessment.results),
    policyIds: policyIds(laneAssessment.results),
    decided_by: null,
    facts: laneAssessment.evaluation.facts,
    actionHash: laneAssessment.actionHash,
    rulesVersion: rules.version,
    counterChecks: [],
    overridable: false,
    review: null,
    summary: toSummary(request, grants, laneAssessment, 'rejected', budgetOutcome(laneAssessment.results)),
  }
}
