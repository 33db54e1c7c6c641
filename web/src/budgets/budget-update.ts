import type { ApiRequest } from '@countersign/sdk'

export type BudgetUpdate = ApiRequest<'/api/budgets', 'post'>['body']
export type BudgetScope = NonNullable<BudgetUpdate['scope']>['type']

/** The request body of the budget form. The scope id is only sent when the form has one: the tenant scope has none. */
export function toBudgetUpdate(form: FormData): BudgetUpdate {
  const readField = (name: string) => String(form.get(name) ?? '').trim()
  const scopeId = readField('scope_id')
  return {
    budget_id: readField('budget_id'),
    scope: { type: readField('scope') as BudgetScope, ...(scopeId && { id: scopeId }) },
    window: readField('window') as BudgetUpdate['window'],
    limit_usdc: Number(readField('limit_usdc')),
    on_breach: readField('on_breach') as BudgetUpdate['on_breach'],
  }
}
