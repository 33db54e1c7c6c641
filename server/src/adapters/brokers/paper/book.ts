import type { Fill, InstrumentType, OrderSide, OrderStatus, TimeInForce } from '../../../modules/brokerage/broker.ts'

/** One paper account: everything the engine needs to know, and nothing it can look up. Times are epoch milliseconds. */
export type Book = {
  accountId: string
  /** Everything up to this moment has been accounted for. */
  at: number
  /** Numbers journal transactions, orders and fills of this account. */
  seq: number
  cashMicro: bigint
  unsettled: { micro: bigint; settlesAt: number }[]
  positions: Record<string, Position>
  /** Working orders only; an order that has ended lives on in the store. */
  orders: PaperOrder[]
}

export type Position = {
  type: InstrumentType
  symbol: string
  /** Negative for a short; the cost carries the same sign. */
  quantityE8: bigint
  costMicro: bigint
  marginMicro: bigint
  leverageE2: bigint | null
  lockedUntil: number | null
  /** Until when yield and corporate actions have been credited. */
  accruedAt: number
  actionsAt: number
}

export type PaperOrder = {
  clientOrderId: string
  brokerOrderId: string
  type: InstrumentType
  symbol: string
  side: OrderSide
  quantityE8: bigint
  limitPriceE8: bigint | null
  worstPriceE8: bigint | null
  tif: TimeInForce
  leverageE2: bigint | null
  executeBy: number
  placedAt: number
  /** What one unit may cost at worst: the hold of the part still working. */
  holdPriceE8: bigint
  holdFeeBps: number
  status: OrderStatus
  reason: string | null
  filledE8: bigint
  fills: Fill[]
  /** How much was taken from the market in the minute of the last match: liquidity is not endless within a minute. */
  takenE8: bigint
  takenMinute: number
}

/** One line of a double-entry transaction; the lines of one `tx` sum to zero in each asset. */
export type JournalLine = {
  tx: number
  account: string
  asset: string
  amount: bigint
  code: string
  ref: string
  at: number
}

/** What a step did beside changing the book: orders to keep, and lines to write down. */
export type Effects = { orders: PaperOrder[]; journal: JournalLine[] }

/** The book being worked on together with what happened to it; the engine's functions write here and nowhere else. */
export type Draft = { book: Book; effects: Effects }

/** Money in the journal is an asset like any other. */
export const USD = 'USD'

export const openDraft = (book: Book): Draft => ({ book: structuredClone(book), effects: { orders: [], journal: [] } })

/** Writes one balanced transaction. A mistake here must not reach the book, so it throws. */
export function post(
  draft: Draft,
  entry: { code: string; ref: string; at: number },
  lines: readonly (readonly [account: string, asset: string, amount: bigint])[],
): void {
  const sums = new Map<string, bigint>()
  for (const [, asset, amount] of lines) sums.set(asset, (sums.get(asset) ?? 0n) + amount)
  for (const [asset, sum] of sums) {
    if (sum !== 0n) throw new Error(`The paper journal entry ${entry.code} does not balance in ${asset}.`)
  }
  const tx = nextNumber(draft)
  for (const [account, asset, amount] of lines) {
    if (amount !== 0n) draft.effects.journal.push({ tx, account, asset, amount, ...entry })
  }
}

export function nextNumber(draft: Draft): number {
  draft.book.seq += 1
  return draft.book.seq
}

export function openBook(accountId: string, at: number, openingCashMicro: bigint): Draft {
  const book: Book = { accountId, at, seq: 0, cashMicro: openingCashMicro, unsettled: [], positions: {}, orders: [] }
  const draft: Draft = { book, effects: { orders: [], journal: [] } }
  post(draft, { code: 'opening', ref: accountId, at }, [
    ['cash', USD, openingCashMicro],
    ['capital', USD, -openingCashMicro],
  ])
  return draft
}

// A book crosses into JSON with its bigints marked, so that what is read back is what was written.

type Marked = { $bigint: string }

export const bookToJson = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? ({ $bigint: `${item}` } as Marked) : item))

/** Takes what JSON.parse gives, or what the database driver already parsed. */
export function reviveBook<T>(parsed: unknown): T {
  const revive = (item: unknown): unknown => {
    if (Array.isArray(item)) return item.map(revive)
    if (item === null || typeof item !== 'object') return item
    if ('$bigint' in item) return BigInt((item as Marked).$bigint)
    return Object.fromEntries(Object.entries(item).map(([key, inner]) => [key, revive(inner)]))
  }
  return revive(parsed) as T
}
