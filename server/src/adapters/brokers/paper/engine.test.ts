import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { createManualMarket, createOrder, e8, type ManualMarket } from '../../../../test/brokerage/manual-market.ts'
import { lastSession, marketState, nextOpen } from '../../../modules/basis/calendar.ts'
import { notionalMicro, type OrderRequest } from '../../../modules/brokerage/broker.ts'
import { liquidationPriceE8 } from '../../../modules/brokerage/liquidation-price.ts'
import { advance, cancelOrder, type EngineRules, freeCashMicro, fundingTimes, placeOrder } from './engine.ts'
import { hashToNumber, impactPriceE8, integerRoot, matchOrder } from './matching.ts'
import { type AccountDraft, type JournalLine, openPaperAccount, type PaperAccount } from './paper-account.ts'
import { type MarketSnapshot, quoteKey } from './paper-market.ts'
import { positionLiquidationE8 } from './perp-positions.ts'

const calendar = { marketState, nextOpen, lastSession }
const rules: EngineRules = { calendar, seed: 'seed' }
/** A Monday, an hour and a half after the open in New York. */
const OPEN = '2026-11-16T16:00:00Z'
const OPENING = 100_000_000_000n

let market: ManualMarket
let account: PaperAccount
let journal: JournalLine[]

beforeEach(() => {
  market = createManualMarket(calendar)
  market.list({ type: 'equity', symbol: 'AAPL' }, '200.00')
  market.list({ type: 'crypto', symbol: 'BTC-USD' }, '60000.00')
  market.list({ type: 'perp', symbol: 'BTC-PERP', tickE8: 1n, takerFeeBps: 0 }, '60000.00', 0)
  market.list(
    {
      type: 'earn',
      symbol: 'USDC-EARN',
      takerFeeBps: 0,
      sigmaBps: 0,
      earn: { yieldRateBps: 365, lockDays: 7, earlyExitPenaltyBps: 100, protocol: 'p' },
    },
    '1.00',
    0,
  )
  market.list({ type: 'spend', symbol: 'AAPL', takerFeeBps: 0, sigmaBps: 0 }, '1.00', 0)
  const opened = openPaperAccount('acct', Date.parse('2026-11-01T00:00:00Z'), OPENING)
  account = opened.account
  journal = [...opened.effects.journal]
})

const applyDraft = (draft: AccountDraft) => {
  account = draft.account
  journal.push(...draft.effects.journal)
  return draft
}

async function readSnapshot(at: string | number): Promise<MarketSnapshot> {
  const date = new Date(at)
  const listings = [
    { type: 'equity', symbol: 'AAPL' },
    { type: 'crypto', symbol: 'BTC-USD' },
    { type: 'perp', symbol: 'BTC-PERP' },
    { type: 'earn', symbol: 'USDC-EARN' },
    { type: 'spend', symbol: 'AAPL' },
  ] as const
  const quotes = await Promise.all(
    listings.map(
      async (listing) => [quoteKey(listing), (await market.quote(listing.type, listing.symbol, date))!] as const,
    ),
  )
  const actions = await market.actions('AAPL', new Date(0), date)
  return { at: date.getTime(), quotes: new Map(quotes), actions: new Map([['AAPL', actions]]) }
}

/** Advances the account to now before it places the order, as the broker does. */
const place = async (request: OrderRequest, at = OPEN) => {
  await advanceTo(at)
  const placed = placeOrder(account, request, await readSnapshot(at), rules)
  applyDraft(placed)
  return placed.order
}

const advanceTo = async (at: string | number) => {
  const now = new Date(at).getTime()
  const snapshots = await Promise.all([...fundingTimes(account, now), now].map(readSnapshot))
  return applyDraft(advance(account, snapshots, rules))
}

const sum = (account: string, asset: string) =>
  journal
    .filter((line) => line.account === account && line.asset === asset)
    .reduce((total, line) => total + line.amount, 0n)

