import { afterAll, beforeAll, expect, test } from 'vitest'
import { readRules } from '../../src/modules/governance/rules/rules-cache.store.ts'
import type { Database } from '../../src/platform/db.ts'
import { migrate } from '../../src/platform/migrate.ts'
import { createTestDatabase, migrateUntil, type TestDatabase } from '../database.ts'

/** Rules as the release before 0080 stored them. */
let scratch: TestDatabase
let database: Database
beforeAll(async () => {
  scratch = await createTestDatabase({ empty: true })
  database = scratch.open(2)
  await migrateUntil(database, '0080')
})
afterAll(async () => {
  await database.close()
  await scratch.drop()
})

const AT = `'2026-11-01'`
const address = `0x${'ab'.repeat(20)}`
const seeds = [
  `insert into tenants (id, org_name, email, created_at, updated_at) values ('ten_1', 'Tenant', 't@example.com', ${AT}, ${AT})`,
  `insert into api_keys (id, tenant_id, name, prefix, hash, scopes, created_at)
   values ('key_1', 'ten_1', 'onboarding', 'p', 'h', '{read,run,control,mandate}', ${AT})`,
  `insert into mandates (id, tenant_id, name, agent_id, constraints, content_hash, status, starts_at, expires_at, created_by, created_at)
   values ('man_1', 'ten_1', 'm', 'fleet-7', '[{"type": "payment.amount_range", "currency": "USDC", "max": 1}]', 'h', 'active', ${AT}, '2100-01-01', 'key_1', ${AT})`,
  ...['tenant', 'session'].flatMap((type) => [
    `insert into limit_definitions (scope, tenant_id, limit_micro, enforced, thresholds_micro, subject) values ('budget:ten_1:${type}', 'ten_1', 5000000, true, '{}', '{}')`,
    `insert into budgets (tenant_id, budget_id, scope, scope_type, scope_id, "window", on_breach, alert_thresholds, version, created_at, updated_at)
     values ('ten_1', '${type}', 'budget:ten_1:${type}', '${type}', 'id', 'day', 'block', '[]', 1, ${AT}, ${AT})`,
  ]),
  `insert into limits (scope, period, limit_micro, spent_micro, reserved_micro) values ('budget:ten_1:tenant', 'day:2026-11-01T00:00', 5000000, 2000000, 1000000)`,
  `insert into policies (id, tenant_id, version, name, mode, identity_type, audit_trail_required, constraints, rules, status, content_hash, created_at, updated_at)
   values ('pol_1', 'ten_1', 1, 'p', 'enforce', 'tenant', false, '{"denied_instruments": ["crypto"], "denied_merchants": ["${address}"]}', '[]', 'active', 'h', ${AT}, ${AT})`,
]

test('rules from before keep their meaning, and the start says what changed', async () => {
  for (const seed of seeds) await database.pool.query(seed)
  const { warnings } = await migrate(database)
  expect(warnings).toEqual([
    expect.stringContaining('1 active mandates bind every payment'),
    expect.stringContaining('1 budgets or policies select by session'),
    expect.stringContaining('1 policies name an address'),
    expect.stringContaining('1 enforced policies bind every trade'),
    expect.stringContaining('2 budgets count trades of the instrument spend'),
  ])
  const rules = await readRules(database.db, 'ten_1')
  expect(rules.mandates).toMatchObject([{ id: 'man_1', agent_id: 'fleet-7', holderKeyIds: null, status: 'active' }])
  expect(rules.policies).toMatchObject([{ id: 'pol_1', identity_type: 'tenant', content_hash: 'h' }])
  expect(rules.budgets).toMatchObject([
    { budgetId: 'session', parentId: null, appliesTo: ['runs', 'payments', 'spend'], limitMicro: 5_000_000n },
    { budgetId: 'tenant', parentId: null, appliesTo: ['runs', 'payments', 'spend'], limitMicro: 5_000_000n },
  ])
  const { rows } = await database.pool.query(
    `select spent_micro, reserved_micro from limits where scope = 'budget:ten_1:tenant'`,
  )
  expect(rows).toEqual([{ spent_micro: 2_000_000n, reserved_micro: 1_000_000n }])
})

test('a second start and a fresh database have nothing to say', async () => {
  expect((await migrate(database)).warnings).toEqual([])
  const fresh = await createTestDatabase({ empty: true })
  const other = fresh.open(2)
  try {
    expect((await migrate(other)).warnings).toEqual([])
  } finally {
    await other.close()
    await fresh.drop()
  }
})
