import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Broker } from '../../src/modules/brokerage/broker.ts'
import { executeSteps } from '../../src/modules/brokerage/execute-trade.ts'
import { e8 } from './manual-market.ts'
import { filledQuantity, openWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(async () => world.close())
beforeEach(() => world.startNewTenant())

const countOrders = () => world.countOrders()
const createPendingRun = async (runBody: Record<string, unknown> = { symbol: 'AAPL', quantity: 10 }) => {
  const { status, body } = await world.run(runBody)
  expect(status, JSON.stringify(body)).toBe(202)
  return body
}

describe('sessions', () => {
  const AFTER_CLOSE = '2026-11-20T23:00:00.000Z'
  const MONDAY_OPEN = '2026-11-23T14:30:00.000Z'

  test('outside the session an equity run needs an approval, waits for the open and executes then', async () => {
    world.clock.set(AFTER_CLOSE)
    const body = await createPendingRun({ symbol: 'AAPL', quantity: 1 })
    expect(body.approval).toMatchObject({ policy_verdict: 'requires_human', session: 'closed', next_open: MONDAY_OPEN })
    expect(body.expires_at).toBe('2026-11-21T23:00:00.000Z')
    expect(body.execute_by).toBe('2026-11-23T14:45:00.000Z')
    await world.approve(body.run_id)
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'approved' })
    world.clock.set('2026-11-23T14:29:59.999Z')
    await world.brokerage.sweep()
    expect(await countOrders()).toBe(0)
    world.clock.set(MONDAY_OPEN)
    await world.brokerage.sweep()
    const finishedRun = await world.getRun(body.run_id)
    expect(finishedRun).toMatchObject({ status: 'executed', execute_by: '2026-11-23T14:45:00.000Z' })
    expect(finishedRun.fills[0].at).toBe(MONDAY_OPEN)
  })

  test('a run that waited for the open is cancelled a quarter of an hour after it', async () => {
    world.clock.set(AFTER_CLOSE)
    const body = await createPendingRun({ symbol: 'AAPL', quantity: 1 })
    await world.approve(body.run_id)
    world.clock.set('2026-11-23T14:45:00.000Z')
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'cancelled', fills: [] })
    expect(await countOrders()).toBe(0)
  })

  test('an approval after execute_by is a 410', async () => {
    world.clock.set('2026-11-16T14:00:00.000Z')
    const body = await createPendingRun({ symbol: 'AAPL', quantity: 1 })
    expect(body.execute_by).toBe('2026-11-16T14:45:00.000Z')
    world.clock.set('2026-11-16T14:45:00.000Z')
    expect((await world.approve(body.run_id)).status).toBe(410)
  })

  test('an equity waits on a holiday, crypto executes', async () => {
    world.clock.set('2026-11-26T17:00:00.000Z')
    const body = await createPendingRun({ symbol: 'AAPL', quantity: 1 })
    expect(body.approval).toMatchObject({ session: 'holiday', next_open: '2026-11-27T14:30:00.000Z' })
    expect((await world.run({ symbol: 'BTC-USD', instrument_type: 'crypto', quantity: 0.001 })).status).toBe(200)
  })
})

