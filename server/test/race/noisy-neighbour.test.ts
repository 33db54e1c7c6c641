import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOfflineLane } from '../../src/adapters/lanes/offline.ts'
import type { Lane } from '../../src/modules/runs/lane.ts'
import { richTenant, run, type Tenant } from '../governance/world.ts'
import { startService, type TestService } from '../harness.ts'

/** A lane that holds runs with the word "slow" until the test lets them go. */
function createHeldLane(): Lane & { letGo(): void; held: number } {
  const offline = createOfflineLane()
  let open = () => {}
  let gate = new Promise<void>((resolve) => {
    open = resolve
  })
  return {
    ...offline,
    isMomentary: (_, task) => !task.includes('slow'),
    held: 0,
    letGo() {
      open()
      gate = Promise.resolve()
    },
    async execute(task) {
      if (task.task.includes('slow')) {
        this.held += 1
        await gate
      }
      return offline.execute(task)
    },
  }
}

let world: TestService
let lane: ReturnType<typeof createHeldLane>
beforeAll(async () => {
  lane = createHeldLane()
  world = await startService({ lane, env: { BACKGROUND_WORK: 'off', MAX_RUNS_UNDER_WAY: '8' } })
})
afterAll(() => world?.close())

const countsOf = (values: readonly number[]) =>
  Object.fromEntries([...new Set(values)].map((value) => [value, values.filter((other) => other === value).length]))

const velocity = { max_per_day_usdc: 1_000, max_per_month_usdc: 10_000, max_runs_per_minute: 100_000 }

describe('limits on the counters of one action', () => {
  test('the 65th counter of one action is refused with the limit and the number now; counters of another agent are not', async () => {
    const tenant = await richTenant(world)
    const policy = (body: Record<string, unknown>) => world.post('/api/policies', body, tenant.headers)
    for (let index = 0; index < 20; index += 1) expect((await policy({ constraints: velocity })).status).toBe(201)
    const budget = (body: Record<string, unknown>) =>
      world.post('/api/budgets', { limit_usdc: 100, ...body }, tenant.headers)
    for (let index = 0; index < 4; index += 1) expect((await budget({ budget_id: `b${index}` })).status).toBe(200)
    const refused = await budget({ budget_id: 'b4' })
    expect(refused.status).toBe(409)
    expect(refused.body.message).toMatch(/at most 64 budgets and limits.*would be 65, now it is 64/)
    expect((await policy({ constraints: { max_runs_per_minute: 9 } })).status).toBe(409)
    // Neither the refused budget nor its counter is left behind.
    const { body: config } = await world.get('/api/budgets', tenant.headers)
    expect(config.budgets).toHaveLength(4)

    // A window `run` counts nowhere, a change of an existing one adds nothing, and a deleted one makes room.
    expect((await budget({ budget_id: 'each', window: 'run' })).status).toBe(200)
    expect((await budget({ budget_id: 'b0', limit_usdc: 200 })).status).toBe(200)
    // A payment has two agent names, its lane and its spender, so there is room for the counters of two.
    for (const id of ['b0', 'b1'])
      expect((await world.call('DELETE', `/api/budgets/${id}`, undefined, tenant.headers)).status).toBe(200)
    for (const agent of ['writer-v1', 'coder-v1', 'support-v1'])
      expect((await budget({ budget_id: agent, scope: { type: 'agent', id: agent } })).status).toBe(200)

    const response = await run(world, tenant)
    expect(response.status, response.text.slice(0, 300)).toBe(200)
  })
})

describe('a flood of one tenant', () => {
  let flood: Tenant
  let victim: Tenant
  beforeAll(async () => {
    flood = await richTenant(world)
    victim = await richTenant(world)
  })

  test('the 1,025th waiting run of one tenant gets 503 with Retry-After and nothing stored, and another tenant is served', async () => {
    // Of eight slots one tenant gets four; 1,024 more wait.
    const sent = Array.from({ length: 4 + 1_024 + 3 }, (_, index) =>
      run(world, flood, { task: `A slow task ${index}.` }),
    )
    const statuses: number[] = []
    for (const response of sent) void response.then(({ status }) => statuses.push(status))
    while (statuses.length < 3) await new Promise((resume) => setTimeout(resume, 20))
    await expect.poll(() => lane.held).toBe(4)
    const answer = await run(world, victim)
    expect(answer.status, answer.text.slice(0, 300)).toBe(200)
    const refusal = (await Promise.race(sent.map(async (response) => response)))!
    expect(refusal.status).toBe(503)
    expect(refusal.headers.get('retry-after')).toBe('1')
    expect(refusal.body).toMatchObject({ error: 'error', code: 'unavailable', retryable: true })
    const { rows } = await world.service.database.pool.query('select count(*)::int n from runs where tenant_id = $1', [
      flood.tenantId,
    ])
    expect(rows[0].n).toBe(4)
    lane.letGo()
    const all = await Promise.all(sent)
    expect(countsOf(all.map(({ status }) => status))).toEqual({ 200: 1_028, 503: 3 })
  })

  test('with 200 pre-authorisations of one tenant under way, a run of another is answered before most of them', async () => {
    let done = 0
    const preauths = Array.from({ length: 200 }, (_, index) =>
      world
        .post('/api/pre-auth', { agent_id: 'a', merchant: { id: `m${index}` }, amount_usdc: 0.01 }, flood.headers)
        .then((response) => {
          done += 1
          return response
        }),
    )
    while (done < 5) await new Promise((resume) => setTimeout(resume, 1))
    const before = done
    const answer = await run(world, victim)
    expect(answer.status).toBe(200)
    const overtaken = done - before
    const responses = await Promise.all(preauths)
    expect(countsOf(responses.map(({ status }) => status))).toEqual({ 201: 200 })
    // A run has a handful of turns, in each of which a few pre-authorisations may end.
    expect(overtaken).toBeLessThan(60)
  })
})

test('beside 60 runs of a tenant with 800 counters, made before there was a limit, a run overtakes most of them', async () => {
  const service = await startService({ env: { BACKGROUND_WORK: 'off' } })
  try {
    const flood = await richTenant(service)
    const victim = await richTenant(service)
    expect((await run(service, victim)).status).toBe(200)
    await service.service.database.pool.query(
      `with scopes as (select 'old' || n as id, 'budget:' || $1::text || ':old' || n as scope from generate_series(1, 800) n),
            defined as (insert into limit_definitions (scope, tenant_id, limit_micro, enforced, thresholds_micro, subject) select scope, $1, 1000000000, true, '{}', '{}' from scopes)
       insert into budgets (tenant_id, budget_id, scope, scope_type, scope_id, "window", on_breach, alert_thresholds, version, created_at, updated_at)
       select $1, id, scope, 'tenant', $1, 'day', 'block', '[]', 1, now(), now() from scopes`,
      [flood.tenantId],
    )
    await service.service.database.pool.query('select rules_changed($1)', [flood.tenantId])
    // The first one makes the 800 counters.
    const first = await run(service, flood)
    expect(first.status, first.text.slice(0, 300)).toBe(200)
    expect(first.body.policy_applied).toHaveLength(100)
    let done = 0
    const sent = Array.from({ length: 60 }, () =>
      run(service, flood).then((response) => {
        done += 1
        return response.status
      }),
    )
    await new Promise((resume) => setTimeout(resume, 300))
    const before = done
    expect((await run(service, victim)).status).toBe(200)
    expect(done - before).toBeLessThan(20)
    expect(countsOf(await Promise.all(sent))).toEqual({ 200: 60 })
  } finally {
    await service.close()
  }
}, 180_000)
