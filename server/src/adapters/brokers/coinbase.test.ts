import { generateKeyPairSync } from 'node:crypto'
import { decodeJwt, jwtVerify } from 'jose'
import { expect, test } from 'vitest'
import {
  createExchange,
  filledE8,
  formatAveragePrice,
  formatE8,
  formatMicro,
  serveExchange,
  type TestServer,
} from '../../../test/brokerage/fake-exchange.ts'
import { createOrder, e8 } from '../../../test/brokerage/manual-market.ts'
import { createTestClock } from '../../../test/clock.ts'
import { remoteBrokerContract } from '../../../test/contract/broker.ts'
import { createCoinbaseBroker } from './coinbase.ts'

type Sizes = { base_size: string; limit_price?: string; end_time?: string }
type CoinbaseRequestBody = {
  client_order_id: string
  product_id: string
  side: 'BUY' | 'SELL'
  order_configuration: Record<string, Sizes>
  order_ids: string[]
}

const SYMBOL = 'SOL-USD'
const API = '/api/v3/brokerage'
const TIFS: Record<string, string> = {
  sor_limit_ioc: 'ioc',
  market_market_ioc: 'ioc',
  limit_limit_fok: 'fok',
  limit_limit_gtd: 'gtc',
}

/** A fake of Coinbase Advanced Trade that checks what each token is bound to. */
async function openCoinbase(curve: 'P-256' | 'ed25519' = 'P-256') {
  const exchange = createExchange(SYMBOL, '200')
  const clock = createTestClock()
  const pair = curve === 'P-256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519')
  const tokens: string[] = []
  const placedOrders: CoinbaseRequestBody[] = []
  let server: TestServer | undefined
  const toCoinbaseOrder = (order: NonNullable<ReturnType<typeof exchange.submit>>) => ({
    order_id: order.id,
    client_order_id: order.clientOrderId,
    product_id: order.symbol,
    side: order.side.toUpperCase(),
    status: { open: 'OPEN', filled: 'FILLED', canceled: 'CANCELLED' }[order.status],
    filled_size: formatE8(filledE8(order)),
    average_filled_price: formatAveragePrice(order) ?? '0',
    total_fees: '0',
    created_time: order.createdAt.toISOString(),
    order_configuration: { sor_limit_ioc: { base_size: formatE8(order.quantityE8) } },
  })
  server = await serveExchange(exchange, ({ method, path, query, headers, json }) => {
    const token = String(headers.authorization).replace('Bearer ', '')
    tokens.push(token)
    const claims = decodeJwt(token)
    if (claims.uri !== `${method} ${new URL(server!.url).host}${path}` || claims.sub !== 'organizations/o/apiKeys/k')
      return { status: 401 }
    const body = json as unknown as CoinbaseRequestBody
    if (path === `${API}/products/${SYMBOL}`) {
      return {
        status: 200,
        body: {
          product_id: SYMBOL,
          base_increment: '0.00000001',
          quote_increment: '0.01',
          base_currency_id: 'SOL',
          quote_currency_id: 'USD',
          trading_disabled: false,
        },
      }
    }
    if (path.startsWith(`${API}/products/`))
      return { status: 404, body: { error: 'NOT_FOUND', message: 'valid product_id is required' } }
    if (path === `${API}/best_bid_ask`) {
      const row = {
        product_id: SYMBOL,
        bids: [{ price: formatE8(exchange.bid()), size: '10' }],
        asks: [{ price: formatE8(exchange.ask()), size: '10' }],
        time: '2026-11-16T16:00:00Z',
      }
      return { status: 200, body: { pricebooks: [row] } }
    }
    if (path === `${API}/accounts`) {
      const balance = (currency: string, value: string) => ({
        uuid: `u-${currency}`,
        currency,
        available_balance: { value, currency },
        hold: { value: '0', currency },
        type: currency === 'USD' ? 'ACCOUNT_TYPE_FIAT' : 'ACCOUNT_TYPE_CRYPTO',
      })
      const balances = [
        balance('USD', formatMicro(exchange.state.cashMicro)),
        balance('SOL', formatE8(exchange.state.heldE8)),
      ]
      // One account for each page, so that the adapter has to read the next one.
      return query.get('cursor')
        ? { status: 200, body: { accounts: balances.slice(1), has_next: false, cursor: '' } }
        : { status: 200, body: { accounts: balances.slice(0, 1), has_next: true, cursor: 'more' } }
    }
    if (method === 'POST' && path === `${API}/orders`) {
      placedOrders.push(body)
      const [kind, sizes] = Object.entries(body.order_configuration)[0]!
      const side = body.side === 'BUY' ? 'buy' : 'sell'
      const order =
        exchange.find(body.client_order_id) ??
        exchange.submit({
          clientOrderId: body.client_order_id,
          symbol: body.product_id,
          side,
          quantityE8: e8(sizes.base_size),
          limitE8: sizes.limit_price ? e8(sizes.limit_price) : null,
          tif: TIFS[kind]!,
        })
      if (!order)
        return {
          status: 200,
          body: {
            success: false,
            error_response: { error: 'INSUFFICIENT_FUND', message: 'Insufficient balance in source account' },
          },
        }
      return {
        status: 200,
        body: {
          success: true,
          success_response: {
            order_id: order.id,
            product_id: order.symbol,
            side: body.side,
            client_order_id: order.clientOrderId,
          },
        },
      }
    }
    if (path === `${API}/orders/batch_cancel`) {
      for (const id of body.order_ids) exchange.cancel(exchange.byId(id)!)
      return { status: 200, body: { results: body.order_ids.map((order_id) => ({ success: true, order_id })) } }
    }
    if (path === `${API}/orders/historical/fills`) {
      const order = exchange.byId(query.get('order_ids') ?? '')
      const fills = (order?.fills ?? []).map((fill, index) => ({
        entry_id: `e-${order!.id}-${index}`,
        size: formatE8(fill.quantityE8),
        price: formatE8(fill.priceE8),
        commission: '0',
        trade_time: fill.at.toISOString(),
      }))
      return { status: 200, body: { fills, cursor: '' } }
    }
    if (path === `${API}/orders/historical/batch`)
      return { status: 200, body: { orders: exchange.orders.map(toCoinbaseOrder), has_next: false, cursor: '' } }
    const order = exchange.byId(path.split('/').at(-1)!)
    return order ? { status: 200, body: { order: toCoinbaseOrder(order) } } : { status: 404, body: {} }
  })
  const privateKey = pair.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
  const broker = createCoinbaseBroker({
    keyName: 'organizations/o/apiKeys/k',
    privateKey,
    baseUrl: server.url,
    clock,
    timeoutMs: 2000,
  })
  return { exchange, served: server, broker, tokens, clock, publicKey: pair.publicKey, sent: placedOrders }
}

