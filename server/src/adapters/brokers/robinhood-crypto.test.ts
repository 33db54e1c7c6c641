import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
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
import { createTestClock } from '../../../test/clock.ts'
import { brokerContract } from '../../../test/contract/broker.ts'
import { createRobinhoodCryptoBroker } from './robinhood-crypto.ts'

type Config = { asset_quantity: string; limit_price?: string }
type Body = {
  client_order_id: string
  symbol: string
  side: 'buy' | 'sell'
  market_order_config?: Config
  limit_order_config?: Config
}

const { privateKey } = generateKeyPairSync('ed25519')
const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32).toString('base64')
const SYMBOL = 'SOL-USD'

/** Speaks the shapes of Robinhood's crypto API, and checks every signature. */
async function openRobinhood() {
  const exchange = createExchange(SYMBOL, '200')
  const clock = createTestClock()
  const publicKey = createPublicKey(privateKey)
  const shown = (one: NonNullable<ReturnType<typeof exchange.submit>>) => ({
    id: one.id,
    client_order_id: one.clientOrderId,
    symbol: one.symbol,
    side: one.side,
    type: one.limitE8 === null ? 'market' : 'limit',
    state: one.status === 'open' && one.fills.length > 0 ? 'partially_filled' : one.status,
    average_price: averageText(one),
    filled_asset_quantity: decimal(filledE8(one)),
    executions: one.fills.map((fill) => ({
      effective_price: decimal(fill.priceE8),
      quantity: decimal(fill.quantityE8),
      timestamp: fill.at.toISOString(),
    })),
    created_at: one.createdAt.toISOString(),
    limit_order_config: { asset_quantity: decimal(one.quantityE8) },
  })
  const served = await serveExchange(exchange, ({ method, path, query, headers, body, json }) => {
    const target = query.size > 0 ? `${path}?${query}` : path
    const message = `rh-key${headers['x-timestamp']}${target}${method}${body}`
    const signature = Buffer.from(String(headers['x-signature']), 'base64')
    if (headers['x-api-key'] !== 'rh-key' || !verify(null, Buffer.from(message), publicKey, signature))
      return { status: 401, body: { errors: [] } }
    if (path.endsWith('/trading_pairs/')) {
      const known = query.get('symbol') === SYMBOL
      return {
        status: 200,
        body: {
          next: null,
          results: known
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
        price: decimal(exchange.state.priceE8),
        bid_inclusive_of_sell_spread: decimal(exchange.bid()),
        ask_inclusive_of_buy_spread: decimal(exchange.ask()),
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
          buying_power: dollars(exchange.state.cashMicro),
          buying_power_currency: 'USD',
        },
      }
    if (path.endsWith('/holdings/')) {
      const rows =
        exchange.state.heldE8 > 0n ? [{ asset_code: 'SOL', total_quantity: decimal(exchange.state.heldE8) }] : []
      return { status: 200, body: { next: null, results: rows } }
    }
    if (method === 'POST' && path.endsWith('/orders/')) {
      const asked = json as unknown as Body
      const known = exchange.find(asked.client_order_id)
      if (known) return { status: 201, body: shown(known) }
      const config = asked.limit_order_config ?? asked.market_order_config!
      // Robinhood has no immediate-or-cancel; the exchange treats a crossing remainder as resting.
      const made = exchange.submit({
        clientOrderId: asked.client_order_id,
        symbol: asked.symbol,
        side: asked.side,
        quantityE8: e8(config.asset_quantity),
        limitE8: config.limit_price ? e8(config.limit_price) : null,
        tif: 'gtc',
      })
      return made
        ? { status: 201, body: shown(made) }
        : {
            status: 400,
            body: { type: 'validation_error', errors: [{ detail: 'Not enough buying power.', attr: null }] },
          }
    }
    if (method === 'POST' && path.endsWith('/cancel/')) {
      const found = exchange.byId(path.split('/').at(-3)!)
      if (found) exchange.cancel(found)
      return { status: found ? 200 : 404, body: {} }
    }
    // Two orders a page, newest first, so that finding one takes turning pages.
    const newest = [...exchange.orders].reverse()
    const from = Number(query.get('cursor') ?? 0)
    const next =
      from + 2 < newest.length && newest.length < 9 ? `https://trading.example${path}?cursor=${from + 2}` : null
    const page = newest.length < 9 ? newest.slice(from, from + 2) : newest
    return { status: 200, body: { next, results: page.map(shown) } }
  })
  const broker = createRobinhoodCryptoBroker({
    apiKey: 'rh-key',
    privateKey: seed,
    baseUrl: served.url,
    clock,
    timeoutMs: 2000,
  })
  return { exchange, served, broker }
}

brokerContract('the Robinhood crypto adapter', async () => {
  const { exchange, served, broker } = await openRobinhood()
  return {
    // A collared order rests at Robinhood until it is cancelled, which is what the run's deadline does.
    broker: { ...broker, place: async (request) => cancelRest(broker, request, await broker.place(request)) },
    type: 'crypto',
    symbol: SYMBOL,
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

type Robinhood = ReturnType<typeof createRobinhoodCryptoBroker>

async function cancelRest(
  broker: Robinhood,
  request: Parameters<Robinhood['place']>[0],
  outcome: Awaited<ReturnType<Robinhood['place']>>,
) {
  if (request.tif !== 'ioc' || outcome.outcome !== 'placed' || outcome.order.status !== 'working') return outcome
  const done = await broker.cancel(request.accountId, request.clientOrderId, new Date('2026-11-16T00:00:00Z'))
  return done.outcome === 'done' ? { outcome: 'placed' as const, order: done.order } : outcome
}

test('a signature over anything else is refused: nothing is placed', async () => {
  const { exchange, served } = await openRobinhood()
  const other = generateKeyPairSync('ed25519')
    .privateKey.export({ format: 'der', type: 'pkcs8' })
    .subarray(-32)
    .toString('base64')
  const broker = createRobinhoodCryptoBroker({
    apiKey: 'rh-key',
    privateKey: other,
    baseUrl: served.url,
    clock: createTestClock(),
  })
  expect((await broker.place(order({ type: 'crypto', symbol: SYMBOL }))).outcome).toBe('unavailable')
  expect(exchange.orders).toHaveLength(0)
  await served.close()
})
