import { microFromUsdc, usdcFromMicro } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import type { RuleResult } from './rule-result.ts'

export type RequestBudget = {
  budget_id?: string
  max_price_usdc?: number
  soft_max_price_usdc?: number
  strict?: boolean
  currency?: string
}

/** The request's own ceiling: what the caller is ready to pay, whatever its tenant would allow. */
export function evaluateRequestBudget(
  budget: RequestBudget | undefined,
  lane: { agentId: string; priceMicro: bigint },
): RuleResult[] {
  if (!budget) return []
  if (budget.currency !== undefined && budget.currency !== 'USDC')
    throw invalid(`budget.currency must be USDC, not '${budget.currency}'.`)
  const max = micro('max_price_usdc', budget.max_price_usdc)
  const soft = micro('soft_max_price_usdc', budget.soft_max_price_usdc)
  if (max !== undefined && soft !== undefined && soft > max)
    throw invalid('budget.soft_max_price_usdc is above budget.max_price_usdc.')

  const told = (name: string, limitMicro: bigint, over: boolean, outcome: 'blocked' | 'warning'): RuleResult => {
    const [asked, limit] = [usdcFromMicro(lane.priceMicro), usdcFromMicro(limitMicro)]
    const change = { text: `Raise budget.${name} to ${asked}.`, path: `budget.${name}`, from: limit, to: asked }
    return {
      policy_id: null,
      rule: `budget.${name}`,
      mode: 'enforce',
      verdict: over && outcome === 'blocked' ? 'blocked' : 'pass',
      outcome: over ? outcome : 'pass',
      reason: `The lane '${lane.agentId}' costs ${asked} USDC, ${over ? 'more than' : 'within'} budget.${name} ${limit}.`,
      asked,
      limit,
      ...(over && { smallest_change: change }),
    }
  }
  return [
    ...(max === undefined ? [] : [told('max_price_usdc', max, lane.priceMicro > max, 'blocked')]),
    ...(soft === undefined ? [] : [told('soft_max_price_usdc', soft, lane.priceMicro > soft, 'warning')]),
  ]
}

function micro(name: string, usdc: number | undefined): bigint | undefined {
  if (usdc === undefined) return undefined
  const value = microFromUsdc(usdc)
  if (value === undefined) throw invalid(`budget.${name} must be a non-negative amount with at most six decimals.`)
  return value
}
