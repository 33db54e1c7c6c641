import { type Check, hashReceipt, type Jwks, parseCheckpoint, toBase64, verifyReceipt } from '@countersign/proof'
import type { Db } from '../../platform/db.ts'
import { checkSettlement, type FindTransfers } from './check-settlement.ts'
import { failedCheck, passedCheck, skippedCheck } from './checks.ts'
import { findNextReceipt, findReceipt, findReceiptOfRun, type StoredReceipt } from './receipts.store.ts'
import type { TransparencyLog } from './transparency-log.ts'

type ExplainDeps = {
  db: Db
  log: Pick<TransparencyLog, 'origin' | 'places' | 'rootAt'>
  jwks(): Promise<Jwks>
  findTransfers: FindTransfers | undefined
}

type Members = Record<string, unknown>

// A run has up to three receipts, but an audit chain may have any number of heads.
const MAX_LATER_RECEIPTS = 20

export type Explanation = {
  ok: boolean
  receipt_id: string | null
  checks: Check[]
  /** Receipts of the same run issued after this one, such as a refund or a correction. */
  later: { receipt_id: string; kind: string }[]
  does_not_prove: string[]
}

/**
 * Runs every check on a receipt. The signature and the proofs are checked by the code that also runs offline; the checks
 * that need our records, the log or the chain are added to them.
 */
export async function explainReceipt(deps: ExplainDeps, receipt: Members): Promise<Explanation> {
  const stored = await findStored(deps.db, receipt)
  const receiptWithPlace =
    stored && (receipt.log === null || receipt.log === undefined) ? await withPlace(deps, receipt, stored) : receipt
  const previous =
    typeof receipt.prev_hash === 'string' && typeof receipt.run_id === 'string'
      ? await findReceiptOfRun(deps.db, receipt.run_id, receipt.prev_hash)
      : undefined
  const { ok, checks, does_not_prove } = verifyReceipt(receiptWithPlace, {
    jwks: await deps.jwks(),
    log: { origin: deps.log.origin },
    previous: previous && JSON.parse(previous.body),
  })
  const serverChecks = [
    stored
      ? passedCheck('record', 'This service has this receipt on record, byte for byte.')
      : failedCheck('record', 'This service has no such receipt on record.'),
    await checkHistory(deps, receiptWithPlace.log),
    await checkSettlement(deps.findTransfers, receipt.settlement),
  ]
  return {
    ok: ok && serverChecks.every((check) => check.ok !== false),
    receipt_id: typeof receipt.receipt_id === 'string' ? receipt.receipt_id : null,
    checks: [...checks, ...serverChecks],
    later: stored ? await listLaterReceipts(deps.db, stored) : [],
    // The settlement was just checked on the chain, so it is no longer unproven.
    does_not_prove:
      serverChecks.at(-1)!.ok === true
        ? does_not_prove.filter((sentence) => !/settlement/.test(sentence))
        : does_not_prove,
  }
}

/** Found by its id and compared by its hash, so that a changed receipt is not mistaken for the one with the same id. */
async function findStored(db: Db, receipt: Members): Promise<StoredReceipt | undefined> {
  try {
    const hash = hashReceipt(receipt)
    const stored = typeof receipt.receipt_id === 'string' ? await findReceipt(db, receipt.receipt_id) : undefined
    return stored?.hash === hash ? stored : undefined
  } catch {
    // A receipt without a canonical form was never issued; verifyReceipt reports what is wrong with it.
    return undefined
  }
}

async function withPlace(deps: ExplainDeps, receipt: Members, stored: StoredReceipt): Promise<Members> {
  if (stored.log_index === null) return receipt
  const index = Number(stored.log_index)
  return { ...receipt, log: (await deps.log.places([index])).get(index) ?? null }
}

/** A checkpoint that our key signed but that is not in our history would be proof of a fork. */
async function checkHistory({ log }: ExplainDeps, place: unknown): Promise<Check> {
  const checkpoint = parseCheckpoint((place as Members | null | undefined)?.checkpoint)
  if (!checkpoint) return skippedCheck('log_history', 'There is no checkpoint to compare with the log.')
  const root = await log.rootAt(checkpoint.size)
  if (!root) return failedCheck('log_history', `The log has never had ${checkpoint.size} entries.`)
  return toBase64(root) === toBase64(checkpoint.root)
    ? passedCheck('log_history', 'The log as it is today extends the checkpoint.')
    : failedCheck(
        'log_history',
        'The log had another root at that size. Keep the checkpoint: it is evidence of a fork.',
      )
}

async function listLaterReceipts(db: Db, stored: StoredReceipt) {
  const receipts: { receipt_id: string; kind: string }[] = []
  let next = await findNextReceipt(db, stored)
  while (next && receipts.length < MAX_LATER_RECEIPTS) {
    receipts.push({ receipt_id: next.id, kind: next.kind })
    next = await findNextReceipt(db, next)
  }
  return receipts
}
