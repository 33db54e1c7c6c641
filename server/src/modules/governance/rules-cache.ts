import type { Db, Tx } from '../../platform/db.ts'
import type { Notifications } from '../../platform/notifications.ts'
import { readRules, type TenantRules } from './rules-cache.store.ts'

const RULES_CHANNEL = 'governance'
const MAX_BOOKS = 20_000

/**
 * Each tenant's rules, kept in this process, so that judging costs no round trip. A change is heard through `notify`;
 * should that come late, the version that an admission names is compared where it is admitted, and it is judged again.
 */
export function createRulesCache({ db, notifications }: { db: Db; notifications: Pick<Notifications, 'listen'> }) {
  const books = new Map<string, Promise<TenantRules>>()
  const invalidate = (tenantId: string | undefined) => (tenantId === undefined ? books.clear() : books.delete(tenantId))
  notifications.listen(RULES_CHANNEL, invalidate)

  const open = (tenantId: string, tx: Tx): Promise<TenantRules> => {
    const known = books.get(tenantId)
    if (known) return known
    const fresh = readRules(tx, tenantId)
    if (books.size >= MAX_BOOKS) books.delete(books.keys().next().value!)
    books.set(tenantId, fresh)
    fresh.catch(() => books.get(tenantId) === fresh && books.delete(tenantId))
    return fresh
  }

  return {
    forget: invalidate,
    /** Who is in a transaction passes it: waiting for a second connection while holding one can stop everybody. */
    async of(tenantId: string, keyId: string, tx: Tx = db): Promise<TenantRules> {
      const book = await open(tenantId, tx)
      if (book.keyIds.has(keyId)) return book
      invalidate(tenantId)
      return open(tenantId, tx)
    },
  }
}

export type RulesCache = ReturnType<typeof createRulesCache>
