import { createPrivateKey, randomBytes } from 'node:crypto'
import { SignJWT } from 'jose'
import {
  type Broker,
  type BrokerOrder,
  type Failed,
  type Fill,
  type FindOutcome,
  formatDecimal,
  notionalMicro,
  type OrderRequest,
  type OrderStatus,
} from '../../modules/brokerage/broker.ts'
import type { Clock } from '../../platform/clock.ts'
import {
  averageFill,
  type BrokerAnswer,
  createBrokerHttp,
  decimalE8,
  decimalMicro,
  IN_FLIGHT_MS,
  instant,
  limitOf,
  placeFailure,
  record,
  records,
  spreadBps,
  textOf,
} from './broker-http.ts'

/** Coinbase Advanced Trade (`/api/v3/brokerage`). Each request carries a JWT of its own, bound to method and path. */
export type CoinbaseOptions = {
  keyName: string
  /** The key's PEM as Coinbase gives it: P-256, or ed25519 for the newer ones. */
  privateKey: string
  baseUrl: string
  clock: Clock
  timeoutMs?: number
}

/** The accounts as Coinbase lists them, for the operator's snapshot. */
export type CoinbaseBroker = Broker & { accounts(): Promise<{ ok: true; accounts: CoinbaseAccount[] } | Failed> }

export type CoinbaseAccount = {
  uuid: string
  currency: string
  available_balance: { value: string; currency: string }
  hold: { value: string; currency: string }
  type: string
}

const STATUSES: Record<string, OrderStatus> = {
  FILLED: 'filled',
  CANCELLED: 'cancelled',
  EXPIRED: 'expired',
  FAILED: 'rejected',
}
const API = '/api/v3/brokerage'
const MAX_PAGES = 5
const TOKEN_SECONDS = 120

