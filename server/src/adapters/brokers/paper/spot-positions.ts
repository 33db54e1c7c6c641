import { notionalMicro } from '../../../modules/brokerage/broker.ts'
import { type AccountDraft, postJournalEntry, USD } from './paper-account.ts'
import { type Listing, type MarketSnapshot, quoteKey } from './paper-market.ts'

/** Instruments that are paid in full: equities, crypto, tokenised equities, deposits and payments to merchants. */

export type SpotFill = { side: 'buy' | 'sell'; quantityE8: bigint; priceE8: bigint; feeMicro: bigint }

const DAY_MS = 86_400_000

export function applySpotFill(
  draft: AccountDraft,
  listing: Listing,
  fill: SpotFill,
  settlesAt: number,
  entry: { ref: string; at: number },
): void {
  if (listing.type === 'spend') payMerchant(draft, listing, fill, entry)
  else if (fill.side === 'buy') buy(draft, listing, fill, entry)
  else sell(draft, listing, fill, settlesAt, entry)
}

function payMerchant(draft: AccountDraft, listing: Listing, fill: SpotFill, entry: { ref: string; at: number }): void {
  const amount = notionalMicro(fill.priceE8, fill.quantityE8)
  draft.account.cashMicro -= amount + fill.feeMicro
  postJournalEntry(draft, { code: 'spend', ...entry }, [
    ['cash', USD, -(amount + fill.feeMicro)],
    [`merchant:${listing.symbol}`, USD, amount],
    ['fees', USD, fill.feeMicro],
  ])
}

function buy(draft: AccountDraft, listing: Listing, fill: SpotFill, entry: { ref: string; at: number }): void {
  const { account } = draft
  const gross = notionalMicro(fill.priceE8, fill.quantityE8)
  const position = account.positions[listing.symbol]
  const lockedUntil = listing.earn ? entry.at + listing.earn.lockDays * DAY_MS : null
  account.cashMicro -= gross + fill.feeMicro
  account.positions[listing.symbol] = {
    type: listing.type,
    symbol: listing.symbol,
    quantityE8: (position?.quantityE8 ?? 0n) + fill.quantityE8,
    costMicro: (position?.costMicro ?? 0n) + gross,
    marginMicro: 0n,
    leverageE2: null,
    lockedUntil,
    accruedAt: position?.accruedAt ?? entry.at,
    actionsAt: position?.actionsAt ?? entry.at,
  }
  postJournalEntry(draft, { code: 'buy', ...entry }, [
    ['cash', USD, -(gross + fill.feeMicro)],
    ['market', USD, gross],
    ['fees', USD, fill.feeMicro],
    ['position', listing.symbol, fill.quantityE8],
    ['market', listing.symbol, -fill.quantityE8],
  ])
}

function sell(
  draft: AccountDraft,
  listing: Listing,
  fill: SpotFill,
  settlesAt: number,
  entry: { ref: string; at: number },
): void {
  const { account } = draft
  const position = account.positions[listing.symbol]
  if (!position || position.quantityE8 < fill.quantityE8) throw new Error(`Sold more ${listing.symbol} than is held.`)
  const sellsAll = position.quantityE8 === fill.quantityE8
  const gross = notionalMicro(fill.priceE8, fill.quantityE8)
  position.costMicro -= sellsAll ? position.costMicro : (position.costMicro * fill.quantityE8) / position.quantityE8
  position.quantityE8 -= fill.quantityE8
  if (sellsAll) delete account.positions[listing.symbol]
  const proceeds = gross - fill.feeMicro
  account.cashMicro += proceeds
  if (settlesAt > entry.at && proceeds > 0n) account.unsettled.push({ micro: proceeds, settlesAt })
  postJournalEntry(draft, { code: 'sell', ...entry }, [
    ['cash', USD, proceeds],
    ['market', USD, -gross],
    ['fees', USD, fill.feeMicro],
    ['position', listing.symbol, -fill.quantityE8],
    ['market', listing.symbol, fill.quantityE8],
  ])
}

/** Yield is credited to cash for whole days, so that the principal stays the deposited amount. */
export function creditYield(draft: AccountDraft, snapshot: MarketSnapshot): void {
  for (const position of Object.values(draft.account.positions)) {
    if (position.type !== 'earn') continue
    const rate = BigInt(snapshot.quotes.get(quoteKey(position))?.listing.earn?.yieldRateBps ?? 0)
    const days = Math.floor((snapshot.at - position.accruedAt) / DAY_MS)
    if (days <= 0) continue
    const interest = (position.costMicro * rate * BigInt(days)) / (365n * 10_000n)
    position.accruedAt += days * DAY_MS
    draft.account.cashMicro += interest
    postJournalEntry(draft, { code: 'yield', ref: position.symbol, at: snapshot.at }, [
      ['cash', USD, interest],
      ['yield', USD, -interest],
    ])
  }
}

/** Dividends are paid to cash; a split changes positions and working orders, and no cash. */
export function applyCorporateActions(draft: AccountDraft, snapshot: MarketSnapshot): void {
  const { account } = draft
  for (const position of Object.values(account.positions)) {
    if (position.type !== 'equity') continue
    const { symbol } = position
    const due = (snapshot.actions.get(symbol) ?? []).filter(
      ({ exAt }) => exAt > position.actionsAt && exAt <= snapshot.at,
    )
    for (const action of [...due].sort((a, b) => a.exAt - b.exAt)) {
      if (action.kind === 'dividend') {
        const paidMicro = (action.perShareE8 * position.quantityE8) / 10_000_000_000n
        account.cashMicro += paidMicro
        postJournalEntry(draft, { code: 'dividend', ref: symbol, at: action.exAt }, [
          ['cash', USD, paidMicro],
          ['issuer', USD, -paidMicro],
        ])
        continue
      }
      const quantityAfterE8 = (position.quantityE8 * action.numerator) / action.denominator
      postJournalEntry(draft, { code: 'split', ref: symbol, at: action.exAt }, [
        ['position', symbol, quantityAfterE8 - position.quantityE8],
        ['issuer', symbol, position.quantityE8 - quantityAfterE8],
      ])
      position.quantityE8 = quantityAfterE8
    }
    position.actionsAt = snapshot.at
  }
  applySplitsToOrders(draft, snapshot)
}

function applySplitsToOrders(draft: AccountDraft, snapshot: MarketSnapshot): void {
  for (const order of draft.account.orders) {
    const splits = (snapshot.actions.get(order.symbol) ?? []).filter(
      (action) =>
        action.kind === 'split' &&
        action.exAt > Math.max(order.placedAt, draft.account.at) &&
        action.exAt <= snapshot.at,
    )
    for (const split of splits) {
      if (split.kind !== 'split') continue
      const { numerator, denominator } = split
      const adjustPrice = (value: bigint | null) => (value === null ? null : (value * denominator) / numerator)
      order.quantityE8 = order.filledE8 + ((order.quantityE8 - order.filledE8) * numerator) / denominator
      order.limitPriceE8 = adjustPrice(order.limitPriceE8)
      order.worstPriceE8 = adjustPrice(order.worstPriceE8)
      order.holdPriceE8 = (order.holdPriceE8 * denominator + numerator - 1n) / numerator
    }
  }
}
