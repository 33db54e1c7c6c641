import { absBigint, divideUp, minBigint, notionalMicro } from '../../../modules/brokerage/broker.ts'
import {
  type AccountDraft,
  nextSequence,
  type PaperAccount,
  type PaperPosition,
  postJournalEntry,
  USD,
} from './paper-account.ts'
import { type Listing, type MarketQuote, type MarketSnapshot, quoteKey } from './paper-market.ts'

/** Perps have isolated margin and one net position for each symbol. */

export const unrealisedMicro = (position: PaperPosition, markE8: bigint) =>
  notionalMicro(markE8, position.quantityE8) - position.costMicro

export const equityMicro = (position: PaperPosition, markE8: bigint) =>
  position.marginMicro + unrealisedMicro(position, markE8)

export const maintenanceMicro = (position: PaperPosition, listing: Listing, markE8: bigint) =>
  divideUp(
    notionalMicro(markE8, absBigint(position.quantityE8)) * BigInt(listing.perp?.maintenanceMarginBps ?? 0),
    10_000n,
  )

export const isLiquidated = (position: PaperPosition, listing: Listing, markE8: bigint) =>
  equityMicro(position, markE8) <= maintenanceMicro(position, listing, markE8)

/** The liquidation price of this position with its current margin. */
export function positionLiquidationE8(position: PaperPosition, maintenanceMarginBps: number): bigint {
  const quantity = absBigint(position.quantityE8)
  const rate = BigInt(maintenanceMarginBps)
  const scale = 10_000_000_000n * 10_000n
  if (position.quantityE8 > 0n) {
    const debt = position.costMicro - position.marginMicro
    return debt <= 0n ? 0n : divideUp(debt * scale, quantity * (10_000n - rate))
  }
  return ((position.marginMicro - position.costMicro) * scale) / (quantity * (10_000n + rate))
}

export type PerpFill = { symbol: string; side: 'buy' | 'sell'; quantityE8: bigint; priceE8: bigint; feeMicro: bigint }

/** Closes an opposite position first, then opens one with the rest. */
export function applyPerpFill(
  draft: AccountDraft,
  fill: PerpFill,
  leverageE2: bigint,
  entry: { ref: string; at: number },
): void {
  const { account } = draft
  const existingPosition = account.positions[fill.symbol]
  const isOpposite =
    existingPosition && (fill.side === 'buy' ? existingPosition.quantityE8 < 0n : existingPosition.quantityE8 > 0n)
  const closingE8 = isOpposite ? minBigint(fill.quantityE8, absBigint(existingPosition.quantityE8)) : 0n
  if (existingPosition && closingE8 > 0n) closePosition(draft, existingPosition, closingE8, fill.priceE8, entry)
  if (fill.quantityE8 > closingE8)
    openPosition(draft, { ...fill, quantityE8: fill.quantityE8 - closingE8 }, leverageE2, entry)
  account.cashMicro -= fill.feeMicro
  postJournalEntry(draft, { code: 'fee', ...entry }, [
    ['cash', USD, -fill.feeMicro],
    ['fees', USD, fill.feeMicro],
  ])
}

