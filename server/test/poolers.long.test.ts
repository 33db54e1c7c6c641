import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDatabase } from '../src/platform/db.ts'
import { migrate } from '../src/platform/migrate.ts'
import { createTestDatabase, readChallenge, readJson, signPayment, silent, spawnService } from './harness.ts'
import { type PoolMode, startPgbouncer } from './pgbouncer.ts'
import { openReceiver } from './webhooks/receiver.ts'

/** Service processes behind Debian's PgBouncer, with the file that docs/operations.md recommends. */
const secrets = {
  SIGNING_KEY: 's'.repeat(40),
  ENCRYPTION_KEY: 'e'.repeat(40),
  ADMIN_KEY: 'a'.repeat(40),
  INSTANCE_BEAT_MS: '1000',
  INSTANCE_GRACE_MS: '6000',
}
const PRICE = 10_000n
const FUNDS = 1_000_000n
const WAIT = { timeout: 60_000, interval: 200 }

type Service = Awaited<ReturnType<typeof spawnService>>

describe.each<PoolMode>(['transaction', 'session'])('with pool_mode = %s', (mode) => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>
  let pgbouncer: Awaited<ReturnType<typeof startPgbouncer>>
  let env: Record<string, string>
  let first: Service
  let second: Service
  let dying: Service | undefined

  beforeAll(async () => {
    database = await createTestDatabase()
    pgbouncer = await startPgbouncer(mode, database.url)
    // A pooler of sessions needs no second address.
    const direct = mode === 'transaction' && { DATABASE_DIRECT_URL: database.url }
    env = { ...secrets, DATABASE_URL: pgbouncer.url, DATABASE_POOL: '4', ...direct }
    first = await spawnService(env)
    second = await spawnService({ ...env, LOG_LEVEL: 'warn' })
  }, 180_000)
  afterAll(async () => {
    dying?.child.kill('SIGKILL')
    await Promise.all([first?.stop(), second?.stop()])
    await pgbouncer?.stop()
    await database?.drop()
  })

  test('both processes serve, a payment to each is settled once, and the time limits of the pooler apply', async () => {
    for (const service of [first, second]) {
      const payer = await service.payer(1)
      const response = await payer.fetch(`${service.url}/api/run`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ task: 'Tell me a joke.', agent_id: 'comedian-v1' }),
      })
      const answer = await readJson(response)
      expect(response.status, JSON.stringify(answer)).toBe(200)
      expect(answer.settlement.status).toBe('settled')
      expect(await service.balance(payer.address)).toBe(FUNDS - PRICE)
      expect((await service.get('/api/health')).body.status).toBe('ok')
    }
    expect(second.output()).not.toContain('no time limit')
  }, 180_000)

  test('what one process changes reaches the other: a revoked key, the events of a run, a webhook', async () => {
    const tenant = await first.onboard()
    const receiver = await openReceiver()
    try {
      const webhook = { url: receiver.url, events: ['run.completed'] }
      expect((await first.post('/api/webhooks', webhook, tenant.headers)).status).toBe(201)
      const payer = await second.payer(1)
      const body = { task: 'Tell me a slow joke.', agent_id: 'comedian-v1' }
      const challenge = readChallenge((await second.post('/api/run', body, tenant.headers)).headers)
      const payment = await signPayment(payer, challenge)
      const begun = await second.post('/api/run', body, { ...payment, ...tenant.headers, prefer: 'respond-async' })
      expect(begun.status, begun.text).toBe(202)
      const events = await fetch(`${first.url}/api/runs/${begun.body.run_id}/events`, { headers: tenant.headers })
      expect(await events.text()).toMatch(/"status":"completed"/)
      await expect.poll(() => receiver.received.length, WAIT).toBe(1)
    } finally {
      await receiver.close()
    }

    const { body: key } = await first.post('/api/keys', { name: 'other', scopes: ['read'] }, tenant.headers)
    const other = { 'x-api-key': key.api_key as string }
    expect((await second.get('/api/me', other)).status).toBe(200)
    await first.call('DELETE', `/api/keys/${key.key_id}`, undefined, tenant.headers)
    await expect.poll(async () => (await second.get('/api/me', other)).status, WAIT).toBe(401)
  }, 180_000)

  test('reads of two tenants at once on shared connections show each its own rows, and leave no role or tenant behind', async () => {
    const tenants = await Promise.all([first.onboard('One'), second.onboard('Two')])
    const wallets = await Promise.all(
      tenants.map(async ({ headers }) => (await first.post('/api/wallets', {}, headers)).body.wallet_id as string),
    )
    const outside = openDatabase(pgbouncer.url, { max: 4, log: silent, direct: database.url })
    const whoAmI = async () => {
      const { rows } = await outside.pool.query(
        `select current_user = session_user as same, coalesce(current_setting('countersign.tenant', true), '') as tenant`,
      )
      return rows[0]
    }
    try {
      await Promise.all(
        Array.from({ length: 240 }, async (_, index) => {
          const own = index % 2
          const service = index % 4 < 2 ? first : second
          const { status, text } = await service.get('/api/wallets', tenants[own]!.headers)
          expect(status).toBe(200)
          expect(text).toContain(wallets[own])
          expect(text).not.toContain(wallets[1 - own])
          expect(await whoAmI()).toEqual({ same: true, tenant: '' })
        }),
      )
    } finally {
      await outside.close()
    }
  }, 180_000)

  test('a process that was killed is noticed by its beat, and its run is taken over and paid once', async () => {
    dying = await spawnService({ ...env, COUNTERSIGN_CRASH_AT: 'execute' })
    const direct = database.open(1)
    // As on another machine: the operating system cannot tell the others that it has ended.
    await direct.pool.query('update instances set machine = null where pid = $1', [dying.child.pid])
    await direct.close()
    const payer = await first.payer(1)
    const body = { task: 'Tell me a joke and die.', agent_id: 'comedian-v1' }
    const challenge = readChallenge((await first.post('/api/run', body)).headers)
    const validBefore = BigInt(Math.floor(Date.now() / 1000) + 3_000)
    const payment = await signPayment(payer, challenge, { validBefore })
    const begun = await dying.post('/api/run', body, { ...payment, prefer: 'respond-async' }).catch(() => undefined)
    // Its 202 may be lost with it.
    if (begun) expect(begun.status, begun.text).toBe(202)
    expect(await dying.exited).toBe('SIGKILL')
    await expect.poll(async () => (await second.post('/api/run', body, payment)).status, WAIT).toBe(200)
    expect(await first.balance(payer.address)).toBe(FUNDS - PRICE)
  }, 180_000)
})

