import { sql } from 'kysely'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Notifications } from '../../platform/notifications.ts'

/**
 * Agents that a tenant has stopped. Every process keeps the sets it has asked for and hears of a change at once; the short
 * life of a set is the second net. A change moves the tenant's rules on as well, so that what was judged a moment
 * before it, anywhere, is judged anew at admission.
 */
const LIFE_MS = 2_000
const MAX_TENANTS = 50_000
const CHANNEL = 'frozen_agents'

export type FrozenAgents = ReturnType<typeof createFrozenAgents>
export type FrozenAgent = { agent_id: string; reason: string; frozen_by: string; frozen_at: Date }

export function createFrozenAgents(deps: { db: Db; clock: Clock; notifications: Pick<Notifications, 'listen'> }) {
  const known = new Map<string, { agents: ReadonlyMap<string, string>; until: number }>()
  let generation = 0

  const forget = (tenantId: string | undefined) => {
    generation += 1
    if (tenantId === undefined) known.clear()
    else known.delete(tenantId)
  }
  deps.notifications.listen(CHANNEL, forget)

  const agentsOf = async (tenantId: string): Promise<ReadonlyMap<string, string>> => {
    const now = deps.clock.now().getTime()
    const kept = known.get(tenantId)
    if (kept && kept.until > now) return kept.agents
    const before = generation
    const agents = new Map((await listFrozen(deps.db, tenantId)).map(({ agent_id, reason }) => [agent_id, reason]))
    // A set read before a change must not be kept after it.
    if (generation === before) {
      if (known.size >= MAX_TENANTS) known.delete(known.keys().next().value!)
      known.set(tenantId, { agents, until: now + LIFE_MS })
    }
    return agents
  }

  const change = async (tenantId: string, write: (tx: Tx) => Promise<unknown>) => {
    await deps.db.transaction().execute(async (tx) => {
      await write(tx)
      await sql`select rules_changed(${tenantId})`.execute(tx)
      await sql`select pg_notify(${CHANNEL}, ${tenantId})`.execute(tx)
    })
    forget(tenantId)
  }

  return {
    /** For a judgement that has to be made anew because the rules moved: it must not rest on what was kept before. */
    forget,
    /** Why an agent is frozen; undefined when it is not. */
    async frozen(tenantId: string, agentId: string): Promise<{ reason: string } | undefined> {
      const reason = (await agentsOf(tenantId)).get(agentId)
      return reason === undefined ? undefined : { reason }
    },
    isFrozen: async (tenantId: string, agentId: string) => (await agentsOf(tenantId)).has(agentId),
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

/** Freezing what is frozen keeps the first reason and time. */
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
