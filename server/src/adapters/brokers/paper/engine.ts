import {
  absBigint,
  divideUp,
  type Fill,
  notionalMicro,
  type OrderRequest,
  worstAcceptedPriceE8,
} from '../../../modules/brokerage/broker.ts'
import { matchOrder, minuteOf, type Slice } from './matching.ts'
import { type AccountDraft, nextSequence, type PaperAccount, type PaperOrder, startDraft } from './paper-account.ts'
import {
  type Calendar,
  isTrading,
  type Listing,
  type MarketQuote,
  type MarketSnapshot,
  quoteKey,
} from './paper-market.ts'
import { applyPerpFill, exchangeFunding, liquidatePositions } from './perp-positions.ts'
import { applyCorporateActions, applySpotFill, creditYield } from './spot-positions.ts'

/**
 * The paper broker as pure functions: an account and an event give the next account and its effects. The engine reads no
 * clock, database or price, so the same input gives the same output.
 */
export type EngineRules = { calendar: Pick<Calendar, 'marketState' | 'nextOpen'>; seed: string }

const MAX_WORKING_ORDERS = 200
/** How far beyond the touch a market order without a collar may trade. */
const MARKET_ROOM_BPS = 500n
const FUNDING_MS = 8 * 3_600_000
const DAY_MS = 86_400_000
/** An idle account is charged at most a month of funding payments. */
const MAX_FUNDING_PAYMENTS = 90

/** A refused order is stored too, so that the same client order id gets the same result again. */
export function placeOrder(
  account: PaperAccount,
  request: OrderRequest,
  snapshot: MarketSnapshot,
  rules: EngineRules,
): AccountDraft & { order: PaperOrder } {
  const draft = startDraft(account)
  const quote = snapshot.quotes.get(quoteKey(request))
  const order = draftOrder(draft, request, snapshot.at, quote)
  const refusal = quote
    ? findRefusal(draft.account, request, order, quote, snapshot.at)
    : `${request.symbol} is not traded here.`
  if (refusal) endOrder(draft, order, 'rejected', refusal)
  else {
    draft.account.orders.push(order)
    matchWorkingOrder(draft, order, snapshot, rules)
    if (order.status === 'working' && (order.tif === 'ioc' || order.tif === 'fok')) {
      endOrder(draft, order, 'cancelled', 'The rest found no match at once.')
    }
    if (order.status === 'working') draft.effects.orders.push(order)
  }
  return { ...draft, order }
}

export function cancelOrder(
  account: PaperAccount,
  clientOrderId: string,
): AccountDraft & { order: PaperOrder | undefined } {
  const draft = startDraft(account)
  const order = draft.account.orders.find((other) => other.clientOrderId === clientOrderId)
  if (order) endOrder(draft, order, 'cancelled', 'Cancelled on request.')
  return { ...draft, order }
}

/** Advances the account through the snapshots, oldest first; the last one is the current market. */
export function advance(account: PaperAccount, snapshots: readonly MarketSnapshot[], rules: EngineRules): AccountDraft {
  const draft = startDraft(account)
  for (const snapshot of snapshots) {
    draft.account.unsettled = draft.account.unsettled.filter(({ settlesAt }) => settlesAt > snapshot.at)
    applyCorporateActions(draft, snapshot)
    creditYield(draft, snapshot)
    if (snapshot.at % FUNDING_MS === 0 && snapshot.at > draft.account.at) exchangeFunding(draft, snapshot)
    liquidatePositions(draft, snapshot)
    for (const order of [...draft.account.orders]) {
      const filledBeforeE8 = order.filledE8
      matchWorkingOrder(draft, order, snapshot, rules)
      if (order.status === 'working' && order.filledE8 !== filledBeforeE8) draft.effects.orders.push(order)
    }
    draft.account.at = Math.max(draft.account.at, snapshot.at)
  }
  return draft
}

/** The moments at which funding was due since the account was last advanced. */
export function fundingTimes(account: PaperAccount, now: number): number[] {
  if (!Object.values(account.positions).some((position) => position.type === 'perp')) return []
  const times: number[] = []
  const earliest = Math.max(account.at, now - MAX_FUNDING_PAYMENTS * FUNDING_MS)
  for (let at = (Math.floor(earliest / FUNDING_MS) + 1) * FUNDING_MS; at < now; at += FUNDING_MS) times.push(at)
  return times
}

/** Cash that is neither unsettled nor promised to a working order. */
export const freeCashMicro = (account: PaperAccount) => account.cashMicro - unsettledMicro(account) - heldMicro(account)

export const unsettledMicro = (account: PaperAccount) => account.unsettled.reduce((sum, { micro }) => sum + micro, 0n)

