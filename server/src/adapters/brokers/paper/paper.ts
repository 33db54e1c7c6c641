import { createHash } from 'node:crypto'
import {
  absolute,
  type Broker,
  type BrokerAccount,
  type BrokerOrder,
  type BrokerPosition,
  type Failed,
  formatDecimal,
  type InstrumentType,
  notionalMicro,
  type PlaceOutcome,
} from '../../../modules/brokerage/broker.ts'
import type { Clock } from '../../../platform/clock.ts'
import { type Book, type Draft, openBook, type PaperOrder, type Position } from './book.ts'
import {
  advance,
  cancelOrder,
  freeCashMicro,
  fundingTimes,
  heldMicro,
  placeOrder,
  type Rules,
  unsettledMicro,
} from './engine.ts'
import {
  type Calendar,
  type CorporateAction,
  type MarketQuote,
  type PaperMarket,
  quoteKey,
  type View,
} from './market.ts'
import { impactPpm } from './matching.ts'
import { equityMicro, positionLiquidationE8 } from './perp.ts'
import type { PaperStore } from './store.ts'

/** The broker port over the paper engine: looks at the market, then lets the engine decide under the account's lock. */
export type PaperDeps = {
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
  /** Lets time pass in the accounts nobody asks about: funding, liquidation, resting orders. */
  advanceNeglected(limit: number): Promise<number>
  /** The accounts of everybody here, a row for each currency, as Coinbase would list them. */
  coinbaseAccounts(limit: number): Promise<CoinbaseAccount[]>
}

type CoinbaseAccount = {
  uuid: string
  currency: string
  available_balance: { value: string; currency: string }
  hold: { value: string; currency: string }
  type: string
}

type Wanted = Pick<MarketQuote['listing'], 'type' | 'symbol'>

/** Between looking and locking another order may have added a symbol; then one looks again. */
const MAX_LOOKS = 5
const NEGLECTED_AFTER_MS = 1000

export function createPaperBroker(deps: PaperDeps): PaperBroker {
  const { market, clock, store } = deps
  const rules: Rules = { calendar: deps.calendar, seed: deps.seed }

  const bookOf = async (accountId: string): Promise<Book> => {
    const book = await store.read(accountId)
    if (book) return book
    const now = clock.now()
    await store.open(openBook(accountId, now.getTime(), deps.openingCashMicro), now)
    return (await store.read(accountId))!
  }

  const look = async (wanted: readonly Wanted[], since: Date, at: Date): Promise<View> => {
    const quotes = new Map<string, MarketQuote>()
    const actions = new Map<string, CorporateAction[]>()
    for (const one of wanted) {
      const quote = await market.quote(one.type, one.symbol, at)
      if (quote) quotes.set(quoteKey(one), quote)
      if (one.type === 'equity') actions.set(one.symbol, await market.actions(one.symbol, since, at))
    }
    return { at: at.getTime(), quotes, actions }
  }

  /** The moments that must be accounted for, each with its prices; the last one is now. */
  const views = async (book: Book, wanted: readonly Wanted[], now: Date): Promise<View[]> => {
    const since = new Date(oldestAction(book))
    const times = [...fundingTimes(book, now.getTime()), now.getTime()]
    return Promise.all(times.map((time) => look(wanted, since, new Date(time))))
  }

  /** Looks, locks, brings the book up to now, then does what was asked. */
  const visit = async <T>(
    accountId: string,
    then: (book: Book, view: View, earlier: PaperOrder | undefined) => { draft?: Draft; result: T },
    options: { extra?: readonly Wanted[]; clientOrderId?: string } = {},
  ): Promise<T> => {
    for (let attempt = 0; attempt < MAX_LOOKS; attempt += 1) {
      const now = clock.now()
      const before = await bookOf(accountId)
      const wanted = [...wantedBy(before), ...(options.extra ?? [])]
      const asked = new Set(wanted.map(quoteKey))
      const seen = await views(before, wanted, now)
      let answer: { result: T } | undefined
      await store.change(
        accountId,
        now,
        (book, earlier) => {
          if (wantedBy(book).some((one) => !asked.has(quoteKey(one)))) return undefined
          const passed = advance(book, seen, rules)
          const done = then(passed.book, seen.at(-1)!, earlier)
          answer = { result: done.result }
          return done.draft ? joined(passed, done.draft) : passed
        },
        options.clientOrderId,
      )
      if (answer) return answer.result
    }
    throw new Error(`The paper account ${accountId} kept changing.`)
  }

  const quoteOf = async (type: InstrumentType, symbol: string): Promise<{ ok: true; quote: MarketQuote } | Failed> => {
    if (!deps.types.includes(type)) {
      return { ok: false, reason: 'unsupported', message: `${deps.venue} does not trade ${type}.` }
    }
    const quote = await market.quote(type, symbol, clock.now())
    if (quote) return { ok: true, quote }
    return { ok: false, reason: 'unknown_symbol', message: `${symbol} is not traded as ${type}.` }
  }

  return {
    id: deps.venue,
    mode: 'paper',
    inFlightMs: 0,
    supports: (type) => deps.types.includes(type),
    quote: quoteOf,

    async instrument(type, symbol) {
      const found = await quoteOf(type, symbol)
      if (!found.ok) return found
      const { advE8: _, sigmaBps: __, saleFeePpm: ___, ...instrument } = found.quote.listing
      return { ok: true, instrument }
    },

    async estimate(type, symbol, quantityE8) {
      const found = await quoteOf(type, symbol)
      return found.ok ? { ok: true, slippageBps: Number(impactPpm(found.quote.listing, quantityE8)) / 100 } : found
    },

    async account(accountId) {
      const account = await visit(accountId, (book, view) => ({ result: snapshot(book, view) }))
      return { ok: true, account }
    },

    async place(request) {
      const { accountId, clientOrderId } = request
      const foreign = await store.findOrder(clientOrderId)
      if (foreign && foreign.accountId !== accountId) {
        return { outcome: 'rejected', reason: 'This client order id belongs to another account.' }
      }
      return visit(
        accountId,
        (book, view, earlier) => {
          if (earlier) return { result: outcomeOf(earlier) }
          if (view.at >= request.placeBy.getTime()) return { result: tooLate }
          const placed = placeOrder(book, request, view, rules)
          return { draft: placed, result: outcomeOf(placed.order) }
        },
        { extra: [request], clientOrderId },
      )
    },

    async find(accountId, clientOrderId) {
      const known = await store.findOrder(clientOrderId)
      if (!known || known.accountId !== accountId) return { outcome: 'not_found' }
      if (known.order.status === 'working') await visit(accountId, () => ({ result: undefined }))
      const order = (await store.findOrder(clientOrderId))!.order
      return { outcome: 'found', order: brokerOrder(order) }
    },

    async cancel(accountId, clientOrderId) {
      const known = await store.findOrder(clientOrderId)
      if (!known || known.accountId !== accountId) return { outcome: 'not_found' }
      await visit(accountId, (book) => ({ draft: cancelOrder(book, clientOrderId), result: undefined }))
      const order = (await store.findOrder(clientOrderId))!.order
      return { outcome: 'done', order: brokerOrder(order) }
    },

    async advanceNeglected(limit) {
      const before = new Date(clock.now().getTime() - NEGLECTED_AFTER_MS)
      const accounts = await store.neglected(before, limit)
      for (const accountId of accounts) await visit(accountId, () => ({ result: undefined }))
      return accounts.length
    },

    async coinbaseAccounts(limit) {
      const books = await store.list(limit)
      return books.flatMap((book) => currencyRows(deps.venue, book)).slice(0, limit)
    },
  }
}