describe('prices', () => {
  test('at execution, price drift beyond the limit cancels the run, and drift within it executes at the new price', async () => {
    const [runFarDrift, runNearDrift] = [await createPendingRun(), await createPendingRun()]
    await world.approve(runFarDrift.run_id)
    world.market.setPrice('AAPL', '204.30')
    await world.brokerage.sweep()
    const cancelledRun = await world.getRun(runFarDrift.run_id)
    expect(cancelledRun.status).toBe('cancelled')
    expect(cancelledRun.reason).toMatch(/The price moved .* bps/)
    world.market.setPrice('AAPL', '203.00')
    await world.approve(runNearDrift.run_id)
    await world.brokerage.sweep()
    const finishedRun = await world.getRun(runNearDrift.run_id)
    expect(finishedRun.status).toBe('executed')
    expect(finishedRun.fills[0].price).toBeCloseTo(203.11, 1)
  })

  test('a limit order that is not marketable needs an approval, then rests and fills at its limit or better', async () => {
    const body = await createPendingRun({ symbol: 'AAPL', quantity: 2, price_limit: 198 })
    expect(body.approval).toMatchObject({
      policy_verdict: 'borderline',
      order_type: 'limit',
      limit_price: 198,
      tif: 'day',
    })
    await world.approve(body.run_id)
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'executing' })
    world.market.setPrice('AAPL', '197.00')
    world.clock.advance(60_000)
    await world.brokerage.sweep()
    const finishedRun = await world.getRun(body.run_id)
    expect(finishedRun.status).toBe('executed')
    for (const fill of finishedRun.fills) expect(fill.price).toBeLessThanOrEqual(198)
  })

  test('a resting order is cancelled at execute_by', async () => {
    const body = await createPendingRun({
      symbol: 'BTC-USD',
      instrument_type: 'crypto',
      quantity: 0.01,
      price_limit: 59_000,
    })
    await world.approve(body.run_id)
    await world.brokerage.sweep()
    world.clock.set(body.execute_by)
    world.market.setPrice('BTC-USD', '58000.00')
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'cancelled', fills: [] })
  })

  test('an order with a generous limit pays the market price', async () => {
    const { body } = await world.run({ symbol: 'AAPL', quantity: 1, price_limit: 900 })
    expect(body.receipt.avg_price).toBeCloseTo(200.1, 2)
    expect(body.receipt.instrument_metadata).toEqual({ ticker: 'AAPL', order_type: 'limit', limit_price: 900 })
  })

  test('policy checks notional_usdc, and the quantity is cut to it', async () => {
    const rwa = { symbol: 'TSLAx', instrument_type: 'rwa', quantity: 100 }
    const { status, body } = await world.run({ ...rwa, notional_usdc: 500 })
    expect(status).toBe(200)
    expect(body.receipt).toMatchObject({ notional_usdc: 500, requested_quantity: 100 })
    expect(body.receipt.gross).toBeLessThanOrEqual(500)
    expect(body.receipt.gross).toBeGreaterThan(495)
    expect((await world.run({ ...rwa, quantity: 1, notional_usdc: 20_000 })).status).toBe(422)
  })

  test('the slippage estimate covers only the quantity left after notional_usdc cut it', async () => {
    const rwa = { underlyingAsset: 'THIN', tokenContract: 'contract', chain: 'solana', multiplier: 1 }
    world.market.list({ type: 'rwa', symbol: 'THINx', advE8: e8('200'), sigmaBps: 2000, rwa }, '10.00')
    const { status, body } = await world.run({
      symbol: 'THINx',
      instrument_type: 'rwa',
      quantity: 150,
      notional_usdc: 100,
    })
    expect(status, JSON.stringify(body)).toBe(200)
    expect(body.receipt.gross).toBeLessThanOrEqual(100)
  })

  test('a receipt shows the basis at admission, and the net of a perp is its fees', async () => {
    const rwa = await world.run({ symbol: 'TSLAx', instrument_type: 'rwa' })
    expect(rwa.body.receipt.reference.basis_bps).toBe(world.readings.get('TSLAx')!.basisBps)
    const perp = { symbol: 'BTC-PERP', instrument_type: 'perp', side: 'long', quantity: 0.01, leverage: 5 }
    const { run_id } = (await world.run(perp)).body
    await world.approve(run_id)
    await world.brokerage.sweep()
    const [receipt] = (await world.call('GET', `/api/rh/receipts?run_id=${run_id}`)).body
    expect(receipt).toMatchObject({ status: 'executed', net: -receipt.fees, reference: { basis_bps: null } })
  })

  test('the average price of a tiny fill is the price of the fill, not of its rounded amount', async () => {
    const { receipt } = (await world.run({ symbol: 'BTC-USD', instrument_type: 'crypto', quantity: 0.00000001 })).body
    expect(receipt.avg_price).toBe(receipt.fills[0].price)
  })

  test('a spend is quantity times the merchant’s unit price', async () => {
    const { body } = await world.run({ symbol: 'acme-store', instrument_type: 'spend', quantity: 3, price_limit: 25 })
    expect(body.receipt).toMatchObject({
      gross: 75,
      net: -75,
      instrument_metadata: { merchant: 'acme-store', amount_usdc: 75 },
    })
  })
})

