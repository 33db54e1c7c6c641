import type { Db, Tx } from '../../platform/db.ts'
import type { Notify } from '../../platform/notify.ts'
import { readRules } from './book.store.ts'
import type { Budget } from './budget.ts'
import type { Policy } from './policy.ts'

/** A tenant's rules as they stood at a version. */
export type Book = {
  version: bigint
  policies: readonly Policy[]
  budgets: readonly Budget[]
  /** The keys that existed then. A key that is not among them may have taken the place of one that a policy is for. */
  keyIds: ReadonlySet<string>
}

const RULES_CHANNEL = 'governance'
const MAX_BOOKS = 20_000

/**
 * Each tenant's rules, kept in this process, so that judging costs no round trip. A change is heard through `notify`;
 * should that come late, the version that an admission names is compared where it is admitted, and it is judged again.
 */
export function createBooks({ db, notify }: { db: Db; notify: Pick<Notify, 'listen'> }) {
  const books = new Map<string, Promise<Book>>()
  const forget = (tenantId: string | undefined) => (tenantId === undefined ? books.clear() : books.delete(tenantId))
  notify.listen(RULES_CHANNEL, forget)

  const open = (tenantId: string, tx: Tx): Promise<Book> => {
    const known = books.get(tenantId)
    if (known) return known
    const fresh = readRules(tx, tenantId)
    if (books.size >= MAX_BOOKS) books.delete(books.keys().next().value!)
    books.set(tenantId, fresh)
    fresh.catch(() => books.get(tenantId) === fresh && books.delete(tenantId))
    return fresh
  }

  return {
    forget,
    /** Who is in a transaction passes it: waiting for a second connection while holding one can stop everybody. */
    async of(tenantId: string, keyId: string, tx: Tx = db): Promise<Book> {
      const book = await open(tenantId, tx)
      if (book.keyIds.has(keyId)) return book
      forget(tenantId)
      return open(tenantId, tx)
    },
  }
}

export type Books = ReturnType<typeof createBooks>
