import type { Fill, InstrumentType, OrderSide, OrderStatus, TimeInForce } from '../../../modules/brokerage/broker.ts'

/** The stored state of one paper account. Times are epoch milliseconds. Stored as JSON: keep the names. */
export type PaperAccount = {
  accountId: string
  /** The account has been advanced to this moment. */
  at: number
  /** The last number given to a journal transaction, order or fill of this account. */
  seq: number
  cashMicro: bigint
  unsettled: { micro: bigint; settlesAt: number }[]
  positions: Record<string, PaperPosition>
  /** Working orders only; ended orders are in the table `paper_orders`. */
  orders: PaperOrder[]
}

export type PaperPosition = {
  type: InstrumentType
  symbol: string
  /** Negative for a short; the cost carries the same sign. */
  quantityE8: bigint
  costMicro: bigint
  marginMicro: bigint
  leverageE2: bigint | null
  lockedUntil: number | null
  /** The moments up to which yield and corporate actions have been applied. */
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
  /** The worst price of one unit; cash is held for the unfilled quantity at this price. */
  holdPriceE8: bigint
  holdFeeBps: number
  status: OrderStatus
  reason: string | null
  filledE8: bigint
  fills: Fill[]
  /** How much the order took from the market in the minute of its last match: liquidity within a minute is limited. */
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

/** What to store besides the account: changed orders and journal lines. */
export type Effects = { orders: PaperOrder[]; journal: JournalLine[] }

/** A working copy of the account with its effects. The engine's functions change nothing else. */
export type AccountDraft = { account: PaperAccount; effects: Effects }

/** The journal treats money as one of its assets. */
export const USD = 'USD'

export const startDraft = (account: PaperAccount): AccountDraft => ({
  account: structuredClone(account),
  effects: { orders: [], journal: [] },
})

/** Adds one balanced journal transaction. Throws when it does not balance, so that the account is not changed. */
export function postJournalEntry(
  draft: AccountDraft,
  entry: { code: string; ref: string; at: number },
  lines: readonly (readonly [account: string, asset: string, amount: bigint])[],
): void {
  const sums = new Map<string, bigint>()
  for (const [, asset, amount] of lines) sums.set(asset, (sums.get(asset) ?? 0n) + amount)
  for (const [asset, sum] of sums) {
    if (sum !== 0n) throw new Error(`The paper journal entry ${entry.code} does not balance in ${asset}.`)
  }
  const tx = nextSequence(draft)
  for (const [account, asset, amount] of lines) {
    if (amount !== 0n) draft.effects.journal.push({ tx, account, asset, amount, ...entry })
  }
}

export function nextSequence(draft: AccountDraft): number {
  draft.account.seq += 1
  return draft.account.seq
}

export function openPaperAccount(accountId: string, at: number, openingCashMicro: bigint): AccountDraft {
  const account: PaperAccount = {
    accountId,
    at,
    seq: 0,
    cashMicro: openingCashMicro,
    unsettled: [],
    positions: {},
    orders: [],
  }
  const draft: AccountDraft = { account, effects: { orders: [], journal: [] } }
  postJournalEntry(draft, { code: 'opening', ref: accountId, at }, [
    ['cash', USD, openingCashMicro],
    ['capital', USD, -openingCashMicro],
  ])
  return draft
}

// Accounts and orders are stored as JSON in which a bigint is `{"$bigint": "…"}`.

type MarkedBigint = { $bigint: string }

export const toPaperJson = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) =>
    typeof item === 'bigint' ? ({ $bigint: `${item}` } as MarkedBigint) : item,
  )

/** Restores the bigints of parsed JSON. */
export function revivePaperJson<T>(parsed: unknown): T {
  const revive = (item: unknown): unknown => {
    if (Array.isArray(item)) return item.map(revive)
    if (item === null || typeof item !== 'object') return item
    if ('$bigint' in item) return BigInt((item as MarkedBigint).$bigint)
    return Object.fromEntries(Object.entries(item).map(([key, nested]) => [key, revive(nested)]))
  }
  return revive(parsed) as T
}
