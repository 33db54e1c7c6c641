import { connect } from 'node:net'
import { sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../src/platform/db.ts'
import {
  findUndecidedTables,
  outsideTenantReads,
  READER_ROLE,
  secureTenantReads,
  withTenantReads,
} from '../../src/platform/tenant-reads.ts'
import { createTestDatabase, silent, startService, type TestService } from '../harness.ts'

/** Behind the tenant conditions of the stores: what a query without one shows inside a tenant's reading request. */
let service: TestService
let tenants: { tenantId: string; headers: Record<string, string>; walletId: string }[]

beforeAll(async () => {
  service = await startService({ env: { BACKGROUND_WORK: 'off' } })
  tenants = []
  for (const name of ['One', 'Two']) {
    const tenant = await service.onboard(name)
    const wallet = await service.post('/api/wallets', { name }, tenant.headers)
    await service.db
      .updateTable('wallets')
      .set({ available_micro: 1_000_000n })
      .where('id', '=', wallet.body.wallet_id)
      .execute()
    const run = await service.post(
      '/api/run',
      { task: `A joke for ${name}.`, agent_id: 'comedian-v1', payment: { wallet_id: wallet.body.wallet_id } },
      tenant.headers,
    )
    expect(run.status, run.text).toBe(200)
    await service.post('/api/policies', { name, constraints: { max_per_run_usdc: 1 } }, tenant.headers)
    tenants.push({ ...tenant, walletId: wallet.body.wallet_id })
  }
})
afterAll(() => service?.close())

const ownersOf = async (table: string) => {
  const { rows } = await sql<{ tenant_id: string | null }>`
    select distinct tenant_id from ${sql.table(table)} order by 1`.execute(service.db)
  return rows.map((row) => row.tenant_id)
}

test("a query without a tenant condition shows only the caller's rows in a tenant's reading request", async () => {
  const [one, two] = tenants as [(typeof tenants)[0], (typeof tenants)[0]]
  for (const table of [
    'runs',
    'ended_runs',
    'wallets',
    'policies',
    'ledger',
    'ledger_entries',
    'journal',
    'api_keys',
  ]) {
    expect.soft(await ownersOf(table), table).toEqual(expect.arrayContaining([one.tenantId, two.tenantId]))
    expect.soft(await withTenantReads(one.tenantId, () => ownersOf(table)), table).toEqual([one.tenantId])
    expect.soft(await withTenantReads('ten_nobody', () => ownersOf(table)), table).toEqual([])
  }
  const versions = () => service.db.selectFrom('policy_versions').select('policy_id').execute()
  expect(await versions()).toHaveLength(2)
  expect(await withTenantReads(one.tenantId, versions)).toHaveLength(1)
})

test('a request over HTTP reads in the scope of its tenant, and work that requests share does not', async () => {
  const ownersByScope = await withTenantReads(tenants[0]!.tenantId, async () => [
    await ownersOf('wallets'),
    await outsideTenantReads(() => ownersOf('wallets')),
    await ownersOf('wallets'),
  ])
  expect(ownersByScope.map((owners) => owners.length)).toEqual([1, 2, 1])
  for (const { headers, walletId } of tenants) {
    const [list, runs] = [await service.get('/api/wallets', headers), await service.get('/api/runs', headers)]
    expect(list.body.wallets.map(({ wallet_id }: { wallet_id: string }) => wallet_id)).toEqual([walletId])
    expect(runs.body.runs).toHaveLength(1)
  }
  // Without its grant the role reads nothing, and so does the request.
  const { pool } = service.service.database
  await pool.query(`revoke select on wallets from ${READER_ROLE}`)
  expect((await service.get('/api/wallets', tenants[0]!.headers)).status).toBe(500)
  await pool.query(`grant select on wallets to ${READER_ROLE}`)
  expect((await service.get('/api/wallets', tenants[0]!.headers)).status).toBe(200)
})

test('requests that wait behind a reading one on its connection do not read as its tenant', async () => {
  const [one, two] = tenants as [(typeof tenants)[0], (typeof tenants)[0]]
  const { hostname, port } = new URL(service.url)
  const body = JSON.stringify({ name: 'Another' })
  const get = (path: string, key: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\nx-api-key: ${key}\r\n`
  const requests = [
    `${get('/api/wallets', one.headers['x-api-key']!)}\r\n`,
    `POST /api/wallets HTTP/1.1\r\nhost: a\r\nx-api-key: ${two.headers['x-api-key']}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    `${get('/api/wallets', one.headers['x-api-key']!)}\r\n`,
    'GET /api/receipts?limit=2 HTTP/1.1\r\nhost: a\r\n\r\n',
    `${get('/api/wallets', two.headers['x-api-key']!)}connection: close\r\n\r\n`,
  ]
  const socket = connect(Number(port), hostname)
  socket.write(requests.join(''))
  let text = ''
  for await (const chunk of socket) text += chunk
  expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
    '200',
    '201',
    '200',
    '200',
    '200',
  ])
  const listed = [...text.matchAll(/"wallets":(\[.*?\])/g)].map(([, list]) => JSON.parse(list!).length)
  expect(listed).toEqual([1, 1, 2])
})

