import { verifyReceipt } from '@countersign/proof'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readChallenge, readJson, startService, type TestService } from '../harness.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

const prices = {
  'comedian-v1': 10_000n,
  'writer-v1': 13_000n,
  'support-v1': 11_000n,
  'analyst-v1': 25_000n,
  'coder-v1': 25_000n,
  'strategist-v1': 25_000n,
  'researcher-v2': 23_000n,
  default: 10_000n,
}

const payTo = async () =>
  readChallenge((await service.post('/api/run', { task: 'hello' })).headers).accepts[0].payTo as string

for (const [agentId, price] of Object.entries(prices)) {
  test(`the official client pays for a run on ${agentId}, and exactly its price moves`, async () => {
    const payer = await service.payer(1)
    const payee = await payTo()
    const before = await service.balance(payee)
    const response = await payer.fetch(`${service.url}/api/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ task: 'Say something about 3, 4 and 5.', agent_id: agentId }),
    })
    const run = await readJson(response)
    expect(response.status, JSON.stringify(run)).toBe(200)
    expect(run.agent_id).toBe(agentId)
    expect(run.amount).toBe(price.toString())
    expect(run.execution.mode).toBe('offline')
    expect((await service.balance(payee)) - before).toBe(price)
    expect(await service.balance(payer.address)).toBe(1_000_000n - price)
    const { body: jwks } = await service.get('/.well-known/jwks.json')
    expect(verifyReceipt(run.receipt, { jwks })).toMatchObject({ ok: true })
  })
}
