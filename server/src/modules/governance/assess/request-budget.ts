import { microFromUsdc, usdcFromMicro } from '../../../platform/money.ts'
import { invalid } from '../../../platform/problem.ts'
import type { RuleResult } from '../rules/rule-result.ts'

export type RequestBudget = {
  budget_id?: string
  max_price_usdc?: number
  soft_max_price_usdc?: number
  strict?: boolean
  currency?: string
}

/** Evaluates the price limits sent with the request, which apply on top of the tenant's rules. */
export function evaluateRequestBudget(
  budget: RequestBudget | undefined,
  lane: { agentId: string; priceMicro: bigint },
): RuleResult[] {
  if (!budget) return []
  if (budget.currency !== undefined && budget.currency !== 'USDC')
    throw invalid(`budget.currency must be USDC, not '${budget.currency}'.`)
  const max = toMicro('max_price_usdc', budget.max_price_usdc)
  const softMax = toMicro('soft_max_price_usdc', budget.soft_max_price_usdc)
  if (max !== undefined && softMax !== undefined && softMax > max)
    throw invalid('budget.soft_max_price_usdc is above budget.max_price_usdc.')

  const toResult = (
    name: string,
    limitMicro: bigint,
    exceeded: boolean,
    outcome: 'blocked' | 'warning',
  ): RuleResult => {
    const [asked, limit] = [usdcFromMicro(lane.priceMicro), usdcFromMicro(limitMicro)]
    const change = { text: `Raise budget.${name} to ${asked}.`, path: `budget.${name}`, from: limit, to: asked }
    return {
      policy_id: null,
      rule: `budget.${name}`,
      mode: 'enforce',
      verdict: exceeded && outcome === 'blocked' ? 'blocked' : 'pass',
      outcome: exceeded ? outcome : 'pass',
      reason: `The lane '${lane.agentId}' costs ${asked} USDC, ${exceeded ? 'more than' : 'within'} budget.${name} ${limit}.`,
      asked,
      limit,
      ...(exceeded && { smallest_change: change }),
    }
  }
  return [
    ...(max === undefined ? [] : [toResult('max_price_usdc', max, lane.priceMicro > max, 'blocked')]),
    ...(softMax === undefined ? [] : [toResult('soft_max_price_usdc', softMax, lane.priceMicro > softMax, 'warning')]),
  ]
}

function toMicro(name: string, usdc: number | undefined): bigint | undefined {
  if (usdc === undefined) return undefined
  const value = microFromUsdc(usdc)
  if (value === undefined) throw invalid(`budget.${name} must be a non-negative amount with at most six decimals.`)
  return value
}
