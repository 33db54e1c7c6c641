import type { Tx } from '../../../platform/db.ts'
import type { PaymentClass } from '../assess/payment-facts.ts'
import type { BudgetScope, OnBreach } from './evaluate-budget.ts'
import type { BudgetWindow } from './windows.ts'

export type BudgetRow = {
  budget_id: string
  scope: string
  scope_type: BudgetScope
  scope_id: string
  applies_to: PaymentClass[]
  parent_id: string | null
  window: BudgetWindow
  on_breach: OnBreach
  alert_thresholds: number[]
  version: number
  created_at: Date
  updated_at: Date
  limit_micro: bigint
  soft_limit_micro: bigint | null
}

const selectBudgets = (tx: Tx, tenantId: string) =>
  tx
    .selectFrom('budgets')
    .innerJoin('limit_definitions', 'limit_definitions.scope', 'budgets.scope')
    .select([
      'budgets.budget_id',
      'budgets.scope',
      'budgets.scope_type',
      'budgets.scope_id',
      'budgets.applies_to',
      'budgets.parent_id',
      'budgets.window',
      'budgets.on_breach',
      'budgets.alert_thresholds',
      'budgets.version',
      'budgets.created_at',
      'budgets.updated_at',
    ])
    .select(['limit_definitions.limit_micro', 'limit_definitions.soft_limit_micro'])
    .where('budgets.tenant_id', '=', tenantId)

export const findBudget = async (tx: Tx, tenantId: string, budgetId: string) =>
  (await selectBudgets(tx, tenantId).where('budgets.budget_id', '=', budgetId).executeTakeFirst()) as
    | BudgetRow
    | undefined

export const listBudgets = async (tx: Tx, tenantId: string) =>
  (await selectBudgets(tx, tenantId)
    .orderBy('budgets.created_at')
    .orderBy('budgets.budget_id')
    .execute()) as BudgetRow[]

export async function countBudgets(tx: Tx, tenantId: string): Promise<number> {
  const { n } = await tx
    .selectFrom('budgets')
    .select((on) => on.fn.countAll().as('n'))
    .where('tenant_id', '=', tenantId)
    .executeTakeFirstOrThrow()
  return Number(n)
}

export async function writeBudget(
  tx: Tx,
  row: {
    tenantId: string
    budgetId: string
    counter: string
    scopeType: BudgetScope
    scopeId: string
    appliesTo: PaymentClass[]
    parentId: string | null
    window: BudgetWindow
    onBreach: OnBreach
    alertThresholds: number[]
    version: number
    at: Date
  },
): Promise<void> {
  const changes = {
    on_breach: row.onBreach,
    applies_to: row.appliesTo,
    alert_thresholds: JSON.stringify(row.alertThresholds),
    version: row.version,
    updated_at: row.at,
  }
  await tx
    .insertInto('budgets')
    .values({
      tenant_id: row.tenantId,
      budget_id: row.budgetId,
      scope: row.counter,
      scope_type: row.scopeType,
      scope_id: row.scopeId,
      window: row.window,
      parent_id: row.parentId,
      created_at: row.at,
      ...changes,
    })
    .onConflict((on) => on.columns(['tenant_id', 'budget_id']).doUpdateSet(changes))
    .execute()
}

export async function listChildren(tx: Tx, tenantId: string, budgetId: string): Promise<string[]> {
  const rows = await tx
    .selectFrom('budgets')
    .select('budget_id')
    .where('tenant_id', '=', tenantId)
    .where('parent_id', '=', budgetId)
    .orderBy('budget_id')
    .execute()
  return rows.map((row) => row.budget_id)
}

export async function removeBudget(tx: Tx, tenantId: string, budgetId: string): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('budgets')
    .where('tenant_id', '=', tenantId)
    .where('budget_id', '=', budgetId)
    .executeTakeFirst()
  return numDeletedRows > 0n
}
