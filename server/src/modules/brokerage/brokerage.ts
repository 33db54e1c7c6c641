import type { TenantCaller } from '../../platform/auth-context.ts'
import { readPage } from '../../platform/paging.ts'
import { notFound, unavailable } from '../../platform/problem.ts'
import { type AdmitDeps, createAdmitTrade, LEASE_SECONDS } from './admit-trade.ts'
import { type ApproveDeps, cancelExpiredRun, createApproveTrade } from './approve-trade.ts'
import type { CoinbaseAccount, InstrumentType } from './broker.ts'
import * as store from './brokerage.store.ts'
import { createCancelTrade } from './cancel-trade.ts'
import { createDefaultPolicies } from './default-policies.ts'
import { createExecuteTrade, type ExecuteDeps } from './execute-trade.ts'
import { createKillSwitch } from './kill-switch.ts'
import { createLinkedTrades } from './linked-trades.ts'
import { createReadPositions } from './positions.ts'
import { createOutcomeRecorder, type OutcomeRecorderDeps } from './record-outcome.ts'
import { createRunTrade, type RunTradeDeps } from './run-trade.ts'
import { createTradeContent, readNormal, type TradeContentDeps, viewApproval } from './trade-approval.ts'
import { createReadRunQuote } from './trade-quote.ts'
import type { RhReceipt } from './trade-receipt.ts'
import { isUuid, type TradeRun } from './trade-run-record.ts'
import { toTradeRunResponse } from './trade-run-response.ts'

export type BrokerageDeps = Omit<AdmitDeps, 'outcomeRecorder' | 'content'> &
  Omit<ExecuteDeps, 'outcomeRecorder'> &
  Omit<ApproveDeps, 'outcomeRecorder'> &
  Pick<RunTradeDeps, 'awaitAudit' | 'fillTimeoutMs' | 'sleep'> &
  TradeContentDeps &
  OutcomeRecorderDeps & {
    coinbase: {
      brokerIds: readonly string[]
      /** Undefined when Coinbase does not answer. */
      accounts(limit: number): Promise<CoinbaseAccount[] | undefined>
    }
  }

export type ReceiptsQuery = { run_id?: string; tenant_id?: string; instrument_type?: InstrumentType; limit?: number }

export type RunsQuery = store.RunFilters & { limit?: number; cursor?: string }

export type Brokerage = ReturnType<typeof createBrokerage>

const SWEEP_BATCH_SIZE = 50
const KEYS_BATCH_SIZE = 5_000
const CONTENT_BATCH_SIZE = 1_000
/** Runs are executed concurrently, so that a slow broker delays only some of them. */
const SWEEP_WORKERS = 4

