import type { TenantCaller } from '../../platform/auth-context.ts'
import { hashJson } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Keys } from '../../platform/keys.ts'
import { conflict, invalid } from '../../platform/problem.ts'
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
import { spendsFrom } from './budget.ts'
import { type Grants, readGrants, requireOverrideMatches, requirePreauthMatches } from './check-grants.ts'
import { evaluateRules, type RequestedPolicies, type RulesEvaluation } from './evaluate-rules.ts'
import { isWaitingToRun } from './grants.store.ts'
import { OWN_MERCHANT, type PaymentFacts } from './payment-facts.ts'
import { evaluateRequestBudget } from './request-budget.ts'
import { type RuleResult, worstOutcome } from './rule-result.ts'
import type { TenantRules } from './rules-cache.store.ts'
import type { RulesCache } from './rules-cache.ts'

export type AssessDeps = {
  db: Db
  clock: Clock
  ids: Ids
  keys: Pick<Keys, 'signer' | 'fingerprint'>
  books: RulesCache
  /** Where our own runs are paid. */
  network: string
  payTo: string
  /** Why an agent may do nothing at the moment, if so. */
  frozen(tenantId: string, agentId: string): Promise<{ reason: string } | undefined>
}

/** One lane, judged: what the rules say, and what is left of it after what people allowed. */
type Trial = { offer: Offer; judged: RulesEvaluation; results: RuleResult[]; actionHash: string; overrideUsed: boolean }

/**
 * May this be done at this price? Asked before any payment, so that nobody pays for what would be refused. It only
 * looks; what it finds is held, or written down as a refusal, in a transaction of its own.
 */
export const createAssessRun =
  (d: AssessDeps) =>
  async (proposal: AssessmentRequest, offer: Offer, { rulesChanged = false } = {}): Promise<Assessment> => {
    if (proposal.caller.kind === 'guest') return assessGuest(d, proposal, offer)
    const tenant = proposal.caller
    if (rulesChanged) d.books.forget(tenant.tenantId)
    const book = await d.books.of(tenant.tenantId, tenant.keyId)
    const grants = await readGrants(d, tenant, proposal)
    const wishes = readWishes(book, proposal)

    const first = await tryLane(d, { proposal, tenant, book, grants, wishes }, offer)
    // An override and a pre-authorisation are for one lane at its price; no other can take its place.
    const fixed = grants.override !== undefined || grants.preauth !== undefined
    const downgraded =
      !fixed && mayDowngrade(book, proposal, first)
        ? await tryCheaper(d, { proposal, tenant, book, grants, wishes }, offer)
        : undefined
    const trial = downgraded ?? first
    needBudgetApplies(book, proposal, trial)
    if (grants.approval) {
      if (grants.approval.action_hash !== trial.actionHash)
        throw conflict(
          'This approval is for another action: the request, the lane, the amount or the merchant differs.',
        )
      if (grants.approval.status === 'rejected') return rejected(proposal, book, grants, trial)
    }
    const ruling = rulingOf(d, proposal, book, grants, trial)
    if (ruling.refused || grants.preauth || !grants.approval) return ruling
    return (await isWaitingToRun(d.db, grants.approval.run_id)) ? { ...ruling, runId: grants.approval.run_id } : ruling
  }

/** A guest has no rules of its own, only the ceiling it sends along. */
function assessGuest(d: AssessDeps, proposal: AssessmentRequest, first: Offer): Assessment {
  const named = {
    'policy.policy_ids': proposal.policy?.policy_ids,
    'budget.budget_id': proposal.budget?.budget_id,
    approval_id: proposal.approvalId,
    override_token: proposal.overrideToken,
    preauth_token: proposal.preauthToken,
  }
  const missing = Object.entries(named).find(([, value]) => value !== undefined)
  if (missing) throw invalid(`${missing[0]} needs an X-API-Key: it belongs to a tenant.`)
  const trialOf = (offer: Offer): Trial => {
    const facts = factsOf(d, proposal, offer, false)
    const results = evaluateRequestBudget(proposal.budget, offer)
    return {
      offer,
      judged: { facts, results, demands: [], policies: [] },
      results,
      actionHash: actionHash(null, proposal, facts),
      overrideUsed: false,
    }
  }
  const book: TenantRules = { version: 0n, policies: [], budgets: [], keyIds: new Set() }
  const trial = trialOf(first)
  const cheaper = mayDowngrade(book, proposal, trial)
    ? cheaperLanes(first)
        .map(trialOf)
        .find((one) => !isRefused(one))
    : undefined
  return rulingOf(d, proposal, book, {}, cheaper ?? trial)
}

