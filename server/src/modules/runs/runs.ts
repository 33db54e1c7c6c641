import type { Selectable } from 'kysely'
import { type AwaitAudit, pendingAuditId, withAuditLink } from '../../platform/audit-link.ts'
import type { Caller, TenantCaller } from '../../platform/auth-context.ts'
import type { Db } from '../../platform/db.ts'
import type { DB } from '../../platform/generated/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { toPage } from '../../platform/paging.ts'
import { notFound, unauthorized } from '../../platform/problem.ts'
import type { RunResult } from './paid-unit.ts'
import { isSameToken } from './run-token.ts'
import { type RunStatus, toRunStatus } from './run-watch.ts'
import {
  findGuestRun,
  findRunRecord,
  findTenantRun,
  listLoops,
  listRuns,
  type RunRow,
  type RunsQuery,
  readAnswerBody,
} from './runs.store.ts'

export type RunsDeps = { db: Db; findAudit: AwaitAudit; runToken(runId: string): string }

const ANSWER_OF_GUEST = 'To get the answer, send the X-Run-Token of the 202, or the same request with the same payment.'

/** Reads a tenant's runs and loops. `execute-run.ts` executes them. */
export function createRuns({ db, findAudit, runToken }: RunsDeps) {
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
        // Of a run that failed only the reason is kept.
        const result = row.result as Partial<RunResult> | null
        return {
          loop_id: row.loop_id,
          run_id: row.id,
          agent_id: row.agent_id,
          session_id: row.session_id,
          created_at: row.created_at.toISOString(),
          paid: row.state === 'completed',
          price_usdc: usdcFromMicro(row.price_micro),
          grade: result?.verification?.grade ?? null,
          output_hash: result?.output_hash ?? null,
        }
      })
      return { loops, count: loops.length }
    },

    async list(tenant: TenantCaller, query: Omit<RunsQuery, 'limit'> & { limit?: number }) {
      const limit = query.limit ?? 20
      const { rows, examinedTo } = await listRuns(db, tenant.tenantId, { ...query, limit })
      const { rows: runs, next_cursor } = toPage(rows, limit, (row) => row.id!)
      const next_after = next_cursor ?? examinedTo ?? null
      return { runs: runs.map(toTenantRunItem), has_more: next_after !== null, next_after }
    },

    /** With the stored response, for a client that lost it: the same JSON that the same payment would return. */
    async get(tenant: TenantCaller, id: string) {
      const row = await findRunRecord(db, tenant.tenantId, id)
      if (!row) throw notFound('run')
      const body = await readAudited(tenant.tenantId, await readAnswerBody(db, row))
      const { answer_status: status } = row
      return {
        ...toTenantRunItem(row),
        answer: status === null || body === null ? null : { status, body: JSON.parse(body) },
      }
    },

    /**
     * Without its token what the receipt will say in public anyway, and nothing of the output: the id of a run is no secret
     * once it has ended.
     */
    async getOfGuest(id: string, token: string | undefined) {
      const run = await requireGuestRun(db, id)
      const { answer_status: status } = run
      if (token === undefined && status !== null)
        return { ...toRunItem(run), answer: null, next_action: ANSWER_OF_GUEST }
      if (token !== undefined && !isSameToken(token, runToken(id))) throw unauthorized('This run token is not valid.')
      const body = await readAnswerBody(db, run)
      return { ...toRunItem(run), answer: status === null || body === null ? null : { status, body: JSON.parse(body) } }
    },

    async readStatus(caller: Caller, id: string): Promise<RunStatus> {
      const run = caller.kind === 'guest' ? await requireGuestRun(db, id) : await findTenantRun(db, caller.tenantId, id)
      if (!run) throw notFound('run')
      return toRunStatus({ ...run, reason: (run.result as { reason?: string } | null)?.reason ?? null })
    },
  }
}

async function requireGuestRun(db: Db, id: string): Promise<RunRow> {
  const run = await findGuestRun(db, id)
  if (!run) throw unauthorized()
  return run
}

type ListedRun = Pick<
  Selectable<DB['run_history']>,
  'id' | 'outcome' | 'action' | 'agent_id' | 'price_micro' | 'created_at' | 'receipt_id'
> & { finished_at?: Date | null; spender?: string | null; team?: string | null; tags?: unknown }

const toRunItem = (row: ListedRun) => ({
  run_id: row.id!,
  outcome: row.outcome!,
  action: row.action!,
  agent_id: row.agent_id!,
  price_usdc: usdcFromMicro(row.price_micro!),
  created_at: row.created_at!.toISOString(),
  receipt_url: row.receipt_id === null ? null : `/api/receipts/${row.receipt_id}`,
})

/** What the tenant sees, and nobody else. */
const toTenantRunItem = (row: ListedRun) => ({
  ...toRunItem(row),
  finished_at: row.finished_at?.toISOString() ?? null,
  spender: row.spender ?? null,
  team: row.team ?? null,
  tags: (row.tags ?? null) as Record<string, string> | null,
})

export type Runs = ReturnType<typeof createRuns>
