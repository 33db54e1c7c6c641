/** What every broker promises, whoever it is. An adapter's own test runs this suite over it unchanged. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type Broker,
  type BrokerOrder,
  type InstrumentType,
  notionalMicro,
  type OrderRequest,
  type PlaceOutcome,
} from '../../src/modules/brokerage/broker.ts'
import type { Fault } from '../brokerage/fake-exchange.ts'

export type BrokerWorld = {
  broker: Broker
  type: InstrumentType
  symbol: string
  /** Orders meet this price until it is set again. */
  setPrice(price: bigint): void
  /** From now on half of every order finds a match. Only a world that can be told so is asked to. */
  fillHalf?(on: boolean): void
  /** What goes wrong when the next order is placed. Only worlds with a network in between have these. */
  fault?(fault: Fault): void
  /** How many orders the other side has taken in all. */
  taken(): Promise<number> | number
  close(): Promise<void>
}

const PRICE = 20_000_000_000n
const UNIT = 100_000_000n
const SINCE = new Date('2026-11-16T00:00:00Z')

export function brokerContract(name: string, make: () => Promise<BrokerWorld>): void {
  describe(`${name} keeps the broker's contract`, () => {
    let world: BrokerWorld
    const accountId = 'ten_contract'

    beforeAll(async () => {
      world = await make()
    })
    afterAll(async () => world.close())
    beforeEach(() => {
      world.setPrice(PRICE)
      world.fault?.('none')
      world.fillHalf?.(false)
    })

    const ask = (overrides: Partial<OrderRequest> = {}): OrderRequest => ({
      accountId,
      clientOrderId: randomUUID(),
      type: world.type,
      symbol: world.symbol,
      side: 'buy',
      quantityE8: UNIT,
      orderType: 'market',
      limitPriceE8: null,
      worstPriceE8: null,
      tif: 'ioc',
      leverageE2: null,
      placeBy: new Date('2099-01-01T00:00:00Z'),
      executeBy: new Date('2099-01-01T00:00:00Z'),
      ...overrides,
    })
    const placed = (outcome: PlaceOutcome): BrokerOrder => {
      if (outcome.outcome !== 'placed') throw new Error(`${outcome.outcome}: ${outcome.reason}`)
      return outcome.order
    }
    const find = (clientOrderId: string) => world.broker.find(accountId, clientOrderId, SINCE)
    const cancel = (clientOrderId: string) => world.broker.cancel(accountId, clientOrderId, SINCE)
    const account = async () => {
      const answer = await world.broker.account(accountId)
      if (!answer.ok) throw new Error(answer.message)
      return answer.account
    }
    const held = async () => {
      const { positions } = await account()
      return positions.find((position) => position.symbol === world.symbol)?.quantityE8 ?? 0n
    }

    test('it names what it trades: lots, ticks and a two-sided quote', async () => {
      expect(world.broker.supports(world.type)).toBe(true)
      const instrument = await world.broker.instrument(world.type, world.symbol)
      expect(instrument).toMatchObject({ ok: true, instrument: { type: world.type, symbol: world.symbol } })
      if (instrument.ok) expect(instrument.instrument.lotE8).toBeGreaterThan(0n)
      const quote = await world.broker.quote(world.type, world.symbol)
      if (!quote.ok) throw new Error(quote.message)
      expect(quote.quote.bidE8).toBeGreaterThan(0n)
      expect(quote.quote.askE8).toBeGreaterThanOrEqual(quote.quote.bidE8)
      expect(await world.broker.estimate(world.type, world.symbol, UNIT)).toMatchObject({ ok: true })
    })

    test('an unknown symbol is said to be unknown', async () => {
      const answer = await world.broker.instrument(world.type, 'NO-SUCH')
      expect(answer).toMatchObject({ ok: false, reason: 'unknown_symbol' })
    })

    test('a market order is filled at once, and its fills add up to it and to the money', async () => {
      const before = await account()
      const request = ask({ quantityE8: 2n * UNIT })
      const order = placed(await world.broker.place(request))
      expect(order).toMatchObject({ status: 'filled', filledE8: 2n * UNIT, clientOrderId: request.clientOrderId })
      expect(order.fills.reduce((sum, fill) => sum + fill.quantityE8, 0n)).toBe(2n * UNIT)
      const paid = order.fills.reduce(
        (sum, fill) => sum + notionalMicro(fill.priceE8, fill.quantityE8) + fill.feeMicro,
        0n,
      )
      const after = await account()
      expect(before.cashMicro - after.cashMicro).toBe(paid)
      expect(after.positions.find((one) => one.symbol === world.symbol)?.quantityE8).toBe(2n * UNIT)
    })

    test('what is held can be sold, what is not held cannot', async () => {
      await world.broker.place(ask())
      const before = await held()
      expect(placed(await world.broker.place(ask({ side: 'sell' }))).status).toBe('filled')
      expect(await held()).toBe(before - UNIT)
      const beyond = await world.broker.place(ask({ side: 'sell', quantityE8: before + 1000n * UNIT }))
      expect(beyond.outcome).toBe('rejected')
    })

    test('the same client order id is one order, however often it is sent', async () => {
      const request = ask()
      const before = await held()
      const taken = await world.taken()
      const first = placed(await world.broker.place(request))
      const second = placed(await world.broker.place(request))
      expect(second.brokerOrderId).toBe(first.brokerOrderId)
      expect((await held()) - before).toBe(UNIT)
      expect((await world.taken()) - taken).toBe(1)
    })

    test('a collar bounds a market order: beyond it nothing is bought', async () => {
      const before = await held()
      const outcome = await world.broker.place(ask({ worstPriceE8: PRICE - UNIT }))
      expect(placed(outcome)).toMatchObject({ status: 'cancelled', filledE8: 0n })
      expect(await held()).toBe(before)
    })

    test('a limit away from the market rests, is found working, and ends when cancelled', async () => {
      const request = ask({ orderType: 'limit', limitPriceE8: PRICE / 2n, tif: 'gtc' })
      expect(placed(await world.broker.place(request)).status).toBe('working')
      expect(await find(request.clientOrderId)).toMatchObject({ outcome: 'found', order: { status: 'working' } })
      const done = await cancel(request.clientOrderId)
      expect(done).toMatchObject({ outcome: 'done', order: { status: 'cancelled', filledE8: 0n } })
      expect(await cancel(request.clientOrderId)).toEqual(done)
    })

    test('cancelling what has filled changes nothing', async () => {
      const request = ask()
      await world.broker.place(request)
      expect(await cancel(request.clientOrderId)).toMatchObject({ outcome: 'done', order: { status: 'filled' } })
    })

    test('an order nobody sent is not found, and cannot be cancelled', async () => {
      const unknown = randomUUID()
      expect(await find(unknown)).toEqual({ outcome: 'not_found' })
      expect(await cancel(unknown)).toEqual({ outcome: 'not_found' })
    })

    test('an order the account cannot pay for is refused, and leaves everything as it was', async () => {
      const before = await account()
      const outcome = await world.broker.place(ask({ quantityE8: 1_000_000n * UNIT }))
      expect(outcome.outcome).toBe('rejected')
      expect((await account()).cashMicro).toBe(before.cashMicro)
    })

    test('a partial fill is reported as far as it went, and kept when the rest is cancelled', async () => {
      if (!world.fillHalf) return
      world.fillHalf(true)
      const request = ask({ orderType: 'limit', limitPriceE8: 2n * PRICE, tif: 'gtc' })
      const order = placed(await world.broker.place(request))
      expect(order.status).toBe('working')
      expect(order.filledE8).toBeGreaterThan(0n)
      expect(order.filledE8).toBeLessThan(UNIT)
      const done = await cancel(request.clientOrderId)
      expect(done).toMatchObject({ outcome: 'done', order: { status: 'cancelled', filledE8: order.filledE8 } })
    })

    test.each(['lose_response', 'server_error', 'proxy_timeout', 'garbage'] as const)(
      '%s: the outcome is unknown, the order is found again by its id, and sending again makes no second one',
      async (fault) => {
        if (!world.fault) return
        const request = ask()
        const taken = await world.taken()
        world.fault(fault)
        expect((await world.broker.place(request)).outcome).toBe('unknown')
        world.fault('none')
        expect(await find(request.clientOrderId)).toMatchObject({ outcome: 'found', order: { status: 'filled' } })
        expect(placed(await world.broker.place(request)).status).toBe('filled')
        expect((await world.taken()) - taken).toBe(1)
      },
    )

    test('a request that never arrived is unknown too, and is then not found', async () => {
      if (!world.fault) return
      const request = ask()
      world.fault('lose_request')
      expect((await world.broker.place(request)).outcome).toBe('unknown')
      world.fault('none')
      expect(await find(request.clientOrderId)).toEqual({ outcome: 'not_found' })
    })

    test('a rate limit is certain that nothing was taken, and says when to come back', async () => {
      if (!world.fault) return
      const request = ask()
      world.fault('rate_limit')
      expect(await world.broker.place(request)).toMatchObject({ outcome: 'unavailable', retryAfterSeconds: 7 })
      world.fault('none')
      expect(await find(request.clientOrderId)).toEqual({ outcome: 'not_found' })
    })

    test('a broker that is not there is unavailable, and nothing is thrown', async () => {
      if (!world.fault) return
      await world.close()
      // On a connection that was open and breaks now, whether the order left is honestly not known; on a new one it is.
      let outcome = await world.broker.place(ask())
      for (let tries = 0; outcome.outcome === 'unknown' && tries < 5; tries += 1)
        outcome = await world.broker.place(ask())
      expect(outcome.outcome).toBe('unavailable')
      expect((await find(randomUUID())).outcome).toBe('unknown')
      expect(await world.broker.quote(world.type, world.symbol)).toMatchObject({ ok: false, reason: 'unavailable' })
      expect(await world.broker.account(accountId)).toMatchObject({ ok: false, reason: 'unavailable' })
    })
  })
}