export function createBrokerage(deps: BrokerageDeps) {
  const { db, clock } = deps
  const outcomeRecorder = createOutcomeRecorder(deps)
  const executeTrade = createExecuteTrade({ ...deps, outcomeRecorder })
  const content = createTradeContent(deps)
  const admitTrade = createAdmitTrade({ ...deps, outcomeRecorder, content })
  const killSwitch = createKillSwitch({ ...deps, outcomeRecorder })
  const approve = createApproveTrade({ ...deps, outcomeRecorder })
  const readQuote = createReadRunQuote(deps)

  /** Runs with what their approvers are shown. The request is for keys with the scope `control`. */
  const toResponses = async (caller: TenantCaller, runs: readonly TradeRun[]) => {
    const ids = runs.map((run) => run.id)
    const [fills, receiptIds] = await Promise.all([store.listFillsOfRuns(db, ids), store.listReceiptIdsOfRuns(db, ids)])
    const approvalRuns = runs.filter((run) => run.approval !== null)
    const normalOf = await readNormal(db, caller.tenantId, approvalRuns, clock.now())
    const isApprover = caller.scopes.includes('control')
    return runs.map((run) =>
      toTradeRunResponse(run, fills.get(run.id) ?? [], receiptIds.get(run.id) ?? [], {
        view: viewApproval(run, normalOf),
        request: isApprover && run.approval !== null ? content.read(run) : undefined,
      }),
    )
  }

  return {
    run: createRunTrade({ ...deps, admitTrade, executeTrade }),
    approve,
    linkedTrades: createLinkedTrades({ ...deps, outcomeRecorder, approve, content, readQuote }),
    cancel: createCancelTrade({ ...deps, outcomeRecorder }),
    positions: createReadPositions(deps),
    readKillSwitch: killSwitch.read,
    setKillSwitch: killSwitch.set,

    async getRun(caller: TenantCaller, id: string) {
      const run = isUuid(id) ? await store.findRun(db, caller.tenantId, id) : undefined
      if (!run) throw notFound('run')
      return (await toResponses(caller, [run]))[0]!
    },

    getRunQuote: readQuote,

    defaultPolicies: createDefaultPolicies(deps),

    async listRuns(caller: TenantCaller, query: RunsQuery) {
      const { limit = 20, cursor, ...filters } = query
      const readRuns = (count: number, after: TradeRun | undefined) =>
        store.listRuns(db, caller.tenantId, { ...filters, limit: count, before: after?.id ?? cursor })
      const { rows, ...paging } = await readPage(limit, readRuns, (run) => run.id)
      return { runs: await toResponses(caller, rows), ...paging }
    },

    async listReceipts(caller: TenantCaller, query: ReceiptsQuery): Promise<RhReceipt[]> {
      const isForeign = query.tenant_id !== undefined && query.tenant_id !== caller.tenantId
      if (isForeign || (query.run_id !== undefined && !isUuid(query.run_id))) return []
      const filter = { tenantId: caller.tenantId, runId: query.run_id, type: query.instrument_type }
      return store.listReceipts(db, filter, query.limit ?? 20)
    },

    async getReceipt(caller: TenantCaller, id: string): Promise<RhReceipt> {
      const receipt = isUuid(id) ? await store.findReceipt(db, caller.tenantId, id) : undefined
      if (!receipt) throw notFound('receipt')
      return receipt
    },

    listCoinbaseReceipts: (status: 'pending' | 'history' | undefined, limit: number): Promise<RhReceipt[]> =>
      store.listReceipts(db, { brokers: deps.coinbase.brokerIds, status }, limit),

    async listCoinbaseAccounts(limit: number): Promise<CoinbaseAccount[]> {
      const accounts = await deps.coinbase.accounts(limit)
      if (!accounts) throw unavailable('Coinbase gives no answer at the moment.')
      return accounts
    },

    pruneContent: (): Promise<number> => store.deleteOldContent(db, content.contentEnd(), CONTENT_BATCH_SIZE),

    sweepKeys: (): Promise<number> => store.deleteExpiredIdempotencyKeys(db, clock.now(), KEYS_BATCH_SIZE),

    /** Cancels expired runs and executes due ones; any number of processes may sweep at once. Returns how many runs it handled. */
    async sweep(): Promise<number> {
      const expiredCount = await db.transaction().execute(async (tx) => {
        const runs = await store.lockExpiredRuns(tx, clock.now(), SWEEP_BATCH_SIZE)
        for (const run of runs) await cancelExpiredRun(outcomeRecorder, tx, run, clock.now())
        return runs.length
      })
      const workers = await Promise.allSettled(Array.from({ length: SWEEP_WORKERS }, executeDueRuns))
      for (const worker of workers) if (worker.status === 'rejected') throw worker.reason
      return workers.reduce((sum, worker) => sum + (worker.status === 'fulfilled' ? worker.value : 0), expiredCount)
    },
  }

  /** Claims one run at a time, so that a worker that dies leaves one run behind and not a batch. */
  async function executeDueRuns(): Promise<number> {
    for (let executedCount = 0; executedCount < SWEEP_BATCH_SIZE; executedCount += 1) {
      const [run] = await store.claimDueRuns(db, clock.now(), LEASE_SECONDS, 1)
      if (!run) return executedCount
      await executeTrade(run)
    }
    return SWEEP_BATCH_SIZE
  }
}