describe('idempotency', () => {
  const key = { 'idempotency-key': 'once' }

  test('the same key and body give the same response bytes; another body is a 409', async () => {
    for (const [index, runBody] of [{ quantity: 1 }, { quantity: 10 }, { quantity: 100 }].entries()) {
      const headers = { 'idempotency-key': `key-${index}` }
      const first = await world.run({ symbol: 'AAPL', ...runBody }, headers)
      const before = await countOrders()
      const second = await world.run({ symbol: 'AAPL', ...runBody }, headers)
      expect([second.status, second.text]).toEqual([first.status, first.text])
      expect(second.headers['idempotent-replayed']).toBe('true')
      expect(await countOrders()).toBe(before)
      expect((await world.run({ symbol: 'AAPL', quantity: 2 }, headers)).status).toBe(409)
    }
  })

  test('an approval can be repeated with its idempotency key; without one the repetition is a 409', async () => {
    const { run_id } = (await world.run({ symbol: 'AAPL', quantity: 10 })).body
    const approve = (body: object, key?: string) =>
      world.call('POST', '/api/rh/approve', { run_id, ...body }, key ? { 'idempotency-key': key } : {})
    expect((await approve({ direction: 'sell' }, 'approve-1')).status).toBe(400)
    const first = await approve({}, 'approve-1')
    const repeatedResponse = await approve({}, 'approve-1')
    expect([first.status, repeatedResponse.status, repeatedResponse.text]).toEqual([200, 200, first.text])
    expect((await approve({ approved_by: 'another' }, 'approve-1')).status).toBe(409)
    expect((await approve({})).status).toBe(409)
    await world.brokerage.sweep()
    expect(await world.getRun(run_id)).toMatchObject({ status: 'executed' })
    expect((await approve({}, 'approve-1')).text).toBe(first.text)
  })

  test('a 400 does not use up the idempotency key, and the key expires after a day', async () => {
    expect((await world.run({ symbol: 'NOSUCH' }, key)).status).toBe(400)
    const first = await world.run({ symbol: 'AAPL' }, key)
    expect(first.status).toBe(200)
    world.clock.advance(24 * 3_600_000)
    await world.brokerage.sweep()
    const newResponse = await world.run({ symbol: 'AAPL' }, key)
    expect(newResponse.status).toBe(200)
    expect(newResponse.body.run_id).not.toBe(first.body.run_id)
  })

  test('twenty concurrent requests with one idempotency key are one run', async () => {
    const responses = await Promise.all(Array.from({ length: 20 }, () => world.run({ symbol: 'AAPL' }, key)))
    expect(await countOrders()).toBe(1)
    const executed = responses.filter(({ status }) => status === 200)
    expect(new Set(executed.map(({ text }) => text)).size).toBe(1)
    for (const { status } of responses) expect([200, 409]).toContain(status)
  })
})

