import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { readChallenge, readJson, signPayment } from '../harness.ts'
import { startModelServer } from '../model-server.ts'
import { startWorld, type World } from '../money/world.ts'

let world: World
let provider: Awaited<ReturnType<typeof startModelServer>>
/** What the model answers. */
let output: string
const REFUSAL = "I'm sorry, but I cannot tell you the capital of France."
const TASK = { task: 'What is the capital of France?', agent_id: 'default' }

beforeAll(async () => {
  provider = await startModelServer({ answerTask: () => ({ text: output }) })
  world = await startWorld({
    LANE_PROVIDER: 'openai-compatible',
    LANE_BASE_URL: provider.url,
    LANE_MODEL: 'm',
    LANE_RETRIES: '0',
  })
})
afterAll(async () => {
  await world.close()
  provider.close()
})
beforeEach(() => {
  output = REFUSAL
})

async function pay(path: string, body: Record<string, unknown>) {
  const payer = await world.payer(1)
  const header = await signPayment(payer, readChallenge((await world.post(path, body)).headers))
  const answer = await world.post(path, body, header)
  return { answer, payer, header, balance: await world.balance(payer.address) }
}

describe('an output that fails a deciding check', () => {
  test('is neither shown nor charged: 500 with the checks, the money stays on the chain, and the receipt says so', async () => {
    const { answer, balance, payer, header } = await pay('/api/run', TASK)
    expect(answer.status, answer.text).toBe(500)
    expect(answer.body).toMatchObject({
      error: 'error',
      status: 'failed',
      stage: 'verify',
      reason: 'verification_failed',
      charged: false,
      receipt: { kind: 'failure', charged: false, output_hash: null, verification: { verified: false, grade: 'F' } },
    })
    expect(answer.body).not.toHaveProperty('output')
    expect(answer.text).not.toContain('capital of France')
    const failed = answer.body.checks.filter((check: { passed: boolean }) => !check.passed)
    expect(failed).toMatchObject([{ name: 'answered', passed: false, decides: true }])
    expect(failed[0].weight).toBeGreaterThan(0)
    expect(failed[0].detail).toMatch(/\w/)
    expect(balance).toBe(1_000_000n)
    expect(answer.body.settlement).toMatchObject({ status: 'failed', transaction: null })
    // The same payment gets the same answer and buys nothing later.
    output = 'Paris is the capital of France.'
    const repeated = await world.post('/api/run', TASK, header)
    expect([repeated.status, repeated.text]).toEqual([500, answer.text])
    expect(await world.balance(payer.address)).toBe(1_000_000n)
  })

  test('is not charged through an unmodified x402 client', async () => {
    const payer = await world.payer(1)
    const response = await payer.fetch(`${world.url}/api/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(TASK),
    })
    expect(response.status).toBe(500)
    expect(await readJson(response)).toMatchObject({ reason: 'verification_failed', charged: false })
    expect(await world.balance(payer.address)).toBe(1_000_000n)
  })

  test('is not charged on /api/loop either', async () => {
    const { answer, balance } = await pay('/api/loop', { input: TASK.task, agent_id: 'default' })
    expect(answer.status, answer.text).toBe(500)
    expect(answer.body).toMatchObject({ stage: 'verify', reason: 'verification_failed', charged: false })
    expect(answer.body).not.toHaveProperty('output')
    expect(balance).toBe(1_000_000n)
  })

  test('leaves a wallet as it was, with and without escrow', async () => {
    for (const escrow of [false, true]) {
      const tenant = await world.tenantWithWallet(0.5)
      const payment = { wallet_id: tenant.walletId, ...(escrow && { escrow }) }
      const answer = await world.post('/api/run', { ...TASK, payment }, tenant.headers)
      expect(answer.status, answer.text).toBe(500)
      expect(answer.body).toMatchObject({ reason: 'verification_failed', charged: false })
      expect(await world.balanceOf(tenant)).toMatchObject({ available: '500000', escrowed: '0' })
      const { invariants } = (await world.get('/api/ledger', tenant.headers)).body
      expect(invariants).toEqual({ balanced: true, wallets_match: true })
      const types = (await world.events(tenant.tenantId)).map((event) => event.type)
      expect(types).toContain('run.failed')
      expect(types).not.toContain('run.completed')
      if (escrow) expect(types).toContain('escrow.refunded')
    }
  })

  test('is not remembered in the session', async () => {
    const tenant = await world.tenantWithWallet(0.5)
    const answer = await world.post(
      '/api/run',
      { ...TASK, session_id: 'refused', options: { write_memory: true }, payment: { wallet_id: tenant.walletId } },
      tenant.headers,
    )
    expect(answer.status).toBe(500)
    const memories = await world.get('/api/memory?session_id=refused', tenant.headers)
    expect(memories.body.memories).toEqual([])
  })
})

describe('options.accept_unverified', () => {
  test('takes and pays for an output that fails, and answer and receipt say so', async () => {
    for (const [path, body] of [
      ['/api/run', TASK],
      ['/api/loop', { input: TASK.task, agent_id: 'default' }],
    ] as const) {
      const { answer, balance } = await pay(path, { ...body, options: { accept_unverified: true } })
      expect(answer.status, answer.text).toBe(200)
      expect(answer.body.output).toBe(REFUSAL)
      expect(answer.body.verification).toMatchObject({ verified: false, grade: 'F', accepted_unverified: true })
      expect(answer.body.receipt.verification).toMatchObject({ verified: false, accepted_unverified: true })
      expect(balance).toBe(1_000_000n - BigInt(answer.body.amount))
    }
  })

  test('releases an escrow for it', async () => {
    const tenant = await world.tenantWithWallet(0.5)
    const answer = await world.post(
      '/api/run',
      { ...TASK, options: { accept_unverified: true }, payment: { wallet_id: tenant.walletId, escrow: true } },
      tenant.headers,
    )
    expect(answer.status, answer.text).toBe(200)
    expect(await world.balanceOf(tenant)).toMatchObject({
      available: String(500_000 - Number(answer.body.amount)),
      escrowed: '0',
    })
  })

  test('changes nothing for an output that passes', async () => {
    output = 'Paris is the capital of France.'
    const { answer } = await pay('/api/run', { ...TASK, options: { accept_unverified: true } })
    expect(answer.body.verification).toMatchObject({ verified: true })
    expect(answer.body.verification).not.toHaveProperty('accepted_unverified')
    expect(answer.body.receipt.verification).not.toHaveProperty('accepted_unverified')
  })

  test('must be a boolean', async () => {
    const response = await world.post('/api/run', { ...TASK, options: { accept_unverified: 'yes' } })
    expect(response.status).toBe(400)
  })
})

test('options.verify: false skips the checks: the run is paid and answer and receipt say verified: null', async () => {
  for (const [path, body] of [
    ['/api/run', TASK],
    ['/api/loop', { input: TASK.task, agent_id: 'default' }],
  ] as const) {
    const { answer, balance } = await pay(path, { ...body, options: { verify: false } })
    expect(answer.status, answer.text).toBe(200)
    expect(answer.body.output).toBe(REFUSAL)
    expect(answer.body.verification).toMatchObject({ verified: null, score: null, grade: null, checks: [] })
    expect(answer.body.receipt.verification).toMatchObject({ verified: null, score: null, grade: null })
    expect(balance).toBe(1_000_000n - BigInt(answer.body.amount))
  }
})

test('an output that passes is charged as before', async () => {
  output = 'Paris is the capital of France.'
  const { answer, balance } = await pay('/api/run', TASK)
  expect(answer.status, answer.text).toBe(200)
  expect(answer.body.verification).toMatchObject({ verified: true })
  expect(balance).toBe(1_000_000n - BigInt(answer.body.amount))
})
