import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRunReads } from '../../src/modules/runs/runs.store.ts'
import { readChallenge, signPayment } from '../harness.ts'
import { startWorld, type World } from './world.ts'

let world: World

beforeAll(async () => {
  world = await startWorld()
}, 120_000)

afterAll(() => world?.close())

const runBody = { task: 'Greet the new customer by name.', agent_id: 'support-v1' }
const paidCalls = [
  { path: '/api/run', body: runBody },
  { path: '/api/loop', body: { input: 'Greet the new customer by name.' } },
]

describe('a stored answer', () => {
  test.each(paidCalls)('of a tenant at $path goes to that tenant alone', async ({ path, body }) => {
    const [owner, stranger] = await Promise.all([world.onboard(), world.onboard()])
    const { payment, answer } = await world.pay(await world.payer(1), path, body, owner.headers)
    expect(answer.status).toBe(200)

    // The signature stands in calldata, so whoever guesses the task can send the same request.
    for (const headers of [stranger.headers, {}]) {
      const refused = await world.post(path, body, { ...headers, ...payment })
      expect(refused.status).toBe(409)
      expect(refused.body).toMatchObject({ error: 'error', code: 'payment_used' })
      expect(refused.headers.get('payment-response')).toBeNull()
      for (const secret of [answer.body.run_id, answer.body.output, answer.body.receipt.receipt_id])
        expect(refused.text).not.toContain(secret)
      const other = await world.post(path, { ...body, session_id: 'another' }, { ...headers, ...payment })
      expect([other.status, other.body.code]).toEqual([409, 'payment_used'])
      expect(other.body.message).toBe(refused.body.message)
    }

    expect((await world.post(path, body, { ...owner.headers, ...payment })).text).toBe(answer.text)
    const conflict = await world.post(path, { ...body, session_id: 'another' }, { ...owner.headers, ...payment })
    expect([conflict.status, conflict.body.code]).toEqual([409, 'conflict'])
  })

  test('of a guest goes to whoever brings the same signed payment', async () => {
    const payer = await world.payer(1)
    const challenge = readChallenge((await world.post('/api/run', runBody)).headers)
    const nonce = `0x${'5a'.repeat(32)}`
    const payment = await signPayment(payer, challenge, { nonce })
    const answer = await world.post('/api/run', runBody, payment)
    expect(answer.status).toBe(200)
    const tenant = await world.onboard()
    for (const headers of [{}, tenant.headers])
      expect((await world.post('/api/run', runBody, { ...headers, ...payment })).text).toBe(answer.text)

    // Far from the end that `signPayment` chooses, so that the two signatures differ in whatever second each is made.
    const validBefore = BigInt(Math.floor(Date.now() / 1000) + 240)
    const sameNonce = await signPayment(payer, challenge, { nonce, validBefore })
    const refused = await world.post('/api/run', runBody, sameNonce)
    expect([refused.status, refused.body.code]).toEqual([409, 'payment_used'])
    expect(refused.text).not.toContain(answer.body.run_id)
  })

  test('that is not there yet is not announced to a stranger either', async () => {
    const owner = await world.onboard()
    const challenge = readChallenge((await world.post('/api/run', runBody, owner.headers)).headers)
    const payment = await signPayment(await world.payer(1), challenge)
    let work = () => {}
    const working = new Promise<void>((resolve) => {
      world.setLane(async () => {
        resolve()
        await new Promise<void>((done) => {
          work = done
        })
        return undefined
      })
    })
    const pending = world.post('/api/run', runBody, { ...owner.headers, ...payment })
    await working
    const stranger = await world.post('/api/run', runBody, payment)
    const own = await world.post('/api/run', runBody, { ...owner.headers, ...payment })
    world.setLane(undefined)
    work()
    expect([stranger.status, stranger.body.code, stranger.headers.get('retry-after')]).toEqual([
      409,
      'payment_used',
      null,
    ])
    expect([own.status, own.body.code]).toEqual([409, 'conflict'])
    expect((await pending).status).toBe(200)
  })

  test('of a top-up goes to the tenant of the wallet alone', async () => {
    const owner = await world.tenantWithWallet(0)
    const stranger = await world.tenantWithWallet(0)
    const path = `/api/wallets/${owner.walletId}/topup`
    const { payment, answer } = await world.pay(owner.payer, path, { amount_usdc: 0.5 }, owner.headers)
    expect(answer.status).toBe(200)
    expect((await world.post(path, { amount_usdc: 0.5 }, { ...stranger.headers, ...payment })).status).toBe(404)
    const elsewhere = await world.post(
      `/api/wallets/${stranger.walletId}/topup`,
      { amount_usdc: 0.5 },
      { ...stranger.headers, ...payment },
    )
    expect([elsewhere.status, elsewhere.body.code]).toEqual([409, 'payment_used'])
    expect(elsewhere.text).not.toContain(answer.body.run_id)
    expect((await world.post(path, { amount_usdc: 0.5 }, { ...owner.headers, ...payment })).text).toBe(answer.text)
  })
})

test('the run of a nonce is found by its network and asset too: another token may use the same nonce', async () => {
  const payer = await world.payer(1)
  const nonce = `0x${'6b'.repeat(32)}`
  const challenge = readChallenge((await world.post('/api/run', runBody)).headers)
  const answer = await world.post('/api/run', runBody, await signPayment(payer, challenge, { nonce }))
  expect(answer.status).toBe(200)
  const { network, asset } = challenge.accepts[0]
  const authorization = { payer: payer.address.toLowerCase(), nonce }
  const { findRunOfNonce } = createRunReads(world.db)
  const others = [{ network: 'eip155:84532' }, { asset: `0x${'11'.repeat(20)}` }, { nonce: `0x${'6c'.repeat(32)}` }]
  const variants = [...others, {}, { asset: asset.toUpperCase().replace('X', 'x') }, ...others]
  const runIds = await Promise.all(
    variants.map((other) => findRunOfNonce({ ...authorization, network, asset, ...other })),
  )
  const { run_id: runId } = answer.body
  expect(runIds).toEqual([undefined, undefined, undefined, runId, runId, undefined, undefined, undefined])
})
