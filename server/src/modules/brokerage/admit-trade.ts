import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import { differentBody, hashBody, type IdempotentResponse, stillInFlight } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import { forbidden, invalid, unavailable } from '../../platform/problem.ts'
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
import type { OutcomeRecorder } from './record-outcome.ts'
import { decideVerdict, runRiskChecks, type Verdict } from './risk-checks.ts'
import type { RiskFacts } from './risk-facts.ts'
import { applyTenantPolicy, type DefaultPolicies, type TenantPolicy, type TradePolicy } from './trade-policies.ts'
import { checkAgainstInstrument, parseTradeRequest, type TradeRequest, type TradeRequestBody } from './trade-request.ts'
import type { TradeRun } from './trade-run-record.ts'
import { buildTradeTerms, quantityToEstimateE8 } from './trade-terms.ts'
import type { Venues } from './venues.ts'

export type AdmitDeps = {
  db: Db
  clock: Clock
  ids: Ids
  venues: Venues
  outcomeRecorder: OutcomeRecorder
  policies: DefaultPolicies
  approvalWindowSeconds: number | undefined
  /** Undefined when the caller has no policy with this id. */
  findPolicy(caller: TenantCaller, policyId: string): Promise<TenantPolicy | undefined>
  isFrozen(tenantId: string, agentId: string): Promise<boolean>
  readBasis(symbol: string): Promise<RwaReading | undefined>
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
 * with its idempotency key and, unless it executes now, its response.
 */
export const createAdmitTrade =
  (deps: AdmitDeps) =>
  async (runRequest: RunRequest): Promise<Admission> => {
    const { caller, body } = runRequest
    if (body.tenant_id !== caller.tenantId) throw forbidden('tenant_id must be the tenant of the key.')
    const request = parseTradeRequest(body)
    const replayedResponse = await replayResponse(deps.db, runRequest, deps.clock.now())
    if (replayedResponse) return { response: replayedResponse }
    const broker = deps.venues.choose(caller.tenantId, request.type)
    if (!broker)
      throw invalid(`No broker for ${request.type} is configured for this tenant.`, { field: 'instrument_type' })
    const gatheredFacts = await gatherFacts(deps, broker, request, caller)
    return deps.db.transaction().execute(async (tx) => {
      const killSwitch = await lockTenant(tx, caller.tenantId)
      const now = deps.clock.now()
      const concurrentResponse = await replayResponse(tx, runRequest, now)
      if (concurrentResponse) return { response: concurrentResponse }
      const facts: RiskFacts = {
        ...gatheredFacts,
        spentTodayMicro: await readCommittedMicro(tx, caller.tenantId, request.type, startOfDay(now)),
        duplicateClientOrderId:
          request.clientOrderId !== null && (await clientOrderIdExists(tx, caller.tenantId, request.clientOrderId)),
        killSwitch: killSwitch.engagedAt !== null,
        agentId: request.agentId,
        now,
      }
      const checks = runRiskChecks(facts)
      const overridesDefault =
        gatheredFacts.policy.source === 'tenant' && defaultPolicyRejects(facts, deps.policies[request.type])
      const verdict = decideVerdict(checks, overridesDefault)
      const draft = draftRun(deps.ids.uuid(), runRequest, request, broker, facts, checks, verdict)
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

/** Stores the run as its verdict says: executing, pending or rejected. */
async function storeByVerdict(
  deps: AdmitDeps,
  tx: Tx,
  { requestId }: RunRequest,
  draft: TradeRun,
  facts: RiskFacts,
  verdict: Verdict,
): Promise<Admission> {
  switch (verdict.outcome) {
    case 'execute':
      await insertRun(tx, draft)
      return { run: draft }
    case 'pending':
      return { response: await storePending(deps, tx, draft, facts, verdict.policyVerdict) }
    case 'rejected': {
      const response = toResponse(422, {
        error: verdict.error,
        message: verdict.message,
        run_id: draft.id,
        status: 'rejected',
        instrument_type: draft.terms.type,
        checks: draft.policy.checks,
        request_id: requestId,
      })
      await deps.outcomeRecorder.recordRejected(tx, { ...draft, reason: verdict.message, ...responseColumns(response) })
      return { response }
    }
  }
}

async function storePending(
  deps: AdmitDeps,
  tx: Tx,
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
  const approval = buildApprovalPayload({
    runId: draft.id,
    tenantId: draft.tenantId,
    facts,
    checks: draft.policy.checks,
    policyVerdict,
    window,
  })
  const response = toResponse(202, {
    run_id: draft.id,
    status: 'pending_approval',
    instrument_type: type,
    expires_at: approval.expires_at,
    execute_by: approval.execute_by,
    approval,
  })
  await deps.outcomeRecorder.recordPending(tx, { ...draft, ...window, approval, ...responseColumns(response) })
  return response
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

type GatheredFacts = Omit<RiskFacts, 'spentTodayMicro' | 'duplicateClientOrderId' | 'killSwitch' | 'agentId' | 'now'>

/** Calls the broker and the other modules before any transaction is open. */
async function gatherFacts(
  deps: AdmitDeps,
  broker: Broker,
  request: TradeRequest,
  caller: TenantCaller,
): Promise<GatheredFacts> {
  const { instrument } = requireResult(await broker.instrument(request.type, request.symbol))
  checkAgainstInstrument(request, instrument)
  const [quoteResult, accountResult, policy, reading, agentFrozen] = await Promise.all([
    broker.quote(request.type, request.symbol),
    broker.account(caller.tenantId),
    findTradePolicy(deps, caller, request),
    request.type === 'rwa' ? deps.readBasis(request.symbol) : undefined,
    request.agentId === null ? false : deps.isFrozen(caller.tenantId, request.agentId),
  ])
  const { quote } = requireResult(quoteResult)
  const { slippageBps } = requireResult(
    await broker.estimate(request.type, request.symbol, quantityToEstimateE8(request, quote)),
  )
  // The broker's own spelling of the symbol, so that one position does not have two names.
  const normalizedRequest = { ...request, symbol: instrument.symbol }
  const terms = buildTradeTerms({
    request: normalizedRequest,
    quote,
    instrument,
    slippageBps,
    policy,
    basisBps: reading?.basisBps ?? null,
  })
  return {
    terms,
    policy,
    instrument,
    quote,
    account: requireResult(accountResult).account,
    reading: reading ?? null,
    agentFrozen,
  }
}

async function findTradePolicy(deps: AdmitDeps, caller: TenantCaller, request: TradeRequest): Promise<TradePolicy> {
  const defaultPolicy = deps.policies[request.type]
  if (request.policyId === null) return defaultPolicy
  const tenantPolicy = await deps.findPolicy(caller, request.policyId)
  if (!tenantPolicy) throw invalid('policy_id is not a policy of this tenant.', { field: 'policy_id' })
  return applyTenantPolicy(defaultPolicy, tenantPolicy, { agentId: request.agentId, keyId: caller.keyId })
}

/** Turns a broker's failure into an error: an unknown symbol is the caller's mistake (400), an unavailable broker is not (503). */
function requireResult<T extends { ok: true }>(result: T | BrokerFailure): T {
  if (result.ok) return result
  if (result.reason === 'unavailable') throw unavailable(`The broker is not available at the moment. ${result.message}`)
  throw invalid(result.message, { field: 'symbol' })
}

function defaultPolicyRejects(facts: RiskFacts, policy: TradePolicy): boolean {
  return decideVerdict(runRiskChecks({ ...facts, policy }), false).outcome === 'rejected'
}

function draftRun(
  id: string,
  { caller }: RunRequest,
  request: TradeRequest,
  broker: Broker,
  facts: RiskFacts,
  checks: ReturnType<typeof runRiskChecks>,
  verdict: Verdict,
): TradeRun {
  const { now, policy } = facts
  const executes = verdict.outcome === 'execute'
  return {
    id,
    tenantId: caller.tenantId,
    keyId: caller.keyId,
    agentId: request.agentId,
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
    },
    approval: null,
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
