import { invalid } from '../../platform/problem.ts'
import {
  divideUp,
  type Instrument,
  type InstrumentType,
  least,
  notionalMicro,
  type OrderSide,
  type Quote,
  type TimeInForce,
} from './broker.ts'
import type { Ask, Side } from './instruments.ts'
import type { TradePolicy } from './policies.ts'

/** What is judged, approved and executed: written once, when the run is judged, and never changed after. */
export type Terms = {
  type: InstrumentType
  symbol: string
  side: Side
  orderSide: OrderSide
  direction: Side
  /** As the caller asked, and what may be executed of it under `notionalCapMicro`. */
  requestedQuantityE8: bigint
  quantityE8: bigint
  orderType: 'market' | 'limit'
  limitPriceE8: bigint | null
  tif: TimeInForce
  leverageE2: bigint | null
  /** The price on the side we would trade on, when the run was judged. */
  quotePriceE8: bigint
  quoteSource: string
  quotedAt: Date
  maxDriftBps: number
  collarBps: number
  /** The commitment that policy judged: the caller's own ceiling, or quantity times price. */
  notionalMicro: bigint
  notionalCapMicro: bigint | null
  estimatedFeesMicro: bigint
  estimatedSlippageBps: number
  /** How far a wrapper stood from its reference; null for anything else. */
  basisBps: number | null
}

/** A trillion USDC: no policy has to be asked about that, and it is what a column of the database still holds. */
const MOST_NOTIONAL_MICRO = 1_000_000_000_000_000_000n

/** Room above the touch when a quantity is fitted into a ceiling, so that a small move does not cost a fill. */
const CAP_MARGIN_BPS = 10

export const touchOf = (side: OrderSide, quote: Quote) => (side === 'buy' ? quote.askE8 : quote.bidE8)

export function drawTerms(input: {
  ask: Ask
  quote: Quote
  instrument: Instrument
  slippageBps: number
  policy: TradePolicy
  basisBps: number | null
}): Terms {
  const { ask, quote, instrument, policy } = input
  const touch = touchOf(ask.orderSide, quote)
  const price = expectedPriceE8(ask, touch)
  const quantity = fitToCap(ask, price, input.slippageBps, instrument)
  const orderNotional = notionalMicro(price, quantity)
  if (orderNotional > MOST_NOTIONAL_MICRO) {
    throw invalid(`quantity of ${ask.symbol} comes to more than a trillion USDC.`, { field: 'quantity' })
  }
  return {
    type: ask.type,
    symbol: ask.symbol,
    side: ask.side,
    orderSide: ask.orderSide,
    direction: ask.direction,
    requestedQuantityE8: ask.requestedQuantityE8,
    quantityE8: quantity,
    orderType: ask.priceLimitE8 === null ? 'market' : 'limit',
    limitPriceE8: ask.priceLimitE8,
    tif: isMarketable(ask.orderSide, ask.priceLimitE8, quote) ? 'ioc' : ask.type === 'equity' ? 'day' : 'gtc',
    leverageE2: ask.leverageE2,
    quotePriceE8: touch,
    quoteSource: quote.source,
    quotedAt: quote.observedAt,
    maxDriftBps: policy.maxDriftBps,
    collarBps: policy.collarBps,
    notionalMicro: ask.notionalMicro ?? orderNotional,
    notionalCapMicro: ask.notionalMicro,
    estimatedFeesMicro: divideUp(orderNotional * BigInt(Math.round(instrument.takerFeeBps * 100)), 1_000_000n),
    estimatedSlippageBps: input.slippageBps,
    basisBps: input.basisBps,
  }
}

/** What the market would see of the ask: a ceiling cuts the quantity, so the rest of it moves no price. */
export function quantityToEstimateE8(ask: Ask, quote: Quote): bigint {
  if (ask.notionalMicro === null) return ask.quantityE8
  return least(ask.quantityE8, unitsFor(ask.notionalMicro, touchOf(ask.orderSide, quote)))
}

/** A limit order that could trade now is marketable; any other would only rest and wait. */
export function isMarketable(side: OrderSide, limitE8: bigint | null, quote: Quote): boolean {
  if (limitE8 === null) return true
  return side === 'buy' ? limitE8 >= quote.askE8 : limitE8 <= quote.bidE8
}

/** How far the price has moved since the run was judged, in basis points, whichever way. */
export function driftBps(terms: Terms, quote: Quote): number {
  const moved = touchOf(terms.orderSide, quote) - terms.quotePriceE8
  return Number(((moved < 0n ? -moved : moved) * 1_000_000n) / terms.quotePriceE8) / 100
}

/**
 * The worst price the execution may get: what the caller allows, what the house allows around the judged price, and
 * what keeps the whole order under its ceiling, whichever is tightest.
 */
export function worstPriceE8(terms: Terms, toleranceBps: number): bigint {
  const tolerance = BigInt(toleranceBps)
  if (terms.orderSide === 'sell') {
    const house = (terms.quotePriceE8 * (10_000n - tolerance)) / 10_000n
    return terms.limitPriceE8 !== null && terms.limitPriceE8 > house ? terms.limitPriceE8 : house
  }
  const house = (terms.quotePriceE8 * (10_000n + tolerance)) / 10_000n
  const ceiling =
    terms.notionalCapMicro === null ? house : (terms.notionalCapMicro * 10_000_000_000n) / terms.quantityE8
  return least(house, ceiling, terms.limitPriceE8 ?? house)
}

/** A passive limit trades at its limit if it trades at all; anything else trades at the touch. */
function expectedPriceE8(ask: Ask, touch: bigint): bigint {
  if (ask.priceLimitE8 === null) return touch
  const passive = ask.orderSide === 'buy' ? ask.priceLimitE8 < touch : ask.priceLimitE8 > touch
  return passive ? ask.priceLimitE8 : touch
}

const unitsFor = (micro: bigint, priceE8: bigint) => (micro * 10_000_000_000n) / priceE8

function fitToCap(ask: Ask, priceE8: bigint, slippageBps: number, instrument: Instrument): bigint {
  if (ask.notionalMicro === null) return ask.quantityE8
  const marginE2 = BigInt(Math.ceil(slippageBps * 100) + CAP_MARGIN_BPS * 100)
  const unit = ask.orderSide === 'buy' ? divideUp(priceE8 * (1_000_000n + marginE2), 1_000_000n) : priceE8
  const affordable = unitsFor(ask.notionalMicro, unit)
  if (affordable >= ask.quantityE8) return ask.quantityE8
  const quantity = affordable - (affordable % instrument.lotE8)
  if (quantity === 0n) {
    throw invalid(`notional_usdc is less than the smallest order in ${ask.symbol}.`, { field: 'notional_usdc' })
  }
  return quantity
}
