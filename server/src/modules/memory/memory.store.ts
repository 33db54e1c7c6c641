import { type Selectable, sql } from 'kysely'
import { callStep } from '../../platform/batch.ts'
import type { Tx } from '../../platform/db.ts'
import type { Memories } from '../../platform/generated/db.ts'
import { type NewMemory, writeMemoryStep } from './memory.steps.ts'

/** The searched words repeat the content and stay in the database. */
export type MemoryRow = Omit<Selectable<Memories>, 'words'>

export type MemoryFilter = { tenantId: string; now: Date; limit: number } & Partial<
  Record<'session_id' | 'agent_id' | 'run_id' | 'cursor', string>
>

const columns = [
  'id',
  'tenant_id',
  'session_id',
  'agent_id',
  'run_id',
  'content',
  'metadata',
  'created_at',
  'expires_at',
] as const

/** A word that everything holds would have everything ranked: of those it finds, the newest are. */
const MOST_RANKED = 500

export const writeMemory = (tx: Tx, memory: NewMemory) => callStep(tx, writeMemoryStep, memory)

export const findMemory = (tx: Tx, tenantId: string, id: string, now: Date): Promise<MemoryRow | undefined> =>
  tx
    .selectFrom('memories')
    .select(columns)
    .where('tenant_id', '=', tenantId)
    .where('id', '=', id)
    .where('expires_at', '>', now)
    .executeTakeFirst()

export async function listMemories(tx: Tx, filter: MemoryFilter): Promise<MemoryRow[]> {
  let select = tx
    .selectFrom('memories')
    .select(columns)
    .where('tenant_id', '=', filter.tenantId)
    .where('expires_at', '>', filter.now)
  if (filter.session_id !== undefined) select = select.where('session_id', '=', filter.session_id)
  if (filter.agent_id !== undefined) select = select.where('agent_id', '=', filter.agent_id)
  if (filter.run_id !== undefined) select = select.where('run_id', '=', filter.run_id)
  if (filter.cursor !== undefined) select = select.where('id', '<', filter.cursor)
  return select.orderBy('id', 'desc').limit(filter.limit).execute()
}

/** The best first: how well the words fit, times how fresh it is. */
export async function searchMemories(
  tx: Tx,
  filter: Omit<MemoryFilter, 'cursor' | 'run_id'> & { query: string },
): Promise<(MemoryRow & { score: number })[]> {
  const { tenantId, now, query, session_id = null, agent_id = null, limit } = filter
  const { rows } = await sql<MemoryRow & { score: number }>`
    with asked as materialized (select any_word_of(${query}) as words),
    found as (
      select m.* from memories m, asked
      where m.tenant_id = ${tenantId} and m.expires_at > ${now}
        and m.words @@ (asked.words && ${`'${tenantId}'`}::tsquery)
        and (${session_id}::text is null or m.session_id = ${session_id}::text)
        and (${agent_id}::text is null or m.agent_id = ${agent_id}::text)
      order by m.id desc limit ${MOST_RANKED}
    )
    select ${sql.raw(columns.map((name) => `found.${name}`).join(', '))},
           ts_rank(found.words, asked.words, 1 | 32) * freshness(found.created_at, ${now}) as score
    from found, asked order by score desc, found.id desc limit ${limit}`.execute(tx)
  return rows
}

export const deleteMemory = (tx: Tx, tenantId: string, id: string): Promise<MemoryRow | undefined> =>
  tx.deleteFrom('memories').where('tenant_id', '=', tenantId).where('id', '=', id).returning(columns).executeTakeFirst()

export async function deleteSession(tx: Tx, tenantId: string, sessionId: string): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('memories')
    .where('tenant_id', '=', tenantId)
    .where('session_id', '=', sessionId)
    .executeTakeFirst()
  return Number(numDeletedRows)
}

export async function forgetExpired(tx: Tx, now: Date, most: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from memories where id in (
      select id from memories where expires_at <= ${now} order by expires_at limit ${most} for update skip locked)`.execute(
    tx,
  )
  return Number(numAffectedRows)
}

/** Where more than `kept` belong together, the oldest go. */
export async function forgetOldest(
  tx: Tx,
  belonging: 'session' | 'tenant',
  kept: number,
  most: number,
): Promise<number> {
  const together = sql.raw(belonging === 'session' ? 'tenant_id, session_id' : 'tenant_id')
  const sameSession = sql.raw(belonging === 'session' ? 'and m.session_id = crowded.session_id' : '')
  const { numAffectedRows } = await sql`
    with crowded as (select ${together} from memories group by ${together} having count(*) > ${kept} limit 100)
    delete from memories where id in (
      select beyond.id from crowded cross join lateral (
        select m.id from memories m where m.tenant_id = crowded.tenant_id ${sameSession}
        order by m.id desc offset ${kept} limit ${most}) as beyond)`.execute(tx)
  return Number(numAffectedRows)
}
