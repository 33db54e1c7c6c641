import { hashReceipt, verifyReceipt, verifyStatement } from '@countersign/proof'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { readAudits, readEvents } from '../journal.ts'
import { startWorld, type World } from '../money/world.ts'

type Tenant = { tenantId: string; headers: Record<string, string> }

let world: World
let payTo: string
let jwks: { keys: never[] }
const UNKNOWN = `0x${'12'.repeat(32)}`

beforeAll(async () => {
  world = await startWorld()
  payTo = await world.payee()
  jwks = (await world.get('/.well-known/jwks.json')).body
}, 120_000)
afterAll(() => world?.close())
afterEach(() => {
  vi.restoreAllMocks()
})

async function openTenant(): Promise<Tenant> {
  const tenant = await world.onboard()
  // Events are recorded for those who have subscribed.
  await world.post('/api/webhooks', { url: 'https://example.com/hook', events: ['*'] }, tenant.headers)
  await world.post('/api/budgets', { budget_id: 'all', window: 'total', limit_usdc: 10 }, tenant.headers)
  return tenant
}

async function openPreauth(tenant: Tenant, terms: Record<string, unknown> = {}) {
  const body = { agent_id: 'buyer', merchant: { id: 'shop', pay_to: payTo }, amount_usdc: 0.01, ...terms }
  const { status, body: preauth, text } = await world.post('/api/pre-auth', body, tenant.headers)
  expect(status, text).toBe(201)
  return preauth.preauth_id as string
}

const close = (tenant: Tenant, preauth_id: string, terms: Record<string, unknown> = {}) =>
  world.post('/api/pre-auth/close', { preauth_id, outcome: 'settled', ...terms }, tenant.headers)
const read = async (tenant: Tenant, id: string) => (await world.get(`/api/pre-auth/${id}`, tenant.headers)).body
const spent = async (tenant: Tenant) =>
  (await world.get('/api/budgets', tenant.headers)).body.budgets[0] as { spent_usdc: number; reserved_usdc: number }

/** A transfer of 0.01 USDC to the merchant. */
async function transferFrom(headers: Record<string, string> = {}) {
  const payer = await world.payer(1)
  const { answer } = await world.pay(payer, '/api/run', { task: 'joke', agent_id: 'comedian-v1' }, headers)
  return { transaction: answer.body.settlement.transaction as string, payer }
}

const reader = () => world.service.chain.reader!
const unreachable = () => vi.spyOn(reader(), 'transfers').mockRejectedValue(new Error('The node does not answer.'))
const sweep = async (afterMs = 0) => {
  world.advance(afterMs)
  await world.service.governance.sweepReportedCloses()
}

/** Everything that this service has signed about a pre-authorisation: receipts, events and audit events. */
async function signedStatements(tenant: Tenant, id: string) {
  const { run_id } = await read(tenant, id)
  const { rows } = await world.service.database.pool.query('select body from receipts where run_id = $1', [run_id])
  const events = (await readEvents(world.db, tenant.tenantId)).filter(({ data }) => JSON.stringify(data).includes(id))
  const audits = (await readAudits(world.db, tenant.tenantId)).filter(({ subject }) => subject === id)
  return JSON.stringify([rows.map(({ body }) => JSON.parse(body)), events, audits])
}