describe('exactly once', () => {
  test.each(executeSteps)('an approved run whose worker dies at %s is executed once', async (step) => {
    const body = await createPendingRun()
    await world.approve(body.run_id)
    const crashingNode = world.startNode({
      probe: (at) => {
        if (at === step) throw new Error('killed')
      },
    })
    await expect(crashingNode.brokerage.sweep()).rejects.toThrow('killed')
    await world.brokerage.sweep()
    world.clock.advance(31_000)
    await world.brokerage.sweep()
    const finishedRun = await world.getRun(body.run_id)
    expect(finishedRun).toMatchObject({ status: 'executed' })
    expect(filledQuantity(finishedRun)).toBe(10)
    expect(await countOrders()).toBe(1)
    expect(finishedRun.receipt_ids).toHaveLength(2)
  })

  test.each(executeSteps)(
    'an immediate run whose process dies at %s is executed once, and its caller can repeat the request',
    async (step) => {
      const crashingNode = world.startNode({
        probe: (at) => {
          if (at === step) throw new Error('killed')
        },
      })
      const caller = {
        kind: 'tenant',
        tenantId: world.tenant(),
        keyId: 'key',
        scopes: ['run'],
        spender: null,
        team: null,
        mandateIds: null,
        auth: 'key',
      } as const
      const runBody = { tenant_id: world.tenant(), symbol: 'AAPL', side: 'buy', quantity: 1 } as const
      const runRequest = { caller, body: runBody, idempotencyKey: 'k', requestId: 'r' }
      await expect(crashingNode.brokerage.run(runRequest)).rejects.toThrow('killed')
      world.clock.advance(31_000)
      await world.brokerage.sweep()
      const repeatedResponse = await world.run({ symbol: 'AAPL' }, { 'idempotency-key': 'k' })
      expect([repeatedResponse.status, repeatedResponse.body.receipt?.status]).toEqual([200, 'executed'])
      expect(await countOrders()).toBe(1)
    },
  )

  /** A worker that stalls between recording its intent and calling the broker, until another has taken the run over. */
  const startStalledNode = (meanwhile: () => void) =>
    world.startNode({
      wrapBroker: (broker) => ({
        ...broker,
        place: async (request) => {
          world.clock.advance(31_000)
          meanwhile()
          await world.brokerage.sweep()
          return broker.place(request)
        },
      }),
    })

  test('a stalled worker does not repeat a run that another worker has executed', async () => {
    const body = await createPendingRun()
    await world.approve(body.run_id)
    await startStalledNode(() => {}).brokerage.sweep()
    expect(await countOrders()).toBe(1)
    const finishedRun = await world.getRun(body.run_id)
    expect(finishedRun.status).toBe('executed')
    expect(finishedRun.receipt_ids).toHaveLength(2)
  })

  test('a stalled worker cannot place the order of a run that another worker has cancelled', async () => {
    const body = await createPendingRun()
    await world.approve(body.run_id)
    await startStalledNode(() => world.market.setPrice('AAPL', '150.00')).brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'cancelled' })
    expect(await countOrders()).toBe(0)
  })

  test('a stalled worker with a stale quote cannot cancel an order that another worker has placed', async () => {
    const body = await createPendingRun({ symbol: 'AAPL', quantity: 2, price_limit: 198 })
    await world.approve(body.run_id)
    const stalledNode = world.startNode({
      wrapBroker: (broker) => ({
        ...broker,
        quote: async (type, symbol) => {
          world.market.setPrice('AAPL', '150.00')
          const staleQuote = await broker.quote(type, symbol)
          world.market.setPrice('AAPL', '200.00')
          world.clock.advance(31_000)
          await world.brokerage.sweep()
          return staleQuote
        },
      }),
    })
    await stalledNode.brokerage.sweep()
    expect(await countOrders()).toBe(1)
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'executing' })
    world.market.setPrice('AAPL', '197.00')
    world.clock.advance(60_000)
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'executed' })
  })

  test('six concurrent workers execute forty approved runs once each', async () => {
    const policy = { require_approval_above_usdc: 1, max_per_day_usdc: 900_000 }
    world.policies.set('pol_ask', {
      id: 'pol_ask',
      name: 'Ask',
      status: 'active',
      mode: 'enforce',
      contentHash: null,
      constraints: policy,
    })
    const runs = await Promise.all(
      Array.from({ length: 40 }, () => createPendingRun({ symbol: 'AAPL', quantity: 1, policy_id: 'pol_ask' })),
    )
    await Promise.all(runs.map(({ run_id }) => world.approve(run_id)))
    const workers = Array.from({ length: 6 }, () => world.startNode())
    await Promise.all(workers.map(({ brokerage }) => brokerage.sweep()))
    expect(await countOrders()).toBe(40)
    const { rows } = await sql<{
      state: string
      n: bigint
    }>`select state, count(*) as n from rh_runs where tenant_id = ${world.tenant()} group by state`.execute(world.db)
    expect(rows).toEqual([{ state: 'executed', n: 40n }])
  })

  test('of eight concurrent approvals one succeeds and the others are a 409', async () => {
    const body = await createPendingRun()
    const responses = await Promise.all(Array.from({ length: 8 }, () => world.approve(body.run_id)))
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(responses.filter(({ status }) => status === 409)).toHaveLength(7)
  })
})

