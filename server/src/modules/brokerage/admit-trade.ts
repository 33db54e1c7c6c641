import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import { differentBody, hashBody, type IdempotentResponse, stillInFlight } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import { forbidden, invalid, unavailable } from '../../platform/problem.ts'
import type { GovernedTrade, TradeAssessment, TradeGovernance, TradeParty } from '../governance/assess/assess-trade.ts'
import type { Freeze } from '../governance/assess/evaluate-rules.ts'
import { buildApprovalPayload } from './approval-payload.ts'
import { computeApprovalWindow, immediateExecutionDeadline } from './approval-window.ts'
import type { Broker, BrokerFailure, RwaReading } from './broker.ts'
import {
  clientOrderIdExists,
  findIdempotencyKey,
  findRun,
  insertRun,
  lockTenant,
  readCommittedMicro,
  saveIdempotencyKey,
} from './brokerage.store.ts'
import { readTenantDefault } from './default-policies.ts'
import type { OutcomeRecorder } from './record-outcome.ts'
import { decideVerdict, runRiskChecks, type Verdict } from './risk-checks.ts'
import type { RiskFacts } from './risk-facts.ts'
import {
  type createTradeContent,
  describeNextOf,
  describeTradeRule,
  readNormal,
  requiredApprovals,
} from './trade-approval.ts'
import { refusalFields, toCheckResults } from './trade-decision.ts'
import { holdForTrade } from './trade-holds.ts'
import {
  applyPolicies,
  type DefaultPolicies,
  requireNameable,
  speaksOfTrades,
  type TenantPolicy,
  type TradePolicy,
} from './trade-policies.ts'
import { checkAgainstInstrument, parseTradeRequest, type TradeRequest, type TradeRequestBody } from './trade-request.ts'
import { agentNamesOf, spenderOf, type TradeRun } from './trade-run-record.ts'
import { buildTradeTerms, payeesOf, quantityToEstimateE8 } from './trade-terms.ts'
import type { Venues } from './venues.ts'

export type AdmitDeps = {
  db: Db
  clock: Clock
  ids: Ids
  venues: Venues
  outcomeRecorder: OutcomeRecorder
  policies: DefaultPolicies
  approvalWindowSeconds: number | undefined
  governance: TradeGovernance
  readBasis(symbol: string): Promise<RwaReading | undefined>
  content: ReturnType<typeof createTradeContent>
}

export type RunRequestBody = TradeRequestBody & { tenant_id: string }
export type RunRequest = {
  caller: TenantCaller
  body: RunRequestBody
  idempotencyKey: string | undefined
  requestId: string
}
export type AdmitTrade = ReturnType<typeof createAdmitTrade>

/** A response for the caller (refused, pending or replayed), or a run whose order may be sent now. */
export type Admission = { response: IdempotentResponse } | { run: TradeRun }

const IDEMPOTENCY_KEY_LIFETIME_MS = 24 * 3_600_000
/** How long a worker owns a run it has claimed. */
export const LEASE_SECONDS = 30

/**
 * Decides whether a trade executes now, needs an approval or is refused, and stores the run in one transaction together
 * with its holds, its idempotency key and, unless it executes now, its response.
 */
export const createAdmitTrade =
  (deps: AdmitDeps) =>
  async (runRequest: RunRequest): Promise<Admission> => {
    const { caller, body } = runRequest
    if (body.tenant_id !== caller.tenantId) throw forbidden('tenant_id must be the tenant of the key.')
    const request = parseTradeRequest(body)
    const party = deps.governance.readParty(caller, request)
    const replayedResponse = await replayResponse(deps.db, runRequest, deps.clock.now())
    if (replayedResponse) return { response: replayedResponse }
    const broker = deps.venues.choose(caller.tenantId, request.type)
    if (!broker)
      throw invalid(`No broker for ${request.type} is configured for this tenant.`, { field: 'instrument_type' })
    const market = await readMarket(deps, broker, request, party)
    const attemptAdmission = async () => {
      const freeze = await deps.governance.findFreeze(party)
      return deps.db.transaction().execute(async (tx) => {
        const killSwitch = await lockTenant(tx, caller.tenantId)
        const now = deps.clock.now()
        const concurrentResponse = await replayResponse(tx, runRequest, now)
        if (concurrentResponse) return { response: concurrentResponse }
        const tradeInput = { caller, request: market.request, party, broker, market, freeze, now }
        const { policy, defaultPolicy, terms, trade, limitPolicyIds } = await readTradeRules(deps, tx, tradeInput)
        const assessment = await deps.governance.assess(tx, trade, limitPolicyIds)
        const facts: RiskFacts = {
          ...market,
          policy,
          terms,
          assessment,
          spentTodayMicro: await readCommittedMicro(tx, caller.tenantId, request.type, startOfDay(now)),
          duplicateClientOrderId:
            request.clientOrderId !== null && (await clientOrderIdExists(tx, caller.tenantId, request.clientOrderId)),
          killSwitch: killSwitch.engagedAt !== null,
          freeze,
          agentNames: agentNamesOf(party),
          spender: party.spender,
          now,
        }
        const checks = runRiskChecks(facts)
        const overridesDefault = policy.source === 'named' && defaultPolicyRejects(facts, defaultPolicy)
        const verdict = decideVerdict(checks, overridesDefault, assessment)
        const draft = draftRun(deps.ids.uuid(), { request, party, broker, facts, checks, verdict, limitPolicyIds })
        const admission = await storeByVerdict(deps, tx, runRequest, draft, facts, verdict)
        if (runRequest.idempotencyKey) {
          await saveIdempotencyKey(tx, {
            tenantId: caller.tenantId,
            key: runRequest.idempotencyKey,
            bodyHash: hashBody(body),
            runId: draft.id,
            expiresAt: new Date(now.getTime() + IDEMPOTENCY_KEY_LIFETIME_MS),
          })
        }
        return admission
      })
    }
    return deps.governance.retryWhileChanging(caller.tenantId, attemptAdmission)
  }

