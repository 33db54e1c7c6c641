import { createPrivateKey, sign } from 'node:crypto'
import {
  type Broker,
  type BrokerFailure,
  type BrokerOrder,
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
  toFailedPlaceOutcome,
} from './broker-http.ts'

/** Robinhood's crypto trading API v1. Every request is signed with ed25519 over key, time, path, method and body. */
export type RobinhoodCryptoOptions = {
  apiKey: string
  /** The 32-byte ed25519 seed in base64, as Robinhood's own key tool prints it. */
  privateKey: string
  baseUrl: string
  clock: Clock
  timeoutMs?: number
}

const STATUSES: Record<string, OrderStatus> = { filled: 'filled', canceled: 'cancelled', failure: 'rejected' }
const ORDERS = '/api/v1/crypto/trading/orders/'
/** The API cannot find an order by client order id, only list orders. The order is recent, so a few pages are enough. */
const MAX_PAGES = 5
const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

export function createRobinhoodCryptoBroker(options: RobinhoodCryptoOptions): Broker {
  const seed = Buffer.from(options.privateKey, 'base64').subarray(0, 32)
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_ED25519, seed]), format: 'der', type: 'pkcs8' })

  const http = createBrokerHttp({
    baseUrl: options.baseUrl,
    timeoutMs: options.timeoutMs,
    authorize: async ({ method, path, body }) => {
      const timestamp = `${Math.floor(options.clock.now().getTime() / 1000)}`
      const message = `${options.apiKey}${timestamp}${path}${method}${body}`
      const signature = sign(null, Buffer.from(message), key).toString('base64')
      return { 'x-api-key': options.apiKey, 'x-timestamp': timestamp, 'x-signature': signature }
    },
  })

  const fetchList = async (path: string) => {
    const response = await http({ method: 'GET', path })
    if (response.kind !== 'response' || response.status !== 200) return { ok: false as const, response }
    return {
      ok: true as const,
      results: asObjects(asObject(response.body).results),
      next: asText(asObject(response.body).next),
    }
  }

  const findOrder = async (clientOrderId: string, since: Date): Promise<FindOutcome> => {
    let path = `${ORDERS}?created_at_start=${encodeURIComponent(searchStart(since))}&limit=100`
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const list = await fetchList(path)
      if (!list.ok) return { outcome: 'unknown', reason: describeFailure(list.response) }
      const order = list.results.find((row) => row.client_order_id === clientOrderId)
      if (order) return { outcome: 'found', order: toBrokerOrder(order) }
      if (!list.next) return { outcome: 'not_found' }
      const next = new URL(list.next, options.baseUrl)
      path = `${next.pathname}${next.search}`
    }
    return { outcome: 'unknown', reason: 'Robinhood lists more orders than were searched.' }
  }

  const fetchBestBidAsk = async (symbol: string) => {
    const query = `symbol=${encodeURIComponent(symbol)}`
    const list = await fetchList(`/api/v1/crypto/marketdata/best_bid_ask/?${query}`)
    if (!list.ok) return { ok: false as const, failure: toBrokerFailure(symbol, list.response) }
    const row = list.results.find((row) => row.symbol === symbol)
    return row ? { ok: true as const, row } : { ok: false as const, failure: unknownSymbol(symbol) }
  }

  return {
    id: 'robinhood-crypto',
    mode: 'live',
    inFlightMs: IN_FLIGHT_MS,
    supports: (type) => type === 'crypto',

    async instrument(_type, symbol) {
      const list = await fetchList(`/api/v1/crypto/trading/trading_pairs/?symbol=${encodeURIComponent(symbol)}`)
      if (!list.ok) return toBrokerFailure(symbol, list.response)
      const pair = list.results.find((row) => row.symbol === symbol)
      if (!pair) return unknownSymbol(symbol)
      const lot = parseE8(pair.asset_increment)
      const tick = parseE8(pair.quote_increment)
      const baseAsset = asText(pair.asset_code)
      return {
        ok: true,
        instrument: {
          type: 'crypto',
          symbol,
          name: baseAsset,
          lotE8: lot > 0n ? lot : 1n,
          tickE8: tick > 0n ? tick : 1n,
          feeTier: 'spread',
          takerFeeBps: 0,
          settlementLag: 'T+0',
          crypto: { baseAsset, quoteAsset: asText(pair.quote_code), network: baseAsset.toLowerCase() },
        },
      }
    },

    async quote(_type, symbol) {
      const bestResult = await fetchBestBidAsk(symbol)
      if (!bestResult.ok) return bestResult.failure
      return {
        ok: true,
        quote: {
          symbol,
          bidE8: parseE8(bestResult.row.bid_inclusive_of_sell_spread),
          askE8: parseE8(bestResult.row.ask_inclusive_of_buy_spread),
          markE8: parseE8(bestResult.row.price),
          source: 'robinhood',
          observedAt: asDate(bestResult.row.timestamp),
          session: 'always',
          nextOpen: null,
          halted: false,
        },
      }
    },

    async estimate(_type, symbol) {
      const bestResult = await fetchBestBidAsk(symbol)
      if (!bestResult.ok) return bestResult.failure
      const bid = parseE8(bestResult.row.bid_inclusive_of_sell_spread)
      return { ok: true, slippageBps: spreadBps(bid, parseE8(bestResult.row.ask_inclusive_of_buy_spread)) }
    },

    async account(accountId) {
      const [account, holdings] = await Promise.all([
        http({ method: 'GET', path: '/api/v1/crypto/trading/accounts/' }),
        fetchList('/api/v1/crypto/trading/holdings/'),
      ])
      if (account.kind !== 'response' || account.status !== 200) return toBrokerFailure('account', account)
      if (!holdings.ok) return toBrokerFailure('holdings', holdings.response)
      const body = asObject(account.body)
      const buyingPowerMicro = parseMicro(body.buying_power)
      const positions = await Promise.all(
        holdings.results.map(async (holding) => {
          const symbol = `${asText(holding.asset_code)}-USD`
          const bestResult = await fetchBestBidAsk(symbol)
          const quantityE8 = parseE8(holding.total_quantity)
          const valueMicro = bestResult.ok ? notionalMicro(parseE8(bestResult.row.price), quantityE8) : 0n
          return { symbol, quantityE8, worth: valueMicro }
        }),
      )
      return {
        ok: true,
        account: {
          accountId,
          currency: asText(body.buying_power_currency) || 'USD',
          cashMicro: buyingPowerMicro,
          unsettledMicro: 0n,
          heldMicro: 0n,
          buyingPowerMicro,
          equityMicro: positions.reduce((sum, { worth: valueMicro }) => sum + valueMicro, buyingPowerMicro),
          // Robinhood reports holdings and no cost, so the current value is used as the cost.
          positions: positions.map(({ symbol, quantityE8, worth: valueMicro }) => ({
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
      const response = await http({ method: 'POST', path: ORDERS, body: toOrderBody(order) })
      if (response.kind === 'response' && response.status >= 200 && response.status < 300) {
        return { outcome: 'placed', order: toBrokerOrder(asObject(response.body)) }
      }
      return toFailedPlaceOutcome(response, formatRefusal)
    },

    find: (_accountId, clientOrderId, since) => findOrder(clientOrderId, since),

    async cancel(_accountId, clientOrderId, since) {
      const findResult = await findOrder(clientOrderId, since)
      if (findResult.outcome !== 'found') return findResult
      if (findResult.order.status !== 'working') return { outcome: 'done', order: findResult.order }
      const response = await http({ method: 'POST', path: `${ORDERS}${findResult.order.brokerOrderId}/cancel/` })
      if (response.kind !== 'response') return { outcome: 'unknown', reason: response.reason }
      const findAfterCancel = await findOrder(clientOrderId, since)
      if (findAfterCancel.outcome === 'found' && findAfterCancel.order.status !== 'working')
        return { outcome: 'done', order: findAfterCancel.order }
      return { outcome: 'unknown', reason: 'The cancel has not taken effect yet.' }
    },
  }
}

/** A market order at Robinhood accepts any price, so an order with a collar is sent as a limit order at the collar. */
function toOrderBody(order: OrderRequest) {
  // Brokers have limit prices, not collars.
  const limit = worstAcceptedPriceE8(order)
  const quantity = formatDecimal(order.quantityE8, 8)
  const config =
    limit === null
      ? { type: 'market', market_order_config: { asset_quantity: quantity } }
      : {
          type: 'limit',
          limit_order_config: { asset_quantity: quantity, limit_price: formatDecimal(limit, 8), time_in_force: 'gtc' },
        }
  return { client_order_id: order.clientOrderId, side: order.side, symbol: order.symbol, ...config }
}

function toBrokerOrder(order: Record<string, unknown>): BrokerOrder {
  const config = { ...asObject(order.market_order_config), ...asObject(order.limit_order_config) }
  const state = asText(order.state)
  const status = STATUSES[state] ?? 'working'
  return {
    brokerOrderId: asText(order.id),
    clientOrderId: asText(order.client_order_id),
    symbol: asText(order.symbol),
    side: order.side === 'sell' ? 'sell' : 'buy',
    quantityE8: parseE8(config.asset_quantity),
    status,
    reason: status === 'filled' || status === 'working' ? null : `Robinhood: ${state}`,
    filledE8: parseE8(order.filled_asset_quantity),
    fills: asObjects(order.executions).map((execution, index) => ({
      fillId: `${asText(order.id)}-${index + 1}`,
      quantityE8: parseE8(execution.quantity),
      priceE8: parseE8(execution.effective_price),
      feeMicro: 0n,
      at: asDate(execution.timestamp),
    })),
  }
}

const formatRefusal = (body: unknown) => {
  const firstError = asObjects(asObject(body).errors)[0]
  return asText(firstError?.detail) || asText(asObject(body).detail) || 'Robinhood refused the order.'
}

const describeFailure = (response: BrokerResponse) =>
  response.kind === 'response' ? `Robinhood answered ${response.status}.` : response.reason

const unknownSymbol = (symbol: string): BrokerFailure => ({
  ok: false,
  reason: 'unknown_symbol',
  message: `${symbol} is not traded at Robinhood.`,
})

const toBrokerFailure = (symbol: string, response: BrokerResponse): BrokerFailure =>
  response.kind === 'response' && (response.status === 400 || response.status === 404)
    ? unknownSymbol(symbol)
    : { ok: false, reason: 'unavailable', message: describeFailure(response) }
