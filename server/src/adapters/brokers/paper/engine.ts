import { absolute, divideUp, type Fill, notionalMicro, type OrderRequest } from '../../../modules/brokerage/broker.ts'
import { type Book, type Draft, nextNumber, openDraft, type PaperOrder } from './book.ts'
import { type Calendar, isTrading, type Listing, type MarketQuote, quoteKey, type View } from './market.ts'
import { boundE8, matchOrder, minuteOf, type Slice } from './matching.ts'
import { applyPerpFill, exchangeFunding, liquidate } from './perp.ts'
import { applyCorporateActions, applySpotFill, creditYield } from './spot.ts'

/**
 * The paper broker as a function: a book and an event give the next book and what to write down. No clock, no store,
 * no price of its own; the same input gives the same output on every machine.
 */
export type Rules = { calendar: Pick<Calendar, 'marketState' | 'nextOpen'>; seed: string }

const MAX_WORKING_ORDERS = 200
/** What a market order without a bound of its own may pay above the touch. */
const MARKET_ROOM_BPS = 500n
const FUNDING_MS = 8 * 3_600_000
const DAY_MS = 86_400_000
/** A month of funding is caught up exchange by exchange; what was asleep for longer is not charged for all of it. */
const MAX_FUNDINGS = 90

/** A refused order is a result too: it is kept, so that the same client order id gets the same answer again. */
export function placeOrder(book: Book, request: OrderRequest, view: View, rules: Rules): Draft & { order: PaperOrder } {
  const draft = openDraft(book)
  const quote = view.quotes.get(quoteKey(request))
  const order = draftOrder(draft, request, view.at, quote)
  const refusal = quote ? refuse(draft.book, request, order, quote, view.at) : `${request.symbol} is not traded here.`
  if (refusal) end(draft, order, 'rejected', refusal)
  else {
    draft.book.orders.push(order)
    work(draft, order, view, rules)
    if (order.status === 'working' && (order.tif === 'ioc' || order.tif === 'fok')) {
      end(draft, order, 'cancelled', 'The rest found no match at once.')
    }
    if (order.status === 'working') draft.effects.orders.push(order)
  }
  return { ...draft, order }
}

export function cancelOrder(book: Book, clientOrderId: string): Draft & { order: PaperOrder | undefined } {
  const draft = openDraft(book)
  const order = draft.book.orders.find((one) => one.clientOrderId === clientOrderId)
  if (order) end(draft, order, 'cancelled', 'Cancelled on request.')
  return { ...draft, order }
}

/** Time passes: each view is a moment, in order, the last one now. */
export function advance(book: Book, views: readonly View[], rules: Rules): Draft {
  const draft = openDraft(book)
  for (const view of views) {
    draft.book.unsettled = draft.book.unsettled.filter(({ settlesAt }) => settlesAt > view.at)
    applyCorporateActions(draft, view)
    creditYield(draft, view)
    if (view.at % FUNDING_MS === 0 && view.at > draft.book.at) exchangeFunding(draft, view)
    liquidate(draft, view)
    for (const order of [...draft.book.orders]) {
      const before = order.filledE8
      work(draft, order, view, rules)
      if (order.status === 'working' && order.filledE8 !== before) draft.effects.orders.push(order)
    }
    draft.book.at = Math.max(draft.book.at, view.at)
  }
  return draft
}

/** The moments at which funding was due since the book was last looked at. */
export function fundingTimes(book: Book, now: number): number[] {
  if (!Object.values(book.positions).some((position) => position.type === 'perp')) return []
  const times: number[] = []
  const earliest = Math.max(book.at, now - MAX_FUNDINGS * FUNDING_MS)
  for (let at = (Math.floor(earliest / FUNDING_MS) + 1) * FUNDING_MS; at < now; at += FUNDING_MS) times.push(at)
  return times
}

/** Cash that is neither unsettled nor promised to a working order. */
export const freeCashMicro = (book: Book) => book.cashMicro - unsettledMicro(book) - heldMicro(book)

export const unsettledMicro = (book: Book) => book.unsettled.reduce((sum, { micro }) => sum + micro, 0n)

