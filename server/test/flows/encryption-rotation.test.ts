import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { encryptedColumns } from '../../src/platform/encryption-rotation.ts'
import { createTestDatabase, startService, type TestService } from '../harness.ts'
import { openReceiver } from '../webhooks/receiver.ts'

const source = resolve(import.meta.dirname, '../../src')
const OLD = 'the first key of this database, long enough'
const NEW = 'the second key of this database, long enough'
const OTHER = 'a third key, which is long enough as well'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let services: TestService[] = []

async function start(ENCRYPTION_KEY: string, previous?: string, background = 'off') {
  database ??= await createTestDatabase()
  const service = await startService({
    databaseUrl: database.url,
    env: {
      ENCRYPTION_KEY,
      SIGNING_KEY: 's'.repeat(40),
      BACKGROUND_WORK: background,
      ...(previous !== undefined && { ENCRYPTION_KEY_PREVIOUS: previous }),
    },
  })
  services.push(service)
  return service
}

async function stop(service: TestService) {
  services = services.filter((other) => other !== service)
  await service.close()
}

afterEach(async () => {
  for (const service of services.splice(0)) await service.close()
  await database?.drop()
  database = undefined as never
})

/** A value in every encrypted column that a test can reach over HTTP, and one in the others by hand. */
async function fill(service: TestService, url: string) {
  const tenant = await service.onboard()
  const webhook = await service.post(
    '/api/webhooks',
    { url, events: ['*'] },
    {
      ...tenant.headers,
      'idempotency-key': 'first',
    },
  )
  await service.post(`/api/webhooks/${webhook.body.id}/rotate-secret`, {}, tenant.headers)
  return { ...tenant, webhook }
}

const rotation = async (service: TestService) => (await service.get('/api/env-check')).body.encryption_rotation

async function sweepAll(service: TestService) {
  for (let batch = 0; batch < 20; batch += 1) if ((await service.service.encryptionRotation.sweep()) === 0) return
  throw new Error('The rotation does not come to an end.')
}

test('ENCRYPTION_KEY is replaced: keys, sessions and secrets go on working, and the earlier key can be left out', async () => {
  const receiver = await openReceiver()
  try {
    const before = await start(OLD)
    const { webhook, ...tenant } = await fill(before, receiver.url)
    await stop(before)

    // The new key alone is refused, because nothing could be read.
    await expect(start(NEW)).rejects.toThrow(/ENCRYPTION_KEY is not the key/)
    const during = await start(NEW, OLD)
    expect(await rotation(during)).toMatchObject({
      state: 'running',
      remaining: { 'webhook_subscriptions.secret': 1, 'idempotency_answers.answer': 1 },
    })
    expect((await during.get('/api/me', tenant.headers)).status).toBe(200)
    const replayed = await during.post(
      '/api/webhooks',
      { url: receiver.url, events: ['*'] },
      {
        ...tenant.headers,
        'idempotency-key': 'first',
      },
    )
    expect(replayed.body).toEqual(webhook.body)
    // Half-way, neither key is enough alone.
    await expect(start(NEW)).rejects.toThrow(/ENCRYPTION_KEY is not the key/)
    await expect(start(OLD)).rejects.toThrow(/being encrypted with another key/)
    await expect(start(OTHER, NEW)).rejects.toThrow(/ENCRYPTION_KEY is not the key/)

    await sweepAll(during)
    expect((await during.get('/metrics')).text).toMatch(
      /countersign_encryption_values_remaining\{.*column="webhook_subscriptions\.secret".*\} 0/,
    )
    await stop(during)
    const late = await start(NEW, OLD)
    expect(await rotation(late)).toMatchObject({ state: 'done' })
    await stop(late)

    const after = await start(NEW, undefined, 'on')
    expect(await rotation(after)).toEqual({ state: 'none', remaining: {} })
    expect((await after.get('/api/me', tenant.headers)).status).toBe(200)
    await after.post(`/api/webhooks/${webhook.body.id}/test`, {}, tenant.headers)
    await expect.poll(() => receiver.received.length).toBeGreaterThan(0)
    // A key made now works as those made under the first key do.
    const second = await after.onboard()
    expect((await after.get('/api/me', second.headers)).status).toBe(200)
    await stop(after)
    await expect(start(OLD)).rejects.toThrow(/ENCRYPTION_KEY is not the key/)
  } finally {
    await receiver.close()
  }
}, 120_000)

