import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { spreadAround } from '../../src/adapters/brokers/paper/simulated-market.ts'
import { loadCoverage } from '../../src/modules/basis/coverage.ts'
import { WINDOW_STATUSES } from '../../src/modules/basis/window-score.ts'
import { numberFromE8 } from '../../src/modules/brokerage/broker.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestClock } from '../clock.ts'
import { createTestDatabase, startService, type TestService } from '../harness.ts'
import { type BasisNode, openBasisNode } from './basis-node.ts'

const HOUR = 3_600_000
const PRICE_LIST = new URL('../../data/brokerage/prices.json', import.meta.url)
const { listings } = JSON.parse(readFileSync(PRICE_LIST, 'utf8')) as {
  listings: { symbol: string; spread_bps: number }[]
}
const SPREADS = new Map(listings.map(({ symbol, spread_bps }) => [symbol, spread_bps]))

describe('the paper broker and the basis preview', () => {
  const clock = createTestClock('2026-11-16T15:31:40.000Z')
  let service: TestService
  let tenant: Awaited<ReturnType<TestService['onboard']>>
  beforeAll(async () => {
    service = await startService({ clock, env: { BACKGROUND_WORK: 'off' } })
    tenant = await service.onboard()
  }, 120_000)
  afterAll(() => service?.close())

  /** At how much the broker sells a unit, in the terms that a person is asked to approve. */
  const brokerAsk = async (instrument_type: string, symbol: string) => {
    const order = { tenant_id: tenant.tenantId, symbol, instrument_type, side: 'buy', quantity: 8 }
    const { status, body, text } = await service.post('/api/rh/run', order, tenant.headers)
    expect([status, text]).toEqual([202, expect.any(String)])
    return body.approval.quote.price as number
  }
  /** What a buyer pays when the market is at this price: half the spread more, on the next tick. */
  const askAt = (price: number, spreadBps: number, tickE8: bigint) =>
    numberFromE8(spreadAround(BigInt(Math.round(price * 1e8)), spreadBps, tickE8).askE8)
  const askOfShare = (price: number, share: string) => askAt(price, SPREADS.get(share)!, 1_000_000n)
  const basisQuote = async (symbol: string) => (await service.get(`/api/basis/v1/quote/${symbol}`)).body

  test.each([
    ['while the exchange is open', '2026-11-16T15:31:40.000Z', 'open'],
    ['later in the same session', '2026-11-16T20:59:59.000Z', 'open'],
    ['after the close', '2026-11-17T03:00:20.000Z', 'closed'],
    ['at the weekend', '2026-11-21T12:00:00.000Z', 'closed'],
    ['on a holiday', '2026-11-26T15:00:01.000Z', 'holiday'],
  ])('have one price for one symbol at one moment, %s', async (_, at, state) => {
    clock.set(at)
    const wrappers = loadCoverage().symbols.filter(({ symbol }) => /x$|c$/.test(symbol))
    const shares = ['AAPL', 'TSLA', 'NVDA', 'SPY', 'QQQ']
    for (const share of shares) {
      const ask = await brokerAsk('equity', share)
      const references = await Promise.all(
        wrappers.filter(({ underlying }) => underlying === share).map(({ symbol }) => basisQuote(symbol)),
      )
      expect(references.length).toBeGreaterThan(0)
      for (const quote of references)
        expect([quote.underlying_state, askOfShare(quote.reference_price, share)]).toEqual([state, ask])
    }
    for (const symbol of ['TSLAx', 'AAPLc'])
      expect(await brokerAsk('rwa', symbol)).toBe(askAt((await basisQuote(symbol)).wrapper_price, 10, 10_000n))
  })

  test('move together: the price of another minute is another, at both', async () => {
    const prices: [number, number][] = []
    for (const at of ['2026-11-16T15:00:00.000Z', '2026-11-16T17:00:00.000Z', '2026-11-16T19:00:00.000Z']) {
      clock.set(at)
      prices.push([await brokerAsk('equity', 'AAPL'), (await basisQuote('AAPLx')).reference_price])
    }
    expect(new Set(prices.map(([ask]) => ask)).size).toBe(3)
    for (const [ask, reference] of prices) expect(ask).toBe(askOfShare(reference, 'AAPL'))
  })
})

