import { createHash } from 'node:crypto'
import { divideRounded, least, type OrderSide } from '../../../modules/brokerage/broker.ts'
import type { PaperOrder } from './book.ts'
import type { Listing, MarketQuote } from './market.ts'

export type Slice = { quantityE8: bigint; priceE8: bigint }

/** Impact = k·σ·√(quantity/ADV). */
const IMPACT_K_E2 = 50n
/** The share of a day's volume that one order can take within one minute, on average. */
const MINUTE_SHARE_BPS = 100n
const MAX_SLICES = 3
const MINUTE_MS = 60_000

/**
 * What an order gets from the market at this moment, best price first; empty when nothing fits its price.
 * The same seed, order and minute always give the same slices.
 */
export function matchOrder(order: PaperOrder, quote: MarketQuote, at: number, seed: string): Slice[] {
  const { listing } = quote
  const minute = minuteOf(at)
  const taken = order.takenMinute === minute ? order.takenE8 : 0n
  const liquidity = minuteLiquidityE8(listing, seed, minute) - taken
  const wanted = floorToLot(least(order.quantityE8 - order.filledE8, liquidity > 0n ? liquidity : 0n), listing)
  const quantity = fittingE8(order, quote, taken, wanted)
  if (order.tif === 'fok' && quantity < order.quantityE8) return []
  return sliceUp(quantity, listing, `${seed}/${order.clientOrderId}/${minute}/${taken}`).map((slice, index, all) => {
    const upTo = all.slice(0, index + 1).reduce((sum, one) => sum + one, taken)
    return { quantityE8: slice, priceE8: impactPriceE8(order.side, quote, upTo) }
  })
}

/** The price of the last unit when this much is taken at once: the touch moved by impact, on the tick. */
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

/** The worst price this order accepts: its limit, and the house's collar where it has one. */
export function boundE8(order: Pick<PaperOrder, 'side' | 'limitPriceE8' | 'worstPriceE8'>): bigint | null {
  const { limitPriceE8: limit, worstPriceE8: worst } = order
  if (limit === null || worst === null) return limit ?? worst
  const tighter = order.side === 'buy' ? limit <= worst : limit >= worst
  return tighter ? limit : worst
}

/** The largest quantity whose last unit still trades within the order's price, found by halving. */
function fittingE8(order: PaperOrder, quote: MarketQuote, taken: bigint, wanted: bigint): bigint {
  const bound = boundE8(order)
  if (bound === null) return wanted
  const lot = quote.listing.lotE8
  const fits = (lots: bigint) => {
    const price = impactPriceE8(order.side, quote, taken + lots * lot)
    return order.side === 'buy' ? price <= bound : price >= bound
  }
  let low = 0n
  let high = wanted / lot
  while (low < high) {
    const middle = (low + high + 1n) / 2n
    if (fits(middle)) low = middle
    else high = middle - 1n
  }
  return low * lot
}

function minuteLiquidityE8(listing: Listing, seed: string, minute: number): bigint {
  const average = (listing.advE8 * MINUTE_SHARE_BPS) / 10_000n
  return (average * (50n + chance(`${seed}/${listing.symbol}/${minute}`, 101))) / 100n
}

/** Cuts a quantity into one to three parts on the lot, by the seed. */
function sliceUp(quantityE8: bigint, listing: Listing, seed: string): bigint[] {
  if (quantityE8 === 0n) return []
  const lots = quantityE8 / listing.lotE8
  const count = least(1n + chance(`${seed}/count`, MAX_SLICES), lots)
  const slices: bigint[] = []
  let left = lots
  for (let index = 1n; index < count; index += 1n) {
    const share = 20n + chance(`${seed}/${index}`, 60)
    const part = (left * share) / 100n
    if (part === 0n || part === left) break
    slices.push(part * listing.lotE8)
    left -= part
  }
  return [...slices, left * listing.lotE8]
}

const floorToLot = (quantityE8: bigint, listing: Listing) => quantityE8 - (quantityE8 % listing.lotE8)

/** A whole number in [0, sides), fixed by the text. */
export function chance(text: string, sides: number): bigint {
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
