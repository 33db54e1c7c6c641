import { callStepWithLocks } from '../../../platform/batch.ts'
import type { Log } from '../../../platform/log.ts'
import { escalatePreauthStep } from '../governance.steps.ts'
import type { PreauthRow } from '../grants/grants.store.ts'
import { findPreauth } from '../grants/grants.store.ts'
import { type CloseDeps, canBeClosed, closePreauth, readChainEvidence } from './close-preauth.ts'
import { spenderOf } from './preauth-terms.ts'
import { listOverdue } from './preauths.store.ts'

/** Raises an alert. The same `cause` raises one alert only. */
export type RaiseAlert = (alert: {
  tenantId: string
  severity: 'critical'
  type: string
  message: string
  data: Record<string, unknown>
  cause: string
}) => Promise<unknown>

export type OrphanSweepDeps = Omit<CloseDeps, 'idempotency'> & {
  log: Log
  raiseAlert: RaiseAlert
  /** Reads the run's payment from the chain and completes the run if it is settled. */
  driveRun(runId: string): Promise<void>
}

const BATCH_SIZE = 100
const DETECTOR = 'orphan-detector'

/**
 * Handles pre-authorisations that were not closed in time. They are closed if the chain shows the payment, and
 * escalated with an alert otherwise. Their hold stays counted, because the money may have been spent.
 */
export const createOrphanSweep =
  (deps: OrphanSweepDeps) =>
  async (now: Date = deps.clock.now()): Promise<number> => {
    const overdue = await listOverdue(deps.db, now, BATCH_SIZE)
    let escalatedCount = 0
    for (const row of overdue) {
      try {
        if (await trySettle(deps, row)) continue
        if (await escalate(deps, row, now)) escalatedCount += 1
      } catch (error) {
        deps.log.warn({ err: error, preauth_id: row.id }, 'an overdue pre-authorisation could not be escalated yet')
      }
    }
    return escalatedCount
  }

/** A failed check must not delay the escalation, so errors count as not settled. */
async function trySettle(deps: OrphanSweepDeps, row: PreauthRow): Promise<boolean> {
  try {
    return await settleFromChain(deps, row)
  } catch (error) {
    deps.log.warn(
      { err: error, preauth_id: row.id },
      'an overdue pre-authorisation could not be checked; it is escalated',
    )
    return false
  }
}

/** True when the payment is settled, by its run or by a transaction reported in a refused close. */
async function settleFromChain(deps: OrphanSweepDeps, row: PreauthRow): Promise<boolean> {
  if (row.taken_by_run) {
    await deps.driveRun(row.run_id)
    const currentRow = await findPreauth(deps.db, row.tenant_id, row.id)
    return currentRow?.status === 'closed'
  }
  if (row.reported_transaction === null) return false
  const transaction = row.reported_transaction
  const evidence = await readChainEvidence(deps, row, { transaction })
  const payment = evidence?.transfers.find((transfer) => transfer.value <= row.amount_micro)
  // Without the merchant's address, any transfer of the transaction could be the payment: a person has to decide.
  if (!payment || (row.merchant as { pay_to?: string }).pay_to === undefined) return false
  const report = { outcome: 'settled' as const, chargedMicro: payment.value, transaction, receipt: undefined }
  await deps.db.transaction().execute(async (tx) => {
    const current = (await findPreauth(tx, row.tenant_id, row.id))!
    if (canBeClosed(current)) await closePreauth(deps, tx, current, report, evidence, DETECTOR)
  })
  return true
}

async function escalate(deps: OrphanSweepDeps, row: PreauthRow, now: Date): Promise<boolean> {
  const eventData = {
    preauth_id: row.id,
    run_id: row.run_id,
    agent_id: row.agent_id,
    ...spenderOf(row),
    merchant: row.merchant_id,
    amount: row.amount_micro.toString(),
    close_by: row.close_by!.toISOString(),
  }
  const event = (type: string) => ({
    id: deps.ids.next('evt'),
    tenant_id: row.tenant_id,
    type,
    data: eventData,
    created_at: now.toISOString(),
  })
  const item = {
    preauth_id: row.id,
    at: now.toISOString(),
    audit: {
      id: deps.ids.next('aud'),
      tenant_id: row.tenant_id,
      type: 'preauth.escalated',
      occurred_at: now.toISOString(),
      actor: DETECTOR,
      subject: row.id,
      decision: 'escalated',
      input_hash: row.action_hash,
      data: eventData,
    },
    events: [event('preauth.escalated'), event('run.escalated')],
  }
  const locks = [`preauth:${row.id}`, `run:${row.run_id}`]
  const { escalated } = await deps.db
    .transaction()
    .execute((tx) => callStepWithLocks(tx, escalatePreauthStep, item, locks))
  if (escalated) await deps.raiseAlert(toAlert(row, eventData))
  return escalated
}

const toAlert = (row: PreauthRow, data: Record<string, unknown>) => ({
  tenantId: row.tenant_id,
  severity: 'critical' as const,
  type: 'preauth_orphaned',
  message: `The pre-authorised payment ${row.id} of the agent '${row.agent_id}' to '${row.merchant_id}' was not closed in time. Its hold stays counted until it is.`,
  data,
  cause: `preauth_orphaned:${row.id}`,
})
