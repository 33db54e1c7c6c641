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
import { remoteBrokerContract } from '../../../test/contract/broker.ts'
import { createAlpacaBroker } from './alpaca.ts'

type AlpacaOrder = {
  client_order_id: string
  symbol: string
  side: 'buy' | 'sell'
  qty: string
  type: string
  limit_price?: string
  time_in_force: string
}

/** A fake of Alpaca's trading and data APIs. */
async function openAlpaca() {
  const exchange = createExchange('AAPL', '200')
  const placedOrders: AlpacaOrder[] = []
  const toAlpacaOrder = (order: ReturnType<typeof exchange.submit>) =>
    order && {
      id: order.id,
      client_order_id: order.clientOrderId,
      symbol: order.symbol,
      side: order.side,
      qty: formatE8(order.quantityE8),
      filled_qty: formatE8(filledE8(order)),
      filled_avg_price: formatAveragePrice(order),
      filled_at: order.fills[0]?.at.toISOString() ?? null,
      updated_at: order.createdAt.toISOString(),
      status: order.status === 'open' ? (order.fills.length > 0 ? 'partially_filled' : 'new') : order.status,
    }
  const server = await serveExchange(exchange, ({ method, path, query, headers, json }) => {
    if (headers['apca-api-key-id'] !== 'key' || headers['apca-api-secret-key'] !== 'secret')
      return { status: 401, body: {} }
    if (path === '/v2/clock') return { status: 200, body: { is_open: true, next_open: '2026-11-17T14:30:00Z' } }
    if (path === '/v2/assets/AAPL')
      return {
        status: 200,
        body: { symbol: 'AAPL', name: 'Apple', status: 'active', tradable: true, fractionable: true },
      }
    if (path.startsWith('/v2/assets/')) return { status: 404, body: { code: 40410000, message: 'asset not found' } }
    if (path === '/v2/stocks/AAPL/quotes/latest') {
      return {
        status: 200,
        body: {
          symbol: 'AAPL',
          quote: {
            t: '2026-11-16T16:00:00Z',
            bp: Number(formatE8(exchange.bid())),
            ap: Number(formatE8(exchange.ask())),
          },
        },
      }
    }
    if (path === '/v2/account') {
      const cash = formatMicro(exchange.state.cashMicro)
      return {
        status: 200,
        body: { currency: 'USD', cash, buying_power: cash, non_marginable_buying_power: cash, equity: cash },
      }
    }
    if (path === '/v2/positions') {
      const rows =
        exchange.state.heldE8 > 0n ? [{ symbol: 'AAPL', qty: formatE8(exchange.state.heldE8), cost_basis: '1' }] : []
      return { status: 200, body: rows }
    }
    if (method === 'POST' && path === '/v2/orders') {
      const body = json as unknown as AlpacaOrder
      placedOrders.push(body)
      if (exchange.find(body.client_order_id))
        return { status: 422, body: { code: 40010001, message: 'client_order_id must be unique' } }
      const order = exchange.submit({
        clientOrderId: body.client_order_id,
        symbol: body.symbol,
        side: body.side,
        quantityE8: e8(body.qty),
        limitE8: body.limit_price ? e8(body.limit_price) : null,
        tif: body.time_in_force,
      })
      return order
        ? { status: 200, body: toAlpacaOrder(order) }
        : { status: 403, body: { code: 40310000, message: 'insufficient buying power' } }
    }
    if (path === '/v2/orders:by_client_order_id') {
      const order = exchange.find(query.get('client_order_id') ?? '')
      return order
        ? { status: 200, body: toAlpacaOrder(order) }
        : { status: 404, body: { code: 40410000, message: 'order not found' } }
    }
    if (method === 'DELETE') {
      const order = exchange.byId(path.split('/').at(-1)!)
      if (order) exchange.cancel(order)
      return { status: order ? 204 : 404 }
    }
    return { status: 404, body: { message: 'no such endpoint' } }
  })
  const broker = createAlpacaBroker({
    keyId: 'key',
    secretKey: 'secret',
    baseUrl: server.url,
    dataUrl: server.url,
    timeoutMs: 2000,
  })
  return { exchange, served: server, broker, sent: placedOrders }
}

remoteBrokerContract('the Alpaca adapter', async () => {
  const { exchange, served: server, broker } = await openAlpaca()
  return {
    broker,
    type: 'equity',
    symbol: 'AAPL',
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

test('a collar is sent to Alpaca as a limit price, and a fraction of a share as a day order', async () => {
  const { served: server, broker, sent: placedOrders } = await openAlpaca()
  await broker.place(createOrder({ worstPriceE8: e8('205.5') }))
  await broker.place(createOrder({ quantity: '0.25', worstPriceE8: e8('205.5') }))
  expect(placedOrders[0]).toMatchObject({ type: 'limit', limit_price: '205.5', time_in_force: 'ioc', qty: '1' })
  expect(placedOrders[1]).toMatchObject({ type: 'limit', time_in_force: 'day', qty: '0.25' })
  await server.close()
})

test('with wrong credentials the broker is unavailable and no order is placed', async () => {
  const { exchange, served: server } = await openAlpaca()
  const broker = createAlpacaBroker({ keyId: 'key', secretKey: 'other', baseUrl: server.url, dataUrl: server.url })
  expect((await broker.place(createOrder())).outcome).toBe('unavailable')
  expect(exchange.orders).toHaveLength(0)
  await server.close()
})
