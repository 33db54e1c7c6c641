import type { TenantCaller } from '../../platform/auth-context.ts'
import { sha256 } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Idempotency } from '../../platform/idempotency.ts'
import { firstIdAt, type Ids } from '../../platform/ids.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { toPage } from '../../platform/paging.ts'
import { invalid, notFound } from '../../platform/problem.ts'
import * as store from './memory.store.ts'
import { detectLanguage, type RecallReason, rankMemories } from './rank-memories.ts'
import { limits, type RecalledMemory, selectRecalled, toRunMemory } from './run-memory.ts'
import { readSynonyms } from './synonyms.ts'

export type MemoryDeps = {
  db: Db
  clock: Clock
  ids: Ids
  idempotency: Idempotency
  audit: Outbox['audit']
  /** Whether a run belongs to the tenant: a memory may only refer to such a run. */
  ownsRun(tenantId: string, runId: string): Promise<boolean>
}

export type MemoryCreate = {
  content: string
  session_id?: string
  agent_id?: string
  run_id?: string
  metadata?: object
  expires_at?: string
}

type MemoryScope = { session_id?: string; agent_id?: string }

export type Memory = ReturnType<typeof createMemory>

const SWEEP_BATCH_SIZE = 1_000
const FIRST_SWEEP_MS = 24 * 60 * 60 * 1000
const OVERLAP_MS = 5 * 60 * 1000