test('the role may not write, not read credentials, and a transaction in the scope is under it too', async () => {
  const { tenantId } = tenants[0]!
  const scoped = (statement: string) =>
    withTenantReads(tenantId, () =>
      sql
        .raw(statement)
        .execute(service.db)
        .then(String, (error) => error.code),
    )
  expect(await scoped('with changed as (delete from wallets returning 1) select * from changed')).toBe('25006')
  for (const table of ['sessions', 'idempotency_answers', 'run_keys', 'rh_oauth_accounts', 'migrations'])
    expect(await scoped(`select * from ${table}`), table).toBe('42501')
  const owners = await withTenantReads(tenantId, () =>
    service.db.transaction().execute(async (tx) => {
      const { rows } = await sql<{ tenant_id: string; role: string }>`
        select tenant_id, current_user as role from wallets`.execute(tx)
      return rows
    }),
  )
  expect(owners).toEqual([{ tenant_id: tenantId, role: READER_ROLE }])
  // Afterwards the connection is the service's again.
  const { rows } = await sql<{ role: string }>`select current_user as role`.execute(service.db)
  expect(rows[0]!.role).not.toBe(READER_ROLE)
})

test('somebody has decided about every table whose rows it holds', async () => {
  const client = await service.service.database.connect()
  try {
    expect(await findUndecidedTables(client)).toEqual([])
    const { rows } = await client.query(
      `select rolcanlogin, rolsuper, rolbypassrls, (select count(*)::int from pg_class where relowner = r.oid) as owned
       from pg_roles r where rolname = $1`,
      [READER_ROLE],
    )
    expect(rows).toEqual([{ rolcanlogin: false, rolsuper: false, rolbypassrls: false, owned: 0 }])
  } finally {
    await client.end()
  }
})

test('a database user that may not create or take the role is told so, and nothing fails', async () => {
  const refusing = {
    query: async (text: string) => {
      if (text.includes('server_version_num')) return { rows: [{ number: 180_000 }] }
      throw Object.assign(new Error('permission denied to create role'), { code: '42501' })
    },
  }
  expect(await secureTenantReads(refusing as unknown as pg.Client)).toEqual({
    ok: false,
    reason: 'permission denied to create role',
  })
})

test('a statement and a wait for a lock end at their time-outs, and are answered as unavailable', async () => {
  const testDatabase = await createTestDatabase()
  const limited = openDatabase(testDatabase.url, { max: 2, log: silent, statementTimeoutMs: 1_000, lockTimeoutMs: 200 })
  const holder = new pg.Client({ connectionString: testDatabase.url })
  try {
    await holder.connect()
    await holder.query('begin; lock table wallets in access exclusive mode')
    const codeOf = (statement: string) => limited.pool.query(statement).then(String, (error) => error.code)
    expect(await codeOf('select * from wallets')).toBe('55P03')
    expect(await codeOf('select pg_sleep(30)')).toBe('57014')
  } finally {
    await holder.end()
    await limited.close()
    await testDatabase.drop()
  }
})
