import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Keys } from '../../platform/keys.ts'
import { invalid, notFound } from '../../platform/problem.ts'
import { createKeySet, didDocument, didOfUrl } from './key-set.ts'
import { findReceipt, lastHashOfRun, listReceipts, type ReceiptFilter, type StoredReceipt } from './receipts.store.ts'
import { type PublicReceipt, type ReceiptDraft, type SignedReceipt, signReceipt } from './sign-receipt.ts'

export type ReceiptsDeps = {
  db: Db
  keys: Keys
  clock: Clock
  publicUrl: () => string
}

export type Receipts = ReturnType<typeof createReceipts>

export function createReceipts(deps: ReceiptsDeps) {
  const signer = deps.keys.signer('receipts')
  const keySet = createKeySet(deps)

  const publicReceipt = (row: StoredReceipt): PublicReceipt => ({ ...JSON.parse(row.body), log: null })

  return {
    /** Pure: the same draft gives the same bytes, so the reconciler's receipt is the request's. */
    sign: (draft: ReceiptDraft): SignedReceipt => signReceipt(signer, draft),

    /** What a correction or a refund of the run names as `prev_hash`; call it in the transaction that issues it. */
    lastHashOfRun: (tx: Tx, runId: string) => lastHashOfRun(tx, runId),

    /** Writes the keys in use beside those that were used before; called once at the start. */
    publishKeys: () => keySet.publish(),

    async list(filter: ReceiptFilter, page: { limit: number; cursor?: string }) {
      if (page.cursor !== undefined && !(await findReceipt(deps.db, page.cursor)))
        throw invalid('The cursor is not the id of a receipt.')
      const rows = await listReceipts(deps.db, filter, { ...page, limit: page.limit + 1 })
      const receipts = rows.slice(0, page.limit).map(publicReceipt)
      const has_more = rows.length > page.limit
      return { receipts, has_more, next_cursor: has_more ? receipts.at(-1)!.receipt_id : null }
    },

    async get(id: string) {
      const row = await findReceipt(deps.db, id)
      if (!row) throw notFound('receipt')
      return publicReceipt(row)
    },

    jwks: async () => ({ keys: (await keySet.all()).map(({ jwk }) => jwk) }),

    did: async () => didDocument(didOfUrl(deps.publicUrl()), await keySet.all()),
  }
}