type Asked = {
  proposal: AssessmentRequest
  tenant: TenantCaller
  book: TenantRules
  grants: Grants
  wishes: RequestedPolicies
}

async function tryLane(d: AssessDeps, { proposal, tenant, book, grants, wishes }: Asked, offer: Offer): Promise<Trial> {
  const { preauth, override, approval } = grants
  const facts = factsOf(d, proposal, offer, preauth !== undefined)
  if (preauth)
    requirePreauthMatches(preauth, facts, { requestHash: proposal.requestHash, payTo: d.payTo, network: d.network })
  if (override) requireOverrideMatches(override, facts)
  const frozen = await d.frozen(tenant.tenantId, offer.agentId)
  const mandate = preauth?.mandate ?? null
  const judged = await evaluateRules(d.db, {
    book,
    keyId: tenant.keyId,
    facts,
    wishes,
    mandate,
    heldScopes: preauth?.held ?? new Set(),
    frozen,
  })
  let results = [...evaluateRequestBudget(proposal.budget, offer), ...judged.results]
  // What was approved or overridden when it was pre-authorised is so for the run that spends it.
  if (preauth?.override_id) results = applyGrant(results, needsOverride, preauth.override_id)
  if (preauth?.approval_id) results = applyGrant(results, needsApproval, preauth.approval_id)
  const overrideUsed = override !== undefined && results.some(needsOverride)
  if (overrideUsed) results = applyGrant(results, needsOverride, override.id)
  const required = requiredReview(judged, results)?.approvalsRequired ?? 1
  if (approval?.status === 'approved' && approval.votes >= required)
    results = applyGrant(results, needsApproval, approval.id)
  return { offer, judged, results, actionHash: actionHash(tenant.tenantId, proposal, facts), overrideUsed }
}

async function tryCheaper(d: AssessDeps, asked: Asked, offer: Offer): Promise<Trial | undefined> {
  for (const lane of cheaperLanes(offer)) {
    const trial = await tryLane(d, asked, lane)
    if (!isRefused(trial)) return trial
  }
  return undefined
}

const cheaperLanes = (offer: Offer): Offer[] =>
  offer.alternatives
    .filter((lane) => lane.priceMicro < offer.priceMicro)
    .map((lane) => ({
      ...offer,
      ...lane,
      route: { ...offer.route, agent_id: lane.agentId, downgraded_from: offer.agentId },
    }))

const isRefused = ({ results }: Trial) => findDecidingResult(results) !== null

/** Only where the price alone stands in the way, and nobody has fixed the lane. */
function mayDowngrade(book: TenantRules, proposal: AssessmentRequest, { offer, results }: Trial): boolean {
  if (offer.explicit || offer.quoted || proposal.budget?.strict) return false
  const onBreach = new Map(book.budgets.map((budget) => [budget.budgetId, budget.onBreach]))
  const refusing = results.filter((result) => result.outcome === 'blocked' || result.outcome === 'review_required')
  return (
    refusing.length > 0 &&
    refusing.every(
      (result) =>
        isBudgetResult(result) && (result.budget_id === undefined || onBreach.get(result.budget_id) === 'downgrade'),
    )
  )
}

const factsOf = (d: AssessDeps, proposal: AssessmentRequest, offer: Offer, preauthorised: boolean): PaymentFacts => ({
  kind: proposal.kind,
  action: proposal.action,
  agentId: offer.agentId,
  amountMicro: offer.priceMicro,
  merchants: [OWN_MERCHANT, d.payTo.toLowerCase()],
  network: d.network,
  sessionId: proposal.sessionId === '' ? null : proposal.sessionId,
  at: d.clock.now(),
  preauthorised,
})

/** Exactly what would be done. An approval is bound to it. */
const actionHash = (tenantId: string | null, proposal: AssessmentRequest, facts: PaymentFacts): string =>
  hashJson({
    tenant_id: tenantId,
    kind: proposal.kind,
    request_hash: proposal.requestHash,
    agent_id: facts.agentId,
    amount: facts.amountMicro.toString(),
    merchant: facts.merchants[0],
  })

function readWishes(book: TenantRules, proposal: AssessmentRequest): RequestedPolicies {
  const { policy_ids = [], mode } = proposal.policy ?? {}
  const policies = policy_ids.map((id) => {
    const policy = book.policies.find((one) => one.id === id)
    if (!policy) throw invalid(`There is no active policy '${id}'.`)
    return policy
  })
  return { policies, mode }
}

