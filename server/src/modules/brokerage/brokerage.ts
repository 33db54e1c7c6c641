import type { TenantCaller } from '../../platform/auth-context.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { conflict, notFound, unavailable } from '../../platform/problem.ts'
import { type AdmitDeps, type Answer, type Asking, createAdmitTrade, LEASE_SECONDS } from './admit-trade.ts'
import { type ApproveDeps, cancelExpired, createApproveTrade } from './approve-trade.ts'
import { averagePriceE8, type BrokerAccount, type InstrumentType, numberFromE8 } from './broker.ts'
import * as store from './brokerage.store.ts'
import { createExecuteTrade, type ExecuteDeps } from './execute-trade.ts'
import { createOutcomes, type OutcomeDeps } from './outcomes.ts'
import type { RhReceipt } from './receipt.ts'
import { isFinal, type TradeRun } from './trade-run.ts'

/** An account at Coinbase or its paper stand-in, in Coinbase's own shape. */
export type CoinbaseAccountRecord = {
  uuid: string
  currency: string
  available_balance: { value: string; currency: string }
  hold: { value: string; currency: string }
  type: string
}

export type BrokerageDeps = Omit<AdmitDeps, 'outcomes'> &
  Omit<ExecuteDeps, 'outcomes'> &
  Omit<ApproveDeps, 'outcomes'> &
  OutcomeDeps & {
    coinbase: { brokerIds: readonly string[]; accounts(limit: number): Promise<CoinbaseAccountRecord[] | undefined> }
    /** How long a caller waits for a broker that does not fill at once. */
    patienceMs?: number
    sleep?(milliseconds: number): Promise<void>
  }

export type Brokerage = ReturnType<typeof createBrokerage>

