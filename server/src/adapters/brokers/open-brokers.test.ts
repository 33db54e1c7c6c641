import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { createTestDatabase } from '../../../test/harness.ts'
import { lastSession, marketState, nextOpen } from '../../modules/basis/calendar.ts'
import { loadCoverage } from '../../modules/basis/coverage.ts'
import { buildPreviewReading } from '../../modules/basis/preview.ts'
import { INSTRUMENT_TYPES } from '../../modules/brokerage/broker.ts'
import { toRwaReading } from '../../modules/brokerage/rwa-reading.ts'
import { createVenues } from '../../modules/brokerage/venues.ts'
import type { Database } from '../../platform/db.ts'
import { type BrokerSettings, openBrokers } from './open-brokers.ts'

const clock = createTestClock()
const coverage = loadCoverage()
let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
beforeAll(async () => {
  testDatabase = await createTestDatabase()
  database = testDatabase.open(4)
})
afterAll(async () => {
  await database.close()
  await testDatabase.drop()
})

const readBasis = async (symbol: string) => {
  const wrapper = coverage.find(symbol)
  return wrapper && toRwaReading(wrapper, buildPreviewReading(wrapper, coverage.bandBps, clock.now()))
}
const open = (settings: BrokerSettings) =>
  openBrokers({
    db: database.db,
    clock,
    calendar: { marketState, nextOpen, lastSession },
    readBasis,
    readShare: () => undefined,
    settings,
  })

const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .privateKey.export({ format: 'pem', type: 'pkcs8' })
  .toString()
const credentials = {
  alpaca: { keyId: 'k', secretKey: 's', baseUrl: 'https://api.alpaca.example', dataUrl: 'https://data.alpaca.example' },
  robinhood: { apiKey: 'k', privateKey: Buffer.alloc(32, 7).toString('base64'), baseUrl: 'https://robinhood.example' },
  coinbase: { keyName: 'k', privateKey: pem, baseUrl: 'https://coinbase.example' },
}

test('without credentials every instrument trades on paper', () => {
  const venues = createVenues(open({ tenants: [] }).venues)
  for (const type of INSTRUMENT_TYPES) expect(venues.choose('ten_any', type)?.mode).toBe('paper')
  expect(venues.choose('ten_any', 'crypto')?.id).toBe('coinbase-paper')
})

test('a live broker needs credentials and a configured tenant, and only that tenant reaches it', () => {
  expect(open({ ...credentials, tenants: [] }).venues).toHaveLength(2)
  const venues = createVenues(open({ ...credentials, tenants: ['ten_live'] }).venues)
  expect(venues.choose('ten_live', 'equity')).toMatchObject({ id: 'alpaca', mode: 'live' })
  expect(venues.choose('ten_live', 'crypto')).toMatchObject({ id: 'robinhood-crypto', mode: 'live' })
  expect(venues.choose('ten_live', 'perp')?.id).toBe('paper')
  expect(venues.choose('ten_other', 'equity')?.id).toBe('paper')
  expect(venues.listFor('ten_other').map(({ id }) => id)).toEqual(['paper', 'coinbase-paper'])
})

test('every covered tokenised equity has a quote at its preview price, in and out of session', async () => {
  const broker = createVenues(open({ tenants: [] }).venues).choose('ten_any', 'rwa')!
  for (const at of ['2026-11-16T16:00:00Z', '2026-11-21T04:00:00Z']) {
    clock.set(at)
    for (const { symbol } of coverage.symbols) {
      const quoteResult = await broker.quote('rwa', symbol)
      expect(quoteResult.ok, symbol).toBe(true)
      const estimate = await broker.estimate('rwa', symbol, 500_000_000n)
      expect(estimate.ok && estimate.slippageBps).toBeLessThan(30)
    }
  }
})
