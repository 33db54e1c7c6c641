import type { TenantCaller } from '../../../platform/auth-context.ts'
import { hashJson } from '../../../platform/canonical.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db.ts'
import type { Ids } from '../../../platform/ids.ts'
import type { Keys } from '../../../platform/keys.ts'
import { conflict, invalid } from '../../../platform/problem.ts'
import { spendsFrom } from '../counters/evaluate-budget.ts'
import type { ReadCounters } from '../counters/limit-counters.store.ts'
import {
  type Grants,
  preauthSpender,
  readGrants,
  requirePreauthMatches,
  requireSameSpender,
} from '../grants/check-grants.ts'
import { isWaitingToRun, readMandate } from '../grants/grants.store.ts'
import type { Mandate } from '../mandates/evaluate-mandate.ts'
import { policyIds, worstOutcome } from '../rules/rule-result.ts'
import type { TenantRules } from '../rules/rules-cache.store.ts'
import type { RulesCache } from '../rules/rules-cache.ts'
import {
  assessPayment,
  type PaymentAssessment,
  toAllowedPayment,
  toRefusal,
  toRejection,
  toSummary,
} from './assess-payment.ts'
import type { AllowedAssessment, Assessment, AssessmentRequest, CounterCheck, Offer } from './assessment.ts'
import { budgetOutcome, findDecidingResult, isBudgetResult, toCounterNeed } from './assessment-outcome.ts'
import type { Freeze, RequestedPolicies } from './evaluate-rules.ts'
import { agentNames, OWN_MERCHANT, type PaymentFacts, readSpender } from './payment-facts.ts'
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
  /** Whether one of the agents of a payment is frozen; see `Freeze` for a payment that names none. */
  findFreeze(tenantId: string, agentNames: readonly string[]): Promise<Freeze | undefined>
  isLane(agentId: string): boolean
}

/** The assessment of the run on one lane. */
type LaneAssessment = PaymentAssessment & { offer: Offer }

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
    const namedMandate = await findNamedMandate(deps, tenant, request, grants)
    const input = { request, tenant, rules, grants, requestedPolicies, namedMandate }

    const preferredAssessment = await assessLane(deps, input, offer)
    // An override or a pre-authorisation is bound to one lane and price, so the lane cannot be downgraded.
    const laneIsFixed = grants.override !== undefined || grants.preauth !== undefined
    const downgradedAssessment =
      !laneIsFixed && mayDowngrade(rules, request, preferredAssessment)
        ? await findCheaperLane(deps, input, offer)
        : undefined
    const laneAssessment = downgradedAssessment ?? preferredAssessment
    requireBudgetApplies(rules, request, laneAssessment)
    const { approval } = grants
    if (approval) {
      if (approval.action_hash !== laneAssessment.actionHash)
        throw conflict(
          'This approval is for another action: the request, the lane, the amount or the merchant differs.',
        )
      if (approval.status === 'rejected') {
        const resolution = approval.resolution === 'expired' ? 'expired before it was decided' : 'was rejected'
        const rejection = toRejection(laneAssessment, `The approval ${approval.id} ${resolution}.`)
        return { ...rejection, summary: { ...rejection.summary, approval_id: approval.id } }
      }
    }
    const assessment = toAssessment(deps, laneAssessment, grants)
    if (assessment.refused || grants.preauth || !approval) return assessment
    return (await isWaitingToRun(deps.db, approval.run_id)) ? { ...assessment, runId: approval.run_id } : assessment
  }

/** The mandate of the pre-authorisation, or the one that the request names. */
async function findNamedMandate(
  deps: AssessDeps,
  tenant: TenantCaller,
  { mandateId }: AssessmentRequest,
  { preauth }: Grants,
): Promise<Mandate | null> {
  if (preauth && mandateId !== undefined && preauth.mandate_id !== mandateId)
    throw invalid('body/mandate_id is not the mandate of the pre-authorisation.')
  if (preauth?.mandate) return preauth.mandate
  if (mandateId === undefined) return null
  const mandate = await readMandate(deps.db, tenant.tenantId, mandateId)
  if (!mandate) throw invalid(`There is no mandate '${mandateId}'.`)
  return mandate
}

/** A guest has no tenant rules: only the budget of its request applies. */
function assessGuest(deps: AssessDeps, request: AssessmentRequest, preferredOffer: Offer): Assessment {
  const tenantFields = {
    'policy.policy_ids': request.policy?.policy_ids,
    'budget.budget_id': request.budget?.budget_id,
    mandate_id: request.mandateId,
    approval_id: request.approvalId,
    override_token: request.overrideToken,
    preauth_token: request.preauthToken,
  }
  const tenantField = Object.entries(tenantFields).find(([, value]) => value !== undefined)
  if (tenantField) throw invalid(`${tenantField[0]} needs an X-API-Key: it belongs to a tenant.`)
  const assessGuestLane = (offer: Offer): LaneAssessment => {
    const facts = runFacts(deps, request, offer, undefined)
    const results = evaluateRequestBudget(request.budget, offer)
    return {
      offer,
      evaluation: { facts, results, demands: [], fullCounters: [], policies: [], mandateId: null },
      results,
      decidingResult: findDecidingResult(results),
      actionHash: runActionHash(null, request, facts),
      rulesVersion: 0n,
      grants: {},
      overrideId: null,
    }
  }
  const laneAssessment = assessGuestLane(preferredOffer)
  const cheaper = mayDowngrade(noRules, request, laneAssessment)
    ? cheaperLanes(preferredOffer)
        .map(assessGuestLane)
        .find((candidate) => !candidate.decidingResult)
    : undefined
  return toAssessment(deps, cheaper ?? laneAssessment, undefined)
}