const wantedBy = (book: Book): Wanted[] => [...Object.values(book.positions), ...book.orders]

const oldestAction = (book: Book) =>
  Object.values(book.positions).reduce((oldest, { actionsAt }) => Math.min(oldest, actionsAt), book.at)

const joined = (first: Draft, second: Draft): Draft => ({
  book: second.book,
  effects: {
    orders: [...first.effects.orders, ...second.effects.orders],
    journal: [...first.effects.journal, ...second.effects.journal],
  },
})

const tooLate: PlaceOutcome = { outcome: 'unavailable', reason: 'The order came too late.', retryAfterSeconds: 1 }

function outcomeOf(order: PaperOrder): PlaceOutcome {
  if (order.status === 'rejected') return { outcome: 'rejected', reason: order.reason ?? 'The order was refused.' }
  return { outcome: 'placed', order: brokerOrder(order) }
}

const brokerOrder = (order: PaperOrder): BrokerOrder => ({
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

function currencyRows(venue: string, book: Book): CoinbaseAccount[] {
  const row = (currency: string, type: string, free: string, hold: string): CoinbaseAccount => ({
    uuid: uuidOf(`${venue}/${book.accountId}/${currency}`),
    currency,
    available_balance: { value: free, currency },
    hold: { value: hold, currency },
    type,
  })
  const dollars = row(
    'USD',
    'ACCOUNT_TYPE_FIAT',
    formatDecimal(freeCashMicro(book), 6),
    formatDecimal(heldMicro(book), 6),
  )
  const coins = Object.values(book.positions).map(({ symbol, quantityE8 }) => {
    const promised = book.orders
      .filter((order) => order.symbol === symbol && order.side === 'sell')
      .reduce((sum, order) => sum + order.quantityE8 - order.filledE8, 0n)
    const [currency = symbol] = symbol.split('-')
    return row(currency, 'ACCOUNT_TYPE_CRYPTO', formatDecimal(quantityE8 - promised, 8), formatDecimal(promised, 8))
  })
  return [dollars, ...coins]
}

/** A name of 128 bits that is always the same for the same account. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

function snapshot(book: Book, view: View): BrokerAccount {
  const positions = Object.values(book.positions)
  const worth = positions.reduce((sum, position) => sum + worthMicro(position, view), 0n)
  const free = freeCashMicro(book)
  return {
    accountId: book.accountId,
    currency: 'USD',
    cashMicro: book.cashMicro,
    unsettledMicro: unsettledMicro(book),
    heldMicro: heldMicro(book),
    buyingPowerMicro: free > 0n ? free : 0n,
    equityMicro: book.cashMicro + worth,
    positions: positions.map((position) => brokerPosition(position, view)),
  }
}

function worthMicro(position: Position, view: View): bigint {
  const mark = view.quotes.get(quoteKey(position))?.markE8
  if (mark === undefined) return position.type === 'perp' ? position.marginMicro : position.costMicro
  return position.type === 'perp' ? equityMicro(position, mark) : notionalMicro(mark, absolute(position.quantityE8))
}

function brokerPosition(position: Position, view: View): BrokerPosition {
  const perp = view.quotes.get(quoteKey(position))?.listing.perp
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
