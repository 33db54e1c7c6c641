import type { Db, Tx } from '../../../platform/db.ts'
import type { Notifications } from '../../../platform/notifications.ts'
import { readRules, type TenantRules } from './rules-cache.store.ts'

const RULES_CHANNEL = 'governance'
const MAX_TENANTS = 20_000
/** Rules of so many bytes of JSON are kept, whoever has them. */
const MAX_BYTES = 64 * 1024 * 1024

/**
 * Caches each tenant's rules in this process, so that an assessment costs no round trip. Changes arrive through
 * `notifications`; if one arrives late, admission compares the rules version in SQL and the request is assessed again.
 */
export function createRulesCache({ db, notifications }: { db: Db; notifications: Pick<Notifications, 'listen'> }) {
  const entries = new Map<string, Promise<TenantRules>>()
  const sizes = new Map<Promise<TenantRules>, number>()
  let totalBytes = 0
  const forget = (tenantId: string) => {
    const entry = entries.get(tenantId)
    if (!entry) return
    entries.delete(tenantId)
    totalBytes -= sizes.get(entry) ?? 0
    sizes.delete(entry)
  }
  const forgetOldest = () => forget(entries.keys().next().value!)
  const invalidate = (tenantId: string | undefined) => {
    if (tenantId !== undefined) return forget(tenantId)
    entries.clear()
    sizes.clear()
    totalBytes = 0
  }
  notifications.listen(RULES_CHANNEL, invalidate)

  const load = (tenantId: string, tx: Tx): Promise<TenantRules> => {
    const cached = entries.get(tenantId)
    if (cached) return cached
    const loading = readRules(tx, tenantId)
    if (entries.size >= MAX_TENANTS) forgetOldest()
    entries.set(tenantId, loading)
    loading.then(
      ({ bytes }) => {
        if (entries.get(tenantId) !== loading) return
        sizes.set(loading, bytes)
        totalBytes += bytes
        while (totalBytes > MAX_BYTES && entries.size > 1) forgetOldest()
      },
      () => entries.get(tenantId) === loading && forget(tenantId),
    )
    return loading
  }

  return {
    invalidate,
    /** Callers inside a transaction pass it: waiting for a second connection while holding one can exhaust the pool. */
    async get(tenantId: string, keyId: string, tx: Tx = db): Promise<TenantRules> {
      const rules = await load(tenantId, tx)
      if (rules.keyIds.has(keyId)) return rules
      invalidate(tenantId)
      return load(tenantId, tx)
    },
  }
}

export type RulesCache = ReturnType<typeof createRulesCache>
