import type { KeyScope, TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Notifications } from '../../platform/notifications.ts'
import { forbidden } from '../../platform/problem.ts'
import { KEYS_CHANNEL, type KeyWithTenant } from './tenants.store.ts'

/**
 * Credentials already looked up, kept in this process. A change anywhere is heard through `notify` and forgets them at
 * once; the short life of an entry is the second net, should a message be lost with its connection.
 */
const LIFE_MS = 5_000
const MAX_KNOWN = 50_000

type Known = { row: KeyWithTenant; until: number }

export type KnownKeys = ReturnType<typeof createKnownKeys>

export function createKnownKeys(deps: { clock: Clock; notifications: Pick<Notifications, 'listen'> }) {
  const known = new Map<string, Known>()
  // Counts the changes heard: a row read before a change must not be kept after it.
  let generation = 0

  const forget = (id: string | undefined) => {
    generation += 1
    if (id === undefined) return known.clear()
    for (const [hash, { row }] of known) if (row.id === id || row.tenant_id === id) known.delete(hash)
  }
  deps.notifications.listen(KEYS_CHANNEL, forget)

  return {
    forget,

    /** The caller behind a hash, as long as its key is live; a suspended tenant is told so. */
    async callerBy(
      hash: string,
      auth: TenantCaller['auth'],
      load: (hash: string) => Promise<KeyWithTenant | undefined>,
    ): Promise<TenantCaller | undefined> {
      const now = deps.clock.now()
      const kept = known.get(hash)
      if (kept && kept.until > now.getTime()) return toCaller(kept.row, auth, now)
      const before = generation
      const row = await load(hash)
      if (!row) return undefined
      if (generation === before) {
        if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value!)
        known.set(hash, { row, until: now.getTime() + LIFE_MS })
      }
      return toCaller(row, auth, now)
    },
  }
}

function toCaller(row: KeyWithTenant, auth: TenantCaller['auth'], now: Date): TenantCaller | undefined {
  if (row.revoked_at) return undefined
  if (row.expires_at && row.expires_at <= now) return undefined
  if (row.tenant_status === 'suspended') throw forbidden('This tenant is suspended; ask the operator.')
  return { kind: 'tenant', tenantId: row.tenant_id, keyId: row.id, scopes: row.scopes as KeyScope[], auth }
}