describe('a day of preview', () => {
  let scratch: Awaited<ReturnType<typeof createTestDatabase>>
  let database: Database
  let node: BasisNode
  const clock = createTestClock()
  beforeAll(async () => {
    scratch = await createTestDatabase()
    database = scratch.open(2)
    node = await openBasisNode(database, { clock })
  })
  afterAll(async () => {
    await node.close()
    await database.close()
    await scratch.drop()
  })

  test.each([
    ['a Monday', '2026-11-16'],
    ['a Saturday', '2026-11-21'],
    ['Thanksgiving', '2026-11-26'],
    ['a day with a short session', '2026-11-27'],
  ])('shows every status of the board, for every wrapper: %s', (_, day) => {
    const seen = new Map<string, Set<string>>()
    for (let minutes = 0; minutes < 24 * 60; minutes += 10) {
      clock.set(new Date(Date.parse(`${day}T00:00:00.000Z`) + minutes * 60_000))
      for (const { symbol, window_status } of node.basis.getBoard().rows)
        seen.set(symbol, (seen.get(symbol) ?? new Set()).add(window_status))
    }
    expect(seen.size).toBe(node.basis.coverage.symbols.length)
    for (const [symbol, statuses] of seen)
      expect([...statuses].sort(), symbol).toEqual(Object.keys(WINDOW_STATUSES).sort())
  })

  test('shows several statuses at any one time', () => {
    for (let hour = 0; hour < 24; hour++) {
      clock.set(new Date(Date.parse('2026-11-16T00:00:00.000Z') + hour * HOUR))
      expect(new Set(node.basis.getBoard().rows.map(({ window_status }) => window_status)).size).toBeGreaterThan(1)
    }
  })

  test('has both meme fields where the coverage names a memecoin, with a return that moves, and neither elsewhere', () => {
    const paired = node.basis.coverage.wrappers.filter(({ meme }) => meme !== null).map(({ symbol }) => symbol)
    expect(paired.length).toBeGreaterThan(0)
    const returns = new Map<string, Set<number | null>>()
    for (const at of ['2026-11-16T03:00:00.000Z', '2026-11-16T15:00:00.000Z', '2026-11-17T15:00:00.000Z']) {
      clock.set(at)
      for (const { symbol, meme_symbol, meme_momentum_24h_pct } of node.basis.getBoard().rows) {
        expect([meme_symbol === null, meme_momentum_24h_pct === null], symbol).toEqual(
          paired.includes(symbol) ? [false, false] : [true, true],
        )
        returns.set(symbol, (returns.get(symbol) ?? new Set()).add(meme_momentum_24h_pct))
      }
    }
    for (const symbol of paired) expect(returns.get(symbol)!.size, symbol).toBe(3)
  })

  test('says why nothing is known about borrowing, and gives no rate without a source', () => {
    clock.set('2026-11-16T15:00:00.000Z')
    for (const { symbol } of node.basis.coverage.symbols) {
      const { borrow, observations } = node.basis.getQuote(symbol)
      expect(borrow).toEqual({ available: false, rate_apr: null, source: null })
      expect(observations.join(' ')).toMatch(/borrow/i)
    }
  })

  test('names the supply that responds: tokens created against a premium, redeemed against a discount', () => {
    const sizes: number[] = []
    for (let minutes = 0; minutes < 48 * 60; minutes += 10) {
      clock.set(new Date(Date.parse('2026-11-16T00:00:00.000Z') + minutes * 60_000))
      for (const { window_status, basis_bps, primary_market } of node.basis.getBoard().rows) {
        if (window_status !== 'supply_responding') continue
        expect(Math.sign(primary_market.last_mint_size!)).toBe(Math.sign(basis_bps))
        expect(Date.parse(primary_market.last_mint_at!)).toBeLessThanOrEqual(clock.now().getTime())
        sizes.push(primary_market.last_mint_size!)
      }
    }
    expect([sizes.some((size) => size > 0), sizes.some((size) => size < 0)]).toEqual([true, true])
  })
})
