import { absolute, divideUp, least, notionalMicro } from '../../../modules/brokerage/broker.ts'
import { type Book, type Draft, nextNumber, type Position, post, USD } from './book.ts'
import { type Listing, type MarketQuote, quoteKey, type View } from './market.ts'

/** Isolated margin, one net position a symbol: what a perp position is worth, what it owes, and when it ends. */

export const unrealisedMicro = (position: Position, markE8: bigint) =>
  notionalMicro(markE8, position.quantityE8) - position.costMicro

export const equityMicro = (position: Position, markE8: bigint) =>
  position.marginMicro + unrealisedMicro(position, markE8)

export const maintenanceMicro = (position: Position, listing: Listing, markE8: bigint) =>
  divideUp(
    notionalMicro(markE8, absolute(position.quantityE8)) * BigInt(listing.perp?.maintenanceMarginBps ?? 0),
    10_000n,
  )

export const isLiquidated = (position: Position, listing: Listing, markE8: bigint) =>
  equityMicro(position, markE8) <= maintenanceMicro(position, listing, markE8)

/** Where this very position, with the margin it has now, would be liquidated. */
export function positionLiquidationE8(position: Position, maintenanceMarginBps: number): bigint {
  const quantity = absolute(position.quantityE8)
  const rate = BigInt(maintenanceMarginBps)
  const scale = 10_000_000_000n * 10_000n
  if (position.quantityE8 > 0n) {
    const debt = position.costMicro - position.marginMicro
    return debt <= 0n ? 0n : divideUp(debt * scale, quantity * (10_000n - rate))
  }
  return ((position.marginMicro - position.costMicro) * scale) / (quantity * (10_000n + rate))
}

export type PerpFill = { symbol: string; side: 'buy' | 'sell'; quantityE8: bigint; priceE8: bigint; feeMicro: bigint }

/** First closes what stands on the other side, then opens with what is left. */
export function applyPerpFill(
  draft: Draft,
  fill: PerpFill,
  leverageE2: bigint,
  entry: { ref: string; at: number },
): void {
  const { book } = draft
  const open = book.positions[fill.symbol]
  const closes = open && (fill.side === 'buy' ? open.quantityE8 < 0n : open.quantityE8 > 0n)
  const closing = closes ? least(fill.quantityE8, absolute(open.quantityE8)) : 0n
  if (open && closing > 0n) closePart(draft, open, closing, fill.priceE8, entry)
  if (fill.quantityE8 > closing) openPart(draft, { ...fill, quantityE8: fill.quantityE8 - closing }, leverageE2, entry)
  book.cashMicro -= fill.feeMicro
  post(draft, { code: 'fee', ...entry }, [
    ['cash', USD, -fill.feeMicro],
    ['fees', USD, fill.feeMicro],
  ])
}

function openPart(draft: Draft, fill: PerpFill, leverageE2: bigint, entry: { ref: string; at: number }): void {
  const { book } = draft
  const notional = notionalMicro(fill.priceE8, fill.quantityE8)
  const margin = divideUp(notional * 100n, leverageE2)
  const quantity = fill.side === 'buy' ? fill.quantityE8 : -fill.quantityE8
  const position = book.positions[fill.symbol]
  book.positions[fill.symbol] = {
    type: 'perp',
    symbol: fill.symbol,
    quantityE8: (position?.quantityE8 ?? 0n) + quantity,
    costMicro: (position?.costMicro ?? 0n) + (fill.side === 'buy' ? notional : -notional),
    marginMicro: (position?.marginMicro ?? 0n) + margin,
    leverageE2,
    lockedUntil: null,
    accruedAt: entry.at,
    actionsAt: entry.at,
  }
  book.cashMicro -= margin
  post(draft, { code: 'perp_open', ...entry }, [
    ['cash', USD, -margin],
    ['margin', USD, margin],
    ['position', fill.symbol, quantity],
    ['market', fill.symbol, -quantity],
  ])
}

