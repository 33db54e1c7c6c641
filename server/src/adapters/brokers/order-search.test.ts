import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { createCoinbaseBroker } from './coinbase.ts'
import { createRobinhoodCryptoBroker } from './robinhood-crypto.ts'

/** A broker dates orders by its own clock, which may be behind ours. */
const searches: (string | null)[] = []
const server = createServer((request, response) => {
  const { searchParams } = new URL(request.url!, 'http://broker')
  searches.push(searchParams.get('start_date') ?? searchParams.get('created_at_start'))
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ orders: [], has_next: false, cursor: '', next: null, results: [] }))
})
let baseUrl = ''
beforeAll(async () => {
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const clock = createTestClock()
const openCoinbase = () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
  return createCoinbaseBroker({ keyName: 'k', privateKey: pem, baseUrl, clock, timeoutMs: 2000 })
}
const openRobinhood = () => {
  const privateKey = Buffer.alloc(32, 7).toString('base64')
  return createRobinhoodCryptoBroker({ apiKey: 'k', privateKey, baseUrl, clock, timeoutMs: 2000 })
}

test.each([
  ['Coinbase', openCoinbase],
  ['Robinhood', openRobinhood],
])(
  '%s is searched from minutes before our order, so that an order dated by its slower clock is found',
  async (_name, open) => {
    const sentAt = new Date('2026-11-16T16:00:00.000Z')
    searches.length = 0
    await open().find('ten_1', 'order-1', sentAt)
    expect(searches.length).toBeGreaterThan(0)
    for (const start of searches) expect(Date.parse(start!)).toBeLessThanOrEqual(sentAt.getTime() - 5 * 60_000)
  },
)
