import { createHash } from 'node:crypto'
import {
  absBigint,
  type Broker,
  type BrokerAccount,
  type BrokerFailure,
  type BrokerOrder,
  type BrokerPosition,
  type CoinbaseAccount,
  formatDecimal,
  type InstrumentType,
  notionalMicro,
  type PlaceOutcome,
} from '../../../modules/brokerage/broker.ts'
import type { Clock } from '../../../platform/clock.ts'
import { didYouMean } from '../../../platform/suggest.ts'
import {
  advance,
  cancelOrder,
  type EngineRules,
  freeCashMicro,
  fundingTimes,
  heldMicro,
  placeOrder,
  unsettledMicro,
} from './engine.ts'
import { impactPpm } from './matching.ts'
import {
  type AccountDraft,
  openPaperAccount,
  type PaperAccount,
  type PaperOrder,
  type PaperPosition,
} from './paper-account.ts'
import {
  type Calendar,
  type CorporateAction,
  type MarketQuote,
  type MarketSnapshot,
  type PaperMarket,
  quoteKey,
} from './paper-market.ts'
import type { PaperStore } from './paper-store.ts'
import { equityMicro, positionLiquidationE8 } from './perp-positions.ts'

/** The broker port over the paper engine: reads the market, then runs the engine while the account is locked. */
export type PaperBrokerDeps = {
  venue: string
  types: readonly InstrumentType[]
  market: PaperMarket
  calendar: Pick<Calendar, 'marketState' | 'nextOpen'>
  clock: Clock
  store: PaperStore
  seed: string
  openingCashMicro: bigint
}

export type PaperBroker = Broker & {
  /** Advances idle accounts to the current time: funding, liquidation, resting orders. */
  advanceIdleAccounts(limit: number): Promise<number>
  /** All accounts, one row for each currency, as Coinbase would list them. */
  coinbaseAccounts(limit: number): Promise<CoinbaseAccount[]>
}

type ListingKey = Pick<MarketQuote['listing'], 'type' | 'symbol'>

/** Another order may add a symbol between reading the market and locking the account; then the market is read again. */
const MAX_ATTEMPTS = 5
const IDLE_AFTER_MS = 1000

