import { ExactEvmScheme } from '@x402/evm'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { test } from 'vitest'
import { createTestDatabase, readJson, startService } from '../harness.ts'
import { startAnswerCuttingProxy } from '../postgres/answer-cutting-proxy.ts'

/**
 * A step of an x402 run is committed, its reply is lost, and the database stays away for longer than a step is tried
 * again. The caller's client is the official one, which can only sign another payment.
 */
const OUTAGE_MS = 23_000
const PRICE = 10_000n

test.concurrent.for(['keep_runs', 'complete_runs'])(
  'after a lost reply to %s and a long outage an official client that repeats its call pays once',
  { timeout: 300_000 },
  async (step, { expect }) => {
    const database = await createTestDatabase()
    const proxy = await startAnswerCuttingProxy(database.url)
    const service = await startService({ databaseUrl: proxy.url, env: { BACKGROUND_WORK: 'off' } })
    try {
      const tenant = await service.onboard()
      const payer = await service.payer(1)
      const pay = wrapFetchWithPayment(fetch, new x402Client().register('eip155:8453', new ExactEvmScheme(payer)))
      const send = async () => {
        const response = await pay(`${service.url}/api/run`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...tenant.headers },
          body: JSON.stringify({ task: `Tell a joke about ${step}.`, agent_id: 'comedian-v1' }),
        })
        return { status: response.status, body: await readJson(response) }
      }
      proxy.cutAnswerAndLeave(`"${step}"`)
      const first = send()
      await new Promise((over) => setTimeout(over, OUTAGE_MS))
      const lost = await first
      expect(lost).toMatchObject({ status: 503, body: { charged: null, retryable: true } })
      expect(lost.body.message).toMatch(/not known whether the payment will be taken/)
      expect(proxy.cuts()).toBe(1)

      proxy.comeBack()
      const noted = () => service.db.selectFrom('unanswered_payments').select('run_id').execute()
      await expect.poll(noted, { timeout: 60_000 }).toEqual([{ run_id: lost.body.run_id }])
      if (step === 'keep_runs') {
        expect(await send()).toMatchObject({ status: 409, body: { retryable: true } })
        // The embedded chain was lost with the database and is taken up again.
        const settle = () => service.post('/api/settle', { run_id: lost.body.run_id }, tenant.headers)
        await expect.poll(async () => (await settle()).body.status, { timeout: 60_000, interval: 500 }).toBe('settled')
      }
      expect(await send()).toMatchObject({ status: 200, body: { run_id: lost.body.run_id, status: 'completed' } })
      const balance = () => service.balance(payer.address).catch(() => undefined)
      await expect.poll(balance, { timeout: 60_000, interval: 500 }).toBe(1_000_000n - PRICE)
      // The answer was delivered: asking once more buys once more.
      expect(await noted()).toEqual([])
      expect((await send()).body.run_id).not.toBe(lost.body.run_id)
      expect(await service.balance(payer.address)).toBe(1_000_000n - 2n * PRICE)
    } finally {
      await service.close()
      await proxy.close()
      await database.drop()
    }
  },
)
