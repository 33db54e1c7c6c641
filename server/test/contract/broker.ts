/** The contract of the broker port. Each adapter's test runs this suite unchanged. */
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
  /** Orders trade at this price until it is set again. */
  setPrice(price: bigint): void
  /** How many orders the broker has accepted in all. */
  countOrders(): Promise<number> | number
  close(): Promise<void>
}

/** A broker behind a network, where requests can fail and orders can fill in part. */
export type RemoteBrokerWorld = BrokerWorld & {
  /** While on, half of every order finds a match. */
  setPartialFills(on: boolean): void
  /** What goes wrong when an order is placed. */
  setFault(fault: Fault): void
}

const PRICE = 20_000_000_000n
const UNIT = 100_000_000n
const SINCE = new Date('2026-11-16T00:00:00Z')
const ACCOUNT_ID = 'ten_contract'

export function brokerContract(name: string, openWorld: () => Promise<BrokerWorld>): void {
  describe(`${name} fulfils the broker contract`, () => {
    let world: BrokerWorld
    beforeAll(async () => {
      world = await openWorld()
    })
    afterAll(async () => world.close())
    beforeEach(() => world.setPrice(PRICE))

    testOrders(() => world)
  })
}

/** The same contract, and the guarantees when requests fail. */
export function remoteBrokerContract(name: string, openWorld: () => Promise<RemoteBrokerWorld>): void {
  describe(`${name} fulfils the broker contract`, () => {
    let world: RemoteBrokerWorld
    beforeAll(async () => {
      world = await openWorld()
    })
    afterAll(async () => world.close())
    beforeEach(() => {
      world.setPrice(PRICE)
      world.setFault('none')
      world.setPartialFills(false)
    })

    testOrders(() => world)
    testPartialFillsAndFaults(() => world)
  })
}

function testOrders(getWorld: () => BrokerWorld): void {
  test('it describes its instrument and quotes a bid and an ask', async () => {
    const { broker, type, symbol } = getWorld()
    expect(broker.supports(type)).toBe(true)
    const instrument = await broker.instrument(type, symbol)
    if (!instrument.ok) throw new Error(instrument.message)
    expect(instrument.instrument).toMatchObject({ type, symbol })
    expect(instrument.instrument.lotE8).toBeGreaterThan(0n)
    const quote = await broker.quote(type, symbol)
    if (!quote.ok) throw new Error(quote.message)
    expect(quote.quote.bidE8).toBeGreaterThan(0n)
    expect(quote.quote.askE8).toBeGreaterThanOrEqual(quote.quote.bidE8)
    expect(await broker.estimate(type, symbol, UNIT)).toMatchObject({ ok: true })
  })

  test('an unknown symbol is reported as unknown', async () => {
    const { broker, type } = getWorld()
    expect(await broker.instrument(type, 'NO-SUCH')).toMatchObject({ ok: false, reason: 'unknown_symbol' })
  })

  test('a market order fills at once, and its fills add up to its quantity and to the cash paid', async () => {
    const { broker, symbol } = getWorld()
    const before = await readAccount(getWorld())
    const request = createRequest(getWorld(), { quantityE8: 2n * UNIT })
    const order = requirePlaced(await broker.place(request))
    expect(order).toMatchObject({ status: 'filled', filledE8: 2n * UNIT, clientOrderId: request.clientOrderId })
    expect(order.fills.reduce((sum, fill) => sum + fill.quantityE8, 0n)).toBe(2n * UNIT)
    const paidMicro = order.fills.reduce(
      (sum, fill) => sum + notionalMicro(fill.priceE8, fill.quantityE8) + fill.feeMicro,
      0n,
    )
    const after = await readAccount(getWorld())
    expect(before.cashMicro - after.cashMicro).toBe(paidMicro)
    expect(after.positions.find((position) => position.symbol === symbol)?.quantityE8).toBe(2n * UNIT)
  })

  test('a held quantity can be sold, more than that cannot', async () => {
    const { broker } = getWorld()
    await broker.place(createRequest(getWorld()))
    const before = await readHeldE8(getWorld())
    expect(requirePlaced(await broker.place(createRequest(getWorld(), { side: 'sell' }))).status).toBe('filled')
    expect(await readHeldE8(getWorld())).toBe(before - UNIT)
    const tooLarge = createRequest(getWorld(), { side: 'sell', quantityE8: before + 1000n * UNIT })
    expect((await broker.place(tooLarge)).outcome).toBe('rejected')
  })

  test('the same client order id is one order, however often it is sent', async () => {
    const { broker, countOrders } = getWorld()
    const request = createRequest(getWorld())
    const heldBefore = await readHeldE8(getWorld())
    const countBefore = await countOrders()
    const first = requirePlaced(await broker.place(request))
    const second = requirePlaced(await broker.place(request))
    expect(second.brokerOrderId).toBe(first.brokerOrderId)
    expect((await readHeldE8(getWorld())) - heldBefore).toBe(UNIT)
    expect((await countOrders()) - countBefore).toBe(1)
  })

  test('a market order does not trade beyond its collar', async () => {
    const before = await readHeldE8(getWorld())
    const outcome = await getWorld().broker.place(createRequest(getWorld(), { worstPriceE8: PRICE - UNIT }))
    expect(requirePlaced(outcome)).toMatchObject({ status: 'cancelled', filledE8: 0n })
    expect(await readHeldE8(getWorld())).toBe(before)
  })

  test('a limit order away from the market rests, is found as working, and ends when cancelled', async () => {
    const request = createRequest(getWorld(), { orderType: 'limit', limitPriceE8: PRICE / 2n, tif: 'gtc' })
    expect(requirePlaced(await getWorld().broker.place(request)).status).toBe('working')
    expect(await findOrder(getWorld(), request.clientOrderId)).toMatchObject({
      outcome: 'found',
      order: { status: 'working' },
    })
    const cancelResult = await cancelOrder(getWorld(), request.clientOrderId)
    expect(cancelResult).toMatchObject({ outcome: 'done', order: { status: 'cancelled', filledE8: 0n } })
    expect(await cancelOrder(getWorld(), request.clientOrderId)).toEqual(cancelResult)
  })

  test('cancelling a filled order changes nothing', async () => {
    const request = createRequest(getWorld())
    await getWorld().broker.place(request)
    expect(await cancelOrder(getWorld(), request.clientOrderId)).toMatchObject({
      outcome: 'done',
      order: { status: 'filled' },
    })
  })

  test('an order that was never sent is not found and cannot be cancelled', async () => {
    const clientOrderId = randomUUID()
    expect(await findOrder(getWorld(), clientOrderId)).toEqual({ outcome: 'not_found' })
    expect(await cancelOrder(getWorld(), clientOrderId)).toEqual({ outcome: 'not_found' })
  })

  test('an order the account cannot pay for is rejected and changes nothing', async () => {
    const before = await readAccount(getWorld())
    const outcome = await getWorld().broker.place(createRequest(getWorld(), { quantityE8: 1_000_000n * UNIT }))
    expect(outcome.outcome).toBe('rejected')
    expect((await readAccount(getWorld())).cashMicro).toBe(before.cashMicro)
  })
}