/** Stores the run as its verdict says: executing, pending or rejected. */
async function storeByVerdict(
  deps: AdmitDeps,
  tx: Tx,
  { requestId, body }: RunRequest,
  draft: TradeRun,
  facts: RiskFacts,
  verdict: Verdict,
): Promise<Admission> {
  switch (verdict.outcome) {
    case 'execute':
      await insertRun(tx, draft)
      return { run: await holdForTrade(tx, draft, requirePass(facts.assessment), draft.createdAt) }
    case 'pending':
      return { response: await storePending(deps, tx, body, draft, facts, verdict.policyVerdict) }
    case 'rejected': {
      const { error, message } = verdict
      const decisionId = deps.ids.next('dec')
      const audit = nameAudit(deps, draft)
      const response = toResponse(422, {
        error,
        message,
        run_id: draft.id,
        status: 'rejected',
        instrument_type: draft.terms.type,
        checks: draft.policy.checks,
        decision_id: decisionId,
        policy_results: draft.policyResults,
        ...refusalFields(deps.governance, facts, draft.policy.checks),
        request_id: requestId,
        ...audit.named,
      })
      const rejected = { ...draft, reason: message, ...responseColumns(response) }
      await recordDecision(deps, tx, rejected, facts, {
        id: decisionId,
        outcome: 'blocked',
        error,
        message,
        actionHash: hashTerms(body),
      })
      await deps.outcomeRecorder.recordRejected(tx, rejected, audit.id)
      return { response }
    }
  }
}

function requirePass(assessment: TradeAssessment) {
  if (assessment.outcome !== 'pass') throw new Error(`A trade with the outcome '${assessment.outcome}' cannot execute.`)
  return assessment
}

async function storePending(
  deps: AdmitDeps,
  tx: Tx,
  body: RunRequestBody,
  draft: TradeRun,
  facts: RiskFacts,
  policyVerdict: string,
): Promise<IdempotentResponse> {
  const { type, leverageE2 } = facts.terms
  const { session, nextOpen } = facts.quote
  const window = computeApprovalWindow({
    type,
    leverageE2,
    session,
    nextOpen,
    now: draft.createdAt,
    overrideSeconds: deps.approvalWindowSeconds,
  })
  const { checks } = draft.policy
  const normalOf = await readNormal(tx, draft.tenantId, [draft], draft.createdAt)
  const isClosed = session === 'closed' || session === 'holiday'
  const rule = describeTradeRule(facts, checks)
  const approval = buildApprovalPayload({
    runId: draft.id,
    tenantId: draft.tenantId,
    facts,
    checks,
    policyVerdict,
    window,
    approvalsRequired: draft.policy.approvalsRequired ?? 1,
    view: {
      rule,
      normal: normalOf(draft),
      next: describeNextOf({ ...draft, nextOpen: isClosed ? (nextOpen?.toISOString() ?? null) : null }),
    },
  })
  const decisionId = deps.ids.next('dec')
  const audit = nameAudit(deps, draft)
  const response = toResponse(202, {
    run_id: draft.id,
    status: 'pending_approval',
    instrument_type: type,
    expires_at: approval.expires_at,
    execute_by: approval.execute_by,
    decision_id: decisionId,
    approval,
    ...audit.named,
  })
  const content = deps.content.encrypt(body)
  const pending = { ...draft, ...window, approval, content, ...responseColumns(response) }
  await recordDecision(deps, tx, pending, facts, {
    id: decisionId,
    outcome: 'review_required',
    error: 'policy_blocked',
    message: rule.sentence,
    actionHash: approval.digest,
  })
  await deps.outcomeRecorder.recordPending(tx, pending, audit.id)
  return response
}

