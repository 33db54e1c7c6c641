import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const joke = { task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }
const payloadOf = (payment: { 'payment-signature': string }) =>
  JSON.parse(Buffer.from(payment['payment-signature'], 'base64').toString())

test('a settlement is found by its id, its run, its payment, and by them only when they agree', async () => {
  const payer = await world.payer(1)
  const [one, other] = [await world.pay(payer, '/api/run', joke), await world.pay(payer, '/api/run', joke)]
  const settle = (body: unknown) => world.post('/api/settle', body)
  const { settlement_id } = one.answer.body.settlement
  const { run_id } = one.answer.body
  const payment_payload = payloadOf(one.payment)
  for (const named of [
    { settlement_id },
    { run_id },
    { payment_payload },
    { settlement_id, run_id, payment_payload },
  ]) {
    const found = await settle(named)
    expect(found.status, found.text).toBe(200)
    expect(found.body).toMatchObject({ settlement_id, run_id, status: 'settled', refund: null, wallet_id: null })
  }
  expect((await settle({ settlement_id, payment_payload: payloadOf(other.payment) })).status).toBe(409)
  expect((await settle({ settlement_id, run_id: other.answer.body.run_id })).status).toBe(404)
  expect((await settle({ payment_payload: { x402Version: 2 } })).status).toBe(400)
  expect((await settle({})).status).toBe(400)
  expect((await settle({ preauth_id: 'pa_nothing' })).status).toBe(404)
  // Knowing a nonce is not enough: it takes the signature.
  const forged = structuredClone(payment_payload)
  forged.payload.signature = `0x${'1'.repeat(130)}`
  expect((await settle({ payment_payload: forged })).status).toBe(409)
})

test('a tenant finds the settlement of its pre-authorised run, and a stranger does not', async () => {
  const [tenant, stranger] = [await world.onboard(), await world.onboard()]
  const asked = { agent_id: 'comedian-v1', merchant: { id: 'countersign' }, amount_usdc: 0.01 }
  const { body: preauth, text } = await world.post('/api/pre-auth', asked, tenant.headers)
  expect(preauth.token, text).toBeTruthy()
  const { preauth_id } = preauth
  expect((await world.post('/api/settle', { preauth_id }, tenant.headers)).status).toBe(404)
  const payer = await world.payer(1)
  const { answer } = await world.pay(payer, '/api/run', { ...joke, preauth_token: preauth.token }, tenant.headers)
  expect(answer.status, answer.text).toBe(200)
  const found = await world.post('/api/settle', { preauth_id }, tenant.headers)
  expect(found.body, found.text).toMatchObject({ run_id: answer.body.run_id, status: 'settled' })
  expect((await world.post('/api/settle', { preauth_id }, stranger.headers)).status).toBe(404)
  expect((await world.post('/api/settle', { preauth_id })).status).toBe(404)
})
