import { Type } from 'typebox'
import { nullable, oneOf, pattern, plainName } from '../../../platform/schema.ts'
import { paymentClasses } from '../assess/payment-facts.ts'
import { budgetScopes } from './evaluate-budget.ts'
import { budgetWindows } from './windows.ts'

const Usdc = Type.Number()
const Amount = Type.Number({ minimum: 0, maximum: 1_000_000_000 })
const ScopeType = oneOf(budgetScopes)
const AppliesTo = Type.Array(oneOf(paymentClasses), {
  minItems: 1,
  maxItems: 4,
  uniqueItems: true,
  description:
    'Which payments count: runs, payments (pre-authorisations), spend (trades of that instrument), trades (the notional of the others). Default: the first three.',
})
export const BudgetId = Type.String(pattern('^[A-Za-z0-9_.:-]{1,80}$', "1 to 80 letters, digits, '_', '.', ':' or '-'"))
const Shares = Type.Array(Type.Number({ exclusiveMinimum: 0, maximum: 100 }), {
  maxItems: 20,
  description: 'Shares of the limit that are announced once a window: 0.8 and 80 both mean four fifths.',
})

export const BudgetUpdateRequest = Type.Object(
  {
    budget_id: Type.Optional(BudgetId),
    scope: Type.Optional(
      Type.Object(
        { type: ScopeType, id: Type.Optional(Type.String({ minLength: 1, maxLength: 300, ...plainName })) },
        { additionalProperties: false },
      ),
    ),
    window: Type.Optional(oneOf([...budgetWindows])),
    limit_usdc: Type.Optional(Amount),
    soft_limit_usdc: Type.Optional(nullable(Amount)),
    on_breach: Type.Optional(oneOf(['block', 'downgrade', 'review'])),
    alert_thresholds: Type.Optional(Shares),
    applies_to: Type.Optional(AppliesTo),
    parent_id: Type.Optional(BudgetId),
    currency: Type.Optional(Type.String({ maxLength: 12 })),
    idempotency_key: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
  },
  {
    title: 'BudgetUpdateRequest',
    additionalProperties: false,
    description:
      'Makes the budget of this id, or changes its limits. `limit_usdc` is hard and counted from when the budget is made; passing `soft_limit_usdc` warns. `scope`, `window` (default tenant and month) and `parent_id` are fixed when it is made.',
  },
)

export const BudgetConfigResponse = Type.Object(
  {
    tenant_id: Type.String(),
    currency: Type.Literal('USDC'),
    budgets: Type.Array(
      Type.Object(
        {
          budget_id: Type.String(),
          scope: Type.Object({ type: ScopeType, id: Type.String() }),
          window: oneOf([...budgetWindows]),
          limit_usdc: Usdc,
          soft_limit_usdc: nullable(Usdc),
          spent_usdc: Usdc,
          reserved_usdc: Usdc,
          remaining_usdc: Usdc,
          resets_at: nullable(Type.String()),
          on_breach: oneOf(['block', 'downgrade', 'review']),
          alert_thresholds: Type.Array(Type.Number()),
          applies_to: AppliesTo,
          parent_id: nullable(Type.String()),
          version: Type.Integer(),
          created_at: Type.String(),
          updated_at: Type.String(),
        },
        { title: 'Budget' },
      ),
    ),
  },
  { title: 'BudgetConfigResponse' },
)
