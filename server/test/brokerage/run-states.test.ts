import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { hashApprovalPayload } from '../../src/modules/brokerage/approval-payload.ts'
import { INSTRUMENT_TYPES, type InstrumentType } from '../../src/modules/brokerage/broker.ts'
import { attestedBytes } from '../../src/modules/brokerage/trade-receipt.ts'
import { sha256 } from '../../src/platform/canonical.ts'
import { readAudits } from '../journal.ts'
import { OPEN, openWorld, SYMBOLS, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(async () => world.close())
beforeEach(() => {
  world.clock.set(OPEN)
  world.market.setPrice('AAPL', '200.00')
})

type RunBody = Record<string, unknown>

/** Runs below the approval threshold (where the type has one), above it, and above the spend limit. */
const BELOW_APPROVAL: Record<InstrumentType, RunBody> = {
  equity: { symbol: 'AAPL', quantity: 1 },
  perp: { symbol: 'BTC-PERP', side: 'long', quantity: 0.01, leverage: 5 },
  crypto: { symbol: 'BTC-USD', quantity: 0.001 },
  rwa: { symbol: 'TSLAx', quantity: 1 },
  earn: { symbol: 'USDC-EARN', quantity: 500 },
  spend: { symbol: 'acme-store', quantity: 40 },
}
const ABOVE_APPROVAL: Record<InstrumentType, RunBody> = {
  equity: { symbol: 'AAPL', quantity: 10 },
  perp: BELOW_APPROVAL.perp,
  crypto: { symbol: 'BTC-USD', quantity: 0.05 },
  rwa: { symbol: 'TSLAx', quantity: 5 },
  earn: BELOW_APPROVAL.earn,
  spend: { symbol: 'acme-store', quantity: 1500 },
}
const ABOVE_LIMIT: Record<InstrumentType, RunBody> = {
  equity: { symbol: 'AAPL', quantity: 100 },
  perp: { symbol: 'BTC-PERP', side: 'long', quantity: 1, leverage: 5 },
  crypto: { symbol: 'BTC-USD', quantity: 1 },
  rwa: { symbol: 'TSLAx', quantity: 100 },
  earn: { symbol: 'USDC-EARN', quantity: 20_000 },
  spend: { symbol: 'acme-store', quantity: 20_000 },
}
const runType = (type: InstrumentType, runBody: RunBody) => world.run({ instrument_type: type, ...runBody })
/** A policy under which the types that always need an approval need none below 5000 USDC. */
const permissive = () => {
  const constraints = { require_approval_above_usdc: 5000 }
  world.policies.set('pol_free', {
    id: 'pol_free',
    name: 'Free hand',
    status: 'active',
    mode: 'enforce',
    contentHash: 'sha256:1',
    constraints,
  })
  return { policy_id: 'pol_free' }
}

const METADATA: Record<InstrumentType, string[]> = {
  equity: ['ticker', 'order_type', 'limit_price'],
  perp: ['leverage', 'notional', 'liquidation_price', 'direction'],
  crypto: ['base_asset', 'quote_asset', 'product_id', 'order_type', 'limit_price', 'network'],
  rwa: ['underlying_asset', 'token_contract', 'settlement_lag'],
  earn: ['yield_rate', 'lock_period', 'principal'],
  spend: ['merchant', 'merchant_id', 'category', 'amount_usdc', 'rail', 'authorization_id', 'pre_auth_id', 'recurring'],
}
const PAYLOAD: Record<InstrumentType, string[]> = {
  equity: ['ticker', 'order_type', 'limit_price', 'tif', 'session', 'next_open', 'halted'],
  perp: [
    'leverage',
    'direction',
    'margin_mode',
    'margin',
    'maintenance_margin_rate',
    'mark_price',
    'notional',
    'liquidation_price',
    'distance_to_liq_pct',
    'funding_rate',
  ],
  crypto: ['product_id', 'fee_tier', 'network', 'order_type', 'limit_price'],
  rwa: [
    'underlying_asset',
    'token_contract',
    'chain',
    'multiplier',
    'basis_bps',
    'near_reference_usd',
    'creation',
    'settlement_lag',
  ],
  earn: ['principal', 'yield_rate', 'lock_period', 'unlock_at', 'early_exit_penalty', 'protocol'],
  spend: ['merchant', 'category', 'amount_usdc', 'rail', 'pre_auth_id', 'recurring', 'remaining_budget'],
}
const COMMON = [
  'run_id',
  'tenant_id',
  'instrument_type',
  'symbol',
  'side',
  'direction',
  'quantity',
  'notional_usdc',
  'quote',
  'est_fees',
  'est_slippage_bps',
  'buying_power_before',
  'buying_power_after',
  'position_before',
  'position_after',
  'policy_id',
  'policy_verdict',
  'checks',
  'expires_at',
  'execute_by',
  'digest',
]
const WINDOW_MINUTES: Record<InstrumentType, number> = {
  equity: 1440,
  perp: 5,
  crypto: 15,
  rwa: 60,
  earn: 1440,
  spend: 15,
}

describe.each(INSTRUMENT_TYPES)('%s', (type) => {
  test('a run that passes policy is a 200 with a signed receipt', async () => {
    const { status, body } = await runType(type, {
      ...BELOW_APPROVAL[type],
      ...(type === 'perp' || type === 'earn' ? permissive() : {}),
    })
    expect(status, JSON.stringify(body)).toBe(200)
    expect(body).toMatchObject({ status: 'executed', instrument_type: type })
    const { receipt } = body
    expect(receipt).toMatchObject({ run_id: body.run_id, status: 'executed', mode: 'paper', symbol: SYMBOLS[type] })
    for (const field of METADATA[type]) expect(receipt.instrument_metadata, field).toHaveProperty(field)
    expect(receipt.filled_quantity).toBe(receipt.quantity)
    expect(receipt.fills.reduce((sum: number, fill: { fee: number }) => sum + fill.fee, 0)).toBeCloseTo(receipt.fees, 6)

    const read = await world.call('GET', `/api/rh/receipts/${receipt.id}`)
    expect(read.status).toBe(200)
    expect(read.body).toEqual(receipt)
    const { attestation } = read.body
    expect(attestation.hash).toBe(sha256(attestedBytes(read.body)))
    expect(
      world.keys.signer('receipts').verify(attestedBytes(read.body), Buffer.from(attestation.value, 'base64')),
    ).toBe(true)
    const { rows } = await sql<{ body: string }>`select body from receipts where id = ${`rcpt_${receipt.id}`}`.execute(
      world.db,
    )
    expect(JSON.parse(rows[0]!.body)).toMatchObject({ kind: 'rh_run', output_hash: attestation.hash })
    expect(rows[0]!.body).not.toContain(SYMBOLS[type])
  })

  test('a run above the approval threshold is a 202 with the approval payload and window of its instrument', async () => {
    const { status, body } = await runType(type, ABOVE_APPROVAL[type])
    expect(status, JSON.stringify(body)).toBe(202)
    expect(body.status).toBe('pending_approval')
    const { approval } = body
    for (const field of [...COMMON, ...PAYLOAD[type]]) expect(approval, field).toHaveProperty(field)
    expect(approval.digest).toBe(hashApprovalPayload(approval))
    expect(approval.policy_verdict).toBe('requires_human')
    expect(approval.checks.some((check: { result: string }) => check.result === 'review')).toBe(true)
    expect(Date.parse(body.expires_at) - Date.parse(OPEN)).toBe(WINDOW_MINUTES[type] * 60_000)
    expect(body.expires_at).toBe(approval.expires_at)
    const pendingResponse = await world.call('GET', `/api/rh/receipts?run_id=${body.run_id}`)
    expect(pendingResponse.body).toMatchObject([{ run_id: body.run_id, status: 'pending_approval', fills: [] }])
  })

  test('a run above the spend limit is a 422 budget_exceeded, and no order is sent', async () => {
    const before = await world.countOrders()
    const { status, body } = await runType(type, ABOVE_LIMIT[type])
    expect(status, JSON.stringify(body)).toBe(422)
    expect(body.error).toBe('budget_exceeded')
    expect(body.message).toMatch(/USDC/)
    expect(body.checks).toContainEqual(expect.objectContaining({ id: 'order_notional', result: 'fail', limit: 10_000 }))
    expect(await world.countOrders()).toBe(before)
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'rejected', fills: [] })
  })

  test('a run of a denied instrument type is a 422 policy_blocked', async () => {
    world.policies.set('pol_no', {
      id: 'pol_no',
      name: 'No such trades',
      status: 'active',
      mode: 'enforce',
      contentHash: null,
      constraints: { denied_instruments: [type] },
    })
    const { status, body } = await runType(type, { ...BELOW_APPROVAL[type], policy_id: 'pol_no' })
    expect([status, body.error]).toEqual([422, 'policy_blocked'])
    expect(body.checks).toContainEqual(expect.objectContaining({ id: 'instrument_allowed', result: 'fail' }))
  })

  test('an approved run is executed once, and approving it again is a 409', async () => {
    const { body } = await runType(type, ABOVE_APPROVAL[type])
    const approveResponse = await world.approve(body.run_id, { approved_by: 'another person' })
    expect(approveResponse.status, approveResponse.text).toBe(200)
    expect(approveResponse.body).toMatchObject({
      status: 'approved',
      queued: true,
      approved_by: 'key_ten_one',
      approved_by_claimed: 'another person',
    })
    expect((await world.approve(body.run_id)).status).toBe(409)
    const before = await world.countOrders()
    await world.brokerage.sweep()
    await world.brokerage.sweep()
    expect((await world.countOrders()) - before).toBe(1)
    const finishedRun = await world.getRun(body.run_id)
    expect(finishedRun, finishedRun.reason).toMatchObject({ status: 'executed', approved_by: 'key_ten_one' })
    expect((await world.approve(body.run_id)).status).toBe(409)
    const [receipt] = (await world.call('GET', `/api/rh/receipts?run_id=${body.run_id}`)).body
    expect(receipt).toMatchObject({
      status: 'executed',
      approval: { required: true, digest: body.approval.digest, approved_by: 'key_ten_one' },
    })
    const first = await world.call('GET', `/api/rh/receipts/${finishedRun.receipt_ids[0]}`)
    expect(receipt.attestation.prev_hash).toBe(first.body.attestation.hash)
  })

  test('an expired approval cannot be used: 410, and 410 again', async () => {
    const { body } = await runType(type, ABOVE_APPROVAL[type])
    world.clock.set(body.expires_at)
    expect((await world.approve(body.run_id)).status).toBe(410)
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'cancelled' })
    expect((await world.approve(body.run_id)).status).toBe(410)
  })

  test('the sweep cancels a pending run at expires_at and not a millisecond before', async () => {
    const { body } = await runType(type, ABOVE_APPROVAL[type])
    world.clock.set(new Date(Date.parse(body.expires_at) - 1))
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'pending_approval' })
    world.clock.advance(1)
    await world.brokerage.sweep()
    expect(await world.getRun(body.run_id)).toMatchObject({
      status: 'cancelled',
      reason: 'Nobody approved it in time.',
    })
    expect((await world.approve(body.run_id)).status).toBe(410)
  })

  test('a run approved in the last millisecond and delayed past execute_by is not executed', async () => {
    const { body } = await runType(type, ABOVE_APPROVAL[type])
    world.clock.set(new Date(Date.parse(body.expires_at) - 1))
    world.market.setPrice(
      SYMBOLS[type],
      type === 'earn' || type === 'spend' ? '1.00' : String(body.approval.quote.price),
    )
    expect((await world.approve(body.run_id)).status).toBe(200)
    world.clock.advance(1)
    const before = await world.countOrders()
    await world.brokerage.sweep()
    expect(await world.countOrders()).toBe(before)
    expect(await world.getRun(body.run_id)).toMatchObject({
      status: 'cancelled',
      reason: 'Its time to execute had passed.',
    })
    expect((await world.approve(body.run_id)).status).toBe(409)
    restorePrices()
  })

  test('approving is a 401 without a key, and a 404 for an unknown run or one of another tenant', async () => {
    const { body } = await runType(type, ABOVE_APPROVAL[type])
    const path = '/api/rh/approve'
    expect((await world.call('POST', path, { run_id: body.run_id }, { 'x-api-key': 'nobody' })).status).toBe(401)
    expect((await world.call('POST', '/api/rh/run', { tenant_id: 'x' }, { 'x-api-key': 'nobody' })).status).toBe(401)
    await world.addTenant('ten_two')
    const otherHeaders = { 'x-api-key': 'ten_two', 'x-request-id': 'same' }
    const foreignResponse = await world.call('POST', path, { run_id: body.run_id }, otherHeaders)
    const unknownResponse = await world.call(
      'POST',
      path,
      { run_id: '01890000-0000-7000-8000-000000000000' },
      otherHeaders,
    )
    expect(foreignResponse.status).toBe(404)
    expect(foreignResponse.text).toBe(unknownResponse.text)
    expect((await world.call('GET', `/api/rh/runs/${body.run_id}`, undefined, otherHeaders)).status).toBe(404)
    expect((await world.call('GET', '/api/rh/receipts', undefined, otherHeaders)).body).toEqual([])
    expect(await world.getRun(body.run_id)).toMatchObject({ status: 'pending_approval' })
  })
})

