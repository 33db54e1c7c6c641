import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FaultKind } from './fault-proxy.ts'
import { type FaultWorld, openFaultWorld, type Part } from './world.ts'

/** Every part of a real service behind a fault proxy: `/api/health` names it while the fault lasts, and no longer. */
let world: FaultWorld
let tenant: { headers: Record<string, string>; walletId: string }
beforeAll(async () => {
  world = await openFaultWorld({ seed: 1, log: () => {}, serviceCount: 1 })
  const service = world.services[0]!
  const { headers } = await service.onboard()
  const { body } = await service.post('/api/wallets', {}, headers)
  await world.pool.query('update wallets set available_micro = 10000000 where id = $1', [body.wallet_id])
  await service.post('/api/webhooks', { url: world.webhookUrl, events: ['run.completed'] }, headers)
  tenant = { headers, walletId: body.wallet_id }
}, 120_000)
afterAll(() => world?.close(), 60_000)

let count = 0
const run = () => {
  count += 1
  const body = { task: `Tell joke ${count}.`, agent_id: 'comedian-v1', payment: { wallet_id: tenant.walletId } }
  return world.services[0]!.post('/api/run', body, tenant.headers)
}
const readHealth = async () => {
  const { status, body } = await world.services[0]!.get('/api/health')
  return { status, parts: (body.problems ?? []).map(({ part }: { part: string }) => part), body }
}
const untilHealthy = () =>
  expect.poll(readHealth, { timeout: 60_000 }).toMatchObject({ status: 200, parts: [], body: { status: 'ok' } })

const cases: { part: Part; named: string; kind: FaultKind; status: number; touch?: () => Promise<unknown> }[] = [
  { part: 'postgres', named: 'database', kind: 'black_hole', status: 503 },
  { part: 'redis', named: 'redis', kind: 'black_hole', status: 503 },
  { part: 'facilitator', named: 'facilitator', kind: 'black_hole', status: 200 },
  { part: 'chain', named: 'chain', kind: 'refuse', status: 200 },
  { part: 'models', named: 'models', kind: 'reset', status: 200, touch: run },
  { part: 'webhooks', named: 'webhooks', kind: 'reset', status: 200, touch: run },
]

test.each(cases)(
  '$part with $kind: health names it, and recovers by itself',
  async (example) => {
    const proxy = world.proxies[example.part]
    // Machines without Redis say so in the soak; CI has it.
    if (!proxy) throw new Error(`There is no ${example.part} on this machine.`)
    await untilHealthy()
    await proxy.setFault({ kind: example.kind } as { kind: 'reset' })
    await example.touch?.()
    await expect.poll(readHealth, { timeout: 30_000 }).toMatchObject({ status: example.status, parts: [example.named] })
    await proxy.clear()
    await untilHealthy()
  },
  90_000,
)

test('a full disk of the database server: requests get 503, health names it, and recovers by itself', async () => {
  if (!world.disk) throw new Error('Only root can make a file system for this.')
  await untilHealthy()
  expect((await run()).status).toBe(200)
  world.disk.fill()
  const answers = new Set<number>()
  await expect
    .poll(
      async () => {
        answers.add((await run()).status)
        return (await readHealth()).parts
      },
      { timeout: 30_000 },
    )
    .toSatisfy((parts: string[]) => parts.includes('disk') || parts.includes('database'))
  expect([...answers].filter((status) => ![200, 503].includes(status))).toEqual([])
  world.disk.free()
  await untilHealthy()
  await expect.poll(async () => (await run()).status, { timeout: 30_000 }).toBe(200)
}, 90_000)