test('a value that a late process wrote with the earlier key keeps that key from being left out', async () => {
  const before = await start(OLD)
  const tenant = await before.onboard()
  const during = await start(NEW, OLD)
  await sweepAll(during)
  await before.post('/api/webhooks', { url: 'http://127.0.0.1:9/', events: ['*'] }, tenant.headers)
  await stop(before)
  await stop(during)
  await expect(start(NEW)).rejects.toThrow(/webhook_subscriptions\.secret are still encrypted with an earlier key/)
  const again = await start(NEW, OLD)
  await sweepAll(again)
  await stop(again)
  await stop(await start(NEW))
})

test('values of earlier releases, which name no key, are encrypted again too', async () => {
  const before = await start(OLD)
  const tenant = await before.onboard()
  await before.post('/api/webhooks', { url: 'http://127.0.0.1:9/', events: ['*'] }, tenant.headers)
  // The same bytes without a key id are the form of earlier releases.
  await before.service.database.pool.query(
    `update webhook_subscriptions set secret = 'v1.' || split_part(secret, '.', 3);
     update encryption_canary set sealed = 'v1.' || split_part(sealed, '.', 3), fingerprint_key = null`,
  )
  await stop(before)
  const during = await start(NEW, OLD)
  expect((await during.get('/api/me', tenant.headers)).status).toBe(200)
  await sweepAll(during)
  expect((await rotation(during)).remaining['webhook_subscriptions.secret']).toBe(0)
  await stop(during)
  const after = await start(NEW)
  expect((await after.get('/api/me', tenant.headers)).status).toBe(200)
})

test('a value that no key opens is left as it is and does not stop the others', async () => {
  const before = await start(OLD)
  const tenant = await before.onboard()
  for (const port of [9, 10])
    await before.post('/api/webhooks', { url: `http://127.0.0.1:${port}/`, events: ['*'] }, tenant.headers)
  await before.service.database.pool.query(
    `update webhook_subscriptions set secret = 'v1.damaged' where url like '%:9/'`,
  )
  await stop(before)
  const during = await start(NEW, OLD)
  await sweepAll(during)
  expect(await rotation(during)).toMatchObject({ state: 'running', remaining: { 'webhook_subscriptions.secret': 1 } })
})

test('every column that holds an encrypted value is in the list of the rotation', async () => {
  const service = await start(OLD)
  await fill(service, 'http://127.0.0.1:9/')
  const { pool } = service.service.database
  const { rows } = await pool.query<{ table_name: string; column_name: string }>(
    `select table_name, column_name from information_schema.columns
     where table_schema = 'public' and data_type in ('text', 'jsonb', 'json') and is_generated = 'NEVER'
       and table_name in (select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE')`,
  )
  const found: string[] = []
  for (const { table_name, column_name } of rows) {
    const match = await pool.query(
      `select exists (select 1 from "${table_name}" where "${column_name}"::text ~ 'v2\\.[0-9a-f]{12}\\.') as found`,
    )
    if (match.rows[0].found) found.push(`${table_name}.${column_name}`)
  }
  const callers = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .filter((name) => /\bkeys\.encrypt\(/.test(readFileSync(join(source, name), 'utf8')))
  // Whoever encrypts in another file adds its column to `encryptedColumns`, and the file here.
  expect(callers.sort()).toEqual([
    'modules/brokerage/rh-auth.ts',
    'modules/governance/approvals/approval-content.ts',
    'modules/governance/approvals/channels.ts',
    'modules/webhooks/webhooks.ts',
    'platform/encryption-canary.ts',
    'platform/encryption-rotation.ts',
    'platform/idempotency.ts',
  ])
  const listed = encryptedColumns.map(([table, column]) => `${table}.${column}`)
  // The canary has its own end of the rotation.
  expect(found.filter((name) => !name.startsWith('encryption_canary.') && !listed.includes(name))).toEqual([])
  expect(found).toEqual(expect.arrayContaining(['webhook_subscriptions.secret', 'idempotency_answers.answer']))
})
