import { type Selectable, sql } from 'kysely'
import type { TenantCaller } from '../../../platform/auth-context.ts'
import { hashJson } from '../../../platform/canonical.ts'
import type { Db, Tx } from '../../../platform/db.ts'
import type { Decisions as DecisionsTable } from '../../../platform/generated/db.ts'
import { usdcFromMicro } from '../../../platform/money.ts'
import { readPage } from '../../../platform/paging.ts'
import { notFound } from '../../../platform/problem.ts'
import type { RuleResult } from '../rules/rule-result.ts'
import { smallestChanges } from './assessment-outcome.ts'
import { boundTrace } from './bound-trace.ts'

type DecisionRow = Omit<Selectable<DecisionsTable>, 'tenant_id' | 'results' | 'trace_hash'> & {
  trace: RuleResult[]
  self_approved: boolean
}
export type DecisionsQuery = { limit?: number; cursor?: string; outcome?: string; agent_id?: string; run_id?: string }

export type Decisions = ReturnType<typeof createDecisions>

/** Lists recorded refusals and review requests, with the result of every rule. */
export function createDecisions({ db }: { db: Db }) {
  return {
    async list(tenant: TenantCaller, query: DecisionsQuery) {
      const readRows = (count: number, after: DecisionRow | undefined) => {
        let select = selectDecisions(db, tenant.tenantId)
        if (query.outcome !== undefined) select = select.where('outcome', '=', query.outcome)
        if (query.agent_id !== undefined) select = select.where('agent_id', '=', query.agent_id)
        if (query.run_id !== undefined) select = select.where('run_id', '=', query.run_id)
        const cursor = after?.id ?? query.cursor
        if (cursor !== undefined) select = select.where('id', '<', cursor)
        return select.orderBy('id', 'desc').limit(count).execute()
      }
      const { rows, ...paging } = await readPage(query.limit ?? 50, readRows, (row) => row.id)
      return { decisions: rows.map(toDecisionRecord), ...paging }
    },

    async get(tenant: TenantCaller, id: string) {
      const row = await selectDecisions(db, tenant.tenantId).where('id', '=', id).executeTakeFirst()
      if (!row) throw notFound('decision')
      return toDecisionRecord(row)
    },
  }
}

/** A trade that was refused or waits for an approval. */
export type TradeDecision = {
  id: string
  tenantId: string
  runId: string
  agentId: string | null
  merchant: string
  amountMicro: bigint
  outcome: 'blocked' | 'review_required'
  error: string
  message: string
  results: readonly RuleResult[]
  actionHash: string
  askedBy: string
  spender: string
  team: string | null
  tags: Readonly<Record<string, string>>
  at: Date
}

/** Records the decision about a trade in the transaction that stores its run. No override applies to a trade. */
export async function insertTradeDecision(tx: Tx, decision: TradeDecision): Promise<void> {
  const results = boundTrace(decision.results)
  const traceHash = hashJson(results)
  await tx
    .insertInto('rule_traces')
    .values({
      tenant_id: decision.tenantId,
      hash: traceHash,
      results: JSON.stringify(results),
      created_at: decision.at,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  await tx
    .insertInto('decisions')
    .values({
      id: decision.id,
      tenant_id: decision.tenantId,
      kind: 'trade',
      run_id: decision.runId,
      agent_id: decision.agentId,
      merchant: decision.merchant,
      amount_micro: decision.amountMicro,
      outcome: decision.outcome,
      error: decision.error,
      message: decision.message,
      overridable: false,
      results: '[]',
      trace_hash: traceHash,
      action_hash: decision.actionHash,
      asked_by: decision.askedBy,
      spender: decision.spender,
      team: decision.team,
      tags: Object.keys(decision.tags).length === 0 ? null : JSON.stringify(decision.tags),
      created_at: decision.at,
    })
    .execute()
}

/** `trace` replaces `results`, which is empty in new rows and may be huge in old ones. */
const selectDecisions = (db: Db, tenantId: string) =>
  db
    .selectFrom('decisions')
    .select([
      'id',
      'kind',
      'run_id',
      'preauth_id',
      'agent_id',
      'merchant',
      'amount_micro',
      'outcome',
      'error',
      'message',
    ])
    .select(['overridable', 'action_hash', 'asked_by', 'spender', 'team', 'tags', 'created_at'])
    .select(sql<RuleResult[]>`trace_of(tenant_id, trace_hash, results)`.as('trace'))
    .select(
      sql<boolean>`exists (select from approvals where approvals.tenant_id = decisions.tenant_id and decision_id = decisions.id and approvals.self_approved)
        or exists (select from overrides where overrides.tenant_id = decisions.tenant_id and decision_id = decisions.id and overrides.self_approved)
        or case when decisions.kind = 'trade' then exists (select from rh_runs where rh_runs.id = decisions.run_id::uuid and rh_runs.self_approved) else false end`.as(
        'self_approved',
      ),
    )
    .where('tenant_id', '=', tenantId)

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
  policy_results: row.trace,
  smallest_change: smallestChanges(row.trace),
  action_hash: row.action_hash,
  asked_by: row.asked_by,
  self_approved: row.self_approved,
  spender: row.spender ?? `key:${row.asked_by}`,
  team: row.team,
  tags: (row.tags ?? {}) as Record<string, string>,
  created_at: row.created_at.toISOString(),
})
