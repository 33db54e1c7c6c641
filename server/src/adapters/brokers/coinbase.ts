import { createPrivateKey, randomBytes } from 'node:crypto'
import { SignJWT } from 'jose'
import {
  type Broker,
  type BrokerFailure,
  type BrokerOrder,
  type CoinbaseAccount,
  type Fill,
  type FindOutcome,
  formatDecimal,
  notionalMicro,
  type OrderRequest,
  type OrderStatus,
  worstAcceptedPriceE8,
} from '../../modules/brokerage/broker.ts'
import type { Clock } from '../../platform/clock.ts'
import {
  asDate,
  asObject,
  asObjects,
  asText,
  type BrokerResponse,
  createBrokerHttp,
  IN_FLIGHT_MS,
  parseE8,
  parseMicro,
  searchStart,
  spreadBps,
  toAverageFill,
  toFailedPlaceOutcome,
} from './broker-http.ts'

/** Coinbase Advanced Trade (`/api/v3/brokerage`). Each request carries its own JWT, bound to method and path. */
export type CoinbaseOptions = {
  keyName: string
  /** The key's PEM as Coinbase gives it: P-256, or ed25519 for newer keys. */
  privateKey: string
  baseUrl: string
  clock: Clock
  timeoutMs?: number
}

/** `accounts` lists the accounts as Coinbase does, for `/api/cb/receipts?type=accounts`. */
export type CoinbaseBroker = Broker & {
  accounts(): Promise<{ ok: true; accounts: CoinbaseAccount[] } | BrokerFailure>
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

  const fetchFills = async (orderId: string): Promise<Fill[] | undefined> => {
    const response = await http({
      method: 'GET',
      path: `${API}/orders/historical/fills?order_ids=${encodeURIComponent(orderId)}`,
    })
    if (response.kind !== 'response' || response.status !== 200) return undefined
    return asObjects(asObject(response.body).fills).map((fill) => ({
      fillId: asText(fill.entry_id) || asText(fill.trade_id),
      quantityE8: parseE8(fill.size),
      priceE8: parseE8(fill.price),
      feeMicro: parseMicro(fill.commission),
      at: asDate(fill.trade_time),
    }))
  }

  /** The order's totals are authoritative; the list of fills is used only when it adds up to them. */
  const withFills = async (order: Record<string, unknown>): Promise<BrokerOrder> => {
    const base = toBrokerOrder(order)
    if (base.filledE8 === 0n || base.status === 'working') return base
    const fills = await fetchFills(base.brokerOrderId)
    const sum = fills?.reduce((total, fill) => total + fill.quantityE8, 0n)
    return fills && sum === base.filledE8 ? { ...base, fills } : base
  }

  const findOrderById = async (orderId: string): Promise<FindOutcome> => {
    const response = await http({ method: 'GET', path: `${API}/orders/historical/${encodeURIComponent(orderId)}` })
    if (response.kind !== 'response') return { outcome: 'unknown', reason: response.reason }
    if (response.status === 404) return { outcome: 'not_found' }
    if (response.status !== 200) return { outcome: 'unknown', reason: describeFailure(response) }
    return { outcome: 'found', order: await withFills(asObject(asObject(response.body).order)) }
  }

  const findOrder = async (clientOrderId: string, since: Date): Promise<FindOutcome> => {
    let cursor = ''
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const query = `start_date=${encodeURIComponent(searchStart(since))}&limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`
      const response = await http({ method: 'GET', path: `${API}/orders/historical/batch?${query}` })
      if (response.kind !== 'response' || response.status !== 200)
        return { outcome: 'unknown', reason: describeFailure(response) }
      const body = asObject(response.body)
      const order = asObjects(body.orders).find((row) => row.client_order_id === clientOrderId)
      if (order) return { outcome: 'found', order: await withFills(order) }
      cursor = asText(body.cursor)
      if (body.has_next !== true || !cursor) return { outcome: 'not_found' }
    }
    return { outcome: 'unknown', reason: 'Coinbase lists more orders than were searched.' }
  }

  const fetchBestBidAsk = async (symbol: string) => {
    const response = await http({
      method: 'GET',
      path: `${API}/best_bid_ask?product_ids=${encodeURIComponent(symbol)}`,
    })
    if (response.kind !== 'response' || response.status !== 200)
      return { ok: false as const, failure: toBrokerFailure(symbol, response) }
    const row = asObjects(asObject(response.body).pricebooks).find((row) => row.product_id === symbol)
    const bidE8 = parseE8(asObjects(row?.bids)[0]?.price)
    const askE8 = parseE8(asObjects(row?.asks)[0]?.price)
    if (!row || bidE8 <= 0n || askE8 <= 0n) return { ok: false as const, failure: unknownSymbol(symbol) }
    return { ok: true as const, bidE8, askE8, at: asDate(row.time) }
  }

  const fetchProduct = async (symbol: string) => {
    const response = await http({ method: 'GET', path: `${API}/products/${encodeURIComponent(symbol)}` })
    if (response.kind !== 'response' || response.status !== 200)
      return { ok: false as const, failure: toBrokerFailure(symbol, response) }
    return { ok: true as const, product: asObject(response.body) }
  }

  const accounts = async (): Promise<{ ok: true; accounts: CoinbaseAccount[] } | BrokerFailure> => {
    const accounts: CoinbaseAccount[] = []
    let cursor = ''
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const response = await http({
        method: 'GET',
        path: `${API}/accounts?limit=250${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
      })
      if (response.kind !== 'response' || response.status !== 200) return toBrokerFailure('accounts', response)
      const body = asObject(response.body)
      accounts.push(...asObjects(body.accounts).map(toCoinbaseAccount))
      cursor = asText(body.cursor)
      if (body.has_next !== true || !cursor) break
    }
    return { ok: true, accounts: accounts }
  }

  return {
    id: 'coinbase',
    mode: 'live',
    inFlightMs: IN_FLIGHT_MS,
    supports: (type) => type === 'crypto',
    accounts,

    async instrument(_type, symbol) {
      const productResult = await fetchProduct(symbol)
      if (!productResult.ok) return productResult.failure
      const lot = parseE8(productResult.product.base_increment)
      const tick = parseE8(productResult.product.quote_increment)
      const baseAsset = asText(productResult.product.base_currency_id)
      return {
        ok: true,
        instrument: {
          type: 'crypto',
          symbol,
          name: asText(productResult.product.base_name) || baseAsset,
          lotE8: lot > 0n ? lot : 1n,
          tickE8: tick > 0n ? tick : 1n,
          feeTier: 'advanced_1',
          takerFeeBps: 60,
          settlementLag: 'T+0',
          crypto: {
            baseAsset,
            quoteAsset: asText(productResult.product.quote_currency_id),
            network: baseAsset.toLowerCase(),
          },
        },
      }
    },

    async quote(_type, symbol) {
      const [bestResult, productResult] = await Promise.all([fetchBestBidAsk(symbol), fetchProduct(symbol)])
      if (!bestResult.ok) return bestResult.failure
      if (!productResult.ok) return productResult.failure
      return {
        ok: true,
        quote: {
          symbol,
          bidE8: bestResult.bidE8,
          askE8: bestResult.askE8,
          markE8: (bestResult.bidE8 + bestResult.askE8) / 2n,
          source: 'coinbase',
          observedAt: bestResult.at,
          session: 'always',
          nextOpen: null,
          halted: productResult.product.trading_disabled === true || productResult.product.is_disabled === true,
        },
      }
    },

    async estimate(_type, symbol) {
      const bestResult = await fetchBestBidAsk(symbol)
      return bestResult.ok
        ? { ok: true, slippageBps: spreadBps(bestResult.bidE8, bestResult.askE8) }
        : bestResult.failure
    },

    async account(accountId) {
      const accountsResult = await accounts()
      if (!accountsResult.ok) return accountsResult
      const dollars = accountsResult.accounts.filter(({ currency }) => currency === 'USD' || currency === 'USDC')
      const freeMicro = dollars.reduce((sum, account) => sum + parseMicro(account.available_balance.value), 0n)
      const heldMicro = dollars.reduce((sum, account) => sum + parseMicro(account.hold.value), 0n)
      const coins = accountsResult.accounts.filter((account) => !dollars.includes(account) && totalE8(account) > 0n)
      const positions = await Promise.all(
        coins.map(async (account) => {
          const symbol = `${account.currency}-USD`
          const bestResult = await fetchBestBidAsk(symbol)
          return {
            symbol,
            quantityE8: totalE8(account),
            valueMicro: bestResult.ok ? notionalMicro(bestResult.bidE8, totalE8(account)) : 0n,
          }
        }),
      )
      return {
        ok: true,
        account: {
          accountId,
          currency: 'USD',
          cashMicro: freeMicro + heldMicro,
          unsettledMicro: 0n,
          heldMicro: heldMicro,
          buyingPowerMicro: freeMicro,
          equityMicro: positions.reduce((sum, { valueMicro }) => sum + valueMicro, freeMicro + heldMicro),
          // Coinbase reports balances and no cost, so the current value is used as the cost.
          positions: positions.map(({ symbol, quantityE8, valueMicro }) => ({
            type: 'crypto' as const,
            symbol,
            quantityE8,
            costMicro: valueMicro,
            marginMicro: 0n,
            leverageE2: null,
            liquidationPriceE8: null,
            lockedUntil: null,
          })),
        },
      }
    },

    async place(order) {
      const response = await http({ method: 'POST', path: `${API}/orders`, body: toOrderBody(order) })
      if (response.kind !== 'response' || response.status < 200 || response.status >= 300)
        return toFailedPlaceOutcome(response, formatRefusal)
      const body = asObject(response.body)
      if (body.success !== true) return { outcome: 'rejected', reason: formatRefusal(body) }
      // An accepted order is not an executed one, so its state is read.
      const findResult = await findOrderById(asText(asObject(body.success_response).order_id))
      if (findResult.outcome === 'found') return { outcome: 'placed', order: findResult.order }
      return { outcome: 'unknown', reason: 'Coinbase accepted the order and does not return it yet.' }
    },

    find: (_accountId, clientOrderId, since) => findOrder(clientOrderId, since),

    async cancel(_accountId, clientOrderId, since) {
      const findResult = await findOrder(clientOrderId, since)
      if (findResult.outcome !== 'found') return findResult
      if (findResult.order.status !== 'working') return { outcome: 'done', order: findResult.order }
      const body = { order_ids: [findResult.order.brokerOrderId] }
      const response = await http({ method: 'POST', path: `${API}/orders/batch_cancel`, body })
      if (response.kind !== 'response') return { outcome: 'unknown', reason: response.reason }
      const findAfterCancel = await findOrderById(findResult.order.brokerOrderId)
      if (findAfterCancel.outcome === 'found' && findAfterCancel.order.status !== 'working')
        return { outcome: 'done', order: findAfterCancel.order }
      return { outcome: 'unknown', reason: 'The cancel has not taken effect yet.' }
    },
  }
}

function toOrderBody(order: OrderRequest) {
  return {
    client_order_id: order.clientOrderId,
    product_id: order.symbol,
    side: order.side === 'buy' ? 'BUY' : 'SELL',
    order_configuration: toOrderConfiguration(order),
  }
}

/** An order with a limit or a collar is sent as a limit order; one that may rest ends at the run's deadline. */
function toOrderConfiguration(order: OrderRequest): Record<string, unknown> {
  const base_size = formatDecimal(order.quantityE8, 8)
  // Brokers have limit prices, not collars.
  const limit = worstAcceptedPriceE8(order)
  if (limit === null) return { market_market_ioc: { base_size } }
  const limitSizes = { base_size, limit_price: formatDecimal(limit, 8) }
  if (order.tif === 'ioc') return { sor_limit_ioc: limitSizes }
  if (order.tif === 'fok') return { limit_limit_fok: limitSizes }
  return { limit_limit_gtd: { ...limitSizes, end_time: order.executeBy.toISOString(), post_only: false } }
}

function toBrokerOrder(order: Record<string, unknown>): BrokerOrder {
  const state = asText(order.status)
  const status = STATUSES[state] ?? 'working'
  const filledE8 = parseE8(order.filled_size)
  const averagePriceE8 = parseE8(order.average_filled_price)
  const at = asDate(order.last_fill_time ?? order.created_time)
  const reason = asText(order.reject_message) || asText(order.cancel_message) || `Coinbase: ${state}`
  return {
    brokerOrderId: asText(order.order_id),
    clientOrderId: asText(order.client_order_id),
    symbol: asText(order.product_id),
    side: order.side === 'SELL' ? 'sell' : 'buy',
    quantityE8: parseOrderSizeE8(order),
    status,
    reason: status === 'filled' || status === 'working' ? null : reason,
    filledE8,
    fills: toAverageFill(asText(order.order_id), filledE8, averagePriceE8, parseMicro(order.total_fees), at),
  }
}

function parseOrderSizeE8(order: Record<string, unknown>): bigint {
  const [sizes] = Object.values(asObject(order.order_configuration))
  return parseE8(asObject(sizes).base_size)
}

const toCoinbaseAccount = (account: Record<string, unknown>): CoinbaseAccount => ({
  uuid: asText(account.uuid),
  currency: asText(account.currency),
  available_balance: toBalance(account.available_balance),
  hold: toBalance(account.hold),
  type: asText(account.type),
})

const toBalance = (balance: unknown) => ({
  value: asText(asObject(balance).value) || '0',
  currency: asText(asObject(balance).currency),
})

const totalE8 = (account: CoinbaseAccount) => parseE8(account.available_balance.value) + parseE8(account.hold.value)

const formatRefusal = (body: unknown) => {
  const error = asObject(asObject(body).error_response)
  return asText(error.message) || asText(error.error) || asText(asObject(body).message) || 'Coinbase refused the order.'
}

const describeFailure = (response: BrokerResponse) =>
  response.kind === 'response' ? `Coinbase answered ${response.status}.` : response.reason

const unknownSymbol = (symbol: string): BrokerFailure => ({
  ok: false,
  reason: 'unknown_symbol',
  message: `${symbol} is not traded at Coinbase.`,
})

const toBrokerFailure = (symbol: string, response: BrokerResponse): BrokerFailure =>
  response.kind === 'response' && (response.status === 400 || response.status === 404)
    ? unknownSymbol(symbol)
    : { ok: false, reason: 'unavailable', message: describeFailure(response) }