test('each state change is an event and an audit record, in order', async () => {
  const { body } = await runType('equity', ABOVE_APPROVAL.equity)
  await world.approve(body.run_id)
  await world.brokerage.sweep()
  const refusedRun = await runType('equity', ABOVE_LIMIT.equity)
  const expiredRun = await runType('crypto', ABOVE_APPROVAL.crypto)
  world.clock.set(expiredRun.body.expires_at)
  await world.brokerage.sweep()
  const eventLines = (await world.events()).map(({ type, data }) => `${type} ${data.run_id}`)
  const eventTypesOf = (id: string) => eventLines.filter((line) => line.endsWith(id)).map((line) => line.split(' ')[0])
  expect(eventTypesOf(body.run_id)).toEqual(['rh_run.pending', 'rh_run.approved', 'rh_run.executed'])
  expect(eventTypesOf(refusedRun.body.run_id)).toEqual(['rh_run.rejected'])
  expect(eventTypesOf(expiredRun.body.run_id)).toEqual(['rh_run.pending', 'rh_run.cancelled'])
  const audits = (await readAudits(world.db)).filter(({ subject }) => subject === body.run_id)
  expect(audits.map(({ type }) => type)).toEqual(['rh_run.pending', 'rh_run.approved', 'rh_run.executed'])
})

function restorePrices() {
  for (const [symbol, price] of [
    ['AAPL', '200.00'],
    ['BTC-PERP', '60000.00'],
    ['BTC-USD', '60000.00'],
    ['TSLAx', '390.00'],
  ] as const) {
    world.market.setPrice(symbol, price)
  }
}
