import { invalid } from '../../platform/problem.ts'
import {
  divideUp,
  type Instrument,
  type InstrumentType,
  minBigint,
  notionalMicro,
  type OrderSide,
  type Quote,
  type TimeInForce,
} from './broker.ts'
import type { TradePolicy } from './trade-policies.ts'
import type { Side, TradeRequest } from './trade-request.ts'

/** What is checked, approved and executed. Written once, when the run is admitted, and never changed. Stored as JSON: keep the names. */
export type TradeTerms = {
  type: InstrumentType
  symbol: string
  side: Side
  orderSide: OrderSide
  direction: Side
  /** The quantity in the request, and what may be executed of it under `notionalCapMicro`. */
  requestedQuantityE8: bigint
  quantityE8: bigint
  orderType: 'market' | 'limit'
  limitPriceE8: bigint | null
  tif: TimeInForce
  leverageE2: bigint | null
  /** The ask for a buy, the bid for a sale, when the run was admitted. */
  quotePriceE8: bigint
  quoteSource: string
  quotedAt: Date
  maxDriftBps: number
  collarBps: number
  /** The amount that policy checks: the caller's `notional_usdc`, or quantity times price. Of a spend exactly what is paid. */
  notionalMicro: bigint
  notionalCapMicro: bigint | null
  estimatedFeesMicro: bigint
  estimatedSlippageBps: number
  /** The basis of a tokenised equity; null for anything else. */
  basisBps: number | null
}

/** A trillion USDC: refused whatever the policy, and still within the range of the database column. */
const MAX_NOTIONAL_MICRO = 1_000_000_000_000_000_000n

/** Added to the price when a quantity is cut to `notional_usdc`, so that a small price move does not prevent the fill. */
const CAP_MARGIN_BPS = 10

export const touchPriceE8 = (side: OrderSide, quote: Quote) => (side === 'buy' ? quote.askE8 : quote.bidE8)

export function buildTradeTerms(input: {
  request: TradeRequest
  quote: Quote
  instrument: Instrument
  slippageBps: number
  policy: TradePolicy
  basisBps: number | null
}): TradeTerms {
  const { request, quote, instrument, policy } = input
  const touch = touchPriceE8(request.orderSide, quote)
  const price = expectedPriceE8(request, touch)
  const quantity = fitQuantityToCap(request, price, input.slippageBps, instrument)
  const orderNotional = notionalMicro(price, quantity)
  if (orderNotional > MAX_NOTIONAL_MICRO) {
    throw invalid(`quantity of ${request.symbol} is worth more than a trillion USDC.`, { field: 'quantity' })
  }
  return {
    type: request.type,
    symbol: request.symbol,
    side: request.side,
    orderSide: request.orderSide,
    direction: request.direction,
    requestedQuantityE8: request.requestedQuantityE8,
    quantityE8: quantity,
    orderType: request.priceLimitE8 === null ? 'market' : 'limit',
    limitPriceE8: request.priceLimitE8,
    tif: isMarketable(request.orderSide, request.priceLimitE8, quote)
      ? 'ioc'
      : request.type === 'equity'
        ? 'day'
        : 'gtc',
    leverageE2: request.leverageE2,
    quotePriceE8: touch,
    quoteSource: quote.source,
    quotedAt: quote.observedAt,
    maxDriftBps: policy.maxDriftBps,
    collarBps: policy.collarBps,
    notionalMicro: request.type === 'spend' ? orderNotional : (request.notionalMicro ?? orderNotional),
    notionalCapMicro: request.notionalMicro,
    estimatedFeesMicro: divideUp(orderNotional * BigInt(Math.round(instrument.takerFeeBps * 100)), 1_000_000n),
    estimatedSlippageBps: input.slippageBps,
    basisBps: input.basisBps,
  }
}