describe('matching', () => {
  test('a market order pays the ask plus impact, in fills determined by the seed that add up to its quantity', async () => {
    const filledOrder = await place(createOrder({ quantity: '300' }))
    const quote = (await market.quote('equity', 'AAPL', new Date(OPEN)))!
    expect(filledOrder.status).toBe('filled')
    expect(filledOrder.fills.reduce((total, fill) => total + fill.quantityE8, 0n)).toBe(e8('300'))
    for (const fill of filledOrder.fills) expect(fill.priceE8).toBeGreaterThanOrEqual(quote.askE8)
    expect(filledOrder.fills.at(-1)!.priceE8).toBe(impactPriceE8('buy', quote, e8('300')))
    const repeatedMatch = matchOrder(
      { ...filledOrder, filledE8: 0n, takenE8: 0n, takenMinute: 0 },
      quote,
      Date.parse(OPEN),
      'seed',
    )
    expect(repeatedMatch).toEqual(filledOrder.fills.map(({ quantityE8, priceE8 }) => ({ quantityE8, priceE8 })))
  })

  test('impact is k·σ·√(q/ADV): four times the quantity moves the price twice as far', async () => {
    const quote = (await market.quote('perp', 'BTC-PERP', new Date(OPEN)))!
    const move = (quantity: string) => impactPriceE8('buy', quote, e8(quantity)) - quote.askE8
    expect(Number(move('40000')) / Number(move('10000'))).toBeCloseTo(2, 3)
    expect(Number(move('10000')) / Number(quote.askE8)).toBeCloseTo(0.5 * 0.01 * Math.sqrt(0.01), 6)
  })

  test('an order larger than a minute of volume fills over several minutes', async () => {
    const largeOrder = createOrder({ type: 'crypto', symbol: 'BTC-USD', quantity: '20000', tif: 'gtc', limit: '90000' })
    market.setPrice('BTC-USD', '1.00')
    const firstOrder = await place({ ...largeOrder, limitPriceE8: e8('2.00') })
    expect(firstOrder.status).toBe('working')
    expect(firstOrder.filledE8).toBeGreaterThan(0n)
    const before = firstOrder.filledE8
    await advanceTo('2026-11-16T16:00:30Z')
    expect(account.orders[0]!.filledE8).toBe(before)
    await advanceTo('2026-11-16T16:01:00Z')
    expect(account.orders[0]?.filledE8 ?? e8('20000')).toBeGreaterThan(before)
  })

  test('a limit order never fills at a price worse than its limit', async () => {
    const prices = fc.array(fc.integer({ min: 15_000, max: 25_000 }), { minLength: 1, maxLength: 8 })
    let fillCount = 0
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('buy' as const, 'sell' as const),
        fc.integer({ min: 15_000, max: 25_000 }),
        fc.integer({ min: 1, max: 30_000 }),
        fc.constantFrom('day' as const, 'gtc' as const, 'ioc' as const, 'fok' as const),
        prices,
        async (side, cents, quantity, tif, path) => {
          account = openPaperAccount('acct', 0, 10n ** 16n).account
          account.positions.AAPL = {
            type: 'equity',
            symbol: 'AAPL',
            quantityE8: e8('1000000'),
            costMicro: 1n,
            marginMicro: 0n,
            leverageE2: null,
            lockedUntil: null,
            accruedAt: 0,
            actionsAt: 0,
          }
          const limit = (cents / 100).toFixed(2)
          const placed = await place(createOrder({ side, limit, tif, quantity: `${quantity}` }))
          const fills = [...placed.fills]
          for (const [minute, price] of path.entries()) {
            market.setPrice('AAPL', (price / 100).toFixed(2))
            const { effects } = await advanceTo(Date.parse(OPEN) + (minute + 1) * 60_000)
            fills.push(...effects.orders.flatMap((order) => order.fills))
          }
          for (const fill of fills) {
            if (side === 'buy') expect(fill.priceE8).toBeLessThanOrEqual(e8(limit))
            else expect(fill.priceE8).toBeGreaterThanOrEqual(e8(limit))
          }
          fillCount += fills.length
        },
      ),
      { numRuns: 150 },
    )
    expect(fillCount).toBeGreaterThan(0)
  })

  test('fill-or-kill fills completely or not at all; immediate-or-cancel keeps its partial fill', async () => {
    market.list({ type: 'crypto', symbol: 'BTC-USD', advE8: e8('1000') }, '1.00')
    const fokOrder = await place(
      createOrder({ type: 'crypto', symbol: 'BTC-USD', quantity: '100', tif: 'fok', limit: '2.00' }),
    )
    expect([fokOrder.status, fokOrder.filledE8]).toEqual(['cancelled', 0n])
    const iocOrder = await place(
      createOrder({ type: 'crypto', symbol: 'BTC-USD', quantity: '100', tif: 'ioc', limit: '2.00' }),
    )
    expect(iocOrder.status).toBe('cancelled')
    expect(iocOrder.filledE8).toBeGreaterThan(0n)
    expect(iocOrder.filledE8).toBeLessThan(e8('100'))
  })

  test('integer square roots are exact', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 40n }), (value) => {
        const root = integerRoot(value)
        expect(root * root <= value && (root + 1n) * (root + 1n) > value).toBe(true)
      }),
    )
  })

  test('hashToNumber is deterministic, stays in its range and reaches all of it', () => {
    const numbers = Array.from({ length: 200 }, (_, index) => hashToNumber(`text-${index}`, 6))
    expect(numbers).toEqual(Array.from({ length: 200 }, (_, index) => hashToNumber(`text-${index}`, 6)))
    expect(new Set(numbers)).toEqual(new Set([0n, 1n, 2n, 3n, 4n, 5n]))
  })
})

