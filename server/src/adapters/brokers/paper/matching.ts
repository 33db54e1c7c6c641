import { createHash } from 'node:crypto'
import { divideRounded, minBigint, type OrderSide, worstAcceptedPriceE8 } from '../../../modules/brokerage/broker.ts'
import type { PaperOrder } from './paper-account.ts'
import type { Listing, MarketQuote } from './paper-market.ts'

export type Slice = { quantityE8: bigint; priceE8: bigint }

/** Impact = k·σ·√(quantity/ADV). */
const IMPACT_K_E2 = 50n
/** The share of a day's volume that one order can take within one minute, on average. */
const MINUTE_SHARE_BPS = 100n
const MAX_SLICES = 3
const MINUTE_MS = 60_000

/**
 * The fills an order gets at this moment, best price first; empty when nothing is within its price.
 * The same seed, order and minute always give the same slices.
 */
export function matchOrder(order: PaperOrder, quote: MarketQuote, at: number, seed: string): Slice[] {
  const { listing } = quote
  const minute = minuteOf(at)
  const takenE8 = order.takenMinute === minute ? order.takenE8 : 0n
  const liquidity = minuteLiquidityE8(listing, seed, minute) - takenE8
  const maxQuantityE8 = floorToLot(
    minBigint(order.quantityE8 - order.filledE8, liquidity > 0n ? liquidity : 0n),
    listing,
  )
  const quantity = quantityWithinBoundE8(order, quote, takenE8, maxQuantityE8)
  if (order.tif === 'fok' && quantity < order.quantityE8) return []
  return splitIntoSlices(quantity, listing, `${seed}/${order.clientOrderId}/${minute}/${takenE8}`).map(
    (quantityE8, index, slices) => {
      const totalE8 = slices.slice(0, index + 1).reduce((sum, sliceE8) => sum + sliceE8, takenE8)
      return { quantityE8: quantityE8, priceE8: impactPriceE8(order.side, quote, totalE8) }
    },
  )
}

/** The price of the last unit when this quantity is taken at once: the touch plus price impact, rounded to the tick. */
export function impactPriceE8(side: OrderSide, quote: MarketQuote, quantityE8: bigint): bigint {
  const touch = side === 'buy' ? quote.askE8 : quote.bidE8
  const move = divideRounded(touch * impactPpm(quote.listing, quantityE8), 1_000_000n)
  const tick = quote.listing.tickE8
  const onTick = divideRounded(move, tick) * tick
  const price = side === 'buy' ? touch + onTick : touch - onTick
  return price > 0n ? price : tick
}

export function impactPpm(listing: Listing, quantityE8: bigint): bigint {
  if (listing.advE8 === 0n || listing.sigmaBps === 0) return 0n
  const rootPpm = integerRoot((quantityE8 * 1_000_000_000_000n) / listing.advE8)
  return (IMPACT_K_E2 * BigInt(Math.round(listing.sigmaBps * 100)) * rootPpm) / (100n * 1_000_000n)
}

export const minuteOf = (at: number) => Math.floor(at / MINUTE_MS)

/** The largest quantity whose last unit still trades within the order's price, found by binary search. */
function quantityWithinBoundE8(order: PaperOrder, quote: MarketQuote, takenE8: bigint, maxQuantityE8: bigint): bigint {
  const bound = worstAcceptedPriceE8(order)
  if (bound === null) return maxQuantityE8
  const lot = quote.listing.lotE8
  const isWithinBound = (lots: bigint) => {
    const price = impactPriceE8(order.side, quote, takenE8 + lots * lot)
    return order.side === 'buy' ? price <= bound : price >= bound
  }
  let low = 0n
  let high = maxQuantityE8 / lot
  while (low < high) {
    const middle = (low + high + 1n) / 2n
    if (isWithinBound(middle)) low = middle
    else high = middle - 1n
  }
  return low * lot
}

function minuteLiquidityE8(listing: Listing, seed: string, minute: number): bigint {
  const average = (listing.advE8 * MINUTE_SHARE_BPS) / 10_000n
  return (average * (50n + hashToNumber(`${seed}/${listing.symbol}/${minute}`, 101))) / 100n
}

/** Splits a quantity into one to three slices of whole lots, determined by the seed. */
function splitIntoSlices(quantityE8: bigint, listing: Listing, seed: string): bigint[] {
  if (quantityE8 === 0n) return []
  const lots = quantityE8 / listing.lotE8
  const count = minBigint(1n + hashToNumber(`${seed}/count`, MAX_SLICES), lots)
  const slices: bigint[] = []
  let remainingLots = lots
  for (let index = 1n; index < count; index += 1n) {
    const share = 20n + hashToNumber(`${seed}/${index}`, 60)
    const sliceLots = (remainingLots * share) / 100n
    if (sliceLots === 0n || sliceLots === remainingLots) break
    slices.push(sliceLots * listing.lotE8)
    remainingLots -= sliceLots
  }
  return [...slices, remainingLots * listing.lotE8]
}

const floorToLot = (quantityE8: bigint, listing: Listing) => quantityE8 - (quantityE8 % listing.lotE8)

/** An integer in [0, sides), determined by the text. */
export function hashToNumber(text: string, sides: number): bigint {
  return createHash('sha256').update(text).digest().readBigUInt64BE() % BigInt(sides)
}

/** The largest integer whose square is not above the value. */
export function integerRoot(value: bigint): bigint {
  if (value < 2n) return value
  let root = 1n << BigInt((value.toString(2).length + 1) >> 1)
  for (;;) {
    const next = (root + value / root) >> 1n
    if (next >= root) return root
    root = next
  }
}
