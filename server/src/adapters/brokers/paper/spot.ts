import { notionalMicro } from '../../../modules/brokerage/broker.ts'
import { type Draft, post, USD } from './book.ts'
import { type Listing, quoteKey, type View } from './market.ts'

/** Everything that is paid in full: shares, coins, wrappers, deposits and payments to merchants. */

export type SpotFill = { side: 'buy' | 'sell'; quantityE8: bigint; priceE8: bigint; feeMicro: bigint }

const DAY_MS = 86_400_000

export function applySpotFill(
  draft: Draft,
  listing: Listing,
  fill: SpotFill,
  settlesAt: number,
  entry: { ref: string; at: number },
): void {
  if (listing.type === 'spend') pay(draft, listing, fill, entry)
  else if (fill.side === 'buy') buy(draft, listing, fill, entry)
  else sell(draft, listing, fill, settlesAt, entry)
}

function pay(draft: Draft, listing: Listing, fill: SpotFill, entry: { ref: string; at: number }): void {
  const amount = notionalMicro(fill.priceE8, fill.quantityE8)
  draft.book.cashMicro -= amount + fill.feeMicro
  post(draft, { code: 'spend', ...entry }, [
    ['cash', USD, -(amount + fill.feeMicro)],
    [`merchant:${listing.symbol}`, USD, amount],
    ['fees', USD, fill.feeMicro],
  ])
}

function buy(draft: Draft, listing: Listing, fill: SpotFill, entry: { ref: string; at: number }): void {
  const { book } = draft
  const gross = notionalMicro(fill.priceE8, fill.quantityE8)
  const position = book.positions[listing.symbol]
  const lockedUntil = listing.earn ? entry.at + listing.earn.lockDays * DAY_MS : null
  book.cashMicro -= gross + fill.feeMicro
  book.positions[listing.symbol] = {
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
  post(draft, { code: 'buy', ...entry }, [
    ['cash', USD, -(gross + fill.feeMicro)],
    ['market', USD, gross],
    ['fees', USD, fill.feeMicro],
    ['position', listing.symbol, fill.quantityE8],
    ['market', listing.symbol, -fill.quantityE8],
  ])
}

function sell(
  draft: Draft,
  listing: Listing,
  fill: SpotFill,
  settlesAt: number,
  entry: { ref: string; at: number },
): void {
  const { book } = draft
  const position = book.positions[listing.symbol]
  if (!position || position.quantityE8 < fill.quantityE8) throw new Error(`Sold more ${listing.symbol} than is held.`)
  const all = position.quantityE8 === fill.quantityE8
  const gross = notionalMicro(fill.priceE8, fill.quantityE8)
  position.costMicro -= all ? position.costMicro : (position.costMicro * fill.quantityE8) / position.quantityE8
  position.quantityE8 -= fill.quantityE8
  if (all) delete book.positions[listing.symbol]
  const proceeds = gross - fill.feeMicro
  book.cashMicro += proceeds
  if (settlesAt > entry.at && proceeds > 0n) book.unsettled.push({ micro: proceeds, settlesAt })
  post(draft, { code: 'sell', ...entry }, [
    ['cash', USD, proceeds],
    ['market', USD, -gross],
    ['fees', USD, fill.feeMicro],
    ['position', listing.symbol, -fill.quantityE8],
    ['market', listing.symbol, fill.quantityE8],
  ])
}

/** Yield is paid for whole days, to cash, so that the principal stays the number that was deposited. */
export function creditYield(draft: Draft, view: View): void {
  for (const position of Object.values(draft.book.positions)) {
    if (position.type !== 'earn') continue
    const rate = BigInt(view.quotes.get(quoteKey(position))?.listing.earn?.yieldRateBps ?? 0)
    const days = Math.floor((view.at - position.accruedAt) / DAY_MS)
    if (days <= 0) continue
    const interest = (position.costMicro * rate * BigInt(days)) / (365n * 10_000n)
    position.accruedAt += days * DAY_MS
    draft.book.cashMicro += interest
    post(draft, { code: 'yield', ref: position.symbol, at: view.at }, [
      ['cash', USD, interest],
      ['yield', USD, -interest],
    ])
  }
}

/** Dividends go to cash; a split changes the count of shares and the orders that name them, and no money. */
export function applyCorporateActions(draft: Draft, view: View): void {
  const { book } = draft
  for (const position of Object.values(book.positions)) {
    if (position.type !== 'equity') continue
    const { symbol } = position
    const due = (view.actions.get(symbol) ?? []).filter(({ exAt }) => exAt > position.actionsAt && exAt <= view.at)
    for (const action of [...due].sort((a, b) => a.exAt - b.exAt)) {
      if (action.kind === 'dividend') {
        const paid = (action.perShareE8 * position.quantityE8) / 10_000_000_000n
        book.cashMicro += paid
        post(draft, { code: 'dividend', ref: symbol, at: action.exAt }, [
          ['cash', USD, paid],
          ['issuer', USD, -paid],
        ])
        continue
      }
      const after = (position.quantityE8 * action.numerator) / action.denominator
      post(draft, { code: 'split', ref: symbol, at: action.exAt }, [
        ['position', symbol, after - position.quantityE8],
        ['issuer', symbol, position.quantityE8 - after],
      ])
      position.quantityE8 = after
    }
    position.actionsAt = view.at
  }
  splitOrders(draft, view)
}

function splitOrders(draft: Draft, view: View): void {
  for (const order of draft.book.orders) {
    const splits = (view.actions.get(order.symbol) ?? []).filter(
      (action) =>
        action.kind === 'split' && action.exAt > Math.max(order.placedAt, draft.book.at) && action.exAt <= view.at,
    )
    for (const split of splits) {
      if (split.kind !== 'split') continue
      const { numerator, denominator } = split
      const price = (value: bigint | null) => (value === null ? null : (value * denominator) / numerator)
      order.quantityE8 = order.filledE8 + ((order.quantityE8 - order.filledE8) * numerator) / denominator
      order.limitPriceE8 = price(order.limitPriceE8)
      order.worstPriceE8 = price(order.worstPriceE8)
      order.holdPriceE8 = (order.holdPriceE8 * denominator + numerator - 1n) / numerator
    }
  }
}
