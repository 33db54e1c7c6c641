import type { Selectable } from 'kysely'
import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Db } from '../../platform/db.ts'
import type { Decisions as DecisionsTable } from '../../platform/generated/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { toPage } from '../../platform/paging.ts'
import { notFound } from '../../platform/problem.ts'
import { smallestChanges } from './assessment-outcome.ts'
import type { RuleResult } from './rule-result.ts'

type DecisionRow = Selectable<DecisionsTable>
export type DecisionsQuery = { limit?: number; cursor?: string; outcome?: string; agent_id?: string }

export type Decisions = ReturnType<typeof createDecisions>

/** Lists recorded refusals and review requests, with the result of every rule. */
export function createDecisions({ db }: { db: Db }) {
  return {
    async list(tenant: TenantCaller, query: DecisionsQuery) {
      const limit = query.limit ?? 50
      let select = db.selectFrom('decisions').selectAll().where('tenant_id', '=', tenant.tenantId)
      if (query.outcome !== undefined) select = select.where('outcome', '=', query.outcome)
      if (query.agent_id !== undefined) select = select.where('agent_id', '=', query.agent_id)
      if (query.cursor !== undefined) select = select.where('id', '<', query.cursor)
      const decisionRows = await select
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute()
      const { rows, ...paging } = toPage(decisionRows, limit)
      return { decisions: rows.map(toDecisionRecord), ...paging }
    },

    async get(tenant: TenantCaller, id: string) {
      const row = await db
        .selectFrom('decisions')
        .selectAll()
        .where('id', '=', id)
        .where('tenant_id', '=', tenant.tenantId)
        .executeTakeFirst()
      if (!row) throw notFound('decision')
      return toDecisionRecord(row)
    },
  }
}

const toDecisionRecord = (row: DecisionRow) => ({
  decision_id: row.id,
  kind: row.kind,
  run_id: row.run_id,
  preauth_id: row.preauth_id,
  agent_id: row.agent_id,
  merchant: row.merchant,
  amount: row.amount_micro.toString(),
  amount_usdc: usdcFromMicro(row.amount_micro),
  outcome: row.outcome,
  error: row.error,
  message: row.message,
  overridable: row.overridable,
  policy_results: row.results as RuleResult[],
  smallest_change: smallestChanges(row.results as RuleResult[]),
  action_hash: row.action_hash,
  asked_by: row.asked_by,
  created_at: row.created_at.toISOString(),
})
