import { takeStep } from '../../platform/batch.ts'
import type { Log } from '../../platform/log.ts'
import { type CloseDeps, canBeClosed, closePreauth, readChainEvidence } from './close-preauth.ts'
import { escalatePreauthStep } from './governance.steps.ts'
import type { PreauthRow } from './grants.store.ts'
import { findPreauth } from './grants.store.ts'
import { listOverdue } from './preauths.store.ts'

/** How the service calls a person. The same cause is told once, whoever tells it. */
export type RaiseAlert = (alert: {
  tenantId: string
  severity: 'critical'
  type: string
  message: string
  data: Record<string, unknown>
  cause: string
}) => Promise<unknown>

export type OrphansDeps = Omit<CloseDeps, 'idempotency'> & {
  log: Log
  raiseAlert: RaiseAlert
  /** Asks the chain about the run's own payment and finishes the run if that settles it. */
  driveRun(runId: string): Promise<void>
}

const BATCH = 100
const DETECTOR = 'orphan-detector'

/**
 * Pre-authorised and never closed. The chain is asked first, where there is anything to ask about; what it cannot
 * settle is escalated to people, and its hold stays counted: nobody knows yet whether the money is gone.
 */
export const createOrphanSweep =
  (d: OrphansDeps) =>
  async (now: Date = d.clock.now()): Promise<number> => {
    const overdue = await listOverdue(d.db, now, BATCH)
    let escalated = 0
    for (const row of overdue) {
      try {
        if (await settled(d, row)) continue
        if (await escalate(d, row, now)) escalated += 1
      } catch (error) {
        d.log.warn({ err: error, preauth_id: row.id }, 'an overdue pre-authorisation could not be escalated yet')
      }
    }
    return escalated
  }

/** Looking is a courtesy: whatever goes wrong with it, people hear of the payment in time. */
async function settled(d: OrphansDeps, row: PreauthRow): Promise<boolean> {
  try {
    return await settle(d, row)
  } catch (error) {
    d.log.warn(
      { err: error, preauth_id: row.id },
      'an overdue pre-authorisation could not be looked at; it is escalated',
    )
    return false
  }
}

/** True when it turned out to be settled, by its run or by a transaction that was reported and refused. */
async function settle(d: OrphansDeps, row: PreauthRow): Promise<boolean> {
  if (row.taken_by_run) {
    await d.driveRun(row.run_id)
    const after = await findPreauth(d.db, row.tenant_id, row.id)
    return after?.status === 'closed'
  }
  if (row.reported_transaction === null) return false
  const transaction = row.reported_transaction
  const seen = await readChainEvidence(d, row, { transaction })
  const payment = seen?.transfers.find((one) => one.value <= row.amount_micro)
  // Without an address to be paid at, any transfer of the transaction could be meant: that is for a person to say.
  if (!payment || (row.merchant as { pay_to?: string }).pay_to === undefined) return false
  const report = { outcome: 'settled' as const, chargedMicro: payment.value, transaction, receipt: undefined }
  await d.db.transaction().execute(async (tx) => {
    const fresh = (await findPreauth(tx, row.tenant_id, row.id))!
    if (canBeClosed(fresh)) await closePreauth(d, tx, fresh, report, seen, DETECTOR)
  })
  return true
}

async function escalate(d: OrphansDeps, row: PreauthRow, now: Date): Promise<boolean> {
  const told = {
    preauth_id: row.id,
    run_id: row.run_id,
    agent_id: row.agent_id,
    merchant: row.merchant_id,
    amount: row.amount_micro.toString(),
    close_by: row.close_by!.toISOString(),
  }
  const event = (type: string) => ({
    id: d.ids.next('evt'),
    tenant_id: row.tenant_id,
    type,
    data: told,
    created_at: now.toISOString(),
  })
  const item = {
    preauth_id: row.id,
    at: now.toISOString(),
    audit: {
      id: d.ids.next('aud'),
      tenant_id: row.tenant_id,
      type: 'preauth.escalated',
      occurred_at: now.toISOString(),
      actor: DETECTOR,
      subject: row.id,
      decision: 'escalated',
      input_hash: row.action_hash,
      data: told,
    },
    events: [event('preauth.escalated'), event('run.escalated')],
  }
  const locks = [`preauth:${row.id}`, `run:${row.run_id}`]
  const { escalated } = await d.db.transaction().execute((tx) => takeStep(tx, escalatePreauthStep, item, locks))
  if (escalated) await d.raiseAlert(alertOf(row, told))
  return escalated
}

const alertOf = (row: PreauthRow, data: Record<string, unknown>) => ({
  tenantId: row.tenant_id,
  severity: 'critical' as const,
  type: 'preauth_orphaned',
  message: `The pre-authorised payment ${row.id} of the agent '${row.agent_id}' to '${row.merchant_id}' was not closed in time. Its hold stays counted until it is.`,
  data,
  cause: `preauth_orphaned:${row.id}`,
})