const noRules: Pick<TenantRules, 'budgets'> = { budgets: [] }

type LaneInput = {
  request: AssessmentRequest
  tenant: TenantCaller
  rules: TenantRules
  grants: Grants
  requestedPolicies: RequestedPolicies
  namedMandate: Mandate | null
}

async function assessLane(
  deps: AssessDeps,
  { request, tenant, rules, grants, requestedPolicies, namedMandate }: LaneInput,
  offer: Offer,
): Promise<LaneAssessment> {
  const { preauth, override, approval } = grants
  const facts = runFacts(deps, request, offer, preauth)
  if (preauth)
    requirePreauthMatches(preauth, facts, {
      requestHash: request.requestHash,
      payTo: deps.payTo,
      network: deps.network,
    })
  const assessment = await assessPayment(deps.readCounters, {
    rules,
    facts,
    requestedPolicies,
    namedMandate,
    heldScopes: preauth?.heldScopes ?? new Set(),
    freeze: await deps.findFreeze(tenant.tenantId, agentNames(facts)),
    actionHash: runActionHash(tenant.tenantId, request, facts),
    requestResults: evaluateRequestBudget(request.budget, offer),
    grants: { preauth, override, approval: approval?.status === 'approved' ? approval : undefined },
  })
  return { ...assessment, offer }
}

async function findCheaperLane(deps: AssessDeps, input: LaneInput, offer: Offer): Promise<LaneAssessment | undefined> {
  for (const lane of cheaperLanes(offer)) {
    const laneAssessment = await assessLane(deps, input, lane)
    if (!laneAssessment.decidingResult) return laneAssessment
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

/** A cheaper lane is tried only when budgets alone refuse the run and the caller did not fix lane or price. */
function mayDowngrade(
  rules: Pick<TenantRules, 'budgets'>,
  request: AssessmentRequest,
  { offer, results }: LaneAssessment,
): boolean {
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
  { kind, action, caller, spender, tags, sessionId }: AssessmentRequest,
  offer: Offer,
  preauth: Grants['preauth'],
): PaymentFacts => ({
  kind,
  action,
  agentId: offer.agentId,
  lane: offer.agentId,
  spender: caller.kind === 'tenant' ? readRunSpender(caller, spender, preauth) : null,
  team: caller.kind === 'tenant' ? caller.team : null,
  keyId: caller.kind === 'tenant' ? caller.keyId : null,
  tags: caller.kind === 'tenant' ? (tags ?? {}) : {},
  amountMicro: offer.priceMicro,
  merchants: [OWN_MERCHANT, deps.payTo.toLowerCase()],
  network: deps.network,
  sessionId: sessionId === '' ? null : sessionId,
  at: deps.clock.now(),
  preauthorised: preauth !== undefined,
})

/** The spender that the request or its key names, else the one of its pre-authorisation. */
function readRunSpender(caller: TenantCaller, named: string | undefined, preauth: Grants['preauth']): string | null {
  const spender = readSpender(caller, named, null)
  const granted = preauth === undefined ? null : preauthSpender(preauth)
  if (spender !== null && granted !== null) requireSameSpender(granted, spender)
  return spender ?? granted
}

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
    evaluation.results.some((result) => result.budget_id === id) || spendsFrom(budget, evaluation.facts) === true
  if (!applies)
    throw invalid(
      `The budget '${id}' is for the ${budget.scopeType} '${budget.scopeId}'; this run does not spend from it.`,
    )
}

/** A guest has no grants. */
function toAssessment(deps: AssessDeps, laneAssessment: LaneAssessment, grants: Grants | undefined): Assessment {
  if (laneAssessment.decidingResult) return toRefusal(laneAssessment)
  const { offer, results } = laneAssessment
  // Also true when the cheaper lane was quoted before and this is the paid request.
  const isDowngraded = offer.route.downgraded_from !== undefined
  const budget = isDowngraded ? 'downgrade' : budgetOutcome(results)
  const outcome = worstOutcome(results)
  const decision = isDowngraded ? 'downgrade' : outcome === 'pass' ? 'approved' : outcome
  const { holds, needs } = toAllowedPayment(deps.ids, laneAssessment)
  return {
    refused: false,
    offer,
    summary: toSummary(laneAssessment, decision, budget),
    policyIds: policyIds(results),
    holds,
    ...(grants ? consumedGrants(grants, laneAssessment, needs) : { grants: {}, locks: [] }),
  }
}

function consumedGrants(
  { approval, preauth }: Grants,
  { evaluation, actionHash, rulesVersion, overrideId }: LaneAssessment,
  needs: readonly CounterCheck[],
): Pick<AllowedAssessment, 'grants' | 'locks' | 'runId'> {
  return {
    grants: {
      rules_version: rulesVersion,
      action_hash: actionHash,
      agent_id: evaluation.facts.agentId,
      amount_micro: evaluation.facts.amountMicro,
      merchant: OWN_MERCHANT,
      ...(needs.length > 0 && { needs: needs.map(toCounterNeed) }),
      ...(approval && { approval_id: approval.id }),
      ...(overrideId && { override_id: overrideId }),
      ...(preauth && { preauth_id: preauth.id }),
    },
    locks: [
      ...needs.map(({ scope }) => `limit:${scope}`),
      ...(approval ? [`approval:${approval.id}`] : []),
      ...(overrideId ? [`override:${overrideId}`] : []),
      ...(preauth ? [`preauth:${preauth.id}`, ...preauth.locks] : []),
    ],
    ...(preauth && { runId: preauth.run_id }),
  }
}
