import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import { differentBody, hashBody, stillInFlight } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import { forbidden, invalid, unavailable } from '../../platform/problem.ts'
import { approvalPayload } from './approval-payload.ts'
import type { Broker, Failed, RwaReading } from './broker.ts'
import { committedMicro, findKey, findRun, hasClientOrder, insertRun, keepKey, lockTenant } from './brokerage.store.ts'
import { type Ask, type AskBody, checkAgainstInstrument, readAsk } from './instruments.ts'
import type { Outcomes } from './outcomes.ts'
import { type DefaultPolicies, overridePolicy, type TenantPolicy, type TradePolicy } from './policies.ts'
import { assessRisk, judge, type RiskFacts, type Verdict } from './risk.ts'
import { drawTerms, quantityToEstimateE8 } from './terms.ts'
import type { TradeRun } from './trade-run.ts'
import type { Venues } from './venues.ts'
import { approvalWindows, immediateWindow } from './windows.ts'

export type AdmitDeps = {
  db: Db
  clock: Clock
  ids: Ids
  venues: Venues
  outcomes: Outcomes
  policies: DefaultPolicies
  approvalWindowSeconds: number | undefined
  /** One of the caller's own; undefined when there is none by that id. */
  findPolicy(caller: TenantCaller, policyId: string): Promise<TenantPolicy | undefined>
  isFrozen(tenantId: string, agentId: string): Promise<boolean>
  basisReading(symbol: string): Promise<RwaReading | undefined>
}

export type RunBody = AskBody & { tenant_id: string }
export type Asking = { caller: TenantCaller; body: RunBody; idempotencyKey: string | undefined; requestId: string }
export type Answer = { status: number; body: string; replayed: boolean }

/** What admission comes to: an answer, or a run whose order may be sent now. */
export type Admission = { answer: Answer } | { run: TradeRun }

const KEY_LIFE_MS = 24 * 3_600_000
export const LEASE_SECONDS = 30

export const createAdmitTrade =
  (d: AdmitDeps) =>
  async (asking: Asking): Promise<Admission> => {
    const { caller, body } = asking
    if (body.tenant_id !== caller.tenantId) throw forbidden('tenant_id must be the tenant of the key.')
    const ask = readAsk(body)
    const earlier = await replay(d.db, asking, d.clock.now())
    if (earlier) return { answer: earlier }
    const broker = d.venues.choose(caller.tenantId, ask.type)
    if (!broker) throw invalid(`No broker for ${ask.type} is configured for this tenant.`, { field: 'instrument_type' })
    const scene = await survey(d, broker, ask, caller)
    return d.db.transaction().execute(async (tx) => {
      const kill = await lockTenant(tx, caller.tenantId)
      const now = d.clock.now()
      const raced = await replay(tx, asking, now)
      if (raced) return { answer: raced }
      const facts: RiskFacts = {
        ...scene,
        spentTodayMicro: await committedMicro(tx, caller.tenantId, ask.type, startOfDay(now)),
        duplicateClientOrderId:
          ask.clientOrderId !== null && (await hasClientOrder(tx, caller.tenantId, ask.clientOrderId)),
        killSwitch: kill.engagedAt !== null,
        agentId: ask.agentId,
        now,
      }
      const checks = assessRisk(facts)
      const verdict = judge(checks, scene.policy.source === 'tenant' && defaultRefuses(facts, d.policies[ask.type]))
      const draft = draftRun(d.ids.uuid(), asking, ask, broker, facts, checks, verdict)
      const admission = await admit(tx, draft, facts, verdict, asking)
      if (asking.idempotencyKey) {
        const expiresAt = new Date(now.getTime() + KEY_LIFE_MS)
        const claim = { tenantId: caller.tenantId, key: asking.idempotencyKey, bodyHash: hashBody(body), expiresAt }
        await keepKey(tx, { ...claim, runId: draft.id })
      }
      return admission
    })

    async function admit(
      tx: Tx,
      draft: TradeRun,
      facts: RiskFacts,
      verdict: Verdict,
      from: Asking,
    ): Promise<Admission> {
      switch (verdict.outcome) {
        case 'execute': {
          await insertRun(tx, draft)
          return { run: draft }
        }
        case 'pending': {
          const { terms, quote } = facts
          const { type, leverageE2 } = terms
          const { session, nextOpen } = quote
          const windows = approvalWindows({
            type,
            leverageE2,
            session,
            nextOpen,
            now: draft.createdAt,
            overrideSeconds: d.approvalWindowSeconds,
          })
          const { policyVerdict } = verdict
          const { checks } = draft.policy
          const approval = approvalPayload({
            runId: draft.id,
            tenantId: draft.tenantId,
            facts,
            checks,
            policyVerdict,
            windows,
          })
          const answer = answerOf(202, {
            run_id: draft.id,
            status: 'pending_approval',
            instrument_type: type,
            expires_at: approval.expires_at,
            execute_by: approval.execute_by,
            approval,
          })
          await d.outcomes.pending(tx, { ...draft, ...windows, approval, ...stored(answer) })
          return { answer }
        }
        case 'rejected': {
          const answer = answerOf(422, {
            error: verdict.error,
            message: verdict.message,
            run_id: draft.id,
            status: 'rejected',
            instrument_type: draft.terms.type,
            checks: draft.policy.checks,
            request_id: from.requestId,
          })
          await d.outcomes.refused(tx, { ...draft, reason: verdict.message, ...stored(answer) })
          return { answer }
        }
      }
    }
  }

