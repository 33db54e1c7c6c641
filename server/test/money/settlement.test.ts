import { verifyReceipt } from '@countersign/proof'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { transfer } from '../../src/modules/ledger/accounts.ts'
import { createPayouts } from '../../src/modules/ledger/payouts.ts'
import type { Authorization } from '../../src/modules/payments/facilitator.ts'
import { createPayoutRail } from '../../src/modules/payments/payout-rail.ts'
import { createIdempotency } from '../../src/platform/idempotency.ts'
import { createIds } from '../../src/platform/ids.ts'
import { createKeys } from '../../src/platform/keys.ts'
import { readChallenge, signAuthorization, signPayment, silent, USDC } from '../harness.ts'
import { failingLane, startWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const joke = { task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }
const chainAccount = async () => {
  const { total } = await world.db
    .selectFrom('ledger_entries')
    .select((on) => on.fn.sum('amount_micro').as('total'))
    .where('account', '=', 'assets:chain:usdc')
    .where('status', '=', 'posted')
    .executeTakeFirstOrThrow()
  return BigInt(total ?? 0)
}

describe('a withdrawal', () => {
  test('can be requested by the operator only, is sent once, and is on the chain', async () => {
    const tenant = await world.tenantWithWallet(0.5)
    const path = `/api/admin/wallets/${tenant.walletId}/withdraw`
    const to = (await world.payer(0)).address
    const body = { to, amount: '200000' }
    expect((await world.post(path, body, tenant.headers)).status).toBe(401)
    for (const refusedAddress of [
      await world.payee(),
      `0x${'0'.repeat(40)}`,
      USDC,
      USDC.toUpperCase().replace('0X', '0x'),
    ])
      expect((await world.post(path, { ...body, to: refusedAddress }, world.admin)).status).toBe(400)
    const headers = { ...world.admin, 'idempotency-key': 'out-1' }
    const requestResponse = await world.post(path, body, headers)
    expect(requestResponse.status, requestResponse.text).toBe(201)
    expect((await world.post(path, body, headers)).text).toBe(requestResponse.text)
    const { body: payout } = await world.get(`/api/admin/payouts/${requestResponse.body.payout_id}`, world.admin)
    expect(payout).toMatchObject({ kind: 'withdrawal', status: 'paid', method: 'chain', amount: '200000' })
    expect(payout.transaction).toMatch(/^0x[0-9a-f]{64}$/)
    expect(await world.balance(to)).toBe(200_000n)
    expect(await world.balanceOf(tenant)).toMatchObject({ available: '300000', reserved: '0' })
    const tooMuch = await world.post(path, { to, amount: '300001' }, world.admin)
    expect(tooMuch.status).toBe(409)
    expect(await chainAccount()).toBe(await world.balance(await world.payee()))
  })

  test('shares a transaction with other withdrawals and still proves its own payment', async () => {
    const tenant = await world.tenantWithWallet(0.2)
    // Created first, so that the withdrawals are requested at the same moment.
    const recipients = await Promise.all(Array.from({ length: 12 }, () => world.payer(0)))
    const payouts = await Promise.all(
      recipients.map(async ({ address: to }) => {
        const path = `/api/admin/wallets/${tenant.walletId}/withdraw`
        const { body } = await world.post(path, { to, amount: '10000' }, world.admin)
        return (await world.get(`/api/admin/payouts/${body.payout_id}`, world.admin)).body
      }),
    )
    const [shared] = [...Map.groupBy(payouts, (payout) => payout.transaction).values()].filter(
      (group) => group.length > 1,
    )
    expect(shared, 'twelve concurrent withdrawals share transactions').toBeDefined()
    for (const { to, transaction } of shared!) {
      const preauthRequest = { agent_id: 'buyer', merchant: { id: 'shop', pay_to: to }, amount: '10000' }
      const report = async () => {
        const preauth = await world.post('/api/pre-auth', preauthRequest, tenant.headers)
        const { preauth_id } = preauth.body
        return world.post('/api/pre-auth/close', { preauth_id, outcome: 'settled', transaction }, tenant.headers)
      }
      expect((await report()).body).toMatchObject({ status: 'closed', verified_onchain: true })
      expect((await report()).status).toBe(409)
    }
  })

  test('is confirmed by the operator when this service does not hold the key, and only if the chain shows it', async () => {
    const tenant = await world.tenantWithWallet(0.3)
    const clock = { now: () => new Date() }
    const keys = createKeys({ signing: 'a secret of this test', encryption: 'another' })
    const paidTransaction = `0x${'ab'.repeat(32)}`
    const payouts = createPayouts({
      db: world.db,
      clock,
      ids: createIds(clock),
      log: silent,
      idempotency: createIdempotency({ db: world.db, keys, clock }),
      rail: {
        from: await world.payee(),
        asset: USDC,
        automatic: false,
        send: () => Promise.reject(new Error('must not be called')),
        checkRefused: () => Promise.reject(new Error('must not be called')),
        proves: async (transaction) => transaction === paidTransaction,
      },
      finishRefund: () => Promise.reject(new Error('not a refund')),
    })
    const request = async () => {
      const to = tenant.payer.address
      return JSON.parse((await payouts.withdraw(tenant.walletId, undefined, {}, { to, amountMicro: 100_000n })).body)
    }
    const [first, second, third] = [await request(), await request(), await request()]
    expect(first).toMatchObject({ status: 'pending', method: 'manual' })
    expect(await world.balanceOf(tenant)).toMatchObject({ available: '0', reserved: '300000' })
    await payouts.sweep()
    await expect(payouts.confirm(first.payout_id, { transaction: `0x${'00'.repeat(32)}` })).rejects.toThrow(
      'does not move 0.1 USDC',
    )
    const confirmed = await payouts.confirm(first.payout_id, { transaction: paidTransaction })
    expect(confirmed).toMatchObject({ status: 'paid', transaction: paidTransaction })
    expect(await payouts.confirm(first.payout_id, { transaction: paidTransaction })).toEqual(confirmed)
    await expect(payouts.confirm(second.payout_id, { transaction: paidTransaction })).rejects.toThrow('another payout')
    for (const payout of [second, third])
      expect(await payouts.cancel(payout.payout_id)).toMatchObject({ status: 'cancelled' })
    await expect(payouts.cancel(first.payout_id)).rejects.toThrow('is paid')
    expect(await world.balanceOf(tenant)).toMatchObject({ available: '200000', reserved: '0' })
    // No money was actually sent: book it back, so that the ledger of this test matches the chain.
    const reversal = transfer('assets:chain:usdc', 'revenue:orchestration', 100_000n)
    const entries = reversal.map(({ account, amount_micro }) => ({ account, amountMicro: amount_micro }))
    await world.service.ledger.post(world.db, {
      tenantId: null,
      code: 'test',
      ref: 'test',
      asset: 'USDC',
      entries,
      at: new Date(),
    })
    await world.db.deleteFrom('payouts').where('id', '=', first.payout_id).execute()
  })

  test('that is signed and sent repeatedly moves the money once', async () => {
    const payee = await world.payer(1)
    const { facilitator, reader: chain, asset } = world.service.chain
    const sign = async (authorization: Authorization) => {
      const { signature } = await signAuthorization(
        payee,
        { amount: '', payTo: '', asset, network: '', maxTimeoutSeconds: 0, extra: {} },
        authorization,
      )
      return signature
    }
    const rail = createPayoutRail({
      facilitator,
      chain,
      clock: { now: () => new Date() },
      asset,
      payTo: payee.address,
      sign,
    })
    const to = (await world.payer(0)).address
    const send = () => rail.send({ id: 'pay_1', to, amountMicro: 50_000n })
    const sendResults = [...(await Promise.all([send(), send(), send()])), await send()]
    expect(sendResults.at(-1)).toMatchObject({ state: 'paid' })
    expect(await world.balance(to)).toBe(50_000n)
    expect(await rail.send({ id: 'pay_1', to: payee.address, amountMicro: 1n })).toEqual({
      state: 'open',
      reason: 'transfer_not_found',
    })
    const { transaction } = sendResults.at(-1) as { transaction: string }
    expect(await rail.proves(transaction, to, 50_000n)).toBe(true)
    expect(await rail.proves(transaction, to, 50_001n)).toBe(false)
    expect(await rail.proves(`0x${'0'.repeat(64)}`, to, 50_000n)).toBe(false)
  })
})

test('a lane that was paused after its quote runs nothing and charges nothing', async () => {
  const payer = await world.payer(1)
  const tenant = await world.tenantWithWallet(0.1)
  const setStatus = (status: string) => world.call('PATCH', '/api/lane/comedian-v1', { status }, world.admin)
  const payment = await signPayment(payer, readChallenge((await world.post('/api/run', joke)).headers))
  const { body: route } = await world.post('/api/route', { task: joke.task, agent_id: 'comedian-v1' })
  const fromWallet = { task: joke.task, quote: route.quote, payment: { wallet_id: tenant.walletId } }
  await setStatus('paused')
  try {
    for (const response of [
      await world.post('/api/run', joke, payment),
      await world.post('/api/run', fromWallet, tenant.headers),
    ]) {
      expect(response.status, response.text).toBe(400)
      expect(response.body).toMatchObject({ error: 'invalid_request', message: expect.stringContaining('not active') })
    }
    expect(await world.balance(payer.address)).toBe(1_000_000n)
    expect(await world.balanceOf(tenant)).toMatchObject({ available: '100000', reserved: '0' })
  } finally {
    await setStatus('active')
  }
  // The payment was not used: once the lane is back, it pays for its request.
  expect((await world.post('/api/run', joke, payment)).status).toBe(200)
})

/** A token that blocks the receiver: every transfer to it reverts. Everything else is the service's own. */
describe('a withdrawal that the token refuses', () => {
  const TRANSACTION = `0x${'cd'.repeat(32)}` as const
  const openRefused = async () => {
    const tenant = await world.tenantWithWallet(0.3)
    const now = Date.now()
    const state = { ms: now, headTime: BigInt(Math.floor(now / 1000)), settled: 0, arrived: false }
    const clock = { now: () => new Date(state.ms) }
    const to = tenant.payer.address
    const refusal = { reason: 'invalid_exact_evm_transaction_simulation_failed', message: 'account is blacklisted' }
    const transfer = { from: await world.payee(), to, value: 100_000n, block: 1n }
    const chain = {
      headTime: async () => state.headTime,
      authorization: async () => (state.arrived ? { used: true, transaction: TRANSACTION, transfer } : { used: false }),
    }
    const facilitator = {
      settle: async () => {
        state.settled += 1
        return { state: 'failed', ...refusal }
      },
      verify: async () => ({ valid: false, ...refusal }),
    }
    const keys = createKeys({ signing: 'a secret of this test', encryption: 'another' })
    const rail = createPayoutRail({
      facilitator,
      chain,
      clock,
      asset: USDC,
      payTo: await world.payee(),
      sign: async () => '0x',
    } as unknown as Parameters<typeof createPayoutRail>[0])
    const payouts = createPayouts({
      db: world.db,
      clock,
      ids: createIds(clock),
      log: silent,
      idempotency: createIdempotency({ db: world.db, keys, clock }),
      rail,
      finishRefund: () => Promise.reject(new Error('not a refund')),
    })
    const response = await payouts.withdraw(tenant.walletId, undefined, {}, { to, amountMicro: 100_000n })
    const { payout_id } = JSON.parse(response.body)
    const sweepAfter = async (seconds: number) => {
      state.ms += seconds * 1000
      state.headTime += BigInt(seconds)
      await payouts.sweep()
    }
    return { tenant, state, payouts, payoutId: payout_id as string, sweepAfter }
  }

  test('stays pending while what was signed for it can be used, and then fails with the money back, once', async () => {
    const { tenant, state, payouts, payoutId, sweepAfter } = await openRefused()
    await sweepAfter(120)
    expect(await payouts.get(payoutId)).toMatchObject({ status: 'pending' })
    expect(await world.balanceOf(tenant)).toMatchObject({ available: '200000', reserved: '100000' })
    // Nothing is signed again, so that the last authorisation runs out.
    expect(state.settled).toBe(1)
    await sweepAfter(600)
    await sweepAfter(120)
    await sweepAfter(120)
    expect(await payouts.get(payoutId)).toMatchObject({
      status: 'failed',
      reason: 'refused_by_token',
      transaction: null,
    })
    expect(await world.balanceOf(tenant)).toMatchObject({ available: '300000', reserved: '0' })
    await expect(payouts.cancel(payoutId)).rejects.toThrow('is failed')
    const { body: ledger } = await world.get('/api/ledger?limit=100', tenant.headers)
    expect(ledger.invariants.balanced).toBe(true)
  })

  test('is paid when the transfer arrives after all, and never given back as well', async () => {
    const { tenant, state, payouts, payoutId, sweepAfter } = await openRefused()
    state.arrived = true
    await sweepAfter(900)
    expect(await payouts.get(payoutId)).toMatchObject({ status: 'paid', transaction: TRANSACTION })
    expect(await world.balanceOf(tenant)).toMatchObject({ available: '200000', reserved: '0' })
    await world.db.deleteFrom('payouts').where('id', '=', payoutId).execute()
    const reversal = transfer('assets:chain:usdc', 'revenue:orchestration', 100_000n)
    const entries = reversal.map(({ account, amount_micro }) => ({ account, amountMicro: amount_micro }))
    // No money was actually sent: book it back, so that the ledger of this test matches the chain.
    const posting = { tenantId: null, code: 'test', ref: 'test', asset: 'USDC', entries, at: new Date() }
    await world.service.ledger.post(world.db, posting)
  })
})

describe('a payment that arrives for a run that has failed', () => {
  test('is refunded, and the receipts of the run form a chain', async () => {
    const tenant = await world.onboard()
    // Events are recorded for those who have subscribed.
    await world.post('/api/webhooks', { url: 'https://example.com/hook', events: ['*'] }, tenant.headers)
    const payer = await world.payer(1)
    const challenge = readChallenge((await world.post('/api/run', joke, tenant.headers)).headers)
    const payment = await signPayment(payer, challenge)
    world.setLane(failingLane)
    const failedResponse = await world.post('/api/run', joke, { ...tenant.headers, ...payment })
    world.setLane(undefined)
    expect(failedResponse.body).toMatchObject({ charged: false, stage: 'execute' })
    // Anyone who has seen the payment can still submit it to the chain.
    const paymentPayload = JSON.parse(Buffer.from(payment['payment-signature'], 'base64').toString())
    const sendResponse = await world.post('/facilitator/settle', {
      x402Version: 2,
      paymentPayload,
      paymentRequirements: challenge.accepts[0],
    })
    expect(sendResponse.body.success, sendResponse.text).toBe(true)
    expect(await world.balance(payer.address)).toBe(990_000n)

    world.advance(61_000)
    await world.service.refunds.sweepFailedPayments()
    await world.service.payouts.sweep()
    expect(await world.balance(payer.address)).toBe(1_000_000n)
    const settlementId = failedResponse.body.settlement.settlement_id
    const { body: settlement } = await world.get(`/api/settle/${settlementId}`, tenant.headers)
    expect(settlement).toMatchObject({ status: 'refunded', transaction: sendResponse.body.transaction })
    // The response to the original request does not change.
    expect((await world.post('/api/run', joke, { ...tenant.headers, ...payment })).text).toBe(failedResponse.text)

    const { body: listed } = await world.get(`/api/receipts?run_id=${failedResponse.body.run_id}`)
    const chain = listed.receipts.reverse()
    expect(chain.map((receipt: { kind: string }) => receipt.kind)).toEqual(['failure', 'correction', 'refund'])
    expect(chain.map((receipt: { charged: boolean }) => receipt.charged)).toEqual([false, true, false])
    const jwks = (await world.get('/.well-known/jwks.json')).body
    for (const [index, receipt] of chain.entries()) {
      expect(verifyReceipt({ ...receipt, log: null }, { jwks })).toMatchObject({ ok: true })
      const { hash } = (await world.get(`/api/receipts/${receipt.receipt_id}/proof`)).body
      if (chain[index + 1]) expect(chain[index + 1].prev_hash).toBe(hash)
    }
    expect(chain[2].settlement.refund).toMatchObject({
      to: payer.address.toLowerCase(),
      amount: '10000',
      status: 'paid',
    })
    const types = (await world.events(tenant.tenantId)).map((event) => event.type)
    expect(types).toEqual(expect.arrayContaining(['run.failed', 'settlement.settled', 'settlement.refunded']))
    const { body: ledger } = await world.get('/api/ledger?limit=100', tenant.headers)
    expect(ledger.invariants.balanced).toBe(true)
    expect(ledger.accounts).toContainEqual(expect.objectContaining({ account: 'liabilities:refunds', balance: '0' }))
    expect(await chainAccount()).toBe(await world.balance(await world.payee()))
  })

  test('is no longer watched once it has expired unused', async () => {
    const payer = await world.payer(1)
    world.setLane(failingLane)
    const { answer } = await world.pay(payer, '/api/run', joke)
    world.setLane(undefined)
    const find = () =>
      world.db
        .selectFrom('settlements')
        .select(['state', 'next_attempt_at'])
        .where('id', '=', answer.body.settlement.settlement_id)
        .executeTakeFirstOrThrow()
    world.advance(61_000)
    await world.service.refunds.sweepFailedPayments()
    expect((await find()).next_attempt_at).not.toBeNull()
    world.advance(900_000)
    // A later block proves that the payment has expired.
    await world.post('/api/dev/faucet', { address: payer.address, amount_usdc: 1 })
    await world.service.refunds.sweepFailedPayments()
    expect(await find()).toEqual({ state: 'failed', next_attempt_at: null })
  })
})

const decodePayload = (payment: { 'payment-signature': string }) =>
  JSON.parse(Buffer.from(payment['payment-signature'], 'base64').toString())

test('a settlement is found by its id, run or payment, and by several of them only when they agree', async () => {
  const payer = await world.payer(1)
  const [first, second] = [await world.pay(payer, '/api/run', joke), await world.pay(payer, '/api/run', joke)]
  const settle = (body: unknown) => world.post('/api/settle', body)
  const { settlement_id } = first.answer.body.settlement
  const { run_id } = first.answer.body
  const payment_payload = decodePayload(first.payment)
  for (const selector of [
    { settlement_id },
    { run_id },
    { payment_payload },
    { settlement_id, run_id, payment_payload },
  ]) {
    const response = await settle(selector)
    expect(response.status, response.text).toBe(200)
    expect(response.body).toMatchObject({ settlement_id, run_id, status: 'settled', refund: null, wallet_id: null })
  }
  expect((await settle({ settlement_id, payment_payload: decodePayload(second.payment) })).status).toBe(409)
  expect((await settle({ settlement_id, run_id: second.answer.body.run_id })).status).toBe(404)
  expect((await settle({ payment_payload: { x402Version: 2 } })).status).toBe(400)
  expect((await settle({})).status).toBe(400)
  expect((await settle({ preauth_id: 'pa_nothing' })).status).toBe(404)
  // The nonce alone is not enough: the signature must match.
  const forged = structuredClone(payment_payload)
  forged.payload.signature = `0x${'1'.repeat(130)}`
  expect((await settle({ payment_payload: forged })).status).toBe(409)
})

test('a tenant finds the settlement of its pre-authorised run, and another tenant does not', async () => {
  const [tenant, stranger] = [await world.onboard(), await world.onboard()]
  const preauthRequest = { agent_id: 'comedian-v1', merchant: { id: 'countersign' }, amount_usdc: 0.01 }
  const { body: preauth, text } = await world.post('/api/pre-auth', preauthRequest, tenant.headers)
  expect(preauth.token, text).toBeTruthy()
  const { preauth_id } = preauth
  expect((await world.post('/api/settle', { preauth_id }, tenant.headers)).status).toBe(404)
  const payer = await world.payer(1)
  const { answer } = await world.pay(payer, '/api/run', { ...joke, preauth_token: preauth.token }, tenant.headers)
  expect(answer.status, answer.text).toBe(200)
  const response = await world.post('/api/settle', { preauth_id }, tenant.headers)
  expect(response.body, response.text).toMatchObject({ run_id: answer.body.run_id, status: 'settled' })
  expect((await world.post('/api/settle', { preauth_id }, stranger.headers)).status).toBe(404)
  expect((await world.post('/api/settle', { preauth_id })).status).toBe(404)
})

test('settlements are listed by state, way to pay and time', async () => {
  const tenant = await world.tenantWithWallet(0.1)
  const body = { task: 'Tell me a joke.', agent_id: 'comedian-v1' }
  const ids = async (query: string) => {
    const answer = await world.get(`/api/settlements?limit=100${query}`, tenant.headers)
    expect(answer.status, answer.text).toBe(200)
    return answer.body.settlements.map(({ run_id }: { run_id: string }) => run_id)
  }
  const [topUp] = await ids('')
  const byWallet = await world.post('/api/run', { ...body, payment: { wallet_id: tenant.walletId } }, tenant.headers)
  world.advance(60_000)
  const between = new Date(Date.now() + 90_000_000).toISOString()
  world.advance(90_000_000)
  const { answer: byX402 } = await world.pay(tenant.payer, '/api/run', body, tenant.headers)
  const [wallet, x402] = [byWallet.body.run_id, byX402.body.run_id]
  expect(await ids('&method=wallet')).toEqual([wallet])
  expect(await ids('&method=x402')).toEqual([x402, topUp])
  expect(await ids('&state=settled')).toEqual([x402, wallet, topUp])
  expect(await ids('&state=unknown')).toEqual([])
  expect(await ids(`&since=${between}`)).toEqual([x402])
  expect(await ids(`&until=${between}`)).toEqual([wallet, topUp])
  expect(await ids(`&until=${between}&method=wallet&state=settled`)).toEqual([wallet])
  expect(await ids(`&run_id=${wallet}&method=x402`)).toEqual([])
  expect(await ids(`&run_id=${wallet}&since=${between}`)).toEqual([])
  expect((await world.get('/api/settlements?method=cash', tenant.headers)).status).toBe(400)
})
