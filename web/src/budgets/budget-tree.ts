import type { Budget } from '@countersign/sdk'
import { toInputText, toMicro } from '../money-text.ts'
import { routeHref } from '../route.ts'

export type BudgetNode = {
  budget: Budget
  children: BudgetNode[]
  /** What its children may spend together in the same window is more than it allows. */
  isSmallerThanChildren: boolean
}

/** From the widest scope to the narrowest, as budgets without a parent are shown. */
const scopeOrder = ['tenant', 'team', 'tag', 'merchant', 'agent', 'spender', 'key', 'session', 'mandate']

/** Budgets below their parents. A budget whose parent is not listed stands at the top. */
export function toBudgetTree(budgets: readonly Budget[]): BudgetNode[] {
  const ids = new Set(budgets.map(({ budget_id }) => budget_id))
  const compare = (a: Budget, b: Budget) =>
    scopeOrder.indexOf(a.scope.type) - scopeOrder.indexOf(b.scope.type) || (a.budget_id < b.budget_id ? -1 : 1)
  const childrenOf = (parentId: string | null): BudgetNode[] =>
    budgets
      .filter(({ parent_id }) => (parent_id !== null && ids.has(parent_id) ? parent_id : null) === parentId)
      .sort(compare)
      .map((budget) => {
        const children = childrenOf(budget.budget_id)
        return { budget, children, isSmallerThanChildren: isSmaller(budget, children) }
      })
  return childrenOf(null)
}

const microOf = (usdc: number) => toMicro(toInputText(usdc)) ?? 0n

/** Limits of different windows cannot be added. */
function isSmaller({ limit_usdc, window }: Budget, children: readonly BudgetNode[]): boolean {
  const sum = children
    .filter(({ budget }) => budget.window === window)
    .reduce((total, { budget }) => total + microOf(budget.limit_usdc), 0n)
  return sum > microOf(limit_usdc)
}

/** The shares of a bar in percent: spent, reserved and the rest. */
export function toShares({ limit_usdc, spent_usdc, reserved_usdc }: Budget): { spent: number; reserved: number } {
  if (limit_usdc <= 0) return { spent: spent_usdc > 0 ? 100 : 0, reserved: 0 }
  const spent = Math.min(100, (spent_usdc / limit_usdc) * 100)
  return { spent, reserved: Math.min(100 - spent, (reserved_usdc / limit_usdc) * 100) }
}

/** The list of the runs that count in the budget; undefined where runs cannot be listed by its scope. */
export function runsHref({ scope, applies_to }: Budget): string | undefined {
  if (!applies_to.some((kind) => kind === 'runs' || kind === 'payments')) return undefined
  const query = {
    tenant: {},
    agent: { lane: scope.id },
    spender: { spender: scope.id },
    team: { team: scope.id },
    tag: { tag: scope.id.replace('=', ':') },
    mandate: { mandate: scope.id },
  }[scope.type as string]
  return query && routeHref(['account', 'runs'], query)
}

const windowWords: Record<string, string> = {
  run: 'each payment',
  total: 'in all',
  rolling_24h: 'in any 24 hours',
  rolling_7d: 'in any 7 days',
  rolling_30d: 'in any 30 days',
}
export const describeWindow = (window: string) => windowWords[window] ?? `each ${window}`

const breachWords: Record<string, string> = {
  block: 'refuses',
  downgrade: 'takes a cheaper lane',
  review: 'asks a person',
}
/** What happens to a payment that the budget has no room for. */
export const describeBreach = (onBreach: string) => breachWords[onBreach] ?? onBreach
