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

/** What a caller asked for, checked for sense but not yet against any market, account or policy. */
export type Ask = {
  type: InstrumentType
  symbol: string
  side: Side
  orderSide: OrderSide
  /** A perp has a direction, everything else a side. */
  direction: Side
  /** As the caller wrote it, and what it comes to in the units the broker trades. */
  requestedQuantityE8: bigint
  quantityE8: bigint
  priceLimitE8: bigint | null
  leverageE2: bigint | null
  /** The most the run may commit, when the caller said so. */
  notionalMicro: bigint | null
  policyId: string | null
  clientOrderId: string | null
  agentId: string | null
}

export type AskBody = {
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

export function readAsk(body: AskBody): Ask {
  const type = body.instrument_type ?? 'equity'
  const requestedQuantityE8 = readQuantity(body.quantity)
  const priceLimitE8 = body.price_limit === undefined ? null : readPrice(body.price_limit)
  // A spend is paid in USDC: so many units at the merchant's unit price, one USDC each when no price is given.
  const unitPriceE8 = type === 'spend' && priceLimitE8 !== null ? priceLimitE8 : E8
  const quantityE8 = divideRounded(requestedQuantityE8 * unitPriceE8, E8)
  if (quantityE8 === 0n) throw invalid('quantity at this price_limit comes to nothing.', { field: 'quantity' })
  return {
    type,
    symbol: body.symbol,
    side: readSide(type, body.side),
    orderSide: orderSideOf(body.side),
    direction: directionOf(type, body.side),
    requestedQuantityE8,
    quantityE8,
    priceLimitE8: type === 'spend' ? null : priceLimitE8,
    leverageE2: readLeverage(type, body.leverage),
    notionalMicro: body.notional_usdc === undefined ? null : readNotional(body.notional_usdc),
    policyId: body.policy_id ?? null,
    clientOrderId: body.client_order_id ?? null,
    agentId: body.agent_id ?? null,
  }
}

/** The parts that need the broker's word: an order is refused here rather than rounded behind the caller's back. */
export function checkAgainstInstrument(ask: Ask, instrument: Instrument): void {
  if (ask.quantityE8 % instrument.lotE8 !== 0n) {
    throw invalid(`quantity is finer than ${ask.symbol} is traded in.`, { field: 'quantity' })
  }
  if (ask.priceLimitE8 !== null && ask.priceLimitE8 % instrument.tickE8 !== 0n) {
    throw invalid(`price_limit is finer than ${ask.symbol} is quoted in.`, { field: 'price_limit' })
  }
  const broker = instrument.perp?.maxLeverage
  if (broker !== undefined && ask.leverageE2 !== null && ask.leverageE2 > BigInt(broker) * 100n) {
    throw invalid(`leverage above ${broker} is not offered for ${ask.symbol}.`, { field: 'leverage' })
  }
}

function readSide(type: InstrumentType, side: Side): Side {
  if (type === 'spend' && orderSideOf(side) === 'sell') {
    throw invalid(`side '${side}' has no meaning for a spend; use 'buy'.`, { field: 'side' })
  }
  if (type !== 'perp' && side === 'short') {
    throw invalid(`side 'short' is for perps only; use 'sell' to sell what the account holds.`, { field: 'side' })
  }
  return side
}

function readQuantity(quantity: number): bigint {
  if (!(quantity > 0)) throw invalid('quantity must be greater than zero.', { field: 'quantity' })
  const quantityE8 = e8FromNumber(quantity)
  if (quantityE8 === undefined) throw invalid('quantity has more than eight decimals.', { field: 'quantity' })
  if (quantityE8 > MAX_QUANTITY_E8) throw invalid('quantity is above one billion.', { field: 'quantity' })
  return quantityE8
}

function readPrice(price: number): bigint {
  const priceE8 = price > 0 ? e8FromNumber(price) : undefined
  if (priceE8 === undefined || priceE8 > MAX_PRICE_E8) {
    throw invalid('price_limit must be a positive price with at most eight decimals.', { field: 'price_limit' })
  }
  return priceE8
}

/** A perp without a leverage is held in full. */
function readLeverage(type: InstrumentType, leverage: number | undefined): bigint | null {
  if (type !== 'perp') {
    if (leverage === undefined) return null
    throw invalid(`leverage is for perps only; ${type} is not traded on margin.`, { field: 'leverage' })
  }
  if (leverage === undefined) return 100n
  const leverageE2 = parseDecimal(String(leverage), 2)
  if (leverageE2 === undefined || leverageE2 < 100n || leverageE2 > MAX_LEVERAGE_E2) {
    throw invalid('leverage must lie between 1 and 125, with at most two decimals.', { field: 'leverage' })
  }
  return leverageE2
}

function readNotional(notional: number): bigint {
  const micro = notional > 0 ? microFromUsdc(notional) : undefined
  if (micro === undefined) {
    throw invalid('notional_usdc must be a positive amount with at most six decimals.', { field: 'notional_usdc' })
  }
  return micro
}