describe('an unreliable broker', () => {
  type Faults = { place: 'ok' | 'lost' | 'lost_before' | 'unavailable' | 'slow'; find: 'ok' | 'unknown' }
  let faults: Faults

  /** The paper broker behind an unreliable network. */
  const createFlakyBroker = (paper: () => Broker): Broker => ({
    ...({} as Broker),
    id: 'flaky',
    mode: 'live',
    inFlightMs: 60_000,
    supports: (type) => type === 'crypto',
    instrument: (...args) => paper().instrument(...args),
    quote: (...args) => paper().quote(...args),
    estimate: (...args) => paper().estimate(...args),
    account: (...args) => paper().account(...args),
    cancel: (...args) => paper().cancel(...args),
    find: async (...args) =>
      faults.find === 'unknown' ? { outcome: 'unknown', reason: 'no answer' } : paper().find(...args),
    place: async (request) => {
      if (faults.place === 'unavailable') return { outcome: 'unavailable', reason: 'slow down', retryAfterSeconds: 7 }
      if (faults.place === 'lost_before') return { outcome: 'unknown', reason: 'no answer' }
      const placed = await paper().place(request)
      if (faults.place === 'lost') return { outcome: 'unknown', reason: 'no answer' }
      if (faults.place === 'slow' && placed.outcome === 'placed')
        return { outcome: 'placed', order: { ...placed.order, status: 'working', filledE8: 0n, fills: [] } }
      return placed
    },
  })

  const crypto = { symbol: 'BTC-USD', instrument_type: 'crypto', quantity: 0.001 }
  let reliableWorld: World
  beforeAll(async () => {
    reliableWorld = world
    world = await openWorld({ brokers: [createFlakyBroker(() => world.coinbasePaper)] })
  })
  afterAll(async () => {
    await world.close()
    world = reliableWorld
  })
  beforeEach(() => {
    faults = { place: 'ok', find: 'ok' }
  })

  test('after a lost response the order is found by its id and not sent a second time', async () => {
    faults = { place: 'lost', find: 'unknown' }
    const { status, body } = await world.run(crypto, { 'idempotency-key': 'k' })
    expect([status, body.status]).toEqual([202, 'executing'])
    expect((await world.run(crypto, { 'idempotency-key': 'k' })).status).toBe(409)
    world.clock.advance(10_000)
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'executing' })
    faults = { place: 'ok', find: 'ok' }
    world.clock.advance(60_000)
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'executed', mode: 'live', broker: 'flaky' })
    expect(await countOrders()).toBe(1)
    const repeatedResponse = await world.run(crypto, { 'idempotency-key': 'k' })
    expect([repeatedResponse.status, repeatedResponse.body.receipt.status]).toEqual([200, 'executed'])
  })

  test('an order found after its deadline counts as executed when it filled in time', async () => {
    faults = { place: 'lost', find: 'unknown' }
    const { body } = await world.run(crypto)
    faults = { place: 'ok', find: 'ok' }
    world.clock.set(new Date(Date.parse(body.execute_by) + 3_600_000))
    await world.brokerage.sweep()
    const finishedRun = await world.getRun(body.run_id)
    expect(finishedRun.status).toBe('executed')
    expect(Date.parse(finishedRun.fills[0].at)).toBeLessThan(Date.parse(body.execute_by))
  })

  test('after a lost request the order is sent again only when the first can no longer arrive', async () => {
    faults.place = 'lost_before'
    const { body } = await world.run(crypto)
    faults.place = 'ok'
    world.clock.advance(10_000)
    await world.brokerage.sweep()
    expect(await countOrders()).toBe(0)
    world.clock.advance(51_000)
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'executed' })
    expect(await countOrders()).toBe(1)
  })

  test('a rate-limited order is not retried after the deadline', async () => {
    faults.place = 'unavailable'
    const { body } = await world.run(crypto)
    expect(body.status).toBe('executing')
    world.clock.set(body.execute_by)
    faults.place = 'ok'
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'cancelled' })
    expect(await countOrders()).toBe(0)
  })

  test('a run whose order fills later is a 202, then executed', async () => {
    faults.place = 'slow'
    const { status, body } = await world.run(crypto)
    expect([status, body.status, body.approval]).toEqual([202, 'executing', null])
    world.clock.advance(2000)
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'executed' })
  })
})