/** The same key gives the same answer; one whose run still executes is told to ask again. */
export async function replay(tx: Tx, asking: Asking, now: Date): Promise<Answer | undefined> {
  if (asking.idempotencyKey === undefined) return undefined
  const known = await findKey(tx, asking.caller.tenantId, asking.idempotencyKey, now)
  if (!known) return undefined
  if (known.bodyHash !== hashBody(asking.body)) throw differentBody()
  const run = await findRun(tx, asking.caller.tenantId, known.runId)
  if (!run?.answerBody || run.answerStatus === null) throw stillInFlight()
  return { status: run.answerStatus, body: run.answerBody, replayed: true }
}

type Scene = Omit<RiskFacts, 'spentTodayMicro' | 'duplicateClientOrderId' | 'killSwitch' | 'agentId' | 'now'>

/** Everything that has to be asked of others, before any transaction is open. */
async function survey(d: AdmitDeps, broker: Broker, ask: Ask, caller: TenantCaller): Promise<Scene> {
  const found = taken(await broker.instrument(ask.type, ask.symbol))
  checkAgainstInstrument(ask, found.instrument)
  const [quoted, accounted, policy, reading, agentFrozen] = await Promise.all([
    broker.quote(ask.type, ask.symbol),
    broker.account(caller.tenantId),
    policyFor(d, caller, ask),
    ask.type === 'rwa' ? d.basisReading(ask.symbol) : undefined,
    ask.agentId === null ? false : d.isFrozen(caller.tenantId, ask.agentId),
  ])
  const { instrument } = found
  const { quote } = taken(quoted)
  const { slippageBps } = taken(await broker.estimate(ask.type, ask.symbol, quantityToEstimateE8(ask, quote)))
  // The broker's own spelling: one position must not go by two names.
  const named = { ...ask, symbol: instrument.symbol }
  const terms = drawTerms({ ask: named, quote, instrument, slippageBps, policy, basisBps: reading?.basisBps ?? null })
  return { terms, policy, instrument, quote, account: taken(accounted).account, reading: reading ?? null, agentFrozen }
}

async function policyFor(d: AdmitDeps, caller: TenantCaller, ask: Ask): Promise<TradePolicy> {
  const base = d.policies[ask.type]
  if (ask.policyId === null) return base
  const own = await d.findPolicy(caller, ask.policyId)
  if (!own) throw invalid('policy_id names no policy of this tenant.', { field: 'policy_id' })
  return overridePolicy(base, own, { agentId: ask.agentId, keyId: caller.keyId })
}

/** A broker's failure in the caller's words: a symbol nobody knows is their mistake, a broker that is away is not. */
function taken<T extends { ok: true }>(answer: T | Failed): T {
  if (answer.ok) return answer
  if (answer.reason === 'unavailable') throw unavailable(`The broker cannot be asked at the moment. ${answer.message}`)
  throw invalid(answer.message, { field: 'symbol' })
}

function defaultRefuses(facts: RiskFacts, policy: TradePolicy): boolean {
  return judge(assessRisk({ ...facts, policy }), false).outcome === 'rejected'
}

function draftRun(
  id: string,
  { caller }: Asking,
  ask: Ask,
  broker: Broker,
  facts: RiskFacts,
  checks: ReturnType<typeof assessRisk>,
  verdict: Verdict,
): TradeRun {
  const { now, policy } = facts
  const executes = verdict.outcome === 'execute'
  return {
    id,
    tenantId: caller.tenantId,
    keyId: caller.keyId,
    agentId: ask.agentId,
    broker: broker.id,
    mode: broker.mode,
    state: executes ? 'executing' : verdict.outcome === 'pending' ? 'pending_approval' : 'rejected',
    reason: null,
    clientOrderId: ask.clientOrderId,
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
    executeBy: executes ? immediateWindow(now) : now,
    approvedAt: null,
    approvedBy: null,
    approvedByClaimed: null,
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

const answerOf = (status: number, body: unknown): Answer => ({ status, body: JSON.stringify(body), replayed: false })

const stored = (answer: Answer) => ({ answerStatus: answer.status, answerBody: answer.body })

const startOfDay = (now: Date) => new Date(`${now.toISOString().slice(0, 10)}T00:00:00.000Z`)