describe('sessions', () => {
  test('outside the session an immediate order is rejected and a day order waits for the open', async () => {
    const night = '2026-11-17T03:00:00Z'
    expect((await place(createOrder(), night)).reason).toBe('The session is closed.')
    const dayOrder = await place(createOrder({ tif: 'day' }), night)
    expect(dayOrder.status).toBe('working')
    await advanceTo('2026-11-17T14:29:59Z')
    expect(account.orders).toHaveLength(1)
    const { effects } = await advanceTo('2026-11-17T14:30:00Z')
    expect(effects.orders[0]!.status).toBe('filled')
  })

  test('the market is closed on a holiday and after an early close', async () => {
    expect((await place(createOrder(), '2026-11-26T17:00:00Z')).status).toBe('rejected')
    expect((await place(createOrder(), '2026-11-27T17:59:59Z')).status).toBe('filled')
    expect((await place(createOrder(), '2026-11-27T18:00:00Z')).status).toBe('rejected')
  })

  test('an unfilled day order expires at the end of its session, even if the account is advanced only later', async () => {
    await place(createOrder({ tif: 'day', limit: '100.00' }))
    await advanceTo('2026-11-16T20:59:59Z')
    expect(account.orders).toHaveLength(1)
    market.setPrice('AAPL', '90.00')
    const { effects } = await advanceTo('2026-11-17T15:00:00Z')
    expect(effects.orders[0]).toMatchObject({ status: 'expired', filledE8: 0n })
  })

  test('a gtc order outlives the session, and nothing fills at or after executeBy', async () => {
    const executeBy = new Date('2026-11-17T15:00:00Z')
    await place(createOrder({ tif: 'gtc', limit: '100.00', executeBy }))
    await advanceTo('2026-11-17T14:59:59.999Z')
    expect(account.orders).toHaveLength(1)
    market.setPrice('AAPL', '90.00')
    const { effects } = await advanceTo(executeBy.getTime())
    expect(effects.orders[0]).toMatchObject({ status: 'expired', filledE8: 0n })
    expect((await place(createOrder({ executeBy }), executeBy.toISOString())).status).toBe('rejected')
  })

  test('a halted symbol does not trade', async () => {
    market.halt('AAPL', true)
    expect((await place(createOrder())).reason).toBe('AAPL is halted.')
    await place(createOrder({ tif: 'day' }))
    await advanceTo('2026-11-16T16:05:00Z')
    expect(account.orders[0]!.filledE8).toBe(0n)
    market.halt('AAPL', false)
    expect((await advanceTo('2026-11-16T16:06:00Z')).effects.orders[0]!.status).toBe('filled')
  })
})

