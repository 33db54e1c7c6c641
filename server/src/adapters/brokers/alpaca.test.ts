import { expect, test } from 'vitest'
import {
  averageText,
  createExchange,
  decimal,
  dollars,
  filledE8,
  serveExchange,
} from '../../../test/brokerage/fake-exchange.ts'
import { e8, order } from '../../../test/brokerage/market.ts'
import { brokerContract } from '../../../test/contract/broker.ts'
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

/** Speaks the shapes of Alpaca's trading and data APIs. */
async function openAlpaca() {
  const exchange = createExchange('AAPL', '200')
  const sent: AlpacaOrder[] = []
  const shown = (one: ReturnType<typeof exchange.submit>) =>
    one && {
      id: one.id,
      client_order_id: one.clientOrderId,
      symbol: one.symbol,
      side: one.side,
      qty: decimal(one.quantityE8),
      filled_qty: decimal(filledE8(one)),
      filled_avg_price: averageText(one),
      filled_at: one.fills[0]?.at.toISOString() ?? null,
      updated_at: one.createdAt.toISOString(),
      status: one.status === 'open' ? (one.fills.length > 0 ? 'partially_filled' : 'new') : one.status,
    }
  const served = await serveExchange(exchange, ({ method, path, query, headers, json }) => {
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
            bp: Number(decimal(exchange.bid())),
            ap: Number(decimal(exchange.ask())),
          },
        },
      }
    }
    if (path === '/v2/account') {
      const cash = dollars(exchange.state.cashMicro)
      return {
        status: 200,
        body: { currency: 'USD', cash, buying_power: cash, non_marginable_buying_power: cash, equity: cash },
      }
    }
    if (path === '/v2/positions') {
      const rows =
        exchange.state.heldE8 > 0n ? [{ symbol: 'AAPL', qty: decimal(exchange.state.heldE8), cost_basis: '1' }] : []
      return { status: 200, body: rows }
    }
    if (method === 'POST' && path === '/v2/orders') {
      const body = json as unknown as AlpacaOrder
      sent.push(body)
      if (exchange.find(body.client_order_id))
        return { status: 422, body: { code: 40010001, message: 'client_order_id must be unique' } }
      const made = exchange.submit({
        clientOrderId: body.client_order_id,
        symbol: body.symbol,
        side: body.side,
        quantityE8: e8(body.qty),
        limitE8: body.limit_price ? e8(body.limit_price) : null,
        tif: body.time_in_force,
      })
      return made
        ? { status: 200, body: shown(made) }
        : { status: 403, body: { code: 40310000, message: 'insufficient buying power' } }
    }
    if (path === '/v2/orders:by_client_order_id') {
      const found = exchange.find(query.get('client_order_id') ?? '')
      return found
        ? { status: 200, body: shown(found) }
        : { status: 404, body: { code: 40410000, message: 'order not found' } }
    }
    if (method === 'DELETE') {
      const found = exchange.byId(path.split('/').at(-1)!)
      if (found) exchange.cancel(found)
      return { status: found ? 204 : 404 }
    }
    return { status: 404, body: { message: 'no such endpoint' } }
  })
  const broker = createAlpacaBroker({
    keyId: 'key',
    secretKey: 'secret',
    baseUrl: served.url,
    dataUrl: served.url,
    timeoutMs: 2000,
  })
  return { exchange, served, broker, sent }
}

brokerContract('the Alpaca adapter', async () => {
  const { exchange, served, broker } = await openAlpaca()
  return {
    broker,
    type: 'equity',
    symbol: 'AAPL',
    setPrice: (price) => {
      exchange.state.priceE8 = price
    },
    fillHalf: (on) => {
      exchange.state.partial = on
    },
    fault: (fault) => {
      exchange.state.fault = fault
    },
    taken: () => exchange.orders.length,
    close: () => served.close(),
  }
})

test('a collar goes to Alpaca as a limit, and a fraction of a share as a day order', async () => {
  const { served, broker, sent } = await openAlpaca()
  await broker.place(order({ worstPriceE8: e8('205.5') }))
  await broker.place(order({ quantity: '0.25', worstPriceE8: e8('205.5') }))
  expect(sent[0]).toMatchObject({ type: 'limit', limit_price: '205.5', time_in_force: 'ioc', qty: '1' })
  expect(sent[1]).toMatchObject({ type: 'limit', time_in_force: 'day', qty: '0.25' })
  await served.close()
})

test('wrong credentials place nothing and are not the caller’s refusal', async () => {
  const { exchange, served } = await openAlpaca()
  const broker = createAlpacaBroker({ keyId: 'key', secretKey: 'other', baseUrl: served.url, dataUrl: served.url })
  expect((await broker.place(order())).outcome).toBe('unavailable')
  expect(exchange.orders).toHaveLength(0)
  await served.close()
})