describe('a close that says settled', () => {
  test('with a transaction that the chain does not know is refused: nothing is counted, and it can be closed later', async () => {
    const tenant = await openTenant()
    const id = await openPreauth(tenant)
    const refusal = await close(tenant, id, { transaction: UNKNOWN })
    expect([refusal.status, refusal.body.code]).toEqual([409, 'conflict'])
    expect(refusal.body.message).toContain('does not know')
    expect(await read(tenant, id)).toMatchObject({ status: 'open', closed: null, settlement: null })
    expect(await spent(tenant)).toMatchObject({ spent_usdc: 0, reserved_usdc: 0.01 })
    const { transaction } = await transferFrom()
    expect((await close(tenant, id, { transaction })).body).toMatchObject({
      outcome: 'settled',
      settlement: { status: 'settled', asserted_by: 'chain' },
    })
  })

  test.each([
    ['without a transaction', {}, {}],
    [
      'on a network that this service cannot ask',
      { network: 'eip155:1', merchant: { id: 'shop' } },
      { transaction: UNKNOWN },
    ],
  ])('%s is closed, counted and called reported in record, receipt, events and audit', async (_, terms, report) => {
    const tenant = await openTenant()
    const id = await openPreauth(tenant, terms)
    const closed = await close(tenant, id, report)
    expect(closed.status, closed.text).toBe(200)
    expect(closed.body).toMatchObject({
      status: 'closed',
      outcome: 'reported',
      charged: '10000',
      verified_onchain: null,
      settlement: { status: 'reported', asserted_by: 'reported' },
    })
    const { receipt } = closed.body
    expect(receipt.settlement).toMatchObject({ status: 'reported', asserted_by: 'reported', amount: '10000' })
    expect(receipt).not.toHaveProperty('charged')
    expect(verifyReceipt(receipt, { jwks })).toMatchObject({
      ok: true,
      does_not_prove: expect.arrayContaining([expect.stringContaining('only reported')]),
    })
    expect(await read(tenant, id)).toMatchObject({
      status: 'closed',
      closed: { outcome: 'reported' },
      settlement: { status: 'reported', asserted_by: 'reported' },
    })
    expect(await spent(tenant)).toMatchObject({ spent_usdc: 0.01, reserved_usdc: 0 })
    const statements = await signedStatements(tenant, id)
    expect(statements).toContain('"reported"')
    expect(statements).not.toContain('settled')
    await sweep(86_400_000)
    expect((await read(tenant, id)).settlement.status).toBe('reported')
  })

  test('that is paid says who saw it: the chain, or our ledger', async () => {
    const tenant = await world.tenantWithWallet()
    const lane = { agent_id: 'comedian-v1', amount_usdc: 0.01, merchant: { id: 'countersign' } }
    const { body } = await world.post('/api/pre-auth', lane, tenant.headers)
    const run = await world.post(
      '/api/run',
      { task: 'joke', agent_id: 'comedian-v1', preauth_token: body.token, payment: { wallet_id: tenant.walletId } },
      tenant.headers,
    )
    expect(run.body.receipt.settlement).toMatchObject({ status: 'settled', asserted_by: 'ledger' })
    const record = (await world.get(`/api/pre-auth/${body.preauth_id}`, tenant.headers)).body
    expect(record.settlement).toMatchObject({ status: 'settled', asserted_by: 'ledger' })
    expect(record.closed).toMatchObject({ outcome: 'settled', verified_onchain: null })
  })
})

test('a failed run says in its receipt who knows that nothing moved', async () => {
  world.setLane(async () => ({ ok: false, reason: 'unavailable', message: 'no', retryable: true }))
  const payer = await world.payer(1)
  const { answer } = await world.pay(payer, '/api/run', { task: 'joke', agent_id: 'comedian-v1' })
  world.setLane(undefined)
  expect([answer.status, answer.body.receipt.settlement.asserted_by]).toEqual([500, 'ledger'])
})