/** Profit or loss and the margin of the closed share go back to cash; a loss beyond the margin is the insurer's. */
function closePart(
  draft: Draft,
  position: Position,
  closingE8: bigint,
  priceE8: bigint,
  entry: { ref: string; at: number },
): void {
  const { book } = draft
  const size = absolute(position.quantityE8)
  const all = closingE8 === size
  const margin = all ? position.marginMicro : (position.marginMicro * closingE8) / size
  const cost = all ? position.costMicro : (position.costMicro * closingE8) / size
  const signed = position.quantityE8 > 0n ? closingE8 : -closingE8
  const profit = notionalMicro(priceE8, signed) - cost
  const payout = margin + profit > 0n ? margin + profit : 0n
  const shortfall = payout - (margin + profit)
  book.cashMicro += payout
  position.quantityE8 -= signed
  position.costMicro -= cost
  position.marginMicro -= margin
  if (all) delete book.positions[position.symbol]
  post(draft, { code: 'perp_close', ...entry }, [
    ['margin', USD, -margin],
    ['cash', USD, payout],
    ['market', USD, -profit],
    ['insurance', USD, -shortfall],
    ['position', position.symbol, -signed],
    ['market', position.symbol, signed],
  ])
}

/** Funding is exchanged against the margin of the position: longs pay when the rate is positive. */
export function exchangeFunding(draft: Draft, view: View): void {
  for (const position of perps(draft.book)) {
    const quote = view.quotes.get(quoteKey(position))
    if (!quote) continue
    const rate = BigInt(quote.fundingRatePpm ?? 0)
    const owed = (notionalMicro(quote.markE8, position.quantityE8) * rate) / 1_000_000n
    const payment = least(owed, position.marginMicro)
    if (payment === 0n) continue
    position.marginMicro -= payment
    post(draft, { code: 'funding', ref: position.symbol, at: view.at }, [
      ['margin', USD, -payment],
      ['funding', USD, payment],
    ])
  }
}

/** Takes over every position whose equity no longer covers its maintenance margin; what margin is left is forfeited. */
export function liquidate(draft: Draft, view: View): void {
  for (const position of perps(draft.book)) {
    const quote = view.quotes.get(quoteKey(position))
    if (quote && isLiquidated(position, quote.listing, quote.markE8)) takeOver(draft, position, quote, view.at)
  }
}

function takeOver(draft: Draft, position: Position, quote: MarketQuote, at: number): void {
  const { book, effects } = draft
  const { quantityE8, symbol, marginMicro } = position
  const profit = unrealisedMicro(position, quote.markE8)
  delete book.positions[symbol]
  const number = nextNumber(draft)
  const clientOrderId = `liquidation-${book.accountId}-${number}`
  const closed = absolute(quantityE8)
  post(draft, { code: 'liquidation', ref: clientOrderId, at }, [
    ['margin', USD, -marginMicro],
    ['market', USD, -profit],
    ['insurance', USD, marginMicro + profit],
    ['position', symbol, -quantityE8],
    ['market', symbol, quantityE8],
  ])
  effects.orders.push({
    clientOrderId,
    brokerOrderId: `paper-${book.accountId}-${number}`,
    type: 'perp',
    symbol,
    side: quantityE8 > 0n ? 'sell' : 'buy',
    quantityE8: closed,
    limitPriceE8: null,
    worstPriceE8: null,
    tif: 'ioc',
    leverageE2: position.leverageE2,
    executeBy: at,
    placedAt: at,
    holdPriceE8: 0n,
    holdFeeBps: 0,
    status: 'filled',
    reason: 'The margin no longer covered the maintenance margin.',
    filledE8: closed,
    fills: [
      {
        fillId: `${clientOrderId}-1`,
        quantityE8: closed,
        priceE8: quote.markE8,
        feeMicro: 0n,
        at: new Date(at),
      },
    ],
    takenE8: 0n,
    takenMinute: 0,
  })
}

const perps = (book: Book) => Object.values(book.positions).filter((position) => position.type === 'perp')