export function createPaperBroker(deps: PaperBrokerDeps): PaperBroker {
  const { market, clock, store } = deps
  const rules: EngineRules = { calendar: deps.calendar, seed: deps.seed }

  const readOrOpenAccount = async (accountId: string): Promise<PaperAccount> => {
    const account = await store.read(accountId)
    if (account) return account
    const now = clock.now()
    await store.open(openPaperAccount(accountId, now.getTime(), deps.openingCashMicro), now)
    return (await store.read(accountId))!
  }

  const readMarket = async (listings: readonly ListingKey[], since: Date, at: Date): Promise<MarketSnapshot> => {
    const quotes = new Map<string, MarketQuote>()
    const actions = new Map<string, CorporateAction[]>()
    for (const listing of listings) {
      const quote = await market.quote(listing.type, listing.symbol, at)
      if (quote) quotes.set(quoteKey(listing), quote)
      if (listing.type === 'equity') actions.set(listing.symbol, await market.actions(listing.symbol, since, at))
    }
    return { at: at.getTime(), quotes, actions }
  }

  /** One snapshot for each funding time since the account was last advanced, and one for now. */
  const readSnapshots = async (
    account: PaperAccount,
    listings: readonly ListingKey[],
    now: Date,
  ): Promise<MarketSnapshot[]> => {
    const since = new Date(oldestActionTime(account))
    const times = [...fundingTimes(account, now.getTime()), now.getTime()]
    return Promise.all(times.map((time) => readMarket(listings, since, new Date(time))))
  }

  /** Reads the market, locks the account, advances it to now, then applies the change. */
  const withCurrentAccount = async <T>(
    accountId: string,
    change: (
      account: PaperAccount,
      snapshot: MarketSnapshot,
      existingOrder: PaperOrder | undefined,
    ) => { draft?: AccountDraft; result: T },
    options: { extraListings?: readonly ListingKey[]; clientOrderId?: string } = {},
  ): Promise<T> => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const now = clock.now()
      const accountBefore = await readOrOpenAccount(accountId)
      const listings = [...listingsOf(accountBefore), ...(options.extraListings ?? [])]
      const quotedKeys = new Set(listings.map(quoteKey))
      const snapshots = await readSnapshots(accountBefore, listings, now)
      let outcome: { result: T } | undefined
      await store.change(
        accountId,
        now,
        (account, existingOrder) => {
          if (listingsOf(account).some((listing) => !quotedKeys.has(quoteKey(listing)))) return undefined
          const advancedDraft = advance(account, snapshots, rules)
          const changeResult = change(advancedDraft.account, snapshots.at(-1)!, existingOrder)
          outcome = { result: changeResult.result }
          return changeResult.draft ? joinDrafts(advancedDraft, changeResult.draft) : advancedDraft
        },
        options.clientOrderId,
      )
      if (outcome) return outcome.result
    }
    throw new Error(`The paper account ${accountId} kept changing.`)
  }

  const fetchQuote = async (
    type: InstrumentType,
    symbol: string,
  ): Promise<{ ok: true; quote: MarketQuote } | BrokerFailure> => {
    if (!deps.types.includes(type)) {
      return { ok: false, reason: 'unsupported', message: `${deps.venue} does not trade ${type}.` }
    }
    const quote = await market.quote(type, symbol, clock.now())
    if (quote) return { ok: true, quote }
    return {
      ok: false,
      reason: 'unknown_symbol',
      message: `${symbol} is not traded as ${type}.${describeSymbols(symbol, market.symbols?.(type) ?? [])}`,
    }
  }

  return {
    id: deps.venue,
    mode: 'paper',
    inFlightMs: 0,
    supports: (type) => deps.types.includes(type),
    quote: fetchQuote,

    async instrument(type, symbol) {
      const quoteResult = await fetchQuote(type, symbol)
      if (!quoteResult.ok) return quoteResult
      const { advE8: _, sigmaBps: __, saleFeePpm: ___, ...instrument } = quoteResult.quote.listing
      return { ok: true, instrument }
    },

    async estimate(type, symbol, quantityE8) {
      const quoteResult = await fetchQuote(type, symbol)
      return quoteResult.ok
        ? { ok: true, slippageBps: Number(impactPpm(quoteResult.quote.listing, quantityE8)) / 100 }
        : quoteResult
    },

    async account(accountId) {
      const account = await withCurrentAccount(accountId, (account, snapshot) => ({
        result: toBrokerAccount(account, snapshot),
      }))
      return { ok: true, account }
    },

    async place(request) {
      const { accountId, clientOrderId } = request
      const existingOrder = await store.findOrder(clientOrderId)
      if (existingOrder && existingOrder.accountId !== accountId) {
        return { outcome: 'rejected', reason: 'This client order id belongs to another account.' }
      }
      return withCurrentAccount(
        accountId,
        (account, snapshot, existingOrder) => {
          if (existingOrder) return { result: toPlaceOutcome(existingOrder) }
          if (snapshot.at >= request.placeBy.getTime()) return { result: TOO_LATE }
          const placement = placeOrder(account, request, snapshot, rules)
          return { draft: placement, result: toPlaceOutcome(placement.order) }
        },
        { extraListings: [request], clientOrderId },
      )
    },

    async find(accountId, clientOrderId) {
      const storedOrder = await store.findOrder(clientOrderId)
      if (!storedOrder || storedOrder.accountId !== accountId) return { outcome: 'not_found' }
      if (storedOrder.order.status === 'working') await withCurrentAccount(accountId, () => ({ result: undefined }))
      const order = (await store.findOrder(clientOrderId))!.order
      return { outcome: 'found', order: toBrokerOrder(order) }
    },

    async cancel(accountId, clientOrderId) {
      const storedOrder = await store.findOrder(clientOrderId)
      if (!storedOrder || storedOrder.accountId !== accountId) return { outcome: 'not_found' }
      await withCurrentAccount(accountId, (account) => ({
        draft: cancelOrder(account, clientOrderId),
        result: undefined,
      }))
      const order = (await store.findOrder(clientOrderId))!.order
      return { outcome: 'done', order: toBrokerOrder(order) }
    },

    async advanceIdleAccounts(limit) {
      const before = new Date(clock.now().getTime() - IDLE_AFTER_MS)
      const accounts = await store.listIdleAccounts(before, limit)
      for (const accountId of accounts) await withCurrentAccount(accountId, () => ({ result: undefined }))
      return accounts.length
    },

    async coinbaseAccounts(limit) {
      const accounts = await store.list(limit)
      return accounts.flatMap((account) => toCoinbaseAccounts(deps.venue, account)).slice(0, limit)
    },
  }
}

const listingsOf = (account: PaperAccount): ListingKey[] => [...Object.values(account.positions), ...account.orders]

