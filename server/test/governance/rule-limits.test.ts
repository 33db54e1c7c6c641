import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openWorld, richTenant, run, type Tenant, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

const policy = (tenant: Tenant, body: Record<string, unknown>) => world.post('/api/policies', body, tenant.headers)

/** Names that no policy of a test refuses; 500 of them are about 100 kB. */
const names = (prefix: string, count = 500) =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}-`.padEnd(195, 'x'))
const bomb = (index: number) => ({
  name: `Bomb ${index}`,
  constraints: { denied_merchants: names(`m${index}`), denied_agents: names(`a${index}`) },
})

/** Writes policies past the limits, as rows that were made before there were any. */
async function writeOldBombs(tenant: Tenant, count: number) {
  const { db } = world
  for (let index = 0; index < count; index += 1) {
    const { name, constraints } = bomb(index)
    await db
      .insertInto('policies')
      .values({
        id: `pol_00000000-0000-7000-8000-${String(index).padStart(12, '0')}`.replace('8000', tenant.tenantId.slice(-4)),
        tenant_id: tenant.tenantId,
        name,
        version: 1,
        status: 'active',
        mode: 'enforce',
        identity_type: 'tenant',
        constraints: JSON.stringify({ ...constraints, allowed_merchants: ['nobody', ...names('n', 300)] }),
        rules: JSON.stringify([{ field: 'merchant', op: 'in', value: ['countersign', ...names('r')], effect: 'deny' }]),
        content_hash: `sha256:${index}`,
        audit_trail_required: false,
        created_at: new Date(),
        updated_at: new Date(),
      })
      .execute()
  }
  await world.service.database.pool.query('select rules_changed($1)', [tenant.tenantId])
}

describe('the size of all rules of a tenant', () => {
  test('policies past 1 MiB together are refused, the message names limit and size, and a smaller one still fits', async () => {
    const tenant = await richTenant(world)
    const statuses: number[] = []
    let refusal: Awaited<ReturnType<typeof policy>> | undefined
    for (let index = 0; index < 10 && !refusal; index += 1) {
      const created = await policy(tenant, bomb(index))
      statuses.push(created.status)
      if (created.status !== 201) refusal = created
    }
    expect(statuses).toEqual([201, 201, 201, 201, 201, 409])
    expect(refusal!.body).toMatchObject({ error: 'error', code: 'conflict' })
    expect(refusal!.body.message).toMatch(/1048576 bytes.*99\d{4}.*delete/i)
    expect((await policy(tenant, { constraints: { max_per_run_usdc: 1 } })).status).toBe(201)

    // A change is refused like a new policy; one that makes the rules smaller is not.
    const { body: list } = await world.get('/api/policies', tenant.headers)
    const small = list.policies[0].id
    const big = list.policies[1].id
    const change = (id: string, body: unknown) => world.call('PATCH', `/api/policies/${id}`, body, tenant.headers)
    expect((await change(small, { constraints: bomb(9).constraints })).status).toBe(409)
    expect((await change(big, { constraints: { denied_agents: ['x'] } })).status).toBe(200)
    expect((await change(small, { constraints: bomb(9).constraints })).status).toBe(200)
  })

  test('more than 2,000 rules of all policies together are refused', async () => {
    const tenant = await richTenant(world)
    const rules = Array.from({ length: 200 }, (_, index) => ({
      field: 'agent_id',
      op: 'eq',
      value: `nobody-${index}`,
      effect: 'deny',
    }))
    for (let index = 0; index < 10; index += 1)
      expect((await policy(tenant, { name: `P${index}`, rules })).status).toBe(201)
    const refusal = await policy(tenant, { name: 'one more', rules: rules.slice(0, 1) })
    expect(refusal.status).toBe(409)
    expect(refusal.body.message).toMatch(/at most 2000 rules.*2001/)

    // All of them are evaluated, and the answer lists a bounded number and counts the rest.
    const response = await run(world, tenant)
    expect(response.status, response.text.slice(0, 300)).toBe(200)
    expect(response.body.policy_applied).toHaveLength(100)
    expect(response.body.policy_applied.at(-1)).toMatchObject({ rule: 'not_listed', outcome: 'pass', count: 1_901 })
  })

  test('two policies made at once cannot pass the limit together', async () => {
    const tenant = await richTenant(world)
    const created = await Promise.all(Array.from({ length: 8 }, (_, index) => policy(tenant, bomb(index))))
    expect(created.map(({ status }) => status).sort()).toEqual([201, 201, 201, 201, 201, 409, 409, 409])
  })

  test('mandates past 4 MiB together are refused until one is revoked', async () => {
    const tenant = await richTenant(world)
    const mandate = () =>
      world.post(
        '/api/mandates',
        { name: 'M', constraints: [{ type: 'payment.allowed_payees', allowed: names('payee') }] },
        tenant.headers,
      )
    const first = await mandate()
    expect(first.status).toBe(201)
    await world.service.database.pool.query(
      `insert into mandates select (jsonb_populate_record(mandates, jsonb_build_object('id', 'man_copy_' || n))).*
       from mandates, generate_series(1, 41) n where id = $1`,
      [first.body.id],
    )
    const refusal = await mandate()
    expect(refusal.status).toBe(409)
    expect(refusal.body.message).toMatch(/4194304 bytes.*revoke/i)
    for (let index = 1; index <= 3; index += 1)
      expect((await world.post(`/api/mandates/man_copy_${index}/revoke`, {}, tenant.headers)).status).toBe(200)
    expect((await mandate()).status).toBe(201)
    // A page of mandates is bounded in bytes and continues where it ended.
    const page = await world.get('/api/mandates?limit=100', tenant.headers)
    expect(page.text.length).toBeLessThan(1_300_000)
    expect(page.body).toMatchObject({ has_more: true, next_cursor: page.body.mandates.at(-1).id })
  })
})

describe('what is written about rules in a day', () => {
  /** As if the tenant had changed the policy so often before. */
  const copyVersions = (policyId: string, count: number) =>
    world.service.database.pool.query(
      `insert into policy_versions select policy_id, version + n, content, content_hash, changed_by, created_at
       from policy_versions, generate_series(1, $2) n where policy_id = $1 and version = 1`,
      [policyId, count],
    )
  const mandate = (tenant: Tenant) =>
    world.post(
      '/api/mandates',
      { name: 'M', constraints: [{ type: 'payment.budget', max: 5, currency: 'USDC' }] },
      tenant.headers,
    )
  /** Names that PostgreSQL cannot compress. */
  const randomNames = () => Array.from({ length: 500 }, () => randomBytes(97).toString('hex'))

  test.each([
    ['2,000 changes', 1_999, { denied_agents: ['x'] }],
    ['32 MiB', 400, { denied_agents: randomNames(), denied_merchants: randomNames() }],
  ])(
    'after %s a policy cannot be changed or made, nor a mandate, until a day has passed; deleting goes on',
    async (_, count, constraints) => {
      const tenant = await richTenant(world)
      const first = await policy(tenant, { name: 'Often changed', constraints })
      const other = await policy(tenant, { name: 'Deleted later', constraints: { max_per_run_usdc: 1 } })
      expect([first.status, other.status]).toEqual([201, 201])
      await copyVersions(first.body.id, count)
      const change = () => world.call('PATCH', `/api/policies/${first.body.id}`, { name: 'Changed' }, tenant.headers)
      await world.service.database.pool.query('update policies set version = version + $2 where id = $1', [
        first.body.id,
        count,
      ])
      for (const response of [
        await change(),
        await policy(tenant, { name: 'New', constraints }),
        await mandate(tenant),
      ]) {
        expect(response.status, response.text).toBe(429)
        expect(response.body).toMatchObject({ error: 'error', code: 'rate_limited', retryable: true })
      }
      expect((await world.call('DELETE', `/api/policies/${other.body.id}`, undefined, tenant.headers)).status).toBe(200)
      // Another tenant is not concerned.
      const stranger = await richTenant(world)
      expect((await mandate(stranger)).status).toBe(201)

      await world.service.database.pool.query(
        `update policy_versions set created_at = created_at - interval '25 hours' where policy_id = $1`,
        [first.body.id],
      )
      expect((await change()).status).toBe(200)
      expect((await mandate(tenant)).status).toBe(201)
    },
  )
})

describe('the trace of a decision', () => {
  test('a rule that refused names the entry that matched, and no answer or row repeats a list', async () => {
    const tenant = await richTenant(world)
    await writeOldBombs(tenant, 20)
    const refusal = await run(world, tenant)
    expect(refusal.status).toBe(429)
    expect(refusal.text.length).toBeLessThan(200_000)
    expect(refusal.text).not.toContain(names('m0')[0])
    expect(refusal.text).not.toContain(names('r')[0])
    const denied = refusal.body.policy_results.find(({ rule }: { rule: string }) => rule === 'rules[0]')
    expect(denied).toMatchObject({
      outcome: 'blocked',
      asked: 'countersign',
      matched: 'countersign',
      limit: { entries: 501 },
    })
    const notAllowed = refusal.body.policy_results.find(({ rule }: { rule: string }) => rule === 'allowed_merchants')
    expect(notAllowed).toMatchObject({
      outcome: 'blocked',
      limit: { entries: 301 },
      smallest_change: { path: 'constraints.allowed_merchants', add: 'countersign' },
    })

    const { body: decision } = await world.get(`/api/decisions/${refusal.body.decision_id}`, tenant.headers)
    expect(decision.policy_results).toEqual(refusal.body.policy_results)
    const { rows } = await world.service.database.pool.query(
      `select (select sum(pg_column_size(d.*)) from decisions d where tenant_id = $1)
            + (select sum(pg_column_size(r.*)) from ended_runs r where tenant_id = $1) as bytes`,
      [tenant.tenantId],
    )
    expect(Number(rows[0].bytes)).toBeLessThan(100_000)
  })

  test('the same trace is stored once, by the hash of its content', async () => {
    const tenant = await richTenant(world)
    await policy(tenant, { constraints: { denied_agents: ['comedian-v1'], allowed_merchants: names('m', 100) } })
    const refusals = [await run(world, tenant), await run(world, tenant), await run(world, tenant)]
    expect(refusals.map(({ status }) => status)).toEqual([429, 429, 429])
    const { rows } = await world.service.database.pool.query(
      'select hash, jsonb_array_length(results) as length from rule_traces where tenant_id = $1',
      [tenant.tenantId],
    )
    expect(rows).toEqual([{ hash: expect.stringMatching(/^sha256:/), length: 2 }])
    for (const { body } of refusals) {
      const { body: decision } = await world.get(`/api/decisions/${body.decision_id}`, tenant.headers)
      expect(decision.policy_results).toEqual(body.policy_results)
    }
    // A simulation still reads what was recorded.
    const { body: simulation } = await world.post(
      '/api/policies/simulate',
      { policy: { constraints: {} }, replaces: (await world.get('/api/policies', tenant.headers)).body.policies[0].id },
      tenant.headers,
    )
    expect(simulation).toMatchObject({ considered: 3, newly_allowed: 3 })
    expect(simulation.results[0].recorded.policy_outcome).toBe('blocked')
  })

  test('a page of decisions is bounded in bytes, also with rows that were stored before there was a limit', async () => {
    const tenant = await richTenant(world)
    await policy(tenant, { constraints: { denied_agents: ['comedian-v1'] } })
    const { body } = await run(world, tenant)
    await world.service.database.pool.query(
      `with lists as (select jsonb_agg(md5(i::text)) as list from generate_series(1, 500) i),
       traces as materialized (
         select jsonb_agg(jsonb_build_object('policy_id', 'pol_1', 'rule', 'denied_agents', 'outcome', 'blocked', 'verdict', 'blocked', 'mode', 'enforce',
           'reason', 'The agent is in denied_agents.', 'limit', list, 'smallest_change', jsonb_build_object('text', 'Remove it.', 'from', list, 'to', list))) as results
         from generate_series(1, 40), lists)
       insert into decisions
       select old.* from decisions decision, traces, generate_series(1, 60) n,
         jsonb_populate_record(decision, jsonb_build_object('id', 'dec_old_' || lpad(n::text, 3, '0'), 'results', traces.results)) old
       where decision.id = $1`,
      [body.decision_id],
    )
    let cursor: string | null = null
    const ids: string[] = []
    do {
      const page = await world.get(`/api/decisions?limit=100${cursor ? `&cursor=${cursor}` : ''}`, tenant.headers)
      expect(page.status, page.text.slice(0, 300)).toBe(200)
      expect(page.text.length).toBeLessThan(1_300_000)
      ids.push(...page.body.decisions.map((decision: { decision_id: string }) => decision.decision_id))
      for (const { policy_results } of page.body.decisions)
        for (const { limit } of policy_results) expect(Array.isArray(limit)).toBe(false)
      cursor = page.body.next_cursor
    } while (cursor)
    expect(new Set(ids).size).toBe(61)
    expect(ids).toHaveLength(61)
  }, 120_000)

  test('the answer of a simulation is bounded, however many rules the draft has', async () => {
    const tenant = await richTenant(world)
    for (let index = 0; index < 20; index += 1) expect((await run(world, tenant)).status).toBe(200)
    const rules = Array.from({ length: 200 }, (_, index) => ({
      field: 'merchant',
      op: 'not_in',
      value: names(`v${index}`, 3),
      effect: 'review',
      reason: 'x'.repeat(400),
    }))
    const simulation = await world.post('/api/policies/simulate', { policy: { name: 'D', rules } }, tenant.headers)
    expect(simulation.status, simulation.text.slice(0, 300)).toBe(200)
    expect(simulation.body).toMatchObject({ considered: 20, newly_review: 20 })
    expect(simulation.text.length).toBeLessThan(1_000_000)
  })
})