remoteBrokerContract('the Coinbase adapter', async () => {
  const { exchange, served: server, broker } = await openCoinbase()
  return {
    broker,
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

test.each(['P-256', 'ed25519'] as const)(
  'each request carries its own short-lived token, signed with the %s key',
  async (curve) => {
    const { served: server, broker, tokens, publicKey, clock } = await openCoinbase(curve)
    expect(await broker.accounts()).toMatchObject({
      ok: true,
      accounts: [
        {
          uuid: 'u-USD',
          currency: 'USD',
          available_balance: { value: '100000', currency: 'USD' },
          type: 'ACCOUNT_TYPE_FIAT',
        },
        { uuid: 'u-SOL', currency: 'SOL', hold: { value: '0' } },
      ],
    })
    expect(new Set(tokens).size).toBe(2)
    const { payload } = await jwtVerify(tokens[0]!, publicKey, { issuer: 'cdp', currentDate: clock.now() })
    expect(payload.exp! - payload.nbf!).toBe(120)
    await server.close()
  },
)

test('a resting order carries the run’s deadline', async () => {
  const { served: server, broker, sent: placedOrders } = await openCoinbase()
  const executeBy = new Date('2026-11-16T16:15:00Z')
  await broker.place(createOrder({ type: 'crypto', symbol: SYMBOL, tif: 'gtc', limit: '100', executeBy }))
  expect(placedOrders[0]!.order_configuration).toEqual({
    limit_limit_gtd: { base_size: '1', limit_price: '100', end_time: executeBy.toISOString(), post_only: false },
  })
  await server.close()
})