function openPosition(
  draft: AccountDraft,
  fill: PerpFill,
  leverageE2: bigint,
  entry: { ref: string; at: number },
): void {
  const { account } = draft
  const notional = notionalMicro(fill.priceE8, fill.quantityE8)
  const margin = divideUp(notional * 100n, leverageE2)
  const quantity = fill.side === 'buy' ? fill.quantityE8 : -fill.quantityE8
  const position = account.positions[fill.symbol]
  account.positions[fill.symbol] = {
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
  account.cashMicro -= margin
  postJournalEntry(draft, { code: 'perp_open', ...entry }, [
    ['cash', USD, -margin],
    ['margin', USD, margin],
    ['position', fill.symbol, quantity],
    ['market', fill.symbol, -quantity],
  ])
}

/** Profit or loss and the margin of the closed part go back to cash; the insurance fund covers a loss beyond the margin. */
function closePosition(
  draft: AccountDraft,
  position: PaperPosition,
  closingE8: bigint,
  priceE8: bigint,
  entry: { ref: string; at: number },
): void {
  const { account } = draft
  const size = absBigint(position.quantityE8)
  const closesAll = closingE8 === size
  const margin = closesAll ? position.marginMicro : (position.marginMicro * closingE8) / size
  const cost = closesAll ? position.costMicro : (position.costMicro * closingE8) / size
  const signed = position.quantityE8 > 0n ? closingE8 : -closingE8
  const profit = notionalMicro(priceE8, signed) - cost
  const payout = margin + profit > 0n ? margin + profit : 0n
  const shortfall = payout - (margin + profit)
  account.cashMicro += payout
  position.quantityE8 -= signed
  position.costMicro -= cost
  position.marginMicro -= margin
  if (closesAll) delete account.positions[position.symbol]
  postJournalEntry(draft, { code: 'perp_close', ...entry }, [
    ['margin', USD, -margin],
    ['cash', USD, payout],
    ['market', USD, -profit],
    ['insurance', USD, -shortfall],
    ['position', position.symbol, -signed],
    ['market', position.symbol, signed],
  ])
}

/** Funding is paid from, or into, the margin of the position: longs pay when the rate is positive. */
export function exchangeFunding(draft: AccountDraft, snapshot: MarketSnapshot): void {
  for (const position of listPerps(draft.account)) {
    const quote = snapshot.quotes.get(quoteKey(position))
    if (!quote) continue
    const rate = BigInt(quote.fundingRatePpm ?? 0)
    const owedMicro = (notionalMicro(quote.markE8, position.quantityE8) * rate) / 1_000_000n
    const payment = minBigint(owedMicro, position.marginMicro)
    if (payment === 0n) continue
    position.marginMicro -= payment
    postJournalEntry(draft, { code: 'funding', ref: position.symbol, at: snapshot.at }, [
      ['margin', USD, -payment],
      ['funding', USD, payment],
    ])
  }
}

/** Closes every position whose equity no longer covers its maintenance margin; its remaining margin goes to the insurance fund. */
export function liquidatePositions(draft: AccountDraft, snapshot: MarketSnapshot): void {
  for (const position of listPerps(draft.account)) {
    const quote = snapshot.quotes.get(quoteKey(position))
    if (quote && isLiquidated(position, quote.listing, quote.markE8))
      liquidatePosition(draft, position, quote, snapshot.at)
  }
}

function liquidatePosition(draft: AccountDraft, position: PaperPosition, quote: MarketQuote, at: number): void {
  const { account, effects } = draft
  const { quantityE8, symbol, marginMicro } = position
  const profit = unrealisedMicro(position, quote.markE8)
  delete account.positions[symbol]
  const sequence = nextSequence(draft)
  const clientOrderId = `liquidation-${account.accountId}-${sequence}`
  const closedE8 = absBigint(quantityE8)
  postJournalEntry(draft, { code: 'liquidation', ref: clientOrderId, at }, [
    ['margin', USD, -marginMicro],
    ['market', USD, -profit],
    ['insurance', USD, marginMicro + profit],
    ['position', symbol, -quantityE8],
    ['market', symbol, quantityE8],
  ])
  effects.orders.push({
    clientOrderId,
    brokerOrderId: `paper-${account.accountId}-${sequence}`,
    type: 'perp',
    symbol,
    side: quantityE8 > 0n ? 'sell' : 'buy',
    quantityE8: closedE8,
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
    filledE8: closedE8,
    fills: [
      {
        fillId: `${clientOrderId}-1`,
        quantityE8: closedE8,
        priceE8: quote.markE8,
        feeMicro: 0n,
        at: new Date(at),
      },
    ],
    takenE8: 0n,
    takenMinute: 0,
  })
}

const listPerps = (account: PaperAccount) =>
  Object.values(account.positions).filter((position) => position.type === 'perp')