export function createCoinbaseBroker(options: CoinbaseOptions): CoinbaseBroker {
  const key = createPrivateKey(options.privateKey.replaceAll('\\n', '\n'))
  const alg = key.asymmetricKeyType === 'ed25519' ? 'EdDSA' : 'ES256'
  const host = new URL(options.baseUrl).host

  const http = createBrokerHttp({
    baseUrl: options.baseUrl,
    timeoutMs: options.timeoutMs,
    authorize: async ({ method, path }) => {
      const now = Math.floor(options.clock.now().getTime() / 1000)
      const token = await new SignJWT({ uri: `${method} ${host}${path.split('?')[0]}` })
        .setProtectedHeader({ alg, kid: options.keyName, nonce: randomBytes(16).toString('hex'), typ: 'JWT' })
        .setIssuer('cdp')
        .setSubject(options.keyName)
        .setNotBefore(now)
        .setExpirationTime(now + TOKEN_SECONDS)
        .sign(key)
      return { authorization: `Bearer ${token}` }
    },
  })

  const fillsOf = async (orderId: string): Promise<Fill[] | undefined> => {
    const answer = await http({
      method: 'GET',
      path: `${API}/orders/historical/fills?order_ids=${encodeURIComponent(orderId)}`,
    })
    if (answer.kind !== 'answer' || answer.status !== 200) return undefined
    return records(record(answer.body).fills).map((fill) => ({
      fillId: textOf(fill.entry_id) || textOf(fill.trade_id),
      quantityE8: decimalE8(fill.size),
      priceE8: decimalE8(fill.price),
      feeMicro: decimalMicro(fill.commission),
      at: instant(fill.trade_time),
    }))
  }

  /** The order's own totals decide; the list of fills is taken when it adds up to them. */
  const complete = async (order: Record<string, unknown>): Promise<BrokerOrder> => {
    const base = readOrder(order)
    if (base.filledE8 === 0n || base.status === 'working') return base
    const fills = await fillsOf(base.brokerOrderId)
    const sum = fills?.reduce((total, fill) => total + fill.quantityE8, 0n)
    return fills && sum === base.filledE8 ? { ...base, fills } : base
  }

  const byId = async (orderId: string): Promise<FindOutcome> => {
    const answer = await http({ method: 'GET', path: `${API}/orders/historical/${encodeURIComponent(orderId)}` })
    if (answer.kind !== 'answer') return { outcome: 'unknown', reason: answer.reason }
    if (answer.status === 404) return { outcome: 'not_found' }
    if (answer.status !== 200) return { outcome: 'unknown', reason: words(answer) }
    return { outcome: 'found', order: await complete(record(record(answer.body).order)) }
  }

  const find = async (clientOrderId: string, since: Date): Promise<FindOutcome> => {
    let cursor = ''
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const query = `start_date=${encodeURIComponent(since.toISOString())}&limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`
      const answer = await http({ method: 'GET', path: `${API}/orders/historical/batch?${query}` })
      if (answer.kind !== 'answer' || answer.status !== 200) return { outcome: 'unknown', reason: words(answer) }
      const body = record(answer.body)
      const order = records(body.orders).find((one) => one.client_order_id === clientOrderId)
      if (order) return { outcome: 'found', order: await complete(order) }
      cursor = textOf(body.cursor)
      if (body.has_next !== true || !cursor) return { outcome: 'not_found' }
    }
    return { outcome: 'unknown', reason: 'Coinbase lists more orders than were looked through.' }
  }

  const book = async (symbol: string) => {
    const answer = await http({ method: 'GET', path: `${API}/best_bid_ask?product_ids=${encodeURIComponent(symbol)}` })
    if (answer.kind !== 'answer' || answer.status !== 200)
      return { ok: false as const, failed: failure(symbol, answer) }
    const row = records(record(answer.body).pricebooks).find((one) => one.product_id === symbol)
    const bidE8 = decimalE8(records(row?.bids)[0]?.price)
    const askE8 = decimalE8(records(row?.asks)[0]?.price)
    if (!row || bidE8 <= 0n || askE8 <= 0n) return { ok: false as const, failed: unknownSymbol(symbol) }
    return { ok: true as const, bidE8, askE8, at: instant(row.time) }
  }

  const product = async (symbol: string) => {
    const answer = await http({ method: 'GET', path: `${API}/products/${encodeURIComponent(symbol)}` })
    if (answer.kind !== 'answer' || answer.status !== 200)
      return { ok: false as const, failed: failure(symbol, answer) }
    return { ok: true as const, product: record(answer.body) }
  }

  const accounts = async (): Promise<{ ok: true; accounts: CoinbaseAccount[] } | Failed> => {
    const all: CoinbaseAccount[] = []
    let cursor = ''
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const answer = await http({
        method: 'GET',
        path: `${API}/accounts?limit=250${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
      })
      if (answer.kind !== 'answer' || answer.status !== 200) return failure('accounts', answer)
      const body = record(answer.body)
      all.push(...records(body.accounts).map(readCoinbaseAccount))
      cursor = textOf(body.cursor)
      if (body.has_next !== true || !cursor) break
    }
    return { ok: true, accounts: all }
  }

  return {
    id: 'coinbase',
    mode: 'live',
    inFlightMs: IN_FLIGHT_MS,
    supports: (type) => type === 'crypto',
    accounts,

    async instrument(_type, symbol) {
      const found = await product(symbol)
      if (!found.ok) return found.failed
      const lot = decimalE8(found.product.base_increment)
      const tick = decimalE8(found.product.quote_increment)
      const baseAsset = textOf(found.product.base_currency_id)
      return {
        ok: true,
        instrument: {
          type: 'crypto',
          symbol,
          name: textOf(found.product.base_name) || baseAsset,
          lotE8: lot > 0n ? lot : 1n,
          tickE8: tick > 0n ? tick : 1n,
          feeTier: 'advanced_1',
          takerFeeBps: 60,
          settlementLag: 'T+0',
          crypto: { baseAsset, quoteAsset: textOf(found.product.quote_currency_id), network: baseAsset.toLowerCase() },
        },
      }
    },

    async quote(_type, symbol) {
      const [best, found] = await Promise.all([book(symbol), product(symbol)])
      if (!best.ok) return best.failed
      if (!found.ok) return found.failed
      return {
        ok: true,
        quote: {
          symbol,
          bidE8: best.bidE8,
          askE8: best.askE8,
          markE8: (best.bidE8 + best.askE8) / 2n,
          source: 'coinbase',
          observedAt: best.at,
          session: 'always',
          nextOpen: null,
          halted: found.product.trading_disabled === true || found.product.is_disabled === true,
        },
      }
    },

    async estimate(_type, symbol) {
      const best = await book(symbol)
      return best.ok ? { ok: true, slippageBps: spreadBps(best.bidE8, best.askE8) } : best.failed
    },

    async account(accountId) {
      const found = await accounts()
      if (!found.ok) return found
      const dollars = found.accounts.filter(({ currency }) => currency === 'USD' || currency === 'USDC')
      const free = dollars.reduce((sum, account) => sum + decimalMicro(account.available_balance.value), 0n)
      const held = dollars.reduce((sum, account) => sum + decimalMicro(account.hold.value), 0n)
      const coins = found.accounts.filter((account) => !dollars.includes(account) && totalE8(account) > 0n)
      const positions = await Promise.all(
        coins.map(async (account) => {
          const symbol = `${account.currency}-USD`
          const best = await book(symbol)
          return {
            symbol,
            quantityE8: totalE8(account),
            worth: best.ok ? notionalMicro(best.bidE8, totalE8(account)) : 0n,
          }
        }),
      )
      return {
        ok: true,
        account: {
          accountId,
          currency: 'USD',
          cashMicro: free + held,
          unsettledMicro: 0n,
          heldMicro: held,
          buyingPowerMicro: free,
          equityMicro: positions.reduce((sum, { worth }) => sum + worth, free + held),
          // Coinbase reports balances, not what they cost: the cost shown is today's worth.
          positions: positions.map(({ symbol, quantityE8, worth }) => ({
            type: 'crypto' as const,
            symbol,
            quantityE8,
            costMicro: worth,
            marginMicro: 0n,
            leverageE2: null,
            liquidationPriceE8: null,
            lockedUntil: null,
          })),
        },
      }
    },

    async place(order) {
      const answer = await http({ method: 'POST', path: `${API}/orders`, body: orderBody(order) })
      if (answer.kind !== 'answer' || answer.status < 200 || answer.status >= 300) return placeFailure(answer, refusal)
      const body = record(answer.body)
      if (body.success !== true) return { outcome: 'rejected', reason: refusal(body) }
      // Accepted is not executed: the order itself says how far it got.
      const placed = await byId(textOf(record(body.success_response).order_id))
      if (placed.outcome === 'found') return { outcome: 'placed', order: placed.order }
      return { outcome: 'unknown', reason: 'Coinbase took the order and does not show it yet.' }
    },

    find: (_accountId, clientOrderId, since) => find(clientOrderId, since),

    async cancel(_accountId, clientOrderId, since) {
      const found = await find(clientOrderId, since)
      if (found.outcome !== 'found') return found
      if (found.order.status !== 'working') return { outcome: 'done', order: found.order }
      const body = { order_ids: [found.order.brokerOrderId] }
      const answer = await http({ method: 'POST', path: `${API}/orders/batch_cancel`, body })
      if (answer.kind !== 'answer') return { outcome: 'unknown', reason: answer.reason }
      const after = await byId(found.order.brokerOrderId)
      if (after.outcome === 'found' && after.order.status !== 'working') return { outcome: 'done', order: after.order }
      return { outcome: 'unknown', reason: 'The cancel has not taken effect yet.' }
    },
  }
}

function orderBody(order: OrderRequest) {
  return {
    client_order_id: order.clientOrderId,
    product_id: order.symbol,
    side: order.side === 'buy' ? 'BUY' : 'SELL',
    order_configuration: configuration(order),
  }
}

/** Anything with a bound goes as a limit; what must not rest says when it ends. */
function configuration(order: OrderRequest): Record<string, unknown> {
  const base_size = formatDecimal(order.quantityE8, 8)
  const limit = limitOf(order)
  if (limit === null) return { market_market_ioc: { base_size } }
  const priced = { base_size, limit_price: formatDecimal(limit, 8) }
  if (order.tif === 'ioc') return { sor_limit_ioc: priced }
  if (order.tif === 'fok') return { limit_limit_fok: priced }
  return { limit_limit_gtd: { ...priced, end_time: order.executeBy.toISOString(), post_only: false } }
}

function readOrder(order: Record<string, unknown>): BrokerOrder {
  const state = textOf(order.status)
  const status = STATUSES[state] ?? 'working'
  const filledE8 = decimalE8(order.filled_size)
  const priced = decimalE8(order.average_filled_price)
  const at = instant(order.last_fill_time ?? order.created_time)
  const reason = textOf(order.reject_message) || textOf(order.cancel_message) || `Coinbase: ${state}`
  return {
    brokerOrderId: textOf(order.order_id),
    clientOrderId: textOf(order.client_order_id),
    symbol: textOf(order.product_id),
    side: order.side === 'SELL' ? 'sell' : 'buy',
    quantityE8: sizeOf(order),
    status,
    reason: status === 'filled' || status === 'working' ? null : reason,
    filledE8,
    fills: averageFill(textOf(order.order_id), filledE8, priced, decimalMicro(order.total_fees), at),
  }
}

function sizeOf(order: Record<string, unknown>): bigint {
  const [inner] = Object.values(record(order.order_configuration))
  return decimalE8(record(inner).base_size)
}

const readCoinbaseAccount = (account: Record<string, unknown>): CoinbaseAccount => ({
  uuid: textOf(account.uuid),
  currency: textOf(account.currency),
  available_balance: readBalance(account.available_balance),
  hold: readBalance(account.hold),
  type: textOf(account.type),
})

const readBalance = (balance: unknown) => ({
  value: textOf(record(balance).value) || '0',
  currency: textOf(record(balance).currency),
})

const totalE8 = (account: CoinbaseAccount) => decimalE8(account.available_balance.value) + decimalE8(account.hold.value)

const refusal = (body: unknown) => {
  const error = record(record(body).error_response)
  return textOf(error.message) || textOf(error.error) || textOf(record(body).message) || 'Coinbase refused the order.'
}

const words = (answer: BrokerAnswer) =>
  answer.kind === 'answer' ? `Coinbase answered ${answer.status}.` : answer.reason

const unknownSymbol = (symbol: string): Failed => ({
  ok: false,
  reason: 'unknown_symbol',
  message: `${symbol} is not traded at Coinbase.`,
})

const failure = (symbol: string, answer: BrokerAnswer): Failed =>
  answer.kind === 'answer' && (answer.status === 400 || answer.status === 404)
    ? unknownSymbol(symbol)
    : { ok: false, reason: 'unavailable', message: words(answer) }
