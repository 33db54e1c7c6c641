import type { KeyScope, TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Notifications } from '../../platform/notifications.ts'
import { forbidden } from '../../platform/problem.ts'
import { KEYS_CHANNEL, type KeyWithTenant } from './tenants.store.ts'

/**
 * Caches authenticated callers in this process. A change in any process is announced through `notifications` and evicts
 * them at once; the short TTL is the fallback when a notification is lost with its connection.
 */
const TTL_MS = 5_000
const MAX_ENTRIES = 50_000
/** A use is recorded only when the last recorded one is older, so that a busy key costs one write a minute. */
const USE_INTERVAL_MS = 60_000

type CacheEntry = { row: KeyWithTenant; until: number }

export type CallerCache = ReturnType<typeof createCallerCache>

export type CallerCacheDeps = {
  clock: Clock
  notifications: Pick<Notifications, 'listen'>
  /** Called without waiting for it: no request fails or is slower because a use could not be recorded. */
  recordUse(keyId: string, at: Date): void
}

export function createCallerCache(deps: CallerCacheDeps) {
  const entries = new Map<string, CacheEntry>()
  // Requests that find their key expired at the same moment share one read.
  const loading = new Map<string, Promise<KeyWithTenant | undefined>>()
  // Counts announced changes: a row that was read before a change must not be cached after it.
  let generation = 0

  const forget = (id: string | undefined) => {
    generation += 1
    loading.clear()
    if (id === undefined) return entries.clear()
    for (const [hash, { row }] of entries) if (row.id === id || row.tenant_id === id) entries.delete(hash)
  }
  deps.notifications.listen(KEYS_CHANNEL, forget)

  const share = async (hash: string, read: Promise<KeyWithTenant | undefined>) => {
    loading.set(hash, read)
    try {
      return await read
    } finally {
      if (loading.get(hash) === read) loading.delete(hash)
    }
  }

  return {
    forget,

    /** The caller of a credential's hash; undefined when the key is revoked or expired, 403 when the tenant is suspended. */
    async findCaller(
      hash: string,
      auth: TenantCaller['auth'],
      load: (hash: string) => Promise<KeyWithTenant | undefined>,
    ): Promise<TenantCaller | undefined> {
      const now = deps.clock.now()
      const entry = entries.get(hash)
      if (entry && entry.until > now.getTime()) return toCaller(entry.row, auth, now)
      const generationBefore = generation
      const row = await (loading.get(hash) ?? share(hash, load(hash)))
      if (!row) return undefined
      if (generation === generationBefore) {
        if (entries.size >= MAX_ENTRIES) entries.delete(entries.keys().next().value!)
        entries.set(hash, { row, until: now.getTime() + TTL_MS })
      }
      const caller = toCaller(row, auth, now)
      const usedAt = row.last_used_at?.getTime() ?? Number.NEGATIVE_INFINITY
      if (caller && usedAt < now.getTime() - USE_INTERVAL_MS) deps.recordUse(row.id, now)
      return caller
    },
  }
}

export function toCaller(row: KeyWithTenant, auth: TenantCaller['auth'], now: Date): TenantCaller | undefined {
  if (row.revoked_at) return undefined
  if (row.expires_at && row.expires_at <= now) return undefined
  if (row.tenant_status === 'suspended') throw forbidden('This tenant is suspended; contact the operator.')
  return {
    kind: 'tenant',
    tenantId: row.tenant_id,
    keyId: row.id,
    scopes: row.scopes as KeyScope[],
    spender: row.spender,
    team: row.team,
    mandateIds: row.mandate_ids,
    auth,
  }
}
