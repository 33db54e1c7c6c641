import type { Selectable } from 'kysely'
import { type AwaitAudit, pendingAuditId, withAuditLink } from '../../platform/audit-link.ts'
import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Db } from '../../platform/db.ts'
import type { DB } from '../../platform/generated/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { toPage } from '../../platform/paging.ts'
import { notFound } from '../../platform/problem.ts'
import type { RunResult } from './paid-unit.ts'
import { findRunRecord, listLoops, listRuns, type RunsQuery, readAnswerBody } from './runs.store.ts'

/** Reads a tenant's runs and loops. `execute-run.ts` executes them. */
export function createRuns({ db, findAudit }: { db: Db; findAudit: AwaitAudit }) {
  /** Null while the audit event of the answer has no place in the chain. */
  const readAudited = async (tenantId: string, body: string | null): Promise<string | null> => {
    const eventId = body === null ? undefined : pendingAuditId(body)
    if (body === null || eventId === undefined) return body
    const link = await findAudit(tenantId, eventId)
    return link ? withAuditLink(body, link) : null
  }

  return {
    async loops(tenant: TenantCaller, query: { limit?: number; session_id?: string; since?: number }) {
      const rows = await listLoops(db, tenant.tenantId, { limit: 100, ...query })
      const loops = rows.map((row) => {
        const result = row.result as RunResult | null
        return {
          loop_id: row.loop_id,
          run_id: row.id,
          agent_id: row.agent_id,
          session_id: row.session_id,
          created_at: row.created_at.toISOString(),
          paid: row.state === 'completed',
          price_usdc: usdcFromMicro(row.price_micro),
          grade: result?.verification.grade ?? null,
          output_hash: result?.output_hash ?? null,
        }
      })
      return { loops, count: loops.length }
    },

    async list(tenant: TenantCaller, query: Omit<RunsQuery, 'limit'> & { limit?: number }) {
      const limit = query.limit ?? 20
      const rows = await listRuns(db, tenant.tenantId, { ...query, limit })
      const { rows: runs, has_more, next_cursor } = toPage(rows, limit, (row) => row.id!)
      return { runs: runs.map(toRunItem), has_more, next_after: next_cursor }
    },

    /** With the stored response, for a client that lost it: the same JSON that the same payment would return. */
    async get(tenant: TenantCaller, id: string) {
      const row = await findRunRecord(db, tenant.tenantId, id)
      if (!row) throw notFound('run')
      const body = await readAudited(tenant.tenantId, await readAnswerBody(db, row))
      const { answer_status: status } = row
      return { ...toRunItem(row), answer: status === null || body === null ? null : { status, body: JSON.parse(body) } }
    },
  }
}

const toRunItem = (row: Selectable<DB['run_history']>) => ({
  run_id: row.id!,
  outcome: row.outcome!,
  action: row.action!,
  agent_id: row.agent_id!,
  price_usdc: usdcFromMicro(row.price_micro!),
  created_at: row.created_at!.toISOString(),
  receipt_url: row.receipt_id === null ? null : `/api/receipts/${row.receipt_id}`,
})

export type Runs = ReturnType<typeof createRuns>