export const heldMicro = (account: PaperAccount) =>
  account.orders.reduce((sum, order) => sum + holdMicro(order, order.quantityE8 - order.filledE8), 0n)

/** Matches one working order against one snapshot. */
function matchWorkingOrder(draft: AccountDraft, order: PaperOrder, snapshot: MarketSnapshot, rules: EngineRules): void {
  const quote = snapshot.quotes.get(quoteKey(order))
  const expiryReason =
    snapshot.at >= order.executeBy
      ? 'Its time to execute had passed.'
      : findSessionEnd(order, quote, snapshot.at, rules)
  if (expiryReason) endOrder(draft, order, 'expired', expiryReason)
  if (expiryReason || !quote || !isTrading(quote)) return
  const minute = minuteOf(snapshot.at)
  for (const slice of matchOrder(order, quote, snapshot.at, rules.seed)) {
    if (!applyFill(draft, order, quote, slice, snapshot.at, rules)) {
      endOrder(draft, order, 'cancelled', 'The account could not pay for the rest.')
      return
    }
    order.takenE8 = (order.takenMinute === minute ? order.takenE8 : 0n) + slice.quantityE8
    order.takenMinute = minute
  }
  if (order.filledE8 === order.quantityE8) endOrder(draft, order, 'filled', null)
}

/** Applies the fill to a copy first; returns false, and changes nothing, when the account cannot pay for it. */
function applyFill(
  draft: AccountDraft,
  order: PaperOrder,
  quote: MarketQuote,
  slice: Slice,
  at: number,
  rules: EngineRules,
): boolean {
  const trial: AccountDraft = { account: structuredClone(draft.account), effects: { orders: [], journal: [] } }
  const feeMicro = computeFeeMicro(trial.account, order, quote.listing, slice, at)
  const entry = { ref: order.clientOrderId, at }
  if (order.type === 'perp') {
    const perpFill = { symbol: order.symbol, side: order.side, ...slice, feeMicro }
    applyPerpFill(trial, perpFill, order.leverageE2 ?? 100n, entry)
  } else {
    const settlesAt = quote.listing.settlementLag === 'T+1' ? rules.calendar.nextOpen(new Date(at)).getTime() : at
    applySpotFill(trial, quote.listing, { side: order.side, ...slice, feeMicro }, settlesAt, entry)
  }
  const working = trial.account.orders.find((other) => other.clientOrderId === order.clientOrderId)
  if (working) working.filledE8 += slice.quantityE8
  if (freeCashMicro(trial.account) < 0n) return false

  const { orders } = draft.account
  Object.assign(draft.account, trial.account, { orders })
  draft.effects.journal.push(...trial.effects.journal)
  order.filledE8 += slice.quantityE8
  const fill: Fill = {
    fillId: `${order.brokerOrderId}-${order.fills.length + 1}`,
    ...slice,
    feeMicro,
    at: new Date(at),
  }
  order.fills.push(fill)
  return true
}

function endOrder(draft: AccountDraft, order: PaperOrder, status: PaperOrder['status'], reason: string | null): void {
  order.status = status
  order.reason = reason
  draft.account.orders = draft.account.orders.filter((other) => other.clientOrderId !== order.clientOrderId)
  draft.effects.orders.push(order)
}

function draftOrder(
  draft: AccountDraft,
  request: OrderRequest,
  at: number,
  quote: MarketQuote | undefined,
): PaperOrder {
  const bound = worstAcceptedPriceE8(request)
  const touch = quote ? (request.side === 'buy' ? quote.askE8 : quote.bidE8) : 0n
  const room = divideUp(touch * MARKET_ROOM_BPS, 10_000n)
  const worstMarketPriceE8 = request.side === 'buy' ? touch + room : touch - room
  return {
    clientOrderId: request.clientOrderId,
    brokerOrderId: `paper-${draft.account.accountId}-${nextSequence(draft)}`,
    type: request.type,
    symbol: request.symbol,
    side: request.side,
    quantityE8: request.quantityE8,
    limitPriceE8: request.limitPriceE8,
    worstPriceE8: request.worstPriceE8 ?? (request.orderType === 'market' ? worstMarketPriceE8 : null),
    tif: request.tif,
    leverageE2: request.leverageE2,
    executeBy: request.executeBy.getTime(),
    placedAt: at,
    holdPriceE8: request.side === 'buy' ? (bound ?? worstMarketPriceE8) : touch + room,
    holdFeeBps: quote?.listing.takerFeeBps ?? 0,
    status: 'working',
    reason: null,
    filledE8: 0n,
    fills: [],
    takenE8: 0n,
    takenMinute: 0,
  }
}

