import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { formatDecimal } from '../../src/modules/brokerage/broker.ts'
import { brokerContract } from '../contract/broker.ts'
import { createOrder } from './manual-market.ts'
import { openWorld, type World } from './world.ts'

brokerContract('the paper broker', async () => {
  const world = await openWorld()
  return {
    broker: world.paper,
    type: 'equity',
    symbol: 'AAPL',
    setPrice: (price) => world.market.setPrice('AAPL', formatDecimal(price, 8)),
    countOrders: async () => {
      const { rows } = await sql<{ n: bigint }>`select count(*) as n from paper_orders`.execute(world.db)
      return Number(rows[0]!.n)
    },
    close: () => world.close(),
  }
})

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(async () => world.close())

test('one order sent many times by two processes at once is executed once', async () => {
  const brokers = [world.startNode().paper, world.startNode().paper]
  const request = createOrder({ accountId: 'ten_race', clientOrderId: 'race-1', quantity: '2' })
  const outcomes = await Promise.all(Array.from({ length: 20 }, (_, index) => brokers[index % 2]!.place(request)))
  const ids = new Set(
    outcomes.map((outcome) => (outcome.outcome === 'placed' ? outcome.order.brokerOrderId : outcome.outcome)),
  )
  expect(ids.size).toBe(1)
  const account = await world.paper.account('ten_race')
  expect(account.ok && account.account.positions[0]!.quantityE8).toBe(200_000_000n)
})

test('concurrent orders cannot spend more than the account has', async () => {
  const brokers = [world.startNode().paper, world.startNode().paper]
  const outcomes = await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      brokers[index % 2]!.place(createOrder({ accountId: 'ten_poor', clientOrderId: `poor-${index}`, quantity: '40' })),
    ),
  )
  const filledCount = outcomes.filter((outcome) => outcome.outcome === 'placed').length
  expect(filledCount).toBeGreaterThan(5)
  expect(filledCount).toBeLessThan(13)
  const account = await world.paper.account('ten_poor')
  expect(account.ok && account.account.cashMicro >= 0n).toBe(true)
})

test('the journal in the database cannot be changed or unbalanced', async () => {
  await world.paper.account('ten_books')
  await expect(sql`update paper_journal set amount = amount + 1`.execute(world.db)).rejects.toThrow('immutable')
  const unbalancedInsert = sql`
    insert into paper_journal (venue, account_id, tx, line, account, asset, amount, code, ref, at)
    values ('paper', 'ten_books', 999, 0, 'cash', 'USD', 5, 'test', 'test', now())`
  await expect(unbalancedInsert.execute(world.db)).rejects.toThrow('does not balance')
})

test('a client order id of one account cannot be found or used by another', async () => {
  await world.paper.place(createOrder({ accountId: 'ten_a', clientOrderId: 'mine' }))
  expect(await world.paper.find('ten_b', 'mine', new Date(0))).toEqual({ outcome: 'not_found' })
  expect((await world.paper.place(createOrder({ accountId: 'ten_b', clientOrderId: 'mine' }))).outcome).toBe('rejected')
})

test('idle accounts are advanced: a resting order fills when the market reaches its limit', async () => {
  world.market.setPrice('AAPL', '200.00')
  const restingOrder = createOrder({ accountId: 'ten_rest', clientOrderId: 'rest', tif: 'gtc', limit: '150.00' })
  await world.paper.place(restingOrder)
  world.market.setPrice('AAPL', '140.00')
  world.clock.advance(60_000)
  await world.paper.advanceIdleAccounts(100)
  const { rows } = await sql<{
    status: string
  }>`select status from paper_orders where client_order_id = 'rest'`.execute(world.db)
  expect(rows[0]!.status).toBe('filled')
})
