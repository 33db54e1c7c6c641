import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ops, runModel } from './limits-model.ts'
import { edgeCaseHistories, history, runAndReplay } from './replay-model.ts'
import { openWorld, richTenant, run, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

test('simulate reproduces every past decision, and both match the documented rules', async () => {
  let comparedCount = 0
  await fc.assert(
    fc.asyncProperty(history, async (history) => {
      comparedCount += await runAndReplay(world, history)
    }),
    {
      examples: edgeCaseHistories.map((history) => [history]),
      numRuns: edgeCaseHistories.length + 3,
      endOnFailure: true,
    },
  )
  expect(comparedCount).toBeGreaterThan(20)
})

test('a simulated draft reports changed decisions and money, counting velocity limits and failed runs exactly', async () => {
  const tenant = await richTenant(world)
  const blocker = await world.post('/api/policies', { constraints: { denied_agents: ['coder-v1'] } }, tenant.headers)
  for (const agent_id of ['comedian-v1', 'writer-v1', 'comedian-v1'])
    expect((await run(world, tenant, { agent_id })).status).toBe(200)
  world.lane.failing = true
  expect((await run(world, tenant, { agent_id: 'writer-v1' })).status).toBe(500)
  world.lane.failing = false
  expect((await run(world, tenant, { agent_id: 'coder-v1' })).status).toBe(429)
  expect((await run(world, tenant, { agent_id: 'comedian-v1' })).status).toBe(200)
  const simulate = async (body: Record<string, unknown>) =>
    (await world.post('/api/policies/simulate', body, tenant.headers)).body

  const daily = await simulate({ policy: { constraints: { max_per_day_usdc: 0.033 } } })
  // 0.01 + 0.013 + 0.01 fit; the failed run and the last run would have been refused.
  expect(daily.results.map((result: { change: string }) => result.change)).toEqual([
    'none',
    'none',
    'none',
    'newly_blocked',
    'none',
    'newly_blocked',
  ])
  expect(daily).toMatchObject({
    considered: 6,
    changed: 2,
    newly_blocked: 2,
    money: { recorded_usdc: 0.043, simulated_usdc: 0.033, difference_usdc: -0.01, newly_blocked_usdc: 0.01 },
  })

  const looser = await simulate({ policy: { constraints: { max_per_run_usdc: 1 } }, replaces: blocker.body.id })
  expect(looser).toMatchObject({
    changed: 1,
    newly_allowed: 1,
    money: { newly_allowed_usdc: 0.025, difference_usdc: 0.025 },
  })
  const onTop = await simulate({ policy: { constraints: { max_per_run_usdc: 1 } } })
  expect(onTop.changed).toBe(0)
  const review = await simulate({ policy: { constraints: { require_approval_above_usdc: 0.012 } } })
  expect(review).toMatchObject({ newly_review: 2, newly_blocked: 0 })
  const warn = await simulate({ policy: { mode: 'warn', constraints: { max_per_run_usdc: 0.001 } } })
  expect(warn.changed).toBe(0)
  expect(warn.results[0].simulated.outcome).toBe('warning')
  const newest = await simulate({ policy: { constraints: { max_per_run_usdc: 0.01 } }, limit: 2 })
  expect(newest).toMatchObject({ considered: 2, has_more: true })
  expect(
    (await world.post('/api/policies/simulate', { policy: { constraints: { max_fun: 1 } } }, tenant.headers)).status,
  ).toBe(400)
  expect(
    (await world.post('/api/policies/simulate', { policy: { constraints: {} }, replaces: 'pol_none' }, tenant.headers))
      .status,
  ).toBe(400)
})

test('in any order of operations no counter exceeds its limit and every payment ends once (M7, M9, M10)', async () => {
  await fc.assert(
    fc.asyncProperty(ops(25), (history) => runModel(world, history)),
    { numRuns: 4, endOnFailure: true },
  )
})
