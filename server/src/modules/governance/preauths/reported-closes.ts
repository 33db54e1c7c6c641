import { callStepWithLocks, StepRefused } from '../../../platform/batch.ts'
import type { Log } from '../../../platform/log.ts'
import { usdcFromMicro } from '../../../platform/money.ts'
import type { Hex } from '../../payments/facilitator.ts'
import { correctCloseStep } from '../governance.steps.ts'
import { isSelfApproved, type PreauthRow } from '../grants/grants.store.ts'
import { type CloseDeps, draftReceipt, FIRST_CHECK_MS, payToOf, readChainEvidence } from './close-preauth.ts'
import type { RaiseAlert } from './orphaned-preauths.ts'
import { spenderOf } from './preauth-terms.ts'
import { claimReportedCloses, endChecks, findReceiptHash, hasOpenRival } from './preauths.store.ts'

export type ReportedClosesDeps = Omit<CloseDeps, 'idempotency'> & { log: Log; raiseAlert: RaiseAlert }

const BATCH_SIZE = 50
const LONGEST_PAUSE_MS = 6 * 3_600_000
/** For how long a transaction that the chain does not have, or that nobody named, may still be mined, or a node be behind. */
const UNKNOWN_FOR_MS = 24 * 3_600_000

type Finding =
  | { status: 'settled'; payer: string; matching: number; transaction: string }
  | { status: 'not_found'; reason: 'transaction_unknown' | 'no_such_transfer' | 'transaction_used' }

/**
 * Asks the chain about closes that nobody but the tenant has seen settled. One that names a transaction gets one more
 * receipt: that the payment was made, or that the chain does not show it. For one that names none, the transfer is looked
 * for; it gets another receipt only if there is one. The claim moves the next check ahead, so that a process that dies here
 * is followed by another.
 */
export const createSweepReportedCloses =
  (deps: ReportedClosesDeps) =>
  async (now: Date = deps.clock.now()): Promise<number> => {
    if (!deps.chain) return 0
    const rows = await claimReportedCloses(deps.db, {
      now,
      limit: BATCH_SIZE,
      firstMs: FIRST_CHECK_MS,
      longestMs: LONGEST_PAUSE_MS,
    })
    let correctedCount = 0
    for (const row of rows) {
      try {
        const isCorrected =
          row.transaction === null ? await searchPayment(deps, row, now) : await checkPayment(deps, row, now)
        if (isCorrected) correctedCount += 1
      } catch (error) {
        deps.log.warn({ err: error, preauth_id: row.id }, 'a reported close could not be checked yet')
      }
    }
    return correctedCount
  }

async function checkPayment(deps: ReportedClosesDeps, row: PreauthRow, now: Date): Promise<boolean> {
  const finding = await findPayment(deps, row, now)
  return finding !== undefined && correct(deps, row, finding, now)
}

/** Looks for a transfer that can be the payment and that no other pre-authorisation has claimed or may still claim. */
async function searchPayment(deps: ReportedClosesDeps, row: PreauthRow, now: Date): Promise<boolean> {
  const payTo = payToOf(row)
  if (payTo === null || row.payer === null || !deps.chain) return false
  if (now.getTime() - row.closed_at!.getTime() >= UNKNOWN_FOR_MS) {
    await endChecks(deps.db, row.id)
    return false
  }
  if (await hasOpenRival(deps.db, row, payTo)) return false
  const openedAt = row.issued_at ?? row.created_at
  const transfers = await deps.chain.findTransfers({
    asset: row.asset as Hex,
    from: row.payer as Hex,
    to: payTo as Hex,
    value: row.charged_micro!,
    after: BigInt(Math.floor(openedAt.getTime() / 1000)),
  })
  for (const transaction of new Set(transfers.map((transfer) => transfer.transaction))) {
    const evidence = await readChainEvidence(deps, row, { transaction })
    const matching = evidence?.transfers.filter(({ value }) => value === row.charged_micro) ?? []
    if (matching.length === 0) continue
    const finding = { status: 'settled', payer: row.payer, matching: matching.length, transaction } as const
    const claim = await tryClaim(deps, row, finding, now)
    if (claim !== 'transaction_used') return claim === 'corrected'
  }
  return false
}