const oldestActionTime = (account: PaperAccount) =>
  Object.values(account.positions).reduce((oldest, { actionsAt }) => Math.min(oldest, actionsAt), account.at)

const joinDrafts = (first: AccountDraft, second: AccountDraft): AccountDraft => ({
  account: second.account,
  effects: {
    orders: [...first.effects.orders, ...second.effects.orders],
    journal: [...first.effects.journal, ...second.effects.journal],
  },
})

const TOO_LATE: PlaceOutcome = { outcome: 'unavailable', reason: 'The order came too late.', retryAfterSeconds: 1 }

function toPlaceOutcome(order: PaperOrder): PlaceOutcome {
  if (order.status === 'rejected') return { outcome: 'rejected', reason: order.reason ?? 'The order was refused.' }
  return { outcome: 'placed', order: toBrokerOrder(order) }
}

const toBrokerOrder = (order: PaperOrder): BrokerOrder => ({
  brokerOrderId: order.brokerOrderId,
  clientOrderId: order.clientOrderId,
  symbol: order.symbol,
  side: order.side,
  quantityE8: order.quantityE8,
  status: order.status,
  reason: order.reason,
  filledE8: order.filledE8,
  fills: order.fills,
})

function toCoinbaseAccounts(venue: string, account: PaperAccount): CoinbaseAccount[] {
  const row = (currency: string, type: string, available: string, hold: string): CoinbaseAccount => ({
    uuid: hashToUuid(`${venue}/${account.accountId}/${currency}`),
    currency,
    available_balance: { value: available, currency },
    hold: { value: hold, currency },
    type,
  })
  const dollars = row(
    'USD',
    'ACCOUNT_TYPE_FIAT',
    formatDecimal(freeCashMicro(account), 6),
    formatDecimal(heldMicro(account), 6),
  )
  const coins = Object.values(account.positions).map(({ symbol, quantityE8 }) => {
    const promisedE8 = account.orders
      .filter((order) => order.symbol === symbol && order.side === 'sell')
      .reduce((sum, order) => sum + order.quantityE8 - order.filledE8, 0n)
    const [currency = symbol] = symbol.split('-')
    return row(currency, 'ACCOUNT_TYPE_CRYPTO', formatDecimal(quantityE8 - promisedE8, 8), formatDecimal(promisedE8, 8))
  })
  return [dollars, ...coins]
}

/** The same account always gets the same id. */
function hashToUuid(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

function toBrokerAccount(account: PaperAccount, snapshot: MarketSnapshot): BrokerAccount {
  const positions = Object.values(account.positions)
  const positionsMicro = positions.reduce((sum, position) => sum + valueMicro(position, snapshot), 0n)
  const freeMicro = freeCashMicro(account)
  return {
    accountId: account.accountId,
    currency: 'USD',
    cashMicro: account.cashMicro,
    unsettledMicro: unsettledMicro(account),
    heldMicro: heldMicro(account),
    buyingPowerMicro: freeMicro > 0n ? freeMicro : 0n,
    equityMicro: account.cashMicro + positionsMicro,
    positions: positions.map((position) => toBrokerPosition(position, snapshot)),
  }
}

function valueMicro(position: PaperPosition, snapshot: MarketSnapshot): bigint {
  const mark = snapshot.quotes.get(quoteKey(position))?.markE8
  if (mark === undefined) return position.type === 'perp' ? position.marginMicro : position.costMicro
  return position.type === 'perp' ? equityMicro(position, mark) : notionalMicro(mark, absBigint(position.quantityE8))
}

function toBrokerPosition(position: PaperPosition, snapshot: MarketSnapshot): BrokerPosition {
  const perp = snapshot.quotes.get(quoteKey(position))?.listing.perp
  return {
    type: position.type,
    symbol: position.symbol,
    quantityE8: position.quantityE8,
    costMicro: position.costMicro,
    marginMicro: position.marginMicro,
    leverageE2: position.leverageE2,
    liquidationPriceE8: perp ? positionLiquidationE8(position, perp.maintenanceMarginBps) : null,
    lockedUntil: position.lockedUntil === null ? null : new Date(position.lockedUntil),
  }
}

const MAX_LISTED = 12

const describeSymbols = (symbol: string, symbols: readonly string[]) =>
  symbols.length === 0 || symbols.length > MAX_LISTED
    ? didYouMean(symbol, symbols)
    : ` Symbols are ${symbols.join(', ')}.${didYouMean(symbol, symbols)}`