export function createMemory(deps: MemoryDeps) {
  const { db, clock } = deps
  let sweptAt: number | undefined
  const synonyms = readSynonyms()

  const auditEvent = (caller: TenantCaller, type: string, subject: string, data: Record<string, unknown>) => ({
    tenantId: caller.tenantId,
    type,
    actor: caller.keyId,
    subject,
    at: clock.now(),
    data,
  })

  return {
    async list(caller: TenantCaller, query: MemoryScope & { run_id?: string; cursor?: string; limit?: number }) {
      const { limit = 50, ...filter } = query
      const { tenantId } = caller
      const rows = await store.listMemories(db, { ...filter, tenantId, now: clock.now(), limit: limit + 1 })
      const { rows: memories, ...paging } = toPage(rows, limit)
      return { memories: memories.map(toMemoryRecord), ...paging }
    },

    async get(caller: TenantCaller, id: string) {
      const row = await store.findMemory(db, caller.tenantId, id, clock.now())
      if (!row) throw notFound('memory')
      return toMemoryRecord(row)
    },

    async search(caller: TenantCaller, body: MemoryScope & { query: string; limit?: number }) {
      const { query, session_id, agent_id, limit = 10 } = body
      const rows = await store.searchMemories(db, {
        tenantId: caller.tenantId,
        now: clock.now(),
        query: [query, ...synonyms.findFor(query)].join(' '),
        limit,
        ...(session_id !== undefined && { session_id }),
        ...(agent_id !== undefined && { agent_id }),
      })
      return { memories: rows.map((row) => ({ ...toMemoryRecord(row), score: Number(row.score.toFixed(6)) })) }
    },

    create: (caller: TenantCaller, key: string | undefined, body: MemoryCreate) =>
      deps.idempotency.once(
        { scope: `tenant:${caller.tenantId}`, route: 'POST /api/memory', key, body },
        async (tx) => {
          const now = clock.now()
          const { content, session_id, agent_id = null, run_id = null, metadata = {}, expires_at } = body
          if (content.trim() === '') throw invalid('body/content must not be blank.')
          if (JSON.stringify(metadata).length > limits.metadataCharacters)
            throw invalid(`body/metadata is longer than ${limits.metadataCharacters} characters of JSON.`)
          if (run_id !== null && !(await deps.ownsRun(caller.tenantId, run_id)))
            throw invalid('body/run_id is not a run of this tenant.')
          const id = deps.ids.next('mem')
          await store.writeMemory(tx, {
            id,
            tenant_id: caller.tenantId,
            session_id: session_id ?? deps.ids.next('ses'),
            agent_id,
            run_id,
            content,
            metadata,
            created_at: now.toISOString(),
            expires_at: resolveExpiry(now, expires_at),
          })
          const row = await store.findMemory(tx, caller.tenantId, id, now)
          // The audit trail outlives the memory, so it holds only a hash of the content.
          const data = { session_id: row!.session_id, agent_id, content_hash: sha256(content) }
          await deps.audit(tx, auditEvent(caller, 'memory.created', id, data))
          return { status: 201, body: toMemoryRecord(row!) }
        },
      ),

    remove: (caller: TenantCaller, id: string) =>
      db.transaction().execute(async (tx) => {
        const row = await store.deleteMemory(tx, caller.tenantId, id)
        if (!row || row.expires_at <= clock.now()) throw notFound('memory')
        await deps.audit(tx, auditEvent(caller, 'memory.deleted', id, { session_id: row.session_id }))
        return { id, deleted: true }
      }),

    /** Deleting a session that does not exist succeeds with a count of 0. */
    removeSession: (caller: TenantCaller, sessionId: string) =>
      db.transaction().execute(async (tx) => {
        const deleted_count = await store.deleteSession(tx, caller.tenantId, sessionId)
        if (deleted_count > 0)
          await deps.audit(tx, auditEvent(caller, 'memory.session_deleted', sessionId, { deleted_count }))
        return { session_id: sessionId, deleted_count }
      }),

    /** The memories of a session that a task may need. They are read after lane, price and policy are decided, and are only text for the lane. */
    async recall(request: { tenantId: string; sessionId: string; task: string }): Promise<RecalledMemory[]> {
      const now = clock.now()
      const { tenantId, sessionId } = request
      const task = request.task.slice(0, limits.recallTaskCharacters)
      const candidates = await store.findRecallCandidates(db, {
        tenantId,
        sessionId,
        now,
        language: detectLanguage(task),
        task,
        synonyms: synonyms.findFor(task).join(' '),
        newest: limits.recallNewest,
        older: limits.recallOlder,
      })
      const matching = rankMemories(task, candidates, now).slice(0, limits.maxRecalledBySearch)
      const newest = candidates
        .slice(0, limits.maxRecalled)
        .map(({ id }) => ({ id, why: 'newest' as const, words: [] }))
      const chosen = [...matching, ...newest]
      const contents = await store.readContents(db, tenantId, [...new Set(chosen.map(({ id }) => id))])
      const withContent = (reasons: readonly RecallReason[]) =>
        reasons.flatMap((reason) => {
          const content = contents.get(reason.id)
          return content === undefined ? [] : { ...reason, content }
        })
      return selectRecalled(withContent(matching), withContent(newest))
    },

    /** The memory that transaction C writes for a run with `options.write_memory`. */
    createRunMemory: toRunMemory,

    /** Deletes expired memories, and the oldest ones of sessions and tenants over their limit. */
    async sweep(now: Date): Promise<number> {
      // A memory may commit after one with a later id, so each sweep looks back further than to the last one.
      const firstId = firstIdAt('mem', new Date((sweptAt ?? now.getTime() - FIRST_SWEEP_MS) - OVERLAP_MS))
      const expiredCount = await store.deleteExpired(db, now, SWEEP_BATCH_SIZE)
      const sessionExcessCount = await store.deleteOldest(db, 'session', limits.perSession, firstId, SWEEP_BATCH_SIZE)
      const tenantExcessCount = await store.deleteOldest(db, 'tenant', limits.perTenant, firstId, SWEEP_BATCH_SIZE)
      // What did not fit into this sweep is left for the next one.
      if (Math.max(sessionExcessCount, tenantExcessCount) < SWEEP_BATCH_SIZE) sweptAt = now.getTime()
      return expiredCount + sessionExcessCount + tenantExcessCount
    },
  }
}

const toMemoryRecord = (row: store.MemoryRow) => ({
  id: row.id,
  session_id: row.session_id,
  agent_id: row.agent_id,
  run_id: row.run_id,
  content: row.content,
  metadata: row.metadata as Record<string, unknown>,
  created_at: row.created_at.toISOString(),
  expires_at: row.expires_at.toISOString(),
})

function resolveExpiry(now: Date, requestedExpiry: string | undefined): string {
  const expiresAt =
    requestedExpiry === undefined ? now.getTime() + limits.defaultLifetimeMs : Date.parse(requestedExpiry)
  // A leap second passes the schema's format check but parses to NaN.
  if (!(expiresAt > now.getTime())) throw invalid('body/expires_at must be in the future.')
  if (expiresAt > now.getTime() + limits.maxLifetimeMs) throw invalid('body/expires_at is more than 365 days ahead.')
  return new Date(expiresAt).toISOString()
}