const PATIENCE_MS = 3000
const LOOK_EVERY_MS = 100
const SWEEP_AT_ONCE = 50
/** A broker that is slow to answer holds up one of these, not all. */
const WORKERS = 4
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function createBrokerage(deps: BrokerageDeps) {
  const { db, clock, venues } = deps
  const outcomes = createOutcomes(deps)
  const admit = createAdmitTrade({ ...deps, outcomes })
  const execute = createExecuteTrade({ ...deps, outcomes })
  const approve = createApproveTrade({ ...deps, outcomes })
  const sleep = deps.sleep ?? ((ms: number) => new Promise((resolve) => setTimeout(resolve, ms)))

  /** Cancels what no broker has, and asks the worker to stop what one may have. */
  const stop = async (tx: Parameters<typeof store.lockRun>[0], run: TradeRun, reason: string, actor: string) => {
    const now = clock.now()
    if (run.state === 'executing') return store.requestStop(tx, run.id, reason, now)
    await outcomes.finish(tx, run, { state: 'cancelled', reason, fills: [], brokerOrderId: null }, actor, now)
  }

  const ownRun = async (caller: TenantCaller, id: string) => {
    const run = UUID.test(id) ? await store.findRun(db, caller.tenantId, id) : undefined
    if (!run) throw notFound('run')
    return run
  }

  return {
    approve,

    /** Judged, and if nobody has to be asked, executed and settled before this returns. */
    async run(asking: Asking): Promise<Answer> {
      const admission = await admit(asking)
      if ('answer' in admission) return admission.answer
      const attempted = await execute(admission.run)
      const run = isFinal(attempted.state) ? attempted : await waitFor(attempted)
      if (run.answerBody && run.answerStatus !== null)
        return { status: run.answerStatus, body: run.answerBody, replayed: false }
      return { status: 202, body: JSON.stringify(stillExecuting(run)), replayed: false }
    },

    async getRun(caller: TenantCaller, id: string) {
      const run = await ownRun(caller, id)
      const [fills, receipts] = await Promise.all([store.listFills(db, run.id), store.receiptIdsOf(db, run.id)])
      return runRecord(run, fills, receipts)
    },

    /** A person says no, or an agent thinks better of it. */
    async cancel(caller: TenantCaller, id: string, reason: string) {
      await ownRun(caller, id)
      await db.transaction().execute(async (tx) => {
        const run = await store.lockRun(tx, id, caller.tenantId)
        if (!run) throw notFound('run')
        if (isFinal(run.state)) throw conflict(`This run is already ${run.state}.`)
        await stop(tx, run, reason, caller.keyId)
      })
      deps.wake()
      const run = await ownRun(caller, id)
      return { run_id: run.id, status: run.state, stopping: run.state === 'executing' }
    },

    async receipts(caller: TenantCaller, query: ReceiptsQuery): Promise<RhReceipt[]> {
      const foreign = query.tenant_id !== undefined && query.tenant_id !== caller.tenantId
      if (foreign || (query.run_id !== undefined && !UUID.test(query.run_id))) return []
      const filter = { tenantId: caller.tenantId, runId: query.run_id, type: query.instrument_type }
      return store.listReceipts(db, filter, query.limit ?? 20)
    },

    async receipt(caller: TenantCaller, id: string): Promise<RhReceipt> {
      const receipt = UUID.test(id) ? await store.findReceipt(db, caller.tenantId, id) : undefined
      if (!receipt) throw notFound('receipt')
      return receipt
    },

    async positions(caller: TenantCaller) {
      const brokers = venues.of(caller.tenantId)
      const accounts = await Promise.all(
        brokers.map(async (broker) => ({ broker, answer: await broker.account(caller.tenantId) })),
      )
      const away = accounts.filter(({ answer }) => !answer.ok).map(({ broker }) => broker.id)
      if (away.length > 0) throw unavailable(`No answer from ${away.join(', ')} at the moment.`)
      return {
        as_of: clock.now().toISOString(),
        accounts: accounts.flatMap(({ broker, answer }) =>
          answer.ok ? [accountRecord(broker.id, broker.mode, answer.account)] : [],
        ),
      }
    },

    async killSwitch(caller: TenantCaller) {
      return killRecord(await store.readKillSwitch(db, caller.tenantId), 0)
    },

    /** Engaging stops everything that has not been executed; releasing lets new runs in and revives none. */
    async setKillSwitch(caller: TenantCaller, engaged: boolean, reason: string | null) {
      const answer = await db.transaction().execute(async (tx) => {
        await store.lockTenant(tx, caller.tenantId)
        const now = clock.now()
        const kill = engaged
          ? { engagedAt: now, engagedBy: caller.keyId, reason }
          : { engagedAt: null, engagedBy: null, reason: null }
        await store.writeKillSwitch(tx, caller.tenantId, kill)
        const stopped = engaged ? await store.lockUnfinished(tx, caller.tenantId) : []
        for (const run of stopped) await stop(tx, run, 'Trading is switched off for this tenant.', caller.keyId)
        await deps.audit(tx, {
          tenantId: caller.tenantId,
          type: engaged ? 'rh_kill_switch.engaged' : 'rh_kill_switch.released',
          actor: caller.keyId,
          subject: caller.tenantId,
          at: now,
          data: { reason, runs_stopped: stopped.length },
        })
        return killRecord(kill, stopped.length)
      })
      deps.wake()
      return answer
    },

    coinbaseReceipts: (status: 'pending' | 'history' | undefined, limit: number): Promise<RhReceipt[]> =>
      store.listReceipts(db, { brokers: deps.coinbase.brokerIds, status }, limit),

    async coinbaseAccounts(limit: number): Promise<CoinbaseAccountRecord[]> {
      const accounts = await deps.coinbase.accounts(limit)
      if (!accounts) throw unavailable('Coinbase gives no answer at the moment.')
      return accounts
    },

    /** What time and the queue ask for; any number of processes may sweep at once. Answers how much there was to do. */
    async sweep(): Promise<number> {
      const expired = await db.transaction().execute(async (tx) => {
        const runs = await store.lockExpired(tx, clock.now(), SWEEP_AT_ONCE)
        for (const run of runs) await cancelExpired(outcomes, tx, run, clock.now())
        return runs.length
      })
      const worked = await Promise.allSettled(Array.from({ length: WORKERS }, workOff))
      await store.forgetKeys(db, clock.now(), SWEEP_AT_ONCE)
      for (const one of worked) if (one.status === 'rejected') throw one.reason
      return worked.reduce((sum, one) => sum + (one.status === 'fulfilled' ? one.value : 0), expired)
    },
  }

  /** One run at a time: a worker that dies leaves one run behind, not a batch. */
  async function workOff(): Promise<number> {
    for (let done = 0; done < SWEEP_AT_ONCE; done += 1) {
      const [run] = await store.claimDue(db, clock.now(), LEASE_SECONDS, 1)
      if (!run) return done
      await execute(run)
    }
    return SWEEP_AT_ONCE
  }

  /** Some brokers take an order now and fill it a moment later; the worker follows it, the caller waits a little. */
  async function waitFor(run: TradeRun): Promise<TradeRun> {
    deps.wake()
    for (let waited = 0; waited < (deps.patienceMs ?? PATIENCE_MS); waited += LOOK_EVERY_MS) {
      await sleep(LOOK_EVERY_MS)
      const current = await store.findRun(db, run.tenantId, run.id)
      if (current && isFinal(current.state)) return current
    }
    return run
  }
}