/** The decision about a trade that is refused or waits, in the transaction that stores the run. */
const recordDecision = (
  deps: Pick<AdmitDeps, 'governance'>,
  tx: Tx,
  run: TradeRun,
  facts: RiskFacts,
  decision: { id: string; outcome: 'blocked' | 'review_required'; error: string; message: string; actionHash: string },
): Promise<void> =>
  deps.governance.recordDecision(tx, {
    ...decision,
    tenantId: run.tenantId,
    runId: run.id,
    agentId: run.agentId,
    merchant: payeesOf(run.broker, run.instrument)[0]!,
    amountMicro: run.terms.notionalMicro,
    results: [...toCheckResults(run.policy.checks, facts.policy, facts.terms.type), ...facts.assessment.results],
    askedBy: run.keyId,
    spender: spenderOf(run),
    team: run.team,
    tags: run.tags,
    at: run.createdAt,
  })

/** The audit event that a stored answer names where a policy wants it on the record; `withAuditLink` adds its place. */
function nameAudit(deps: Pick<AdmitDeps, 'ids'>, { policy }: TradeRun) {
  const id = deps.ids.next('aud')
  return { id, named: policy.auditRequired ? { audit: { event_id: id } } : {} }
}

/** What was asked for, without the words for an approver, so that nobody can guess them from the hash. */
function hashTerms({ purpose: _, ...terms }: RunRequestBody): string {
  return hashBody(terms)
}

/** The stored response to this idempotency key, if any; 409 while its run is still executing. */
async function replayResponse(tx: Tx, runRequest: RunRequest, now: Date): Promise<IdempotentResponse | undefined> {
  if (runRequest.idempotencyKey === undefined) return undefined
  const existingKey = await findIdempotencyKey(tx, runRequest.caller.tenantId, runRequest.idempotencyKey, now)
  if (!existingKey) return undefined
  if (existingKey.bodyHash !== hashBody(runRequest.body)) throw differentBody()
  const run = await findRun(tx, runRequest.caller.tenantId, existingKey.runId)
  if (!run?.answerBody || run.answerStatus === null) throw stillInFlight()
  return { status: run.answerStatus, body: run.answerBody, replayed: true }
}

/** What the broker and other modules say, read before any transaction is open. */
type Market = Pick<RiskFacts, 'instrument' | 'quote' | 'account' | 'reading'> & {
  request: TradeRequest
  slippageBps: number
}

async function readMarket(deps: AdmitDeps, broker: Broker, request: TradeRequest, party: TradeParty): Promise<Market> {
  const { instrument } = requireResult(await broker.instrument(request.type, request.symbol))
  checkAgainstInstrument(request, instrument)
  const [quoteResult, accountResult, reading] = await Promise.all([
    broker.quote(request.type, request.symbol),
    broker.account(party.tenantId),
    request.type === 'rwa' ? deps.readBasis(request.symbol) : undefined,
  ])
  const { quote } = requireResult(quoteResult)
  const { slippageBps } = requireResult(
    await broker.estimate(request.type, request.symbol, quantityToEstimateE8(request, quote)),
  )
  return {
    // The broker's own spelling of the symbol, so that one position does not have two names.
    request: { ...request, symbol: instrument.symbol },
    instrument,
    quote,
    slippageBps,
    account: requireResult(accountResult).account,
    reading: reading ?? null,
  }
}

type TradeInput = {
  caller: TenantCaller
  request: TradeRequest
  party: TradeParty
  broker: Broker
  market: Market
  freeze: Freeze | undefined
  now: Date
}

