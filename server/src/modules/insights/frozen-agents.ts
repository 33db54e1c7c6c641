import { sql } from 'kysely'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Notifications } from '../../platform/notifications.ts'

/**
 * Agents that a tenant has frozen. Every process caches the tenants it has read and is notified of a change at once; the
 * short cache lifetime covers a missed notification. A change also raises the version of the tenant's rules, so that a
 * decision made just before it, in any process, is made again at admission.
 */
const CACHE_TTL_MS = 2_000
const MAX_TENANTS = 50_000
const CHANNEL = 'frozen_agents'

export type FrozenAgents = ReturnType<typeof createFrozenAgents>
export type FrozenAgent = { agent_id: string; reason: string; frozen_by: string; frozen_at: Date }

export function createFrozenAgents(deps: { db: Db; clock: Clock; notifications: Pick<Notifications, 'listen'> }) {
  const cache = new Map<string, { reasons: ReadonlyMap<string, string>; expiresAt: number }>()
  // Requests that find the cache expired at the same moment share one read.
  const loading = new Map<string, Promise<ReadonlyMap<string, string>>>()
  let generation = 0

  const invalidate = (tenantId: string | undefined) => {
    generation += 1
    if (tenantId === undefined) {
      cache.clear()
      loading.clear()
    } else {
      cache.delete(tenantId)
      loading.delete(tenantId)
    }
  }
  deps.notifications.listen(CHANNEL, invalidate)

  const readReasons = async (tenantId: string): Promise<ReadonlyMap<string, string>> => {
    const now = deps.clock.now().getTime()
    const cached = cache.get(tenantId)
    if (cached && cached.expiresAt > now) return cached.reasons
    const pending = loading.get(tenantId)
    if (pending) return pending
    const read = loadReasons(tenantId, now)
    loading.set(tenantId, read)
    try {
      return await read
    } finally {
      if (loading.get(tenantId) === read) loading.delete(tenantId)
    }
  }

  const loadReasons = async (tenantId: string, now: number): Promise<ReadonlyMap<string, string>> => {
    const generationBefore = generation
    const reasons = new Map((await listFrozen(deps.db, tenantId)).map(({ agent_id, reason }) => [agent_id, reason]))
    // Rows read before a change must not be cached after it.
    if (generation === generationBefore) {
      if (cache.size >= MAX_TENANTS) cache.delete(cache.keys().next().value!)
      cache.set(tenantId, { reasons, expiresAt: now + CACHE_TTL_MS })
    }
    return reasons
  }

  const change = async (tenantId: string, write: (tx: Tx) => Promise<unknown>) => {
    await deps.db.transaction().execute(async (tx) => {
      await write(tx)
      await sql`select rules_changed(${tenantId})`.execute(tx)
      await sql`select pg_notify(${CHANNEL}, ${tenantId})`.execute(tx)
    })
    invalidate(tenantId)
  }

  return {
    /** For a decision that is made again because the rules changed: it must not use cached rows. */
    forget: invalidate,
    /** The first of these agents that is frozen. Without a name nobody can tell, if any agent of the tenant is frozen. */
    async findFrozen(
      tenantId: string,
      agentNames: readonly string[],
    ): Promise<{ agentId: string; reason: string } | { agentId: null } | undefined> {
      const reasons = await readReasons(tenantId)
      if (agentNames.length === 0) return reasons.size > 0 ? { agentId: null } : undefined
      const agentId = agentNames.find((name) => reasons.has(name))
      return agentId === undefined ? undefined : { agentId, reason: reasons.get(agentId)! }
    },
    isFrozen: async (tenantId: string, agentId: string) => (await readReasons(tenantId)).has(agentId),
    list: (tenantId: string) => listFrozen(deps.db, tenantId),
    change,
  }
}

async function listFrozen(tx: Tx, tenantId: string): Promise<FrozenAgent[]> {
  return tx
    .selectFrom('frozen_agents')
    .select(['agent_id', 'reason', 'frozen_by', 'frozen_at'])
    .where('tenant_id', '=', tenantId)
    .orderBy('agent_id')
    .execute()
}

/** Freezing a frozen agent keeps the first reason and time. */
export async function writeFrozen(
  tx: Tx,
  row: { tenant_id: string; agent_id: string; reason: string; frozen_by: string; frozen_at: Date },
) {
  await tx
    .insertInto('frozen_agents')
    .values(row)
    .onConflict((on) => on.columns(['tenant_id', 'agent_id']).doNothing())
    .execute()
}

export async function deleteFrozen(tx: Tx, tenantId: string, agentId: string) {
  await tx.deleteFrom('frozen_agents').where('tenant_id', '=', tenantId).where('agent_id', '=', agentId).execute()
}