/** A budget that the request names must be one that it is really spent from. */
function needBudgetApplies(book: TenantRules, proposal: AssessmentRequest, { judged }: Trial): void {
  const id = proposal.budget?.budget_id
  if (id === undefined) return
  const budget = book.budgets.find((one) => one.budgetId === id)
  if (!budget) throw invalid(`There is no budget '${id}'.`)
  const applies = judged.results.some((result) => result.budget_id === id) || spendsFrom(budget, judged.facts, null)
  if (!applies)
    throw invalid(
      `The budget '${id}' is for the ${budget.scopeType} '${budget.scopeId}'; this run does not spend from it.`,
    )
}

function summaryOf(
  proposal: AssessmentRequest,
  grants: Grants,
  { judged, results, overrideUsed }: Trial,
  decision: string,
  budget: string,
): AssessmentSummary {
  const { preauth, approval, override } = grants
  return {
    decision,
    budget_outcome: budget,
    policy_applied: results,
    policy_hash: policyHash(judged),
    mandate_id: preauth?.mandate_id ?? null,
    preauth_id: preauth?.id ?? null,
    override_id: overrideUsed ? override!.id : (preauth?.override_id ?? null),
    approval_id: approval?.id ?? preauth?.approval_id ?? null,
    asked_by: proposal.caller.kind === 'tenant' ? proposal.caller.keyId : null,
    decided_at: judged.facts.at.toISOString(),
    merchant: OWN_MERCHANT,
  }
}

function rulingOf(
  d: AssessDeps,
  proposal: AssessmentRequest,
  book: TenantRules,
  grants: Grants,
  trial: Trial,
): Assessment {
  const decided = findDecidingResult(trial.results)
  if (decided) return refused(proposal, book, grants, trial, decided)
  // Also when the cheaper lane was quoted before and comes back paid.
  const downgraded = trial.offer.route.downgraded_from !== undefined
  const budget = downgraded ? 'downgrade' : budgetOutcome(trial.results)
  const outcome = worstOutcome(trial.results)
  const decision = downgraded ? 'downgrade' : outcome === 'pass' ? 'approved' : outcome
  return {
    refused: false,
    offer: trial.offer,
    summary: summaryOf(proposal, grants, trial, decision, budget),
    holds: requiredHolds(trial.judged, trial.results, d.ids),
    ...usedGrants(proposal, book, grants, trial),
  }
}

function usedGrants(
  proposal: AssessmentRequest,
  book: TenantRules,
  { approval, override, preauth }: Grants,
  trial: Trial,
): Pick<AllowedAssessment, 'grants' | 'locks' | 'runId'> {
  if (proposal.caller.kind === 'guest') return { grants: {}, locks: [] }
  const overrideId = trial.overrideUsed ? override!.id : undefined
  const { agentId, amountMicro } = trial.judged.facts
  return {
    grants: {
      rules_version: book.version,
      action_hash: trial.actionHash,
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

function refused(
  proposal: AssessmentRequest,
  book: TenantRules,
  grants: Grants,
  trial: Trial,
  decided: RuleResult,
): RefusedAssessment {
  const outcome = decided.outcome === 'review_required' ? 'review_required' : 'blocked'
  return {
    refused: true,
    error: refusalError(decided),
    message: refusalMessage(decided),
    outcome,
    results: trial.results,
    decided_by: decided,
    facts: trial.judged.facts,
    actionHash: trial.actionHash,
    rulesVersion: book.version,
    counterChecks: counterChecks(trial.judged, trial.results),
    overridable: isOverridable(trial.results),
    review: outcome === 'review_required' ? requiredReview(trial.judged, trial.results) : null,
    summary: summaryOf(proposal, grants, trial, outcome, budgetOutcome(trial.results)),
  }
}

/** A person said no, or nobody said yes in time. */
function rejected(proposal: AssessmentRequest, book: TenantRules, grants: Grants, trial: Trial): RefusedAssessment {
  const approval = grants.approval!
  const how = approval.resolution === 'expired' ? 'was not decided in time' : 'was rejected'
  return {
    refused: true,
    error: 'policy_blocked',
    message: `The approval ${approval.id} ${how}.`,
    outcome: 'rejected',
    results: trial.results,
    decided_by: null,
    facts: trial.judged.facts,
    actionHash: trial.actionHash,
    rulesVersion: book.version,
    counterChecks: [],
    overridable: false,
    review: null,
    summary: summaryOf(proposal, grants, trial, 'rejected', budgetOutcome(trial.results)),
  }
}