describe('a transaction pooler where a session is needed', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>
  let pgbouncer: Awaited<ReturnType<typeof startPgbouncer>>
  beforeAll(async () => {
    database = await createTestDatabase()
    pgbouncer = await startPgbouncer('transaction', database.url)
  })
  afterAll(async () => {
    await pgbouncer?.stop()
    await database?.drop()
  })

  test('is refused at the start with the setting that is missing', async () => {
    const start = spawnService({ ...secrets, DATABASE_URL: pgbouncer.url })
    await expect(start).rejects.toThrow(/ended \(1\)[\s\S]*DATABASE_DIRECT_URL is missing/)
  })

  test('is refused as the direct address, and again and again while others use the pooler', async () => {
    const busy = openDatabase(pgbouncer.url, { max: 8, log: silent, direct: database.url })
    const database2 = openDatabase(pgbouncer.url, { max: 1, log: silent, direct: `${pgbouncer.url}?` })
    let stop = false
    const load = Array.from({ length: 8 }, async () => {
      while (!stop) await busy.pool.query('select pg_sleep(random() / 100)')
    })
    try {
      for (let attempt = 0; attempt < 20; attempt++)
        await expect(migrate(database2)).rejects.toThrow('DATABASE_DIRECT_URL leads through a transaction pooler')
    } finally {
      stop = true
      await Promise.all(load)
      await busy.close()
      await database2.close()
    }
  })
})