describe('cash', () => {
  test('a working order holds cash for its worst price, and a cancel releases it', async () => {
    const freeBefore = freeCashMicro(account)
    await place(createOrder({ tif: 'gtc', limit: '100.00', quantity: '10' }))
    expect(freeCashMicro(account)).toBe(freeBefore - 1_001_000_000n)
    const tooLargeOrder = createOrder({ tif: 'gtc', limit: '100.00', quantity: '990' })
    expect((await place(tooLargeOrder)).reason).toBe('The buying power is not enough.')
    applyDraft(cancelOrder(account, account.orders[0]!.clientOrderId))
    expect(freeCashMicro(account)).toBe(freeBefore)
  })

  test('sale proceeds settle on the next trading day, over a weekend on Monday', async () => {
    const friday = '2026-11-20T16:00:00Z'
    await place(createOrder({ quantity: '10' }), friday)
    const saleOrder = await place(createOrder({ side: 'sell', quantity: '10' }), friday)
    const proceeds = saleOrder.fills.reduce(
      (total, fill) => total + notionalMicro(fill.priceE8, fill.quantityE8) - fill.feeMicro,
      0n,
    )
    expect(freeCashMicro(account)).toBe(account.cashMicro - proceeds)
    await advanceTo('2026-11-22T12:00:00Z')
    expect(freeCashMicro(account)).toBe(account.cashMicro - proceeds)
    await advanceTo('2026-11-23T14:30:00Z')
    expect(freeCashMicro(account)).toBe(account.cashMicro)
  })

  test('a quantity that is not held, or that another order is selling, cannot be sold', async () => {
    await place(createOrder({ quantity: '10' }))
    await place(createOrder({ side: 'sell', tif: 'gtc', limit: '300.00', quantity: '8' }))
    expect((await place(createOrder({ side: 'sell', quantity: '3' }))).status).toBe('rejected')
    expect((await place(createOrder({ side: 'sell', quantity: '2' }))).status).toBe('filled')
  })

  test('a payment to a merchant with the name of a share creates no position', async () => {
    const paid = await place(createOrder({ type: 'spend', quantity: '25.5' }))
    expect(paid.status).toBe('filled')
    expect(sum('merchant:AAPL', 'USD')).toBe(25_500_000n)
    expect(account.positions).toEqual({})
  })

  test('every journal transaction balances, and cash and positions equal the journal totals', async () => {
    await place(createOrder({ quantity: '7' }))
    await place(createOrder({ type: 'crypto', symbol: 'BTC-USD', quantity: '0.12345678' }))
    await place(createOrder({ type: 'perp', symbol: 'BTC-PERP', side: 'sell', quantity: '0.5', leverageE2: 500n }))
    await place(createOrder({ side: 'sell', quantity: '3' }))
    await place(createOrder({ type: 'perp', symbol: 'BTC-PERP', side: 'buy', quantity: '0.8', leverageE2: 1000n }))
    const groups = Map.groupBy(journal, (line) => `${line.tx}/${line.asset}`)
    for (const lines of groups.values()) expect(lines.reduce((total, line) => total + line.amount, 0n)).toBe(0n)
    expect(sum('cash', 'USD')).toBe(account.cashMicro)
    expect(sum('margin', 'USD')).toBe(account.positions['BTC-PERP']!.marginMicro)
    for (const symbol of ['AAPL', 'BTC-USD', 'BTC-PERP'])
      expect(sum('position', symbol)).toBe(account.positions[symbol]!.quantityE8)
    expect(account.positions['BTC-PERP']!.quantityE8).toBe(e8('0.3'))
  })
})

