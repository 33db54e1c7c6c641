import { microFromUsdc } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import {
  divideRounded,
  E8,
  e8FromNumber,
  type Instrument,
  type InstrumentType,
  type OrderSide,
  parseDecimal,
} from './broker.ts'

export const SIDES = ['buy', 'sell', 'long', 'short'] as const
export type Side = (typeof SIDES)[number]

/** A parsed and validated request, not yet checked against a market, an account or a policy. */
export type TradeRequest = {
  type: InstrumentType
  symbol: string
  side: Side
  orderSide: OrderSide
  /** `long` or `short` for a perp, `buy` or `sell` for everything else. */
  direction: Side
  /** The quantity in the request, and the same in the units the broker trades. */
  requestedQuantityE8: bigint
  quantityE8: bigint
  priceLimitE8: bigint | null
  leverageE2: bigint | null
  /** The caller's `notional_usdc`: the most the run may commit. */
  notionalMicro: bigint | null
  policyId: string | null
  clientOrderId: string | null
  agentId: string | null
  /** The spender, tags and mandate that the request names. */
  spender: string | undefined
  tags: Readonly<Record<string, string>>
  mandateId: string | null
}

export type TradeRequestBody = {
  symbol: string
  side: Side
  quantity: number
  price_limit?: number
  instrument_type?: InstrumentType
  leverage?: number
  notional_usdc?: number
  policy_id?: string
  client_order_id?: string
  agent_id?: string
  spender?: string
  tags?: Record<string, string>
  mandate_id?: string
  purpose?: string
}

const MAX_QUANTITY_E8 = 1_000_000_000n * 100_000_000n
const MAX_PRICE_E8 = 100_000_000n * 100_000_000n
const MAX_LEVERAGE_E2 = 12_500n

export const orderSideOf = (side: Side): OrderSide => (side === 'buy' || side === 'long' ? 'buy' : 'sell')

export function directionOf(type: InstrumentType, side: Side): Side {
  const orderSide = orderSideOf(side)
  if (type !== 'perp') return orderSide
  return orderSide === 'buy' ? 'long' : 'short'
}

export function parseTradeRequest(body: TradeRequestBody): TradeRequest {
  const type = body.instrument_type ?? 'equity'
  const requestedQuantityE8 = parseQuantity(body.quantity)
  const priceLimitE8 = body.price_limit === undefined ? null : parsePrice(body.price_limit)
  // A spend is paid in USDC: so many units at the merchant's unit price, one USDC each when no price is given.
  const unitPriceE8 = type === 'spend' && priceLimitE8 !== null ? priceLimitE8 : E8
  const quantityE8 = divideRounded(requestedQuantityE8 * unitPriceE8, E8)
  if (quantityE8 === 0n) throw invalid('quantity times price_limit rounds to zero.', { field: 'quantity' })
  return {
    type,
    symbol: body.symbol,
    side: parseSide(type, body.side),
    orderSide: orderSideOf(body.side),
    direction: directionOf(type, body.side),
    requestedQuantityE8,
    quantityE8,
    priceLimitE8: type === 'spend' ? null : priceLimitE8,
    leverageE2: parseLeverage(type, body.leverage),
    notionalMicro: parseNotional(type, body.notional_usdc),
    policyId: body.policy_id ?? null,
    clientOrderId: body.client_order_id ?? null,
    agentId: body.agent_id ?? null,
    spender: body.spender,
    tags: body.tags ?? {},
    mandateId: body.mandate_id ?? null,
  }
}

/** Checks lot, tick and leverage against the broker's instrument. An order is refused rather than silently rounded. */
export function checkAgainstInstrument(request: TradeRequest, instrument: Instrument): void {
  if (request.quantityE8 % instrument.lotE8 !== 0n) {
    if (request.type === 'spend')
      throw invalid('The amount of a spend, quantity times price_limit, has at most six decimals.', {
        field: 'quantity',
      })
    throw invalid(`quantity must be a multiple of the lot size of ${request.symbol}.`, { field: 'quantity' })
  }
  if (request.priceLimitE8 !== null && request.priceLimitE8 % instrument.tickE8 !== 0n) {
    throw invalid(`price_limit must be a multiple of the tick size of ${request.symbol}.`, { field: 'price_limit' })
  }
  const maxLeverage = instrument.perp?.maxLeverage
  if (maxLeverage !== undefined && request.leverageE2 !== null && request.leverageE2 > BigInt(maxLeverage) * 100n) {
    throw invalid(`leverage above ${maxLeverage} is not offered for ${request.symbol}.`, { field: 'leverage' })
  }
}

function parseSide(type: InstrumentType, side: Side): Side {
  if (type === 'spend' && orderSideOf(side) === 'sell') {
    throw invalid(`side '${side}' is not valid for a spend; use 'buy'.`, { field: 'side' })
  }
  if (type !== 'perp' && side === 'short') {
    throw invalid(`side 'short' is for perps only; use 'sell' to sell what the account holds.`, { field: 'side' })
  }
  if (type === 'equity' && side === 'long') {
    throw invalid(`side 'long' is not valid for an equity; use 'buy'.`, { field: 'side' })
  }
  return side
}

function parseQuantity(quantity: number): bigint {
  if (!(quantity > 0)) throw invalid('quantity must be greater than zero.', { field: 'quantity' })
  const quantityE8 = e8FromNumber(quantity)
  if (quantityE8 === undefined) throw invalid('quantity has more than eight decimals.', { field: 'quantity' })
  if (quantityE8 > MAX_QUANTITY_E8) throw invalid('quantity is above one billion.', { field: 'quantity' })
  return quantityE8
}

function parsePrice(price: number): bigint {
  const priceE8 = price > 0 ? e8FromNumber(price) : undefined
  if (priceE8 === undefined || priceE8 > MAX_PRICE_E8) {
    throw invalid('price_limit must be a positive price with at most eight decimals.', { field: 'price_limit' })
  }
  return priceE8
}

/** A perp without a leverage has a leverage of 1. */
function parseLeverage(type: InstrumentType, leverage: number | undefined): bigint | null {
  if (type !== 'perp') {
    if (leverage === undefined) return null
    throw invalid(`leverage is for perps only; ${type} is not traded on margin.`, { field: 'leverage' })
  }
  if (leverage === undefined) return 100n
  const leverageE2 = parseDecimal(String(leverage), 2)
  if (leverageE2 === undefined || leverageE2 < 100n || leverageE2 > MAX_LEVERAGE_E2) {
    throw invalid('leverage must be between 1 and 125, with at most two decimals.', { field: 'leverage' })
  }
  return leverageE2
}

function parseNotional(type: InstrumentType, notional: number | undefined): bigint | null {
  if (notional === undefined) return null
  if (type === 'equity') {
    throw invalid('notional_usdc is not valid for an equity, which is ordered by quantity.', { field: 'notional_usdc' })
  }
  const micro = notional > 0 ? microFromUsdc(notional) : undefined
  if (micro === undefined) {
    throw invalid('notional_usdc must be a positive amount with at most six decimals.', { field: 'notional_usdc' })
  }
  return micro
}
