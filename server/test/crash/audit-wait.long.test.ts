import { verifyAuditExport } from '@countersign/proof'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { richTenant, type Tenant } from '../governance/world.ts'
import {
  createTestDatabase,
  readChallenge,
  signPayment,
  spawnService,
  startService,
  type TestService,
} from '../harness.ts'

/**
 * Answers that wait for their audit event: the process is killed with SIGKILL while it waits, after everything was
 * written. The next process gives the stored answer with its place in the chain, and nothing is done twice.
 */
const secrets = { SIGNING_KEY: 's'.repeat(40), ENCRYPTION_KEY: 'e'.repeat(40), ADMIN_KEY: 'a'.repeat(40) }

let database: Awaited<ReturnType<typeof createTestDatabase>>
/** Does the background work only when the test says so. */
let next: TestService
beforeAll(async () => {
  database = await createTestDatabase()
  next = await startService({
    databaseUrl: database.url,
    env: { ...secrets, BACKGROUND_WORK: 'off', AUDIT_WAIT_MS: '500' },
  })
})
afterAll(async () => {
  await next?.close()
  await database?.drop()
})

const link = {
  event_id: expect.stringMatching(/^aud_/),
  seq: expect.any(Number),
  hash: expect.stringMatching(/^sha256:/),
}

type Door = {
  path: string
  status: number
  body(tenant: Tenant): Record<string, unknown>
  /** What the spender has after it, in atomic units: once, however often it was asked for. */
  amount: string
}
const doors: Record<string, Door> = {
  'a run paid from a wallet': {
    path: '/api/run',
    status: 200,
    body: ({ walletId }) => ({ task: 'A joke.', agent_id: 'comedian-v1', payment: { wallet_id: walletId } }),
    amount: '10000',
  },
  'a pre-authorisation': {
    path: '/api/pre-auth',
    status: 201,
    body: () => ({ agent_id: 'buyer', merchant: { id: 'shop' }, amount: '700' }),
    amount: '0',
  },
  'a trade': {
    path: '/api/rh/run',
    status: 200,
    body: ({ tenantId }) => ({
      tenant_id: tenantId,
      symbol: 'acme-store',
      instrument_type: 'spend',
      side: 'buy',
      quantity: 3,
    }),
    amount: '3000000',
  },
  'a refused trade': {
    path: '/api/rh/run',
    status: 422,
    body: ({ tenantId }) => ({
      tenant_id: tenantId,
      symbol: 'acme-store',
      instrument_type: 'spend',
      side: 'buy',
      quantity: 30_000,
    }),
    amount: '0',
  },
}

async function auditedTenant(): Promise<Tenant> {
  const tenant = await richTenant(next)
  const policy = { name: 'On the record', identity_type: 'tenant', audit_trail_required: true, constraints: {} }
  expect((await next.post('/api/policies', policy, tenant.headers)).status).toBe(201)
  return tenant
}

const ENDS = ['run.completed', 'preauth.created', 'rh_run.executed', 'rh_run.rejected']
const countEnds = async () => {
  const { rows } = await next.service.database.pool.query(
    `select count(*) from journal cross join jsonb_array_elements(audits) as audit where audit->>'type' = any($1)`,
    [ENDS],
  )
  return Number(rows[0].count)
}
const spentOf = async (tenant: Tenant) => (await next.get('/api/spend', tenant.headers)).body.totals.amount

type Waiting = Door & { tenant: Tenant; headers: Record<string, string>; sent: Record<string, unknown> }
const waiting = new Map<string, Waiting>()
const x402Payer: { address?: string } = {}

/** Sends one request through each door to a process of its own, and kills that once all are written and wait. */
beforeAll(async () => {
  for (const [name, door] of Object.entries(doors)) {
    const tenant = await auditedTenant()
    const headers = { ...tenant.headers, 'idempotency-key': 'once' }
    waiting.set(name, { ...door, tenant, headers, sent: door.body(tenant) })
  }
  const tenant = await auditedTenant()
  const sent = { task: 'A joke.', agent_id: 'comedian-v1' }
  const payer = await next.payer(1)
  x402Payer.address = payer.address
  const challenge = readChallenge((await next.post('/api/run', sent, tenant.headers)).headers)
  const headers = { ...tenant.headers, ...(await signPayment(payer, challenge)) }
  const door = { path: '/api/run', status: 200, body: () => sent, amount: '10000' }
  waiting.set('a run paid by x402', { ...door, tenant, headers, sent })

  const env = { ...secrets, DATABASE_URL: database.url, BACKGROUND_WORK: 'off', AUDIT_WAIT_MS: '30000' }
  const service = await spawnService(env)
  const answers = [...waiting.values()].map(({ path, sent, headers }) =>
    service.post(path, sent, headers).then(
      ({ text }) => text,
      () => 'cut off',
    ),
  )
  await vi.waitFor(async () => expect(await countEnds()).toBe(waiting.size), { timeout: 30_000, interval: 100 })
  service.child.kill('SIGKILL')
  expect(await service.exited).toBe('SIGKILL')
  expect(await Promise.all(answers)).toEqual(answers.map(() => 'cut off'))
  for (const [name, { path, sent, headers }] of waiting) {
    const stuck = await next.post(path, sent, headers)
    expect([stuck.status, stuck.body.retryable], `${name}: ${stuck.text}`).toEqual([503, true])
  }
  await next.service.sequencer.runOnce()
}, 120_000)

test.each([...Object.keys(doors), 'a run paid by x402'])(
  '%s: killed while it waits, the same key or payment gets the stored answer with its place, and it is done once',
  async (name) => {
    const { path, status, amount, tenant, headers, sent } = waiting.get(name)!
    const answer = await next.post(path, sent, headers)
    expect([answer.status, answer.body.audit], answer.text).toEqual([status, link])
    expect((await next.post(path, sent, headers)).text).toBe(answer.text)
    expect(await spentOf(tenant)).toBe(amount)
    const exported = (await next.get('/api/audit?format=ndjson', tenant.headers)).text
    expect(verifyAuditExport(exported)).toMatchObject({ ok: true })
    expect(exported).toContain(answer.body.audit.event_id)
  },
)

test('the x402 payer has paid once', async () => {
  expect(await next.balance(x402Payer.address!)).toBe(990_000n)
})