describe('cancelling', () => {
  /** A node whose broker is slow to quote; `meanwhile` happens while the worker waits for the quote. */
  const startSlowNode = (meanwhile: () => Promise<unknown>) =>
    world.startNode({
      wrapBroker: (broker) => ({
        ...broker,
        quote: async (type, symbol) => {
          const quoteResult = await broker.quote(type, symbol)
          await meanwhile()
          return quoteResult
        },
      }),
    })

  test('a cancel that comes while the broker quotes stops the order', async () => {
    const body = await createPendingRun()
    await world.approve(body.run_id)
    const cancel = () => world.call('POST', `/api/rh/runs/${body.run_id}/cancel`, { reason: 'changed my mind' })
    const slowNode = startSlowNode(async () => expect((await cancel()).body).toMatchObject({ stopping: true }))
    await slowNode.brokerage.sweep()
    expect(await countOrders()).toBe(0)
    expect(await world.getRun(body.run_id)).toMatchObject({
      status: 'cancelled',
      reason: 'changed my mind',
      fills: [],
    })
  })

  test('a kill switch that comes while the broker quotes stops the order, even if it is released at once', async () => {
    const body = await createPendingRun()
    await world.approve(body.run_id)
    const slowNode = startSlowNode(async () => {
      await world.call('POST', '/api/rh/kill-switch', { engaged: true })
      await world.call('POST', '/api/rh/kill-switch', { engaged: false })
    })
    await slowNode.brokerage.sweep()
    expect(await countOrders()).toBe(0)
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'cancelled', fills: [] })
  })

  test('the kill switch cancels a working order at the broker', async () => {
    const body = await createPendingRun({ symbol: 'AAPL', quantity: 2, price_limit: 198 })
    await world.approve(body.run_id)
    await world.brokerage.sweep()
    expect((await world.call('POST', '/api/rh/kill-switch', { engaged: true })).body.runs_stopped).toBe(1)
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({
      status: 'cancelled',
      reason: 'Trading is switched off for this tenant.',
    })
    world.market.setPrice('AAPL', '100.00')
    world.clock.advance(60_000)
    await world.paper.advanceIdleAccounts(100)
    const account = await world.paper.account(world.tenant())
    expect(account.ok && [account.account.heldMicro, account.account.positions]).toEqual([0n, []])
  })

  test('a pending run can be cancelled once, and an executed run cannot be cancelled', async () => {
    const body = await createPendingRun()
    const path = `/api/rh/runs/${body.run_id}/cancel`
    expect((await world.call('POST', path, { reason: 'not today' })).body).toMatchObject({
      status: 'cancelled',
      stopping: false,
    })
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'cancelled', reason: 'not today' })
    expect((await world.call('POST', path, {})).status).toBe(409)
    const executedRun = await world.run({ symbol: 'AAPL' })
    expect((await world.call('POST', `/api/rh/runs/${executedRun.body.run_id}/cancel`, {})).status).toBe(409)
  })
})

