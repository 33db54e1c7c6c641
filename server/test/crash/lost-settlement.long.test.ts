import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { createTestDatabase, readChallenge, signPayment, spawnService } from '../harness.ts'

/** The facilitator mines the payment and destroys the socket before it answers: the client is charged once and gets its response. */
const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of cleanups.splice(0).reverse()) await stop()
})

async function spawnFacilitator(upstream: string): Promise<string> {
  const child: ChildProcess = spawn(process.execPath, [join(import.meta.dirname, 'facilitator-process.ts')], {
    env: { ...process.env, UPSTREAM: `${upstream}/facilitator`, FAULT: 'destroy' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  cleanups.push(async () => child.kill())
  return new Promise((resolve) =>
    child.stdout!.on('data', (chunk: Buffer) => resolve(/http:\S+/.exec(String(chunk))![0])),
  )
}

for (const chainAccess of ['with a chain RPC', 'with only the facilitator'] as const) {
  test(`a lost settlement answer is not charged twice, ${chainAccess}`, async () => {
    const databases = await Promise.all([createTestDatabase(), createTestDatabase()])
    for (const database of databases) cleanups.push(database.drop)
    const chain = await spawnService({ DATABASE_URL: databases[0]!.url })
    cleanups.push(() => chain.stop())
    const facilitator = await spawnFacilitator(chain.url)
    const payee = '0x00000000000000000000000000000000000000ab'
    const seller = await spawnService({
      DATABASE_URL: databases[1]!.url,
      FACILITATOR_URL: facilitator,
      PAY_TO_ADDRESS: payee,
      ...(chainAccess === 'with a chain RPC' && { CHAIN_RPC_URL: `${chain.url}/api/dev/rpc` }),
    })
    cleanups.push(() => seller.stop())
    const payer = await chain.payer(1)
    const body = { task: 'Say hello.', agent_id: 'comedian-v1' }
    const header = await signPayment(payer, readChallenge((await seller.post('/api/run', body)).headers))

    const first = await seller.post('/api/run', body, header)
    expect(first.status, first.text).toBe(503)
    expect(first.body).toMatchObject({ charged: null, retryable: true, request_id: expect.stringMatching(/^req_/) })
    expect(first.headers.get('retry-after')).toBeTruthy()
    expect(await chain.balance(payee)).toBe(10_000n)

    let response = first
    for (let tries = 0; tries < 400 && response.status !== 200; tries++) {
      await new Promise((resume) => setTimeout(resume, 100))
      response = await seller.post('/api/run', body, header)
      expect([200, 409, 503], response.text).toContain(response.status)
    }
    expect(response.status, response.text).toBe(200)
    expect(response.body.settlement).toMatchObject({ status: 'settled', payer: payer.address.toLowerCase() })
    expect(await chain.balance(payee)).toBe(10_000n)
    expect(await chain.balance(payer.address)).toBe(990_000n)
  })
}
