import type { TenantCaller } from '../../platform/auth-context.ts'
import { sha256 } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Idempotency } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { toPage } from '../../platform/paging.ts'
import { invalid, notFound } from '../../platform/problem.ts'
import * as store from './memory.store.ts'
import { chooseRecalled, limits, memoryOfRun, type Recalled } from './run-memory.ts'

export type MemoryDeps = {
  db: Db
  clock: Clock
  ids: Ids
  idempotency: Idempotency
  audit: Outbox['audit']
  /** Whether a run is this tenant's; a memory may name no other. */
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

type Narrowed = { session_id?: string; agent_id?: string }

export type Memory = ReturnType<typeof createMemory>

const SWEEP = 1_000

export function createMemory(deps: MemoryDeps) {
  const { db, clock } = deps

  const audited = (caller: TenantCaller, type: string, subject: string, data: Record<string, unknown>) => ({
    tenantId: caller.tenantId,
    type,
    actor: caller.keyId,
    subject,
    at: clock.now(),
    data,
  })

  return {
    async list(caller: TenantCaller, query: Narrowed & { run_id?: string; cursor?: string; limit?: number }) {
      const { limit = 50, ...where } = query
      const { tenantId } = caller
      const rows = await store.listMemories(db, { ...where, tenantId, now: clock.now(), limit: limit + 1 })
      const { rows: memories, ...paging } = toPage(rows, limit)
      return { memories: memories.map(record), ...paging }
    },

    async get(caller: TenantCaller, id: string) {
      const row = await store.findMemory(db, caller.tenantId, id, clock.now())
      if (!row) throw notFound('memory')
      return record(row)
    },

    async search(caller: TenantCaller, body: Narrowed & { query: string; limit?: number }) {
      const { query, session_id, agent_id, limit = 10 } = body
      const found = await store.searchMemories(db, {
        tenantId: caller.tenantId,
        now: clock.now(),
        query,
        limit,
        ...(session_id !== undefined && { session_id }),
        ...(agent_id !== undefined && { agent_id }),
      })
      return { memories: found.map((row) => ({ ...record(row), score: Number(row.score.toFixed(6)) })) }
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
            throw invalid('body/run_id names no run of yours.')
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
            expires_at: endOf(now, expires_at),
          })
          const row = await store.findMemory(tx, caller.tenantId, id, now)
          // The audit trail outlives the memory, so it knows the content by its hash alone.
          const told = { session_id: row!.session_id, agent_id, content_hash: sha256(content) }
          await deps.audit(tx, audited(caller, 'memory.created', id, told))
          return { status: 201, body: record(row!) }
        },
      ),

    remove: (caller: TenantCaller, id: string) =>
      db.transaction().execute(async (tx) => {
        const row = await store.deleteMemory(tx, caller.tenantId, id)
        if (!row || row.expires_at <= clock.now()) throw notFound('memory')
        await deps.audit(tx, audited(caller, 'memory.deleted', id, { session_id: row.session_id }))
        return { id, deleted: true }
      }),

    /** Forgetting a session that is not there is no mistake: it is forgotten either way. */
    removeSession: (caller: TenantCaller, sessionId: string) =>
      db.transaction().execute(async (tx) => {
        const deleted_count = await store.deleteSession(tx, caller.tenantId, sessionId)
        if (deleted_count > 0)
          await deps.audit(tx, audited(caller, 'memory.session_deleted', sessionId, { deleted_count }))
        return { session_id: sessionId, deleted_count }
      }),

    /** What the session remembers that a task may need. It is read after lane, price and judgement stand, and is only ever text. */
    async recall(of: { tenantId: string; sessionId: string; task: string }): Promise<Recalled[]> {
      const where = { tenantId: of.tenantId, session_id: of.sessionId, now: clock.now() }
      const [fitting, newest] = await Promise.all([
        store.searchMemories(db, { ...where, query: of.task, limit: limits.recalledByWords }),
        store.listMemories(db, { ...where, limit: limits.recalled }),
      ])
      return chooseRecalled(fitting, newest)
    },

    /** What transaction C writes for a run that asked to be remembered. */
    ofRun: memoryOfRun,

    /** Nothing expired is ever shown; here it is removed, and the oldest with it where there is too much. */
    async sweep(now: Date): Promise<number> {
      const expired = await store.forgetExpired(db, now, SWEEP)
      const ofSessions = await store.forgetOldest(db, 'session', limits.inSession, SWEEP)
      const ofTenants = await store.forgetOldest(db, 'tenant', limits.ofTenant, SWEEP)
      return expired + ofSessions + ofTenants
    },
  }
}

const record = (row: store.MemoryRow) => ({
  id: row.id,
  session_id: row.session_id,
  agent_id: row.agent_id,
  run_id: row.run_id,
  content: row.content,
  metadata: row.metadata as Record<string, unknown>,
  created_at: row.created_at.toISOString(),
  expires_at: row.expires_at.toISOString(),
})

function endOf(now: Date, asked: string | undefined): string {
  const end = asked === undefined ? now.getTime() + limits.defaultLifeMs : Date.parse(asked)
  // A leap second has the form of a time and is none to JavaScript.
  if (!(end > now.getTime())) throw invalid('body/expires_at must lie in the future.')
  if (end > now.getTime() + limits.longestLifeMs) throw invalid('body/expires_at lies more than 365 days ahead.')
  return new Date(end).toISOString()
}
