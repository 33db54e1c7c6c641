import { type Check, hashReceipt, type Jwks, parseCheckpoint, toBase64, verifyReceipt } from '@countersign/proof'
import type { Db } from '../../platform/db.ts'
import { checkSettlement, type FindTransfers } from './check-settlement.ts'
import { failed, passed, skipped } from './checks.ts'
import { findNextReceipt, findReceiptByHash, type StoredReceipt } from './receipts.store.ts'
import type { TransparencyLog } from './transparency-log.ts'

type Deps = {
  db: Db
  log: Pick<TransparencyLog, 'origin' | 'places' | 'rootAt'>
  jwks(): Promise<Jwks>
  transfers: FindTransfers | undefined
}

type Members = Record<string, unknown>

// A run has a receipt or three; the heads of an audit chain go on for ever.
const MAX_LATER = 20

export type Explanation = {
  ok: boolean
  receipt_id: string | null
  checks: Check[]
  /** Receipts of the same run that came after this one: a refund or a correction does not undo it, but one should know. */
  later: { receipt_id: string; kind: string }[]
  does_not_prove: string[]
}

/**
 * Everything that can be said about a receipt by whoever holds the log and can ask the chain. The signature and the
 * proofs are checked by the same code that runs offline; what needs our records or the chain comes on top.
 */
export async function explainReceipt(deps: Deps, given: Members): Promise<Explanation> {
  const stored = await findStored(deps.db, given)
  const placed =
    stored && (given.log === null || given.log === undefined) ? await withPlace(deps, given, stored) : given
  const previous = typeof given.prev_hash === 'string' ? await findReceiptByHash(deps.db, given.prev_hash) : undefined
  const { ok, checks, does_not_prove } = verifyReceipt(placed, {
    jwks: await deps.jwks(),
    log: { origin: deps.log.origin },
    previous: previous && JSON.parse(previous.body),
  })
  const ours = [
    stored
      ? passed('record', 'It is on record here, byte for byte.')
      : failed('record', 'This service has no such receipt on record.'),
    await checkHistory(deps, placed.log),
    await checkSettlement(deps.transfers, given.settlement),
  ]
  return {
    ok: ok && ours.every((check) => check.ok !== false),
    receipt_id: typeof given.receipt_id === 'string' ? given.receipt_id : null,
    checks: [...checks, ...ours],
    later: stored ? await laterReceipts(deps.db, stored) : [],
    // What was looked up on the chain just now needs no second look.
    does_not_prove:
      ours.at(-1)!.ok === true ? does_not_prove.filter((sentence) => !/settlement/.test(sentence)) : does_not_prove,
  }
}

/** By its hash, so that a changed receipt is not taken for the one whose id it bears. */
async function findStored(db: Db, receipt: Members): Promise<StoredReceipt | undefined> {
  try {
    return await findReceiptByHash(db, hashReceipt(receipt))
  } catch {
    // What has no canonical form was never issued; verifyReceipt says what is wrong with it.
    return undefined
  }
}

async function withPlace(deps: Deps, receipt: Members, stored: StoredReceipt): Promise<Members> {
  if (stored.log_index === null) return receipt
  const index = Number(stored.log_index)
  return { ...receipt, log: (await deps.log.places([index])).get(index) ?? null }
}

/** A checkpoint that our key signed but that is not in our history would be proof of a fork. */
async function checkHistory({ log }: Deps, place: unknown): Promise<Check> {
  const checkpoint = parseCheckpoint((place as Members | null | undefined)?.checkpoint)
  if (!checkpoint) return skipped('log_history', 'There is no checkpoint to compare with the log.')
  const root = await log.rootAt(checkpoint.size)
  if (!root) return failed('log_history', `The log has never had ${checkpoint.size} entries.`)
  return toBase64(root) === toBase64(checkpoint.root)
    ? passed('log_history', 'The log as it is today extends the checkpoint.')
    : failed('log_history', 'The log had another root at that size. Keep the checkpoint: it is evidence of a fork.')
}

async function laterReceipts(db: Db, stored: StoredReceipt) {
  const later: { receipt_id: string; kind: string }[] = []
  let next = await findNextReceipt(db, stored)
  while (next && later.length < MAX_LATER) {
    later.push({ receipt_id: next.id, kind: next.kind })
    next = await findNextReceipt(db, next)
  }
  return later
}