/** The quantity to estimate slippage for. `notional_usdc` cuts the quantity, and only what is left of it moves the price. */
export function quantityToEstimateE8(request: TradeRequest, quote: Quote): bigint {
  if (request.notionalMicro === null) return request.quantityE8
  return minBigint(
    request.quantityE8,
    quantityForMicroE8(request.notionalMicro, touchPriceE8(request.orderSide, quote)),
  )
}

/** Whether the order could trade now; a limit order that could not would rest in the market. */
export function isMarketable(side: OrderSide, limitE8: bigint | null, quote: Quote): boolean {
  if (limitE8 === null) return true
  return side === 'buy' ? limitE8 >= quote.askE8 : limitE8 <= quote.bidE8
}

/** How far the price has moved since the run was admitted, in basis points; positive when it rose. */
export const signedDriftBps = (terms: TradeTerms, quote: Quote): number =>
  Number(((touchPriceE8(terms.orderSide, quote) - terms.quotePriceE8) * 1_000_000n) / terms.quotePriceE8) / 100

/** The same in either direction. */
export const driftBps = (terms: TradeTerms, quote: Quote): number => Math.abs(signedDriftBps(terms, quote))

/**
 * The worst price the execution may get: the tightest of the caller's limit, the collar around the quoted price, and the
 * price at which the whole order still costs no more than `notional_usdc`.
 */
export function worstPriceE8(terms: TradeTerms, toleranceBps: number): bigint {
  const tolerance = BigInt(toleranceBps)
  if (terms.orderSide === 'sell') {
    const collarPrice = (terms.quotePriceE8 * (10_000n - tolerance)) / 10_000n
    return terms.limitPriceE8 !== null && terms.limitPriceE8 > collarPrice ? terms.limitPriceE8 : collarPrice
  }
  const collarPrice = (terms.quotePriceE8 * (10_000n + tolerance)) / 10_000n
  const capPrice =
    terms.notionalCapMicro === null ? collarPrice : (terms.notionalCapMicro * 10_000_000_000n) / terms.quantityE8
  return minBigint(collarPrice, capPrice, terms.limitPriceE8 ?? collarPrice)
}

/** A passive limit order trades at its limit; any other order trades at the touch. */
function expectedPriceE8(request: TradeRequest, touch: bigint): bigint {
  if (request.priceLimitE8 === null) return touch
  const passive = request.orderSide === 'buy' ? request.priceLimitE8 < touch : request.priceLimitE8 > touch
  return passive ? request.priceLimitE8 : touch
}

const quantityForMicroE8 = (micro: bigint, priceE8: bigint) => (micro * 10_000_000_000n) / priceE8

function fitQuantityToCap(request: TradeRequest, priceE8: bigint, slippageBps: number, instrument: Instrument): bigint {
  if (request.notionalMicro === null) return request.quantityE8
  // A spend has no market that could move: it pays exactly its amount.
  if (request.type === 'spend') return minBigint(request.quantityE8, quantityForMicroE8(request.notionalMicro, priceE8))
  const marginE2 = BigInt(Math.ceil(slippageBps * 100) + CAP_MARGIN_BPS * 100)
  const unitPriceE8 = request.orderSide === 'buy' ? divideUp(priceE8 * (1_000_000n + marginE2), 1_000_000n) : priceE8
  const affordable = quantityForMicroE8(request.notionalMicro, unitPriceE8)
  if (affordable >= request.quantityE8) return request.quantityE8
  const quantity = affordable - (affordable % instrument.lotE8)
  if (quantity === 0n) {
    throw invalid(`notional_usdc is less than the smallest order in ${request.symbol}.`, { field: 'notional_usdc' })
  }
  return quantity
}

/** Whom a trade pays: the merchant of a spend by its name and id, the broker of any other trade. */
export const payeesOf = (brokerId: string, { type, symbol, spend }: Instrument): string[] =>
  type === 'spend' ? [symbol, ...(spend ? [spend.merchantId] : [])] : [brokerId]
