import { createPrivateKey, sign } from 'node:crypto'
import {
  type Broker,
  type BrokerOrder,
  type Failed,
  type FindOutcome,
  formatDecimal,
  notionalMicro,
  type OrderRequest,
  type OrderStatus,
} from '../../modules/brokerage/broker.ts'
import type { Clock } from '../../platform/clock.ts'
import {
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

/** Robinhood's crypto trading API v1. Every request is signed with ed25519 over key, time, path, method and body. */
export type RobinhoodCryptoOptions = {
  apiKey: string
  /** The 32-byte ed25519 seed in base64, as Robinhood's own key tool prints it. */
  privateKey: string
  baseUrl: string
  clock: Clock
  timeoutMs?: number
}

const STATUSES: Record<string, OrderStatus> = { filled: 'filled', canceled: 'cancelled', failed: 'rejected' }
const ORDERS = '/api/v1/crypto/trading/orders/'
/** The API lists orders and finds none by client order id; ours is new, so a few pages are plenty. */
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

  const listed = async (path: string) => {
    const answer = await http({ method: 'GET', path })
    if (answer.kind !== 'answer' || answer.status !== 200) return { ok: false as const, answer }
    return { ok: true as const, results: records(record(answer.body).results), next: textOf(record(answer.body).next) }
  }

  const find = async (clientOrderId: string, since: Date): Promise<FindOutcome> => {
    let path = `${ORDERS}?created_at_start=${encodeURIComponent(since.toISOString())}&limit=100`
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const list = await listed(path)
      if (!list.ok) return { outcome: 'unknown', reason: words(list.answer) }
      const order = list.results.find((one) => one.client_order_id === clientOrderId)
      if (order) return { outcome: 'found', order: readOrder(order) }
      if (!list.next) return { outcome: 'not_found' }
      const next = new URL(list.next, options.baseUrl)
      path = `${next.pathname}${next.search}`
    }
    return { outcome: 'unknown', reason: 'Robinhood lists more orders than were looked through.' }
  }

  const bestBidAsk = async (symbol: string) => {
    const query = `symbol=${encodeURIComponent(symbol)}`
    const list = await listed(`/api/v1/crypto/marketdata/best_bid_ask/?${query}`)
    if (!list.ok) return { ok: false as const, failed: failure(symbol, list.answer) }
    const row = list.results.find((one) => one.symbol === symbol)
    return row ? { ok: true as const, row } : { ok: false as const, failed: unknownSymbol(symbol) }
  }

  return {
    id: 'robinhood-crypto',
    mode: 'live',
    inFlightMs: IN_FLIGHT_MS,
    supports: (type) => type === 'crypto',

    async instrument(_type, symbol) {
      const list = await listed(`/api/v1/crypto/trading/trading_pairs/?symbol=${encodeURIComponent(symbol)}`)
      if (!list.ok) return failure(symbol, list.answer)
      const pair = list.results.find((one) => one.symbol === symbol)
      if (!pair) return unknownSymbol(symbol)
      const lot = decimalE8(pair.asset_increment)
      const tick = decimalE8(pair.quote_increment)
      const baseAsset = textOf(pair.asset_code)
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
          crypto: { baseAsset, quoteAsset: textOf(pair.quote_code), network: baseAsset.toLowerCase() },
        },
      }
    },

    async quote(_type, symbol) {
      const best = await bestBidAsk(symbol)
      if (!best.ok) return best.failed
      return {
        ok: true,
        quote: {
          symbol,
          bidE8: decimalE8(best.row.bid_inclusive_of_sell_spread),
          askE8: decimalE8(best.row.ask_inclusive_of_buy_spread),
          markE8: decimalE8(best.row.price),
          source: 'robinhood',
          observedAt: instant(best.row.timestamp),
          session: 'always',
          nextOpen: null,
          halted: false,
        },
      }
    },

    async estimate(_type, symbol) {
      const best = await bestBidAsk(symbol)
      if (!best.ok) return best.failed
      const bid = decimalE8(best.row.bid_inclusive_of_sell_spread)
      return { ok: true, slippageBps: spreadBps(bid, decimalE8(best.row.ask_inclusive_of_buy_spread)) }
    },

    async account(accountId) {
      const [account, holdings] = await Promise.all([
        http({ method: 'GET', path: '/api/v1/crypto/trading/accounts/' }),
        listed('/api/v1/crypto/trading/holdings/'),
      ])
      if (account.kind !== 'answer' || account.status !== 200) return failure('account', account)
      if (!holdings.ok) return failure('holdings', holdings.answer)
      const body = record(account.body)
      const buyingPowerMicro = decimalMicro(body.buying_power)
      const positions = await Promise.all(
        holdings.results.map(async (holding) => {
          const symbol = `${textOf(holding.asset_code)}-USD`
          const best = await bestBidAsk(symbol)
          const quantityE8 = decimalE8(holding.total_quantity)
          const worth = best.ok ? notionalMicro(decimalE8(best.row.price), quantityE8) : 0n
          return { symbol, quantityE8, worth }
        }),
      )
      return {
        ok: true,
        account: {
          accountId,
          currency: textOf(body.buying_power_currency) || 'USD',
          cashMicro: buyingPowerMicro,
          unsettledMicro: 0n,
          heldMicro: 0n,
          buyingPowerMicro,
          equityMicro: positions.reduce((sum, { worth }) => sum + worth, buyingPowerMicro),
          // Robinhood reports what is held, not what it cost: the cost shown is today's worth.
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
      const answer = await http({ method: 'POST', path: ORDERS, body: orderBody(order) })
      if (answer.kind === 'answer' && answer.status >= 200 && answer.status < 300) {
        return { outcome: 'placed', order: readOrder(record(answer.body)) }
      }
      return placeFailure(answer, refusal)
    },

    find: (_accountId, clientOrderId, since) => find(clientOrderId, since),

    async cancel(_accountId, clientOrderId, since) {
      const found = await find(clientOrderId, since)
      if (found.outcome !== 'found') return found
      if (found.order.status !== 'working') return { outcome: 'done', order: found.order }
      const answer = await http({ method: 'POST', path: `${ORDERS}${found.order.brokerOrderId}/cancel/` })
      if (answer.kind !== 'answer') return { outcome: 'unknown', reason: answer.reason }
      const after = await find(clientOrderId, since)
      if (after.outcome === 'found' && after.order.status !== 'working') return { outcome: 'done', order: after.order }
      return { outcome: 'unknown', reason: 'The cancel has not taken effect yet.' }
    },
  }
}