function testPartialFillsAndFaults(getWorld: () => RemoteBrokerWorld): void {
  test('a partial fill is reported, and kept when the rest is cancelled', async () => {
    const { broker, setPartialFills } = getWorld()
    setPartialFills(true)
    const request = createRequest(getWorld(), { orderType: 'limit', limitPriceE8: 2n * PRICE, tif: 'gtc' })
    const order = requirePlaced(await broker.place(request))
    expect(order.status).toBe('working')
    expect(order.filledE8).toBeGreaterThan(0n)
    expect(order.filledE8).toBeLessThan(UNIT)
    const cancelResult = await cancelOrder(getWorld(), request.clientOrderId)
    expect(cancelResult).toMatchObject({ outcome: 'done', order: { status: 'cancelled', filledE8: order.filledE8 } })
  })

  test.each(['lose_response', 'server_error', 'proxy_timeout', 'garbage'] as const)(
    '%s: the outcome is unknown, the order is found by its id, and sending it again creates no second one',
    async (fault) => {
      const { broker, countOrders, setFault } = getWorld()
      const request = createRequest(getWorld())
      const countBefore = await countOrders()
      setFault(fault)
      expect((await broker.place(request)).outcome).toBe('unknown')
      setFault('none')
      expect(await findOrder(getWorld(), request.clientOrderId)).toMatchObject({
        outcome: 'found',
        order: { status: 'filled' },
      })
      expect(requirePlaced(await broker.place(request)).status).toBe('filled')
      expect((await countOrders()) - countBefore).toBe(1)
    },
  )

  test('the outcome of a request that never arrived is unknown, and its order is not found', async () => {
    const { broker, setFault } = getWorld()
    const request = createRequest(getWorld())
    setFault('lose_request')
    expect((await broker.place(request)).outcome).toBe('unknown')
    setFault('none')
    expect(await findOrder(getWorld(), request.clientOrderId)).toEqual({ outcome: 'not_found' })
  })

  test('a rate limit means that no order was accepted, and carries the time to retry after', async () => {
    const { broker, setFault } = getWorld()
    const request = createRequest(getWorld())
    setFault('rate_limit')
    expect(await broker.place(request)).toMatchObject({ outcome: 'unavailable', retryAfterSeconds: 7 })
    setFault('none')
    expect(await findOrder(getWorld(), request.clientOrderId)).toEqual({ outcome: 'not_found' })
  })

  test('a broker that cannot be reached is unavailable, and nothing is thrown', async () => {
    const { broker, type, symbol, close } = getWorld()
    await close()
    // When an open connection breaks it is not known whether the order was sent; on a new connection it certainly was not.
    let outcome = await broker.place(createRequest(getWorld()))
    for (let attempt = 0; outcome.outcome === 'unknown' && attempt < 5; attempt += 1)
      outcome = await broker.place(createRequest(getWorld()))
    expect(outcome.outcome).toBe('unavailable')
    expect((await findOrder(getWorld(), randomUUID())).outcome).toBe('unknown')
    expect(await broker.quote(type, symbol)).toMatchObject({ ok: false, reason: 'unavailable' })
    expect(await broker.account(ACCOUNT_ID)).toMatchObject({ ok: false, reason: 'unavailable' })
  })
}

const createRequest = (world: BrokerWorld, overrides: Partial<OrderRequest> = {}): OrderRequest => ({
  accountId: ACCOUNT_ID,
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

function requirePlaced(outcome: PlaceOutcome): BrokerOrder {
  if (outcome.outcome !== 'placed') throw new Error(`${outcome.outcome}: ${outcome.reason}`)
  return outcome.order
}

const findOrder = ({ broker }: BrokerWorld, clientOrderId: string) => broker.find(ACCOUNT_ID, clientOrderId, SINCE)

const cancelOrder = ({ broker }: BrokerWorld, clientOrderId: string) => broker.cancel(ACCOUNT_ID, clientOrderId, SINCE)

async function readAccount({ broker }: BrokerWorld) {
  const result = await broker.account(ACCOUNT_ID)
  if (!result.ok) throw new Error(result.message)
  return result.account
}

async function readHeldE8(world: BrokerWorld): Promise<bigint> {
  const { positions } = await readAccount(world)
  return positions.find((position) => position.symbol === world.symbol)?.quantityE8 ?? 0n
}
