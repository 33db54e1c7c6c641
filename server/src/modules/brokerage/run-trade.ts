import { type AwaitAudit, auditPending, pendingAuditId, withAuditLink } from '../../platform/audit-link.ts'
import type { Db } from '../../platform/db.ts'
import type { IdempotentResponse } from '../../platform/idempotency.ts'
import type { AdmitTrade, RunRequest } from './admit-trade.ts'
import { findRun } from './brokerage.store.ts'
import type { ExecuteTrade } from './execute-trade.ts'
import { isFinal, type TradeRun } from './trade-run-record.ts'

export type RunTradeDeps = {
  db: Db
  admitTrade: AdmitTrade
  executeTrade: ExecuteTrade
  /** Wakes the worker. */
  wake(): void
  awaitAudit: AwaitAudit
  /** How long a caller waits for a broker that does not fill at once. */
  fillTimeoutMs?: number
  sleep?(milliseconds: number): Promise<void>
}

const FILL_TIMEOUT_MS = 3000
const POLL_INTERVAL_MS = 100

/** POST /api/rh/run: decides on the trade and, unless it needs an approval, executes it before responding. */
export const createRunTrade = (deps: RunTradeDeps) => {
  const sleep = deps.sleep ?? ((ms: number) => new Promise((resolve) => setTimeout(resolve, ms)))

  return async (runRequest: RunRequest): Promise<IdempotentResponse> =>
    completeAudit(runRequest, await runTrade(runRequest))

  async function runTrade(runRequest: RunRequest): Promise<IdempotentResponse> {
    const admission = await deps.admitTrade(runRequest)
    if ('response' in admission) return admission.response
    const attemptedRun = await deps.executeTrade(admission.run)
    const run = isFinal(attemptedRun.state) ? attemptedRun : await waitUntilFinal(attemptedRun)
    if (run.answerBody && run.answerStatus !== null)
      return { status: run.answerStatus, body: run.answerBody, replayed: false }
    return { status: 202, body: JSON.stringify(toExecutingResponse(run)), replayed: false }
  }

  /** An answer that a policy wants on the record is sent only with the place of its event in the audit chain. */
  async function completeAudit(runRequest: RunRequest, response: IdempotentResponse): Promise<IdempotentResponse> {
    const eventId = pendingAuditId(response.body)
    if (eventId === undefined) return response
    const link = await deps.awaitAudit(runRequest.caller.tenantId, eventId)
    if (link) return { ...response, body: withAuditLink(response.body, link) }
    const { run_id } = JSON.parse(response.body) as { run_id: string }
    throw auditPending({ run_id }, `/api/rh/runs/${run_id}`, runRequest.idempotencyKey !== undefined)
  }

  /** Some brokers fill an order shortly after accepting it, so the caller waits while the worker polls the order. */
  async function waitUntilFinal(run: TradeRun): Promise<TradeRun> {
    deps.wake()
    for (let waitedMs = 0; waitedMs < (deps.fillTimeoutMs ?? FILL_TIMEOUT_MS); waitedMs += POLL_INTERVAL_MS) {
      await sleep(POLL_INTERVAL_MS)
      const current = await findRun(deps.db, run.tenantId, run.id)
      if (current && isFinal(current.state)) return current
    }
    return run
  }
}

const toExecutingResponse = (run: TradeRun) => ({
  run_id: run.id,
  status: 'executing',
  instrument_type: run.terms.type,
  expires_at: run.executeBy.toISOString(),
  execute_by: run.executeBy.toISOString(),
  approval: null,
})
