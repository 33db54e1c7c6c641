import type { TradeAssessment } from '../governance/assess/assess-trade.ts'
import type { Freeze } from '../governance/assess/evaluate-rules.ts'
import {
  type BrokerAccount,
  type BrokerPosition,
  divideUp,
  type Instrument,
  notionalMicro,
  type Quote,
  type RwaReading,
} from './broker.ts'
import { originOf, type TradePolicy } from './trade-policies.ts'
import { type TradeTerms, touchPriceE8 } from './trade-terms.ts'

/** Facts that the checks of `risk-checks.ts` and `spend-limits.ts` read, and the quantities they share. */

export type CheckValue = number | string | boolean | null
export type Check = {
  id: string
  /** `review` requires an approval; `fail` refuses the run. */
  result: 'pass' | 'review' | 'fail'
  limit: CheckValue
  actual: CheckValue
  reason?: string
}

export type RiskFacts = {
  terms: TradeTerms
  policy: TradePolicy
  instrument: Instrument
  quote: Quote
  account: BrokerAccount
  reading: RwaReading | null
  spentTodayMicro: bigint
  duplicateClientOrderId: boolean
  killSwitch: boolean
  agentNames: readonly string[]
  spender: string | null
  freeze: Freeze | undefined
  /** How the tenant's mandates, policies and budgets judge the trade. */
  assessment: TradeAssessment
  now: Date
}

/** The margin for what a perp adds to the position, or the whole price for anything else; plus fees. */
export function requiredMicro(terms: TradeTerms, quote: Quote, account: BrokerAccount): bigint {
  const notional = notionalMicro(touchPriceE8(terms.orderSide, quote), addedQuantityE8(terms, account))
  const margin = terms.leverageE2 === null ? notional : divideUp(notional * 100n, terms.leverageE2)
  return margin + terms.estimatedFeesMicro
}

export const findPosition = (account: BrokerAccount, symbol: string): BrokerPosition | undefined =>
  account.positions.find((position) => position.symbol === symbol)

/** The signed position after the whole order has filled. */
export function positionAfterE8(terms: TradeTerms, account: BrokerAccount): bigint {
  const heldE8 = findPosition(account, terms.symbol)?.quantityE8 ?? 0n
  return heldE8 + (terms.orderSide === 'buy' ? terms.quantityE8 : -terms.quantityE8)
}

/** Closing a perp frees margin; only what goes beyond the open position needs more. */
function addedQuantityE8(terms: TradeTerms, account: BrokerAccount): bigint {
  const heldE8 = findPosition(account, terms.symbol)?.quantityE8 ?? 0n
  const opposite = terms.type === 'perp' && (terms.orderSide === 'buy' ? heldE8 < 0n : heldE8 > 0n)
  if (!opposite) return terms.quantityE8
  const openQuantityE8 = heldE8 < 0n ? -heldE8 : heldE8
  return terms.quantityE8 > openQuantityE8 ? terms.quantityE8 - openQuantityE8 : 0n
}

/** Every buy and every perp order adds exposure; a spot sale reduces it. */
export const addsExposure = ({ terms }: RiskFacts) => terms.type === 'perp' || terms.orderSide === 'buy'

export const buildCheck = (
  id: string,
  ok: boolean,
  limit: CheckValue,
  actual: CheckValue,
  reason: string,
  failureResult: 'fail' | 'review' = 'fail',
): Check => (ok ? { id, result: 'pass', limit, actual } : { id, result: failureResult, limit, actual, reason })

/** Which policy a limit comes from, at the end of a reason; nothing for a default. */
export function describeOrigin(policy: TradePolicy, checkId: string): string {
  const origin = originOf(policy, checkId)
  return origin?.source === 'policy' ? ` by the policy '${origin.name}'` : ''
}
