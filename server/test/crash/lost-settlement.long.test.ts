import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { createTestDatabase, readChallenge, signPayment, spawnService } from '../harness.ts'

/** The facilitator mines the payment and destroys the socket: never a second charge, and the same payment gets its answer. */
const started: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of started.splice(0).reverse()) await stop()
})

async function spawnFacilitator(upstream: string): Promise<string> {
  const child: ChildProcess = spawn(process.execPath, [join(import.meta.dirname, 'facilitator-process.ts')], {
    env: { ...process.env, UPSTREAM: `${upstream}/facilitator`, FAULT: 'destroy' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  started.push(async () => child.kill())
  return new Promise((found) => child.stdout!.on('data', (said: Buffer) => found(/http:\S+/.exec(String(said))![0])))
}

for (const reads of ['with the chain at hand', 'with nothing but the facilitator'] as const) {
  test(`a socket destroyed after mining, ${reads}`, async () => {
    const databases = await Promise.all([createTestDatabase(), createTestDatabase()])
    for (const database of databases) started.push(database.drop)
    const chain = await spawnService({ DATABASE_URL: databases[0]!.url })
    started.push(() => chain.stop())
    const facilitator = await spawnFacilitator(chain.url)
    const payee = '0x00000000000000000000000000000000000000ab'
    const seller = await spawnService({
      DATABASE_URL: databases[1]!.url,
      FACILITATOR_URL: facilitator,
      PAY_TO_ADDRESS: payee,
      ...(reads === 'with the chain at hand' && { CHAIN_RPC_URL: `${chain.url}/api/dev/rpc` }),
    })
    started.push(() => seller.stop())
    const payer = await chain.payer(1)
    const body = { task: 'Say hello.', agent_id: 'comedian-v1' }
    const header = await signPayment(payer, readChallenge((await seller.post('/api/run', body)).headers))

    const first = await seller.post('/api/run', body, header)
    expect(first.status, first.text).toBe(503)
    expect(first.body).toMatchObject({ charged: null, retryable: true, request_id: expect.stringMatching(/^req_/) })
    expect(first.headers.get('retry-after')).toBeTruthy()
    expect(await chain.balance(payee)).toBe(10_000n)

    let answer = first
    for (let tries = 0; tries < 100 && answer.status !== 200; tries++) {
      await new Promise((resume) => setTimeout(resume, 100))
      answer = await seller.post('/api/run', body, header)
      expect([200, 409, 503], answer.text).toContain(answer.status)
    }
    expect(answer.status, answer.text).toBe(200)
    expect(answer.body.settlement).toMatchObject({ status: 'settled', payer: payer.address.toLowerCase() })
    expect(await chain.balance(payee)).toBe(10_000n)
    expect(await chain.balance(payer.address)).toBe(990_000n)
  })
}