/** Undefined while the chain cannot say. */
async function findPayment(deps: ReportedClosesDeps, row: PreauthRow, now: Date): Promise<Finding | undefined> {
  const evidence = await readChainEvidence(deps, row, row)
  if (evidence === null) return undefined
  if (!evidence.transactionFound)
    return now.getTime() - row.closed_at!.getTime() < UNKNOWN_FOR_MS
      ? undefined
      : { status: 'not_found', reason: 'transaction_unknown' }
  const matching = evidence.transfers.filter(({ value }) => value === row.charged_micro)
  return matching.length > 0
    ? {
        status: 'settled',
        payer: matching[0]!.from.toLowerCase(),
        matching: matching.length,
        transaction: row.transaction!,
      }
    : { status: 'not_found', reason: 'no_such_transfer' }
}

async function correct(deps: ReportedClosesDeps, row: PreauthRow, finding: Finding, at: Date): Promise<boolean> {
  // Before the correction, after which nobody would raise it any more; the same cause raises one alert only.
  if (finding.status === 'not_found') await deps.raiseAlert(toAlert(row, finding.reason))
  const outcome = await tryClaim(deps, row, finding, at)
  if (outcome === 'transaction_used') return correct(deps, row, { status: 'not_found', reason: 'transaction_used' }, at)
  return outcome === 'corrected'
}

/** Records the finding, unless the close was corrected meanwhile or its transfer is another pre-authorisation's. */
async function tryClaim(
  deps: ReportedClosesDeps,
  row: PreauthRow,
  finding: Finding,
  at: Date,
): Promise<'corrected' | 'unchanged' | 'transaction_used'> {
  const item = await draftCorrection(deps, row, finding, at)
  try {
    const locks = [`preauth:${row.id}`, `transaction:${item.transaction}`]
    const { corrected } = await deps.db
      .transaction()
      .execute((tx) => callStepWithLocks(tx, correctCloseStep, item, locks))
    return corrected ? 'corrected' : 'unchanged'
  } catch (error) {
    if (!(error instanceof StepRefused) || error.message !== 'transaction_used') throw error
    return 'transaction_used'
  }
}

async function draftCorrection(deps: ReportedClosesDeps, row: PreauthRow, finding: Finding, at: Date) {
  const transaction = finding.status === 'settled' ? finding.transaction : row.transaction
  const chargedMicro = row.charged_micro!
  const [payer, reason, matching] =
    finding.status === 'settled' ? [finding.payer, null, finding.matching] : [row.payer, finding.reason, null]
  const selfApproved = await isSelfApproved(deps.db, row)
  const { status } = finding
  const draft = draftReceipt(row, { status, assertedBy: 'chain', chargedMicro, transaction, payer, selfApproved }, at)
  const receipt = deps.receipts.sign({
    ...draft,
    receipt_id: deps.ids.next('rcpt'),
    kind: 'correction',
    verification: { verified_onchain: finding.status === 'settled', late: row.late },
    settlement: { ...draft.settlement, ...(reason && { reason }), corrects: row.receipt_id },
    prev_hash: await findReceiptHash(deps.db, row.receipt_id!),
    salt: row.receipt_salt,
  })
  return {
    preauth_id: row.id,
    settlement_status: finding.status,
    reason,
    matching,
    transaction,
    receipt: receipt.row,
    audit: {
      id: deps.ids.next('aud'),
      tenant_id: row.tenant_id,
      type: finding.status === 'settled' ? 'preauth.settled' : 'preauth.not_found',
      occurred_at: at.toISOString(),
      actor: 'countersign',
      subject: row.id,
      decision: finding.status,
      input_hash: row.action_hash,
      data: { run_id: row.run_id, transaction, charged: chargedMicro.toString(), reason, receipt_id: receipt.row.id },
    },
    events: [
      {
        id: deps.ids.next('evt'),
        tenant_id: row.tenant_id,
        type: 'receipt.issued',
        data: { receipt_id: receipt.row.id, run_id: row.run_id, kind: 'correction' },
        created_at: at.toISOString(),
      },
    ],
  }
}

const toAlert = (row: PreauthRow, reason: string) => ({
  tenantId: row.tenant_id,
  severity: 'critical' as const,
  type: 'settlement_not_found',
  message: `The chain does not show the payment of ${usdcFromMicro(row.charged_micro!)} USDC that was reported for ${row.id} of the agent '${row.agent_id}' to '${row.merchant_id}'. It stays counted.`,
  data: {
    preauth_id: row.id,
    run_id: row.run_id,
    agent_id: row.agent_id,
    ...spenderOf(row),
    merchant: row.merchant_id,
    amount: row.charged_micro!.toString(),
    transaction: row.transaction,
    reason,
  },
  cause: `settlement_not_found:${row.id}`,
})