describe('the sweep of reported closes', () => {
  const reportWhileUnreachable = async (tenant: Tenant, transaction: string, terms = {}) => {
    const id = await openPreauth(tenant, terms)
    const node = unreachable()
    const closed = await close(tenant, id, { transaction })
    node.mockRestore()
    expect(closed.status, closed.text).toBe(200)
    expect(closed.body.settlement).toMatchObject({ status: 'reported', transaction })
    return { id, receipt: closed.body.receipt as Record<string, unknown>, closed: closed.body }
  }

  test('settles what the chain shows by now, with a receipt that names the first', async () => {
    const tenant = await openTenant()
    const { transaction } = await transferFrom()
    const { id, receipt } = await reportWhileUnreachable(tenant, transaction)
    const node = unreachable()
    await sweep(120_000)
    node.mockRestore()
    expect((await read(tenant, id)).settlement.status).toBe('reported')
    await sweep(3_600_000)
    const record = await read(tenant, id)
    expect(record.settlement).toMatchObject({ status: 'settled', asserted_by: 'chain', transaction })
    expect(record.closed).toMatchObject({ outcome: 'settled', verified_onchain: true })
    expect(record.closed.receipts).toEqual([record.closed.receipt_url, record.settlement.receipt_url])
    const correction = (await world.get(record.settlement.receipt_url)).body
    expect(correction).toMatchObject({
      kind: 'correction',
      charged: true,
      prev_hash: hashReceipt(receipt as never),
      settlement: { status: 'settled', asserted_by: 'chain', corrects: receipt.receipt_id },
    })
    expect(verifyReceipt(correction, { jwks, previous: receipt })).toMatchObject({ ok: true })
    expect(await spent(tenant)).toMatchObject({ spent_usdc: 0.01, reserved_usdc: 0 })
    await sweep(3_600_000)
    expect((await read(tenant, id)).closed.receipts).toHaveLength(2)
    // A transfer is one payment, also when it was reported twice while nobody could look.
    const second = await openPreauth(tenant)
    expect((await close(tenant, second, { transaction })).status).toBe(409)
  })

  test.each([
    [
      'that pays somebody else',
      async () => (await transferFrom()).transaction,
      { merchant: { id: 'm', pay_to: `0x${'cd'.repeat(20)}` } },
    ],
    ['of another payer', async () => (await transferFrom()).transaction, { payer: `0x${'ef'.repeat(20)}` }],
  ])('corrects a transaction %s: not found, an alert, and the amount stays counted', async (_, pay, terms) => {
    const tenant = await openTenant()
    const { id } = await reportWhileUnreachable(tenant, await pay(), terms)
    await sweep(120_000)
    const record = await read(tenant, id)
    expect(record.settlement).toMatchObject({ status: 'not_found', asserted_by: 'chain', reason: 'no_such_transfer' })
    expect(record.closed.outcome).toBe('not_found')
    const correction = (await world.get(record.settlement.receipt_url)).body
    expect(correction).toMatchObject({ kind: 'correction', charged: false, settlement: { status: 'not_found' } })
    const alerts = await world.db.selectFrom('alerts').selectAll().where('tenant_id', '=', tenant.tenantId).execute()
    expect(alerts).toMatchObject([{ type: 'settlement_not_found', severity: 'critical', data: { preauth_id: id } }])
    expect(await spent(tenant)).toMatchObject({ spent_usdc: 0.01, reserved_usdc: 0 })
  })

  test('waits a day for a transaction that the chain does not have yet, then corrects it', async () => {
    const tenant = await openTenant()
    const { id } = await reportWhileUnreachable(tenant, UNKNOWN)
    await sweep(120_000)
    expect((await read(tenant, id)).settlement.status).toBe('reported')
    for (let checks = 0; checks < 20; checks += 1) await sweep(3 * 3_600_000)
    expect((await read(tenant, id)).settlement).toMatchObject({ status: 'not_found', reason: 'transaction_unknown' })
  })

  test('two sweeps at once issue one receipt', async () => {
    const tenant = await openTenant()
    const { transaction } = await transferFrom()
    const { id } = await reportWhileUnreachable(tenant, transaction)
    world.advance(120_000)
    const { sweepReportedCloses } = world.service.governance
    await Promise.all([sweepReportedCloses(), sweepReportedCloses()])
    expect((await read(tenant, id)).closed.receipts).toHaveLength(2)
    const { rows } = await world.service.database.pool.query(
      `select count(*)::int as count from receipts where kind = 'correction' and run_id = $1`,
      [(await read(tenant, id)).run_id],
    )
    expect(rows[0].count).toBe(1)
  })
})

test('a mandate statement says which part of what is spent was only reported', async () => {
  const tenant = await openTenant()
  const { body: mandate } = await world.post(
    '/api/mandates',
    { name: 'M', agent_id: 'buyer', constraints: [{ type: 'payment.budget', currency: 'USDC', max: 1 }] },
    tenant.headers,
  )
  const statement = async () => (await world.get(`/api/mandates/${mandate.id}/remaining`, tenant.headers)).body
  const { transaction } = await transferFrom()
  await close(tenant, await openPreauth(tenant, { mandate_id: mandate.id }), { transaction })
  expect(await statement()).toMatchObject({ spent: '10000', reported: '0' })
  await close(tenant, await openPreauth(tenant, { mandate_id: mandate.id }))
  const reported = await statement()
  expect(reported).toMatchObject({ spent: '20000', reported: '10000', reported_usdc: 0.01, remaining: '980000' })
  expect(verifyStatement(reported, { jwks, schema: 'mandate-remaining/v1' })).toMatchObject({ ok: true })
})