/** Why an order cannot be accepted, or null. */
function findRefusal(
  account: PaperAccount,
  request: OrderRequest,
  order: PaperOrder,
  quote: MarketQuote,
  at: number,
): string | null {
  const { listing } = quote
  if (at >= order.executeBy) return 'Its time to execute had passed.'
  if (order.quantityE8 <= 0n || order.quantityE8 % listing.lotE8 !== 0n) return 'The quantity is not on the lot.'
  if (request.orderType === 'limit' && !(order.limitPriceE8 && order.limitPriceE8 > 0n))
    return 'A limit order needs a price.'
  if (order.leverageE2 !== null && order.type !== 'perp') return 'Only perps are traded on margin.'
  if (listing.perp && (order.leverageE2 ?? 100n) > BigInt(listing.perp.maxLeverage) * 100n)
    return 'The leverage is not offered.'
  if (account.orders.length >= MAX_WORKING_ORDERS) return 'Too many orders are working.'
  const isImmediate = order.tif === 'ioc' || order.tif === 'fok'
  if (isImmediate && !isTrading(quote)) return quote.halted ? `${order.symbol} is halted.` : 'The session is closed.'
  if (order.type !== 'perp' && order.side === 'sell') return findSaleRefusal(account, order)
  if (holdMicro(order, addedQuantityE8(account, order)) > freeCashMicro(account))
    return 'The buying power is not enough.'
  return null
}

function findSaleRefusal(account: PaperAccount, order: PaperOrder): string | null {
  const promisedE8 = account.orders
    .filter((other) => other.symbol === order.symbol && other.side === 'sell')
    .reduce((sum, other) => sum + other.quantityE8 - other.filledE8, 0n)
  const heldE8 = account.positions[order.symbol]?.quantityE8 ?? 0n
  return order.quantityE8 <= heldE8 - promisedE8 ? null : `The account does not hold that much ${order.symbol}.`
}

/** Closing a perp frees margin; only what goes beyond the open position needs more. */
function addedQuantityE8(account: PaperAccount, order: PaperOrder): bigint {
  const heldE8 = account.positions[order.symbol]?.quantityE8 ?? 0n
  const closes = order.type === 'perp' && (order.side === 'buy' ? heldE8 < 0n : heldE8 > 0n)
  if (!closes) return order.quantityE8
  const beyondE8 = order.quantityE8 - absBigint(heldE8)
  return beyondE8 > 0n ? beyondE8 : 0n
}

function holdMicro(order: PaperOrder, quantityE8: bigint): bigint {
  if (order.type !== 'perp' && order.side === 'sell') return 0n
  const notional = notionalMicro(order.holdPriceE8, quantityE8)
  const margin = order.leverageE2 === null ? notional : divideUp(notional * 100n, order.leverageE2)
  return margin + bpsOfRoundedUp(notional, order.holdFeeBps)
}

function computeFeeMicro(account: PaperAccount, order: PaperOrder, listing: Listing, slice: Slice, at: number): bigint {
  const gross = notionalMicro(slice.priceE8, slice.quantityE8)
  const taker = bpsOfRoundedUp(gross, listing.takerFeeBps)
  if (order.side === 'buy') return taker
  const isEarlyExit = listing.earn && (account.positions[order.symbol]?.lockedUntil ?? 0) > at
  const penalty = isEarlyExit ? bpsOfRoundedUp(gross, listing.earn?.earlyExitPenaltyBps ?? 0) : 0n
  return taker + penalty + divideUp(gross * BigInt(listing.saleFeePpm), 1_000_000n)
}

const bpsOfRoundedUp = (micro: bigint, bps: number) => divideUp(micro * BigInt(Math.round(bps * 100)), 1_000_000n)

/** Why a day order has expired, or null. It ends with the first session it can trade in, or at midnight UTC when the market never closes. */
function findSessionEnd(
  order: PaperOrder,
  quote: MarketQuote | undefined,
  at: number,
  rules: EngineRules,
): string | null {
  if (order.tif !== 'day') return null
  const reason = 'The session ended.'
  if (quote?.session === 'always') return Math.floor(at / DAY_MS) > Math.floor(order.placedAt / DAY_MS) ? reason : null
  const { marketState, nextOpen } = rules.calendar
  const placedAt = new Date(order.placedAt)
  const sessionStart = marketState(placedAt) === 'open' ? placedAt : nextOpen(placedAt)
  if (at < sessionStart.getTime()) return null
  return marketState(new Date(at)) !== 'open' || at >= nextOpen(sessionStart).getTime() ? reason : null
}