export type ReceiptsQuery = { run_id?: string; tenant_id?: string; instrument_type?: InstrumentType; limit?: number }

const stillExecuting = (run: TradeRun) => ({
  run_id: run.id,
  status: 'executing',
  instrument_type: run.terms.type,
  expires_at: run.executeBy.toISOString(),
  execute_by: run.executeBy.toISOString(),
  approval: null,
})

const killRecord = (kill: store.KillSwitch, stopped: number) => ({
  engaged: kill.engagedAt !== null,
  engaged_at: kill.engagedAt?.toISOString() ?? null,
  engaged_by: kill.engagedBy,
  reason: kill.reason,
  runs_stopped: stopped,
})

const runRecord = (run: TradeRun, fills: Awaited<ReturnType<typeof store.listFills>>, receiptIds: string[]) => ({
  run_id: run.id,
  tenant_id: run.tenantId,
  status: run.state,
  reason: run.reason,
  instrument_type: run.terms.type,
  symbol: run.terms.symbol,
  side: run.terms.side,
  quantity: numberFromE8(run.terms.quantityE8),
  notional_usdc: usdcFromMicro(run.terms.notionalMicro),
  price_limit: run.terms.limitPriceE8 === null ? null : numberFromE8(run.terms.limitPriceE8),
  leverage: run.terms.leverageE2 === null ? null : Number(run.terms.leverageE2) / 100,
  policy_id: run.policy.policyId,
  policy_verdict: run.policy.verdict,
  checks: run.policy.checks,
  broker: run.broker,
  mode: run.mode,
  client_order_id: run.clientOrderId,
  approval: run.approval,
  expires_at: run.expiresAt?.toISOString() ?? null,
  execute_by: run.executeBy.toISOString(),
  approved_at: run.approvedAt?.toISOString() ?? null,
  approved_by: run.approvedBy,
  approved_by_claimed: run.approvedByClaimed,
  fills: fills.map((fill) => ({
    fill_id: fill.fillId,
    quantity: numberFromE8(fill.quantityE8),
    price: numberFromE8(fill.priceE8),
    fee: usdcFromMicro(fill.feeMicro),
    at: fill.at.toISOString(),
  })),
  receipt_ids: receiptIds,
  created_at: run.createdAt.toISOString(),
  updated_at: run.updatedAt.toISOString(),
  finished_at: run.finishedAt?.toISOString() ?? null,
})

const accountRecord = (broker: string, mode: string, account: BrokerAccount) => ({
  broker,
  mode,
  currency: account.currency,
  cash_usdc: usdcFromMicro(account.cashMicro),
  unsettled_usdc: usdcFromMicro(account.unsettledMicro),
  held_usdc: usdcFromMicro(account.heldMicro),
  buying_power_usdc: usdcFromMicro(account.buyingPowerMicro),
  equity_usdc: usdcFromMicro(account.equityMicro),
  positions: account.positions.map((position) => ({
    instrument_type: position.type,
    symbol: position.symbol,
    quantity: numberFromE8(position.quantityE8),
    cost_usdc: usdcFromMicro(position.costMicro),
    avg_price: numberFromE8(averagePriceE8(position.costMicro, position.quantityE8)),
    margin_usdc: usdcFromMicro(position.marginMicro),
    leverage: position.leverageE2 === null ? null : Number(position.leverageE2) / 100,
    liquidation_price: position.liquidationPriceE8 === null ? null : numberFromE8(position.liquidationPriceE8),
    locked_until: position.lockedUntil?.toISOString() ?? null,
  })),
})
