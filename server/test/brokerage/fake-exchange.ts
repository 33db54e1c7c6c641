import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { formatDecimal, notionalMicro } from '../../src/modules/brokerage/broker.ts'
import { e8 } from './manual-market.ts'

/** A small exchange behind the fake broker APIs: one account, immediate matching, and faults. */
export type ExchangeOrder = {
  id: string
  clientOrderId: string
  symbol: string
  side: 'buy' | 'sell'
  quantityE8: bigint
  limitE8: bigint | null
  tif: string
  status: 'open' | 'filled' | 'canceled'
  fills: { quantityE8: bigint; priceE8: bigint; at: Date }[]
  createdAt: Date
}

export type Fault =
  | 'none'
  | 'lose_response'
  | 'lose_request'
  | 'rate_limit'
  | 'server_error'
  | 'proxy_timeout'
  | 'garbage'

export type Exchange = ReturnType<typeof createExchange>

export function createExchange(symbol: string, price: string, cash = '100000') {
  const orders: ExchangeOrder[] = []
  const state = { priceE8: e8(price), cashMicro: e8(cash) / 100n, heldE8: 0n, fillsHalf: false, fault: 'none' as Fault }
  const bid = () => state.priceE8 - 1_000_000n
  const ask = () => state.priceE8 + 1_000_000n

  const matchOrder = (order: ExchangeOrder) => {
    const touch = order.side === 'buy' ? ask() : bid()
    const crosses = order.limitE8 === null || (order.side === 'buy' ? touch <= order.limitE8 : touch >= order.limitE8)
    if (!crosses) return
    const remainingE8 = order.quantityE8 - filledE8(order)
    const quantityE8 = state.fillsHalf ? remainingE8 / 2n : remainingE8
    const micro = notionalMicro(touch, quantityE8)
    state.cashMicro += order.side === 'buy' ? -micro : micro
    state.heldE8 += order.side === 'buy' ? quantityE8 : -quantityE8
    order.fills.push({ quantityE8, priceE8: touch, at: new Date('2026-11-16T16:00:01Z') })
    if (filledE8(order) === order.quantityE8) order.status = 'filled'
  }

  return {
    symbol,
    state,
    orders,
    bid,
    ask,
    find: (clientOrderId: string) => orders.find((order) => order.clientOrderId === clientOrderId),
    byId: (id: string) => orders.find((order) => order.id === id),
    cancel(order: ExchangeOrder) {
      if (order.status === 'open') order.status = 'canceled'
    },
    /** Undefined when the account cannot pay. */
    submit(input: Pick<ExchangeOrder, 'clientOrderId' | 'symbol' | 'side' | 'quantityE8' | 'limitE8' | 'tif'>) {
      const cost = notionalMicro(input.limitE8 ?? ask(), input.quantityE8)
      if (input.side === 'buy' ? cost > state.cashMicro : input.quantityE8 > state.heldE8) return undefined
      const id = `00000000-0000-4000-8000-${String(orders.length + 1).padStart(12, '0')}`
      const order: ExchangeOrder = {
        ...input,
        id,
        status: 'open',
        fills: [],
        createdAt: new Date('2026-11-16T16:00:00Z'),
      }
      orders.push(order)
      matchOrder(order)
      if (order.status === 'open' && (order.tif === 'ioc' || order.tif === 'fok')) order.status = 'canceled'
      return order
    },
  }
}

export const filledE8 = (order: ExchangeOrder) => order.fills.reduce((sum, fill) => sum + fill.quantityE8, 0n)

export const formatAveragePrice = (order: ExchangeOrder) => (order.fills[0] ? formatE8(order.fills[0].priceE8) : null)

export const formatE8 = (value: bigint) => formatDecimal(value, 8)

export const formatMicro = (micro: bigint) => formatDecimal(micro, 6)

export type ExchangeRequest = {
  method: string
  path: string
  query: URLSearchParams
  headers: IncomingMessage['headers']
  body: string
  json: Record<string, never>
}

export type TestServer = { url: string; close(): Promise<void> }

/** Serves a fake broker API over the exchange. Faults affect order placement only, so that orders can be found afterwards. */
export async function serveExchange(
  exchange: Exchange,
  respond: (exchangeRequest: ExchangeRequest) => { status: number; body?: unknown },
): Promise<TestServer> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8')
      const url = new URL(request.url ?? '/', 'http://exchange')
      const exchangeRequest = {
        method: request.method ?? 'GET',
        path: url.pathname,
        query: url.searchParams,
        headers: request.headers,
        body,
        json: body ? JSON.parse(body) : {},
      }
      const isPlacement = exchangeRequest.method === 'POST' && /orders\/?$/.test(exchangeRequest.path)
      const { fault } = exchange.state
      if (isPlacement && fault === 'lose_request') return void request.socket.destroy()
      if (isPlacement && fault === 'rate_limit') return void response.writeHead(429, { 'retry-after': '7' }).end('{}')
      const exchangeResponse = respond(exchangeRequest)
      if (isPlacement && fault === 'lose_response') return void request.socket.destroy()
      if (isPlacement && fault === 'server_error') return void response.writeHead(504).end('<html>gateway</html>')
      if (isPlacement && fault === 'proxy_timeout') return void response.writeHead(408).end('<html>timeout</html>')
      if (isPlacement && fault === 'garbage') return void response.writeHead(200).end('{"id":')
      response.writeHead(exchangeResponse.status, { 'content-type': 'application/json' })
      response.end(exchangeResponse.body === undefined ? '' : JSON.stringify(exchangeResponse.body))
    })
  })
  return listen(server)
}

export async function listen(server: Server): Promise<TestServer> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
