import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  createExchange,
  filledE8,
  formatAveragePrice,
  formatE8,
  formatMicro,
  serveExchange,
} from '../../../test/brokerage/fake-exchange.ts'
import { createOrder, e8 } from '../../../test/brokerage/manual-market.ts'
import { createTestClock } from '../../../test/clock.ts'
import { remoteBrokerContract } from '../../../test/contract/broker.ts'
import { createRobinhoodCryptoBroker } from './robinhood-crypto.ts'

type Config = { asset_quantity: string; limit_price?: string }
type RobinhoodOrderRequest = {
  client_order_id: string
  symbol: string
  side: 'buy' | 'sell'
  market_order_config?: Config
  limit_order_config?: Config
}

const { privateKey } = generateKeyPairSync('ed25519')
const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32).toString('base64')
const SYMBOL = 'SOL-USD'

/** A fake of Robinhood's crypto API that checks every signature. */
async function openRobinhood() {
  const exchange = createExchange(SYMBOL, '200')
  const clock = createTestClock()
  const publicKey = createPublicKey(privateKey)
  const toRobinhoodOrder = (order: NonNullable<ReturnType<typeof exchange.submit>>) => ({
    id: order.id,
    client_order_id: order.clientOrderId,
    symbol: order.symbol,
    side: order.side,
    type: order.limitE8 === null ? 'market' : 'limit',
    state: order.status === 'open' && order.fills.length > 0 ? 'partially_filled' : order.status,
    average_price: formatAveragePrice(order),
    filled_asset_quantity: formatE8(filledE8(order)),
    executions: order.fills.map((fill) => ({
      effective_price: formatE8(fill.priceE8),
      quantity: formatE8(fill.quantityE8),
      timestamp: fill.at.toISOString(),
    })),
    created_at: order.createdAt.toISOString(),
    limit_order_config: { asset_quantity: formatE8(order.quantityE8) },
  })
  const server = await serveExchange(exchange, ({ method, path, query, headers, body, json }) => {
    const target = query.size > 0 ? `${path}?${query}` : path
    const message = `rh-key${headers['x-timestamp']}${target}${method}${body}`
    const signature = Buffer.from(String(headers['x-signature']), 'base64')
    if (headers['x-api-key'] !== 'rh-key' || !verify(null, Buffer.from(message), publicKey, signature))
      return { status: 401, body: { errors: [] } }
    if (path.endsWith('/trading_pairs/')) {
      const isListed = query.get('symbol') === SYMBOL
      return {
        status: 200,
        body: {
          next: null,
          results: isListed
            ? [
                {
                  symbol: SYMBOL,
                  asset_code: 'SOL',
                  quote_code: 'USD',
                  asset_increment: '0.00000001',
                  quote_increment: '0.01',
                },
              ]
            : [],
        },
      }
    }
    if (path.endsWith('/best_bid_ask/')) {
      const row = {
        symbol: SYMBOL,
        price: formatE8(exchange.state.priceE8),
        bid_inclusive_of_sell_spread: formatE8(exchange.bid()),
        ask_inclusive_of_buy_spread: formatE8(exchange.ask()),
        timestamp: '2026-11-16T16:00:00Z',
      }
      return { status: 200, body: { results: [row] } }
    }
    if (path.endsWith('/accounts/'))
      return {
        status: 200,
        body: {
          account_number: '1',
          status: 'active',
          buying_power: formatMicro(exchange.state.cashMicro),
          buying_power_currency: 'USD',
        },
      }
    if (path.endsWith('/holdings/')) {
      const rows =
        exchange.state.heldE8 > 0n ? [{ asset_code: 'SOL', total_quantity: formatE8(exchange.state.heldE8) }] : []
      return { status: 200, body: { next: null, results: rows } }
    }
    if (method === 'POST' && path.endsWith('/orders/')) {
      const orderRequest = json as unknown as RobinhoodOrderRequest
      const existingOrder = exchange.find(orderRequest.client_order_id)
      if (existingOrder) return { status: 201, body: toRobinhoodOrder(existingOrder) }
      const config = orderRequest.limit_order_config ?? orderRequest.market_order_config!
      // Robinhood has no immediate-or-cancel: the unfilled rest of an order stays in the market.
      const order = exchange.submit({
        clientOrderId: orderRequest.client_order_id,
        symbol: orderRequest.symbol,
        side: orderRequest.side,
        quantityE8: e8(config.asset_quantity),
        limitE8: config.limit_price ? e8(config.limit_price) : null,
        tif: 'gtc',
      })
      return order
        ? { status: 201, body: toRobinhoodOrder(order) }
        : {
            status: 400,
            body: { type: 'validation_error', errors: [{ detail: 'Not enough buying power.', attr: null }] },
          }
    }
    if (method === 'POST' && path.endsWith('/cancel/')) {
      const order = exchange.byId(path.split('/').at(-3)!)
      if (order) exchange.cancel(order)
      return { status: order ? 200 : 404, body: {} }
    }
    // Two orders for each page, newest first, so that finding one takes several pages.
    const newest = [...exchange.orders].reverse()
    const from = Number(query.get('cursor') ?? 0)
    const next =
      from + 2 < newest.length && newest.length < 9 ? `https://trading.example${path}?cursor=${from + 2}` : null
    const page = newest.length < 9 ? newest.slice(from, from + 2) : newest
    return { status: 200, body: { next, results: page.map(toRobinhoodOrder) } }
  })
  const broker = createRobinhoodCryptoBroker({
    apiKey: 'rh-key',
    privateKey: seed,
    baseUrl: server.url,
    clock,
    timeoutMs: 2000,
  })
  return { exchange, served: server, broker }
}

remoteBrokerContract('the Robinhood crypto adapter', async () => {
  const { exchange, served: server, broker } = await openRobinhood()
  return {
    // An order with a collar rests at Robinhood until it is cancelled, as a run does at its deadline.
    broker: { ...broker, place: async (request) => cancelRemainder(broker, request, await broker.place(request)) },
    type: 'crypto',
    symbol: SYMBOL,
    setPrice: (price) => {
      exchange.state.priceE8 = price
    },
    setPartialFills: (on) => {
      exchange.state.fillsHalf = on
    },
    setFault: (fault) => {
      exchange.state.fault = fault
    },
    countOrders: () => exchange.orders.length,
    close: () => server.close(),
  }
})

type Robinhood = ReturnType<typeof createRobinhoodCryptoBroker>

async function cancelRemainder(
  broker: Robinhood,
  request: Parameters<Robinhood['place']>[0],
  outcome: Awaited<ReturnType<Robinhood['place']>>,
) {
  if (request.tif !== 'ioc' || outcome.outcome !== 'placed' || outcome.order.status !== 'working') return outcome
  const cancelResult = await broker.cancel(request.accountId, request.clientOrderId, new Date('2026-11-16T00:00:00Z'))
  return cancelResult.outcome === 'done' ? { outcome: 'placed' as const, order: cancelResult.order } : outcome
}

test('with a wrong signature the broker is unavailable and no order is placed', async () => {
  const { exchange, served: server } = await openRobinhood()
  const other = generateKeyPairSync('ed25519')
    .privateKey.export({ format: 'der', type: 'pkcs8' })
    .subarray(-32)
    .toString('base64')
  const broker = createRobinhoodCryptoBroker({
    apiKey: 'rh-key',
    privateKey: other,
    baseUrl: server.url,
    clock: createTestClock(),
  })
  expect((await broker.place(createOrder({ type: 'crypto', symbol: SYMBOL }))).outcome).toBe('unavailable')
  expect(exchange.orders).toHaveLength(0)
  await server.close()
})
