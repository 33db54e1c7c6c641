import { verifyReceipt } from '@countersign/proof'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deleteExpiredKeys } from '../../src/modules/runs/runs.store.ts'
import { readChallenge, readJson, signPayment } from '../harness.ts'
import { failingLane, laneReturning, startWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld({ PAYER_EXPOSURE_USDC: '1' })
})
afterAll(() => world.close())

const joke = { task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }

describe('a wallet', () => {
  test('is opened once per idempotency key and is not found by other tenants', async () => {
    const [owner, stranger] = [await world.onboard(), await world.onboard()]
    const headers = { ...owner.headers, 'idempotency-key': 'open-1' }
    const openResponse = await world.post('/api/wallets', { name: 'Agents' }, headers)
    expect(openResponse.status, openResponse.text).toBe(201)
    expect(openResponse.body).toMatchObject({
      name: 'Agents',
      network: 'eip155:8453',
      balance: { available: '0', pending: '0', escrowed: '0', reserved: '0' },
    })
    expect((await world.post('/api/wallets', { name: 'Agents' }, headers)).text).toBe(openResponse.text)
    expect((await world.post('/api/wallets', { name: 'Others' }, headers)).status).toBe(409)
    const path = `/api/wallets/${openResponse.body.wallet_id}`
    expect((await world.get(path, owner.headers)).body).toEqual(openResponse.body)
    const foreign = await world.get(path, stranger.headers)
    const unknown = await world.get('/api/wallets/wal_nothing', stranger.headers)
    expect([foreign.status, unknown.status]).toEqual([404, 404])
    expect(foreign.body.message).toBe(unknown.body.message)
    for (const call of ['topup', 'escrow'])
      expect((await world.post(`${path}/${call}`, { amount_usdc: 1 }, stranger.headers)).status).toBe(404)
    expect((await world.get('/api/wallets', stranger.headers)).body.wallets).toEqual([])
    expect((await world.get(path)).status).toBe(401)
  })

  test('is topped up once by the official client, with a receipt', async () => {
    const tenant = await world.tenantWithWallet(0)
    const path = `/api/wallets/${tenant.walletId}/topup`
    const payee = await world.payee()
    const before = await world.balance(payee)
    const paid = await tenant.payer.fetch(`${world.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...tenant.headers },
      body: JSON.stringify({ amount_usdc: 0.5 }),
    })
    const body = await readJson(paid)
    expect(paid.status, JSON.stringify(body)).toBe(200)
    expect(body).toMatchObject({
      wallet_id: tenant.walletId,
      amount: '500000',
      settlement: { status: 'settled', method: 'x402' },
    })
    expect((await world.balance(payee)) - before).toBe(500_000n)
    expect(await world.balanceOf(tenant)).toEqual({ available: '500000', pending: '0', escrowed: '0', reserved: '0' })
    const { body: receipt } = await world.get(body.receipt_url)
    expect(receipt).toMatchObject({
      kind: 'topup',
      charged: true,
      agent_id: null,
      settlement: { transaction: body.settlement.transaction },
    })
    expect(verifyReceipt(body.receipt, { jwks: (await world.get('/.well-known/jwks.json')).body })).toMatchObject({
      ok: true,
    })
    const types = (await world.events(tenant.tenantId)).map((event) => event.type)
    expect(types).toEqual(expect.arrayContaining(['settlement.settled', 'wallet.topped_up', 'receipt.issued']))
    expect((await world.get('/api/loops', tenant.headers)).body.count).toBe(0)
  })

  test('a repeated top-up gets the same response, and its payment cannot be used for another wallet', async () => {
    const tenant = await world.tenantWithWallet(0)
    const path = `/api/wallets/${tenant.walletId}/topup`
    const headers = { ...tenant.headers, 'idempotency-key': 'fill-1' }
    const { payment, answer } = await world.pay(tenant.payer, path, { amount: '300000' }, headers)
    expect(answer.status, answer.text).toBe(200)
    expect((await world.post(path, { amount: '300000' }, { ...headers, ...payment })).text).toBe(answer.text)
    // The same key with a fresh payment charges nothing.
    const challenge = readChallenge((await world.post(path, { amount: '300000' }, tenant.headers)).headers)
    const fresh = await signPayment(tenant.payer, challenge)
    expect((await world.post(path, { amount: '300000' }, { ...headers, ...fresh })).text).toBe(answer.text)
    const { body: second } = await world.post('/api/wallets', {}, tenant.headers)
    expect(
      (
        await world.post(
          `/api/wallets/${second.wallet_id}/topup`,
          { amount: '300000' },
          { ...tenant.headers, ...payment },
        )
      ).status,
    ).toBe(409)
    expect((await world.balanceOf(tenant)).available).toBe('300000')
    expect(await world.balance(tenant.payer.address)).toBe(700_000n)
  })
})

describe('a run paid from a wallet', () => {
  test('makes no chain transaction and is replayed by its idempotency key', async () => {
    const tenant = await world.tenantWithWallet(0.05)
    const payee = await world.payee()
    const before = await world.balance(payee)
    const body = { ...joke, payment: { wallet_id: tenant.walletId } }
    const headers = { ...tenant.headers, 'idempotency-key': 'run-1' }
    const run = await world.post('/api/run', body, headers)
    expect(run.status, run.text).toBe(200)
    expect(run.body.settlement).toMatchObject({
      status: 'settled',
      method: 'wallet',
      transaction: null,
      payer: tenant.walletId,
      amount: '10000',
    })
    expect(run.headers.get('payment-response')).toBeNull()
    expect(await world.balance(payee)).toBe(before)
    const replay = await world.post('/api/run', body, headers)
    expect(replay.text).toBe(run.text)
    expect(replay.headers.get('idempotent-replayed')).toBe('true')
    expect((await world.balanceOf(tenant)).available).toBe('40000')
    const loop = await world.post(
      '/api/loop',
      { input: 'hello', payment: { wallet_id: tenant.walletId } },
      tenant.headers,
    )
    expect(loop.status, loop.text).toBe(200)
    expect((await world.balanceOf(tenant)).available).toBe('35000')
    const { body: settlement } = await world.get(`/api/settle/${run.body.settlement.settlement_id}`, tenant.headers)
    expect(settlement).toMatchObject({ status: 'settled', method: 'wallet', transaction: null })
  })

  test('is refused to guests, to other tenants, together with an x402 payment, and when the wallet is empty', async () => {
    const [tenant, stranger] = [await world.tenantWithWallet(0), await world.onboard()]
    const body = { ...joke, payment: { wallet_id: tenant.walletId } }
    expect((await world.post('/api/run', body)).status).toBe(401)
    const foreign = await world.post('/api/run', body, stranger.headers)
    expect(foreign.status).toBe(404)
    const challenge = readChallenge((await world.post('/api/run', joke)).headers)
    const payment = await signPayment(tenant.payer, challenge, { accepted: { extra: {} } })
    expect((await world.post('/api/run', body, { ...tenant.headers, ...payment })).status).toBe(400)
    const empty = await world.post('/api/run', body, tenant.headers)
    expect(empty.status).toBe(402)
    expect(empty.headers.get('payment-required')).toBeNull()
    expect(empty.body).toMatchObject({
      error: 'payment_required',
      reason: 'wallet_balance',
      available: '0',
      accepts: [],
    })
  })

  test('keeps its idempotency key for a day, like every other write', async () => {
    const tenant = await world.tenantWithWallet(0.02)
    const headers = { ...tenant.headers, 'idempotency-key': 'for-a-day' }
    const body = {
      task: 'Tell me a joke about days.',
      agent_id: 'comedian-v1',
      payment: { wallet_id: tenant.walletId },
    }
    const openResponse = await world.post('/api/wallets', {}, headers)
    const run = await world.post('/api/run', body, headers)
    expect([openResponse.status, run.status]).toEqual([201, 200])
    const readStoredKeys = async () => {
      const { rows } = await world.service.database.pool.query(
        `select 'answer' as kind from idempotency_answers where scope = $1 and key = 'for-a-day'
         union all select 'run' from run_keys where scope = $1 and key = 'for-a-day'`,
        [`tenant:${tenant.tenantId}`],
      )
      return rows.map(({ kind }) => kind)
    }
    const sweepAfter = async (hours: number) => {
      const now = new Date(Date.parse(openResponse.body.created_at) + hours * 3_600_000)
      await world.service.idempotency.sweep(now)
      await deleteExpiredKeys(world.db, now, 100_000)
    }
    await sweepAfter(23)
    expect(await readStoredKeys()).toEqual(['answer', 'run'])
    await sweepAfter(25)
    expect(await readStoredKeys()).toEqual([])
    expect(
      (await world.get(`/api/settlements?run_id=${run.body.run_id}`, tenant.headers)).body.settlements,
    ).toHaveLength(1)
  })

  test('returns the whole amount when it fails', async () => {
    const tenant = await world.tenantWithWallet(0.02)
    world.setLane(failingLane)
    const failedResponse = await world.post(
      '/api/run',
      { ...joke, payment: { wallet_id: tenant.walletId } },
      tenant.headers,
    )
    world.setLane(undefined)
    expect(failedResponse.status).toBe(500)
    expect(failedResponse.body).toMatchObject({
      charged: false,
      stage: 'execute',
      settlement: { method: 'wallet', status: 'failed' },
    })
    expect(await world.balanceOf(tenant)).toEqual({ available: '20000', pending: '0', escrowed: '0', reserved: '0' })
  })

  test('of forty concurrent runs exactly the ten that the balance covers succeed', async () => {
    const tenant = await world.tenantWithWallet(0.105)
    const body = { ...joke, payment: { wallet_id: tenant.walletId } }
    const answers = await Promise.all(Array.from({ length: 40 }, () => world.post('/api/run', body, tenant.headers)))
    const count = (status: number) => answers.filter((answer) => answer.status === status).length
    expect([count(200), count(402)]).toEqual([10, 30])
    expect(await world.balanceOf(tenant)).toEqual({ available: '5000', pending: '0', escrowed: '0', reserved: '0' })
    const { body: ledger } = await world.get('/api/ledger?limit=100', tenant.headers)
    expect(ledger.invariants).toEqual({ balanced: true, wallets_match: true })
  })

  test('in escrow is charged when its output passes verification, and not when it fails', async () => {
    const tenant = await world.tenantWithWallet(0.05)
    const body = { ...joke, payment: { wallet_id: tenant.walletId, escrow: true } }
    const acceptedResponse = await world.post('/api/run', body, tenant.headers)
    expect(acceptedResponse.status, acceptedResponse.text).toBe(200)
    expect(await world.balanceOf(tenant)).toEqual({ available: '40000', pending: '0', escrowed: '0', reserved: '0' })
    world.setLane(laneReturning(' '))
    const rejectedResponse = await world.post('/api/run', body, tenant.headers)
    world.setLane(undefined)
    expect(rejectedResponse.status, rejectedResponse.text).toBe(500)
    expect(rejectedResponse.body).toMatchObject({ stage: 'verify', charged: false })
    expect(rejectedResponse.body.output).toBeUndefined()
    expect((await world.balanceOf(tenant)).available).toBe('40000')
    const { body: escrows } = await world.get(`/api/wallets/${tenant.walletId}/escrow`, tenant.headers)
    expect(escrows.escrows.map((escrow: { status: string }) => escrow.status)).toEqual(['refunded', 'released'])
    const types = (await world.events(tenant.tenantId)).map((event) => event.type)
    expect(types.filter((type) => type.startsWith('escrow.'))).toEqual([
      'escrow.held',
      'escrow.released',
      'escrow.held',
      'escrow.refunded',
    ])
    const secondRelease = await world.post(`/api/escrow/${escrows.escrows[0].escrow_id}/release`, {}, tenant.headers)
    expect(secondRelease.status).toBe(409)
  })
})

describe('a payer', () => {
  test('is limited in the amount of verified payments that are not yet settled', async () => {
    const payer = await world.payer(3)
    const body = { task: 'What stands out in 3, 5 and 9?', agent_id: 'analyst-v1' }
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const challenge = readChallenge((await world.post('/api/run', body)).headers)
    expect(challenge.accepts[0].amount).toBe('25000')
    const payments = await Promise.all(Array.from({ length: 41 }, () => signPayment(payer, challenge)))
    world.setLane(async () => void (await released))
    const answers = payments.map((payment) => world.post('/api/run', body, payment))
    const refused = await Promise.any(answers)
    expect(refused.status, refused.text).toBe(429)
    expect(refused.body).toMatchObject({ code: 'rate_limited', retryable: true })
    release()
    const responses = await Promise.all(answers)
    world.setLane(undefined)
    expect(responses.filter((answer) => answer.status === 200)).toHaveLength(40)
    // Settled payments no longer count: the payment that was refused can be used.
    const late = await world.post('/api/run', body, payments[responses.findIndex((answer) => answer.status === 429)])
    expect(late.status, late.text).toBe(200)
    expect(await world.balance(payer.address)).toBe(3_000_000n - 41n * 25_000n)
  })
})