/** A market order here would take any price; a limit at the collar takes the market's price and no worse. */
function orderBody(order: OrderRequest) {
  const limit = limitOf(order)
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

function readOrder(order: Record<string, unknown>): BrokerOrder {
  const config = { ...record(order.market_order_config), ...record(order.limit_order_config) }
  const state = textOf(order.state)
  const status = STATUSES[state] ?? 'working'
  return {
    brokerOrderId: textOf(order.id),
    clientOrderId: textOf(order.client_order_id),
    symbol: textOf(order.symbol),
    side: order.side === 'sell' ? 'sell' : 'buy',
    quantityE8: decimalE8(config.asset_quantity),
    status,
    reason: status === 'filled' || status === 'working' ? null : `Robinhood: ${state}`,
    filledE8: decimalE8(order.filled_asset_quantity),
    fills: records(order.executions).map((execution, index) => ({
      fillId: `${textOf(order.id)}-${index + 1}`,
      quantityE8: decimalE8(execution.quantity),
      priceE8: decimalE8(execution.effective_price),
      feeMicro: 0n,
      at: instant(execution.timestamp),
    })),
  }
}

const refusal = (body: unknown) => {
  const first = records(record(body).errors)[0]
  return textOf(first?.detail) || textOf(record(body).detail) || 'Robinhood refused the order.'
}

const words = (answer: BrokerAnswer) =>
  answer.kind === 'answer' ? `Robinhood answered ${answer.status}.` : answer.reason

const unknownSymbol = (symbol: string): Failed => ({
  ok: false,
  reason: 'unknown_symbol',
  message: `${symbol} is not traded at Robinhood.`,
})

const failure = (symbol: string, answer: BrokerAnswer): Failed =>
  answer.kind === 'answer' && (answer.status === 400 || answer.status === 404)
    ? unknownSymbol(symbol)
    : { ok: false, reason: 'unavailable', message: words(answer) }