/** The limits of the trade by the policies that are in force now, its terms, and what governance reads of it. */
async function readTradeRules(deps: AdmitDeps, tx: Tx, input: TradeInput) {
  const { request, party, broker, market, freeze, now } = input
  const termsUnder = (policy: TradePolicy) =>
    buildTradeTerms({
      request,
      quote: market.quote,
      instrument: market.instrument,
      slippageBps: market.slippageBps,
      policy,
      basisBps: market.reading?.basisBps ?? null,
    })
  const shipped = deps.policies[request.type]
  const trade: GovernedTrade = {
    party,
    type: request.type,
    symbol: request.symbol,
    payees: payeesOf(broker.id, market.instrument),
    amountMicro: termsUnder(shipped).notionalMicro,
    leverage: request.leverageE2 === null ? null : Number(request.leverageE2) / 100,
    namedMandateId: request.mandateId,
    freeze,
    at: now,
  }
  const enforced = (await deps.governance.findEnforcedPolicies(tx, trade)).filter(speaksOfTrades)
  const tenantDefault = await readTenantDefault(tx, deps.policies, party.tenantId, request.type)
  const [first, ...others] = enforced
  const defaultPolicy =
    tenantDefault ?? (first === undefined ? shipped : applyPolicies(shipped, [first, ...others], 'enforced'))
  const named = await findNamedPolicy(deps, tx, input, trade)
  const policy = named ? applyPolicies(tenantDefault ?? shipped, [named], 'named') : defaultPolicy
  const limitPolicies = named ? [named] : policy.source === 'enforced' ? enforced : []
  const limitPolicyIds = limitPolicies.map(({ id }) => id)
  return { policy, defaultPolicy, terms: termsUnder(policy), trade, limitPolicyIds }
}

async function findNamedPolicy(
  deps: AdmitDeps,
  tx: Tx,
  { caller, request }: TradeInput,
  trade: GovernedTrade,
): Promise<TenantPolicy | undefined> {
  if (request.policyId === null) return undefined
  const policy = await deps.governance.findPolicy(tx, trade, request.policyId)
  if (!policy) throw invalid('policy_id is not a policy of this tenant.', { field: 'policy_id' })
  requireNameable(policy, caller.scopes.includes('control'))
  return policy
}

/** Turns a broker's failure into an error: an unknown symbol is the caller's mistake (400), an unavailable broker is not (503). */
function requireResult<T extends { ok: true }>(result: T | BrokerFailure): T {
  if (result.ok) return result
  if (result.reason === 'unavailable') throw unavailable(`The broker is not available at the moment. ${result.message}`)
  throw invalid(result.message, { field: 'symbol' })
}

function defaultPolicyRejects(facts: RiskFacts, policy: TradePolicy): boolean {
  return decideVerdict(runRiskChecks({ ...facts, policy }), false, facts.assessment).outcome === 'rejected'
}

function draftRun(
  id: string,
  draft: {
    request: TradeRequest
    party: TradeParty
    broker: Broker
    facts: RiskFacts
    checks: ReturnType<typeof runRiskChecks>
    verdict: Verdict
    limitPolicyIds: readonly string[]
  },
): TradeRun {
  const { request, party, broker, facts, checks, verdict, limitPolicyIds } = draft
  const { now, policy } = facts
  const executes = verdict.outcome === 'execute'
  const approvalsRequired = requiredApprovals(facts, checks)
  return {
    id,
    ...party,
    namedMandateId: request.mandateId,
    mandateId: null,
    policyResults: facts.assessment.results,
    holds: [],
    broker: broker.id,
    mode: broker.mode,
    state: executes ? 'executing' : verdict.outcome === 'pending' ? 'pending_approval' : 'rejected',
    reason: null,
    clientOrderId: request.clientOrderId,
    terms: facts.terms,
    instrument: facts.instrument,
    policy: {
      policyId: policy.policyId,
      name: policy.name,
      contentHash: policy.contentHash,
      verdict: executes ? 'pass' : verdict.outcome === 'pending' ? verdict.policyVerdict : 'rejected',
      checks,
      limitPolicyIds,
      ...(policy.separateApprover && { separateApprover: true }),
      ...(approvalsRequired > 1 && { approvalsRequired }),
      ...(facts.assessment.auditRequired && { auditRequired: true }),
    },
    approval: null,
    content: null,
    votes: [],
    endedBy: null,
    expiresAt: null,
    executeBy: executes ? immediateExecutionDeadline(now) : now,
    approvedAt: null,
    approvedBy: null,
    approvedByClaimed: null,
    selfApproved: false,
    leaseUntil: executes ? new Date(now.getTime() + LEASE_SECONDS * 1000) : null,
    attempts: executes ? 1 : 0,
    sentAt: null,
    nextAttemptAt: executes ? now : null,
    brokerOrderId: null,
    stopReason: null,
    executionQuote: null,
    answerStatus: null,
    answerBody: null,
    createdAt: now,
    updatedAt: now,
    finishedAt: verdict.outcome === 'rejected' ? now : null,
  }
}

const toResponse = (status: number, body: unknown): IdempotentResponse => ({
  status,
  body: JSON.stringify(body),
  replayed: false,
})

const responseColumns = ({ status, body }: IdempotentResponse) => ({ answerStatus: status, answerBody: body })

const startOfDay = (now: Date) => new Date(`${now.toISOString().slice(0, 10)}T00:00:00.000Z`)