describe('perps', () => {
  const open = (side: 'buy' | 'sell', leverage: bigint) =>
    place(createOrder({ type: 'perp', symbol: 'BTC-PERP', side, quantity: '0.1', leverageE2: leverage * 100n }))

  test('the stated liquidation price is where the engine liquidates, long and short', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('buy' as const, 'sell' as const),
        fc.bigInt({ min: 2n, max: 40n }),
        async (side, leverage) => {
          account = openPaperAccount('acct', 0, OPENING).account
          market.setPrice('BTC-PERP', '60000.00')
          const opened = await open(side, leverage)
          const entryMicro = opened.fills.reduce(
            (total, fill) => total + notionalMicro(fill.priceE8, fill.quantityE8),
            0n,
          )
          const entryPriceE8 = (entryMicro * 10_000_000_000n) / e8('0.1')
          const direction = side === 'buy' ? 'long' : 'short'
          const statedPriceE8 = liquidationPriceE8({
            direction,
            entryPriceE8,
            leverageE2: leverage * 100n,
            maintenanceMarginBps: 50,
          })
          expect(Number(positionLiquidationE8(account.positions['BTC-PERP']!, 50)) / Number(statedPriceE8)).toBeCloseTo(
            1,
            6,
          )
          // One part in a million on either side is more than the rounding to a micro-dollar.
          const offsetE8 = statedPriceE8 / 1_000_000n
          const safePriceE8 = side === 'buy' ? statedPriceE8 + offsetE8 : statedPriceE8 - offsetE8
          const liquidatedPriceE8 = side === 'buy' ? statedPriceE8 - offsetE8 : statedPriceE8 + offsetE8
          const accountBefore = account
          expect(await liquidatedAt(safePriceE8)).toBe(false)
          account = accountBefore
          expect(await liquidatedAt(liquidatedPriceE8)).toBe(true)
        },
      ),
      { numRuns: 40 },
    )
  })

  const liquidatedAt = async (priceE8: bigint) => {
    market.setPrice('BTC-PERP', `${priceE8 / 100_000_000n}.${(priceE8 % 100_000_000n).toString().padStart(8, '0')}`)
    await advanceTo('2026-11-16T16:00:01Z')
    return account.positions['BTC-PERP'] === undefined
  }

  test('a liquidation costs the margin and no other cash', async () => {
    await open('buy', 10n)
    const cash = account.cashMicro
    market.setPrice('BTC-PERP', '40000.00')
    const { effects } = await advanceTo('2026-11-16T16:00:01Z')
    expect(account.cashMicro).toBe(cash)
    expect(effects.orders[0]).toMatchObject({ side: 'sell', status: 'filled', filledE8: e8('0.1') })
    expect(sum('margin', 'USD')).toBe(0n)
    expect(sum('insurance', 'USD')).toBeLessThan(0n)
  })

  test('longs pay funding every eight hours, including intervals in which the account was idle', async () => {
    market.setFundingRate('BTC-PERP', 100)
    await open('buy', 10n)
    const margin = account.positions['BTC-PERP']!.marginMicro
    await advanceTo('2026-11-17T16:00:00Z')
    // Funding was due at midnight, 08:00 and 16:00 UTC; the last of these is now.
    expect(margin - account.positions['BTC-PERP']!.marginMicro).toBe(3n * 600_000n)
    expect(sum('funding', 'USD')).toBe(3n * 600_000n)
    await advanceTo('2026-11-17T16:00:00Z')
    expect(sum('funding', 'USD')).toBe(3n * 600_000n)
  })

  test('closing a perp pays back its margin and profit', async () => {
    await open('buy', 10n)
    market.setPrice('BTC-PERP', '66000.00')
    await place(createOrder({ type: 'perp', symbol: 'BTC-PERP', side: 'sell', quantity: '0.1', leverageE2: 1000n }))
    expect(account.positions).toEqual({})
    expect(Number(account.cashMicro - OPENING) / 1e6).toBeCloseTo(600, 0)
  })
})

describe('corporate actions and yield', () => {
  test('a split changes shares and working orders but no cash; a dividend pays cash once', async () => {
    await place(createOrder({ quantity: '10' }))
    await place(createOrder({ side: 'sell', tif: 'gtc', limit: '400.00', quantity: '4' }))
    const { cashMicro } = account
    market.addCorporateAction('AAPL', {
      kind: 'split',
      exAt: Date.parse('2026-11-17T14:30:00Z'),
      numerator: 4n,
      denominator: 1n,
    })
    market.addCorporateAction('AAPL', {
      kind: 'dividend',
      exAt: Date.parse('2026-11-18T14:30:00Z'),
      perShareE8: e8('0.25'),
    })
    market.setPrice('AAPL', '50.00')
    await advanceTo('2026-11-17T15:00:00Z')
    expect(account.positions.AAPL!.quantityE8).toBe(e8('40'))
    expect(account.orders[0]).toMatchObject({ quantityE8: e8('16'), limitPriceE8: e8('100') })
    expect(account.cashMicro).toBe(cashMicro)
    await advanceTo('2026-11-18T15:00:00Z')
    await advanceTo('2026-11-18T16:00:00Z')
    expect(account.cashMicro - cashMicro).toBe(10_000_000n)
    expect(sum('position', 'AAPL')).toBe(e8('40'))
  })

  test('a deposit earns yield for whole days, and an early exit pays a penalty', async () => {
    const deposit = createOrder({ type: 'earn', symbol: 'USDC-EARN', quantity: '1000' })
    await place(deposit)
    await advanceTo('2026-11-19T15:59:59Z')
    expect(sum('yield', 'USD')).toBe(-200_000n)
    const earlyExit = await place(
      createOrder({ type: 'earn', symbol: 'USDC-EARN', side: 'sell', quantity: '500' }),
      '2026-11-20T16:00:00Z',
    )
    expect(earlyExit.fills.reduce((total, fill) => total + fill.feeMicro, 0n)).toBe(5_000_000n)
    const laterExit = await place(
      createOrder({ type: 'earn', symbol: 'USDC-EARN', side: 'sell', quantity: '500' }),
      '2026-11-23T16:00:00Z',
    )
    expect(laterExit.fills.reduce((total, fill) => total + fill.feeMicro, 0n)).toBe(0n)
  })
})
