import { afterAll, beforeAll, expect, test } from 'vitest'
import { openWorld, richTenant, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

test('a budget that is deleted while budgets are read is left out, and the answer is 200', async () => {
  const tenant = await richTenant(world)
  let reading = true
  const change = async (budget_id: string) => {
    while (reading) {
      await world.post('/api/budgets', { budget_id, window: 'day', limit_usdc: 5 }, tenant.headers)
      await world.call('DELETE', `/api/budgets/${budget_id}`, undefined, tenant.headers)
    }
  }
  const changes = ['a', 'b', 'c'].map(change)
  const statuses = new Set<number>()
  const read = async () => {
    for (let count = 0; count < 150; count += 1) {
      const { status } = await world.get('/api/budgets', tenant.headers)
      statuses.add(status)
    }
  }
  await Promise.all([read(), read(), read()])
  reading = false
  await Promise.all(changes)
  expect([...statuses]).toEqual([200])
})