export const heldMicro = (book: Book) =>
  book.orders.reduce((sum, order) => sum + holdMicro(order, order.quantityE8 - order.filledE8), 0n)

/** One working order meets the market once. */
function work(draft: Draft, order: PaperOrder, view: View, rules: Rules): void {
  const quote = view.quotes.get(quoteKey(order))
  const over =
    view.at >= order.executeBy ? 'Its time to execute had passed.' : sessionOver(order, quote, view.at, rules)
  if (over) end(draft, order, 'expired', over)
  if (over || !quote || !isTrading(quote)) return
  const minute = minuteOf(view.at)
  for (const slice of matchOrder(order, quote, view.at, rules.seed)) {
    if (!fill(draft, order, quote, slice, view.at, rules)) {
      end(draft, order, 'cancelled', 'The account could not pay for the rest.')
      return
    }
    order.takenE8 = (order.takenMinute === minute ? order.takenE8 : 0n) + slice.quantityE8
    order.takenMinute = minute
  }
  if (order.filledE8 === order.quantityE8) end(draft, order, 'filled', null)
}

/** Fills are tried on a copy: what the account cannot pay for has not happened. */
function fill(draft: Draft, order: PaperOrder, quote: MarketQuote, slice: Slice, at: number, rules: Rules): boolean {
  const trial: Draft = { book: structuredClone(draft.book), effects: { orders: [], journal: [] } }
  const feeMicro = feeOf(trial.book, order, quote.listing, slice, at)
  const entry = { ref: order.clientOrderId, at }
  if (order.type === 'perp') {
    const perpFill = { symbol: order.symbol, side: order.side, ...slice, feeMicro }
    applyPerpFill(trial, perpFill, order.leverageE2 ?? 100n, entry)
  } else {
    const settlesAt = quote.listing.settlementLag === 'T+1' ? rules.calendar.nextOpen(new Date(at)).getTime() : at
    applySpotFill(trial, quote.listing, { side: order.side, ...slice, feeMicro }, settlesAt, entry)
  }
  const working = trial.book.orders.find((one) => one.clientOrderId === order.clientOrderId)
  if (working) working.filledE8 += slice.quantityE8
  if (freeCashMicro(trial.book) < 0n) return false

  const { orders } = draft.book
  Object.assign(draft.book, trial.book, { orders })
  draft.effects.journal.push(...trial.effects.journal)
  order.filledE8 += slice.quantityE8
  const filled: Fill = {
    fillId: `${order.brokerOrderId}-${order.fills.length + 1}`,
    ...slice,
    feeMicro,
    at: new Date(at),
  }
  order.fills.push(filled)
  return true
}

function end(draft: Draft, order: PaperOrder, status: PaperOrder['status'], reason: string | null): void {
  order.status = status
  order.reason = reason
  draft.book.orders = draft.book.orders.filter((one) => one.clientOrderId !== order.clientOrderId)
  draft.effects.orders.push(order)
}

function draftOrder(draft: Draft, request: OrderRequest, at: number, quote: MarketQuote | undefined): PaperOrder {
  const bound = boundE8(request)
  const touch = quote ? (request.side === 'buy' ? quote.askE8 : quote.bidE8) : 0n
  const room = divideUp(touch * MARKET_ROOM_BPS, 10_000n)
  const outer = request.side === 'buy' ? touch + room : touch - room
  return {
    clientOrderId: request.clientOrderId,
    brokerOrderId: `paper-${draft.book.accountId}-${nextNumber(draft)}`,
    type: request.type,
    symbol: request.symbol,
    side: request.side,
    quantityE8: request.quantityE8,
    limitPriceE8: request.limitPriceE8,
    worstPriceE8: request.worstPriceE8 ?? (request.orderType === 'market' ? outer : null),
    tif: request.tif,
    leverageE2: request.leverageE2,
    executeBy: request.executeBy.getTime(),
    placedAt: at,
    holdPriceE8: request.side === 'buy' ? (bound ?? outer) : touch + room,
    holdFeeBps: quote?.listing.takerFeeBps ?? 0,
    status: 'working',
    reason: null,
    filledE8: 0n,
    fills: [],
    takenE8: 0n,
    takenMinute: 0,
  }
}