describe('what a trade holds in counters', () => {
  const micro = (usdc: number) => BigInt(Math.round(usdc * 1_000_000))

  test.each(executeSteps)('stays held when a worker dies at %s, and is settled once by the next', async (step) => {
    await world.counter.turnOn()
    const body = await createPendingRun({ symbol: 'acme-store', instrument_type: 'spend', quantity: 1_500 })
    expect(await world.counter.read()).toBeUndefined()
    await world.approve(body.run_id)
    const held = { spent_micro: 0n, reserved_micro: 1_500_000_000n }
    expect(await world.counter.read()).toEqual(held)
    const crashingNode = world.startNode({
      probe: (at) => {
        if (at === step) throw new Error('killed')
      },
    })
    await expect(crashingNode.brokerage.sweep()).rejects.toThrow('killed')
    const settled = { spent_micro: 1_500_000_000n, reserved_micro: 0n }
    expect(await world.counter.read()).toEqual(step === 'outcome_recorded' ? settled : held)
    world.clock.advance(31_000)
    await world.brokerage.sweep()
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'executed' })
    expect(await world.counter.read()).toEqual(settled)
  })

  test('is spent for what was filled, at most what was held, and the rest released', async () => {
    await world.counter.turnOn()
    // So little is traded that the order fills in part.
    world.market.list({ type: 'crypto', symbol: 'DUST-USD', advE8: e8('200'), sigmaBps: 100 }, '10.00')
    const runBody = { symbol: 'DUST-USD', instrument_type: 'crypto', quantity: 60 }
    const { body } = await world.run(runBody)
    expect(body.receipt?.status, JSON.stringify(body)).toBe('partially_filled')
    expect(await world.counter.read()).toEqual({ spent_micro: micro(body.receipt.gross), reserved_micro: 0n })
    expect(body.receipt.gross).toBeLessThan(body.receipt.notional_usdc)
  })

  test('is released when the run is cancelled or its time to execute passes', async () => {
    await world.counter.turnOn()
    const [cancelled, late] = [await createPendingRun(), await createPendingRun()]
    for (const { run_id } of [cancelled, late]) await world.approve(run_id)
    await world.call('POST', `/api/rh/runs/${cancelled.run_id}/cancel`, {})
    world.clock.set(late.execute_by)
    await world.brokerage.sweep()
    expect(await world.getRun(late.run_id)).toMatchObject({ status: 'cancelled' })
    expect(await world.counter.read()).toEqual({ spent_micro: 0n, reserved_micro: 0n })
  })
})

