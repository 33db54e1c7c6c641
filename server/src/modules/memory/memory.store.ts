import { type Selectable, sql } from 'kysely'
import { callStep } from '../../platform/batch.ts'
import type { Tx } from '../../platform/db.ts'
import type { Memories } from '../../platform/generated/db.ts'
import { type NewMemory, writeMemoryStep } from './memory.steps.ts'

/** A row without `words`, the search vector of the content, which is only used inside the database. */
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

/** A common word may match every memory; only the newest this many matches are ranked. */
const MAX_RANKED = 500

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

/** Best match first: text rank times freshness. */
export async function searchMemories(
  tx: Tx,
  filter: Omit<MemoryFilter, 'cursor' | 'run_id'> & { query: string },
): Promise<(MemoryRow & { score: number })[]> {
  const { tenantId, now, query, session_id = null, agent_id = null, limit } = filter
  const { rows } = await sql<MemoryRow & { score: number }>`
    with search as materialized (select any_word_query(${query}) as words),
    matches as (
      select memory.* from memories memory, search
      where memory.tenant_id = ${tenantId} and memory.expires_at > ${now}
        and memory.words @@ (search.words && ${`'${tenantId}'`}::tsquery)
        and (${session_id}::text is null or memory.session_id = ${session_id}::text)
        and (${agent_id}::text is null or memory.agent_id = ${agent_id}::text)
      order by memory.id desc limit ${MAX_RANKED}
    )
    select ${sql.raw(columns.map((name) => `matches.${name}`).join(', '))},
           ts_rank(matches.words, search.words, 1 | 32) * freshness(matches.created_at, ${now}) as score
    from matches, search order by score desc, matches.id desc limit ${limit}`.execute(tx)
  return rows
}

/** A memory that a run might need, and what it shares with the task; only its beginning is read. */
export type RecallCandidate = { id: string; created_at: Date; excerpt: string; shared: string[]; related: string[] }

export async function findRecallCandidates(
  tx: Tx,
  request: {
    tenantId: string
    sessionId: string
    now: Date
    /** A text search configuration of PostgreSQL. */
    language: string
    task: string
    synonyms: string
    newest: number
    older: number
  },
): Promise<RecallCandidate[]> {
  const { tenantId, sessionId, now, language, task, synonyms, newest, older } = request
  const { rows } = await sql<RecallCandidate>`
    select * from recall_candidates(${tenantId}, ${sessionId}, ${now}, ${language}::regconfig, ${task}, ${synonyms}, ${newest}, ${older})
    order by id desc`.execute(tx)
  return rows
}

export async function readContents(tx: Tx, tenantId: string, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await tx
    .selectFrom('memories')
    .select(['id', 'content'])
    .where('tenant_id', '=', tenantId)
    .where('id', 'in', ids)
    .execute()
  return new Map(rows.map(({ id, content }) => [id, content]))
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

export async function deleteExpired(tx: Tx, now: Date, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from memories where id in (
      select id from memories where expires_at <= ${now} order by expires_at limit ${limit} for update skip locked)`.execute(
    tx,
  )
  return Number(numAffectedRows)
}

/**
 * Deletes the oldest memories of each session or tenant that has more than `keepCount`. Only those that were written to
 * since `firstId` are counted: the others have not grown.
 */
export async function deleteOldest(
  tx: Tx,
  group: 'session' | 'tenant',
  keepCount: number,
  firstId: string,
  limit: number,
): Promise<number> {
  const groupColumns = sql.raw(group === 'session' ? 'tenant_id, session_id' : 'tenant_id')
  const sameSession = sql.raw(group === 'session' ? 'and memory.session_id = written.session_id' : '')
  const { numAffectedRows } = await sql`
    with written as (select distinct ${groupColumns} from memories where id >= ${firstId})
    delete from memories where id in (
      select excess.id from written cross join lateral (
        select memory.id from memories memory where memory.tenant_id = written.tenant_id ${sameSession}
        order by memory.id desc offset ${keepCount} limit ${limit}) as excess)`.execute(tx)
  return Number(numAffectedRows)
}