/** Why an order cannot be taken at all, or null. */
function refuse(book: Book, request: OrderRequest, order: PaperOrder, quote: MarketQuote, at: number): string | null {
  const { listing } = quote
  if (at >= order.executeBy) return 'Its time to execute had passed.'
  if (order.quantityE8 <= 0n || order.quantityE8 % listing.lotE8 !== 0n) return 'The quantity is not on the lot.'
  if (request.orderType === 'limit' && !(order.limitPriceE8 && order.limitPriceE8 > 0n))
    return 'A limit order needs a price.'
  if (order.leverageE2 !== null && order.type !== 'perp') return 'Only perps are traded on margin.'
  if (listing.perp && (order.leverageE2 ?? 100n) > BigInt(listing.perp.maxLeverage) * 100n)
    return 'The leverage is not offered.'
  if (book.orders.length >= MAX_WORKING_ORDERS) return 'Too many orders are working.'
  const atOnce = order.tif === 'ioc' || order.tif === 'fok'
  if (atOnce && !isTrading(quote)) return quote.halted ? `${order.symbol} is halted.` : 'The session is closed.'
  if (order.type !== 'perp' && order.side === 'sell') return heldBack(book, order)
  if (holdMicro(order, addedE8(book, order)) > freeCashMicro(book)) return 'The buying power is not enough.'
  return null
}

function heldBack(book: Book, order: PaperOrder): string | null {
  const promised = book.orders
    .filter((one) => one.symbol === order.symbol && one.side === 'sell')
    .reduce((sum, one) => sum + one.quantityE8 - one.filledE8, 0n)
  const held = book.positions[order.symbol]?.quantityE8 ?? 0n
  return order.quantityE8 <= held - promised ? null : `The account does not hold that much ${order.symbol}.`
}

/** Closing a perp frees margin; only what goes beyond the open position takes more. */
function addedE8(book: Book, order: PaperOrder): bigint {
  const held = book.positions[order.symbol]?.quantityE8 ?? 0n
  const closes = order.type === 'perp' && (order.side === 'buy' ? held < 0n : held > 0n)
  if (!closes) return order.quantityE8
  const beyond = order.quantityE8 - absolute(held)
  return beyond > 0n ? beyond : 0n
}

function holdMicro(order: PaperOrder, quantityE8: bigint): bigint {
  if (order.type !== 'perp' && order.side === 'sell') return 0n
  const notional = notionalMicro(order.holdPriceE8, quantityE8)
  const margin = order.leverageE2 === null ? notional : divideUp(notional * 100n, order.leverageE2)
  return margin + bpsUp(notional, order.holdFeeBps)
}

function feeOf(book: Book, order: PaperOrder, listing: Listing, slice: Slice, at: number): bigint {
  const gross = notionalMicro(slice.priceE8, slice.quantityE8)
  const taker = bpsUp(gross, listing.takerFeeBps)
  if (order.side === 'buy') return taker
  const early = listing.earn && (book.positions[order.symbol]?.lockedUntil ?? 0) > at
  const penalty = early ? bpsUp(gross, listing.earn?.earlyExitPenaltyBps ?? 0) : 0n
  return taker + penalty + divideUp(gross * BigInt(listing.saleFeePpm), 1_000_000n)
}

const bpsUp = (micro: bigint, bps: number) => divideUp(micro * BigInt(Math.round(bps * 100)), 1_000_000n)

/** A day order lives until the end of the session it can first trade in; round the clock, until midnight UTC. */
function sessionOver(order: PaperOrder, quote: MarketQuote | undefined, at: number, rules: Rules): string | null {
  if (order.tif !== 'day') return null
  const words = 'The session ended.'
  if (quote?.session === 'always') return Math.floor(at / DAY_MS) > Math.floor(order.placedAt / DAY_MS) ? words : null
  const { marketState, nextOpen } = rules.calendar
  const placed = new Date(order.placedAt)
  const from = marketState(placed) === 'open' ? placed : nextOpen(placed)
  if (at < from.getTime()) return null
  return marketState(new Date(at)) !== 'open' || at >= nextOpen(from).getTime() ? words : null
}