describe('positions, ledger and receipts', () => {
  test('positions, ledger and broker agree to the micro-dollar', async () => {
    for (const runBody of [
      { symbol: 'AAPL', quantity: 3 },
      { symbol: 'AAPL', side: 'sell', quantity: 1 },
      { symbol: 'acme-store', instrument_type: 'spend', quantity: 12.34 },
    ]) {
      expect((await world.run(runBody)).status).toBe(200)
    }
    const { body } = await world.call('GET', '/api/rh/positions')
    const paper = body.accounts.find((account: { broker: string }) => account.broker === 'paper')
    expect(paper.positions).toMatchObject([{ symbol: 'AAPL', quantity: 2, instrument_type: 'equity' }])
    const sums = await sql<{ account: string; asset: string; total: string }>`
      select account, asset, sum(amount_micro)::text as total from ledger_entries
      where tenant_id = ${world.tenant()} and status = 'posted' group by account, asset`.execute(world.db)
    const total = (account: string, asset: string) =>
      BigInt(sums.rows.find((row) => row.account === account && row.asset === asset)?.total ?? 0)
    expect(total('assets:brokerage:paper:position', 'AAPL')).toBe(200_000_000n)
    expect(Number(100_000_000_000n + total('assets:brokerage:paper:cash', 'USD')) / 1e6).toBeCloseTo(paper.cash_usdc, 6)
    expect(total('expenses:merchant:acme-store', 'USD')).toBe(12_340_000n)
  })

  test('/api/cb/receipts shows the receipts and accounts at Coinbase to the operator', async () => {
    await world.run({ symbol: 'BTC-USD', instrument_type: 'crypto', quantity: 0.00123 })
    const pendingRun = await createPendingRun({ symbol: 'BTC-USD', instrument_type: 'crypto', quantity: 0.05 })
    await world.run({ symbol: 'AAPL' })
    const admin = { 'x-admin-key': 'the-admin-key' }
    expect((await world.call('GET', '/api/cb/receipts')).status).toBe(401)
    const listAll = async (query: string) =>
      (await world.call('GET', `/api/cb/receipts?limit=200${query}`, undefined, admin)).body
    const listOwn = async (query: string) =>
      (await listAll(query)).filter((receipt: { tenant_id: string }) => receipt.tenant_id === world.tenant())
    expect((await listOwn('')).map((receipt: { status: string }) => receipt.status)).toEqual([
      'pending_approval',
      'executed',
    ])
    expect(await listOwn('&status=pending')).toMatchObject([{ run_id: pendingRun.run_id, instrument_type: 'crypto' }])
    expect(await listOwn('&status=history')).toMatchObject([{ status: 'executed', broker: 'coinbase-paper' }])
    expect((await world.call('GET', '/api/cb/receipts?limit=1', undefined, admin)).body).toHaveLength(1)
    const accounts = await listAll('&type=accounts')
    expect(accounts).toContainEqual(expect.objectContaining({ currency: 'USD', type: 'ACCOUNT_TYPE_FIAT' }))
    const coins = { available_balance: { value: '0.00123', currency: 'BTC' }, hold: { value: '0', currency: 'BTC' } }
    expect(accounts).toContainEqual(expect.objectContaining({ type: 'ACCOUNT_TYPE_CRYPTO', currency: 'BTC', ...coins }))
  })

  test('/api/rh/receipts lists the newest receipt of each run, newest first, by type and limit', async () => {
    const first = await createPendingRun()
    await world.run({ symbol: 'AAPL' })
    await world.run({ symbol: 'acme-store', instrument_type: 'spend', quantity: 5 })
    const listOwn = async (query: string) => (await world.call('GET', `/api/rh/receipts${query}`)).body
    expect((await listOwn('')).map((receipt: { symbol: string }) => receipt.symbol)).toEqual([
      'acme-store',
      'AAPL',
      'AAPL',
    ])
    expect(await listOwn('?instrument_type=spend')).toHaveLength(1)
    expect(await listOwn('?limit=2')).toHaveLength(2)
    await world.approve(first.run_id)
    await world.brokerage.sweep()
    expect(await listOwn(`?run_id=${first.run_id}`)).toMatchObject([{ status: 'executed' }])
    expect(await listOwn(`?tenant_id=${world.tenant()}`)).toHaveLength(3)
  })
})

test('the simulated market trades every listed symbol, and the same time gives the same prices', async () => {
  const simulated = await openWorld({ market: 'simulated' })
  const runBodies = [
    ...['AAPL', 'TSLA', 'NVDA', 'MSFT', 'SPY', 'QQQ'].map((symbol) => ({ symbol, quantity: 1 })),
    ...['BTC-USD', 'ETH-USD', 'SOL-USD'].map((symbol) => ({ symbol, instrument_type: 'crypto', quantity: 0.001 })),
    { symbol: 'TSLAx', instrument_type: 'rwa', quantity: 1 },
    { symbol: 'Any Merchant', instrument_type: 'spend', quantity: 1 },
  ]
  const prices: number[] = []
  for (const runBody of runBodies) {
    const { status, body } = await simulated.run(runBody)
    expect(status, JSON.stringify(body)).toBe(200)
    prices.push(body.receipt.reference.quote_price)
  }
  const perp = { symbol: 'BTC-PERP', instrument_type: 'perp', side: 'short', quantity: 0.01, leverage: 3 }
  const earn = { symbol: 'USDC-EARN', instrument_type: 'earn', quantity: 100 }
  for (const runBody of [perp, earn]) expect((await simulated.run(runBody)).status).toBe(202)
  const otherBroker = simulated.startNode().paper
  const quotes = await Promise.all(runBodies.slice(0, 6).map(({ symbol }) => otherBroker.quote('equity', symbol)))
  expect(quotes.map((result) => (result.ok ? Number(result.quote.askE8) / 1e8 : 0))).toEqual(prices.slice(0, 6))
  await simulated.close()
})
