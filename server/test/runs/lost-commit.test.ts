import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkBooks } from '../../src/modules/ledger/check-books.ts'
import { richTenant, type Tenant } from '../governance/world.ts'
import { createTestDatabase, readChallenge, signPayment, startService, type TestService } from '../harness.ts'
import { type AnswerCuttingProxy, startAnswerCuttingProxy } from '../postgres/answer-cutting-proxy.ts'

/** A step is committed and the connection is lost before its answer: nobody knows whether it happened. */
let database: Awaited<ReturnType<typeof createTestDatabase>>
let proxy: AnswerCuttingProxy
let service: TestService
let tenant: Tenant
let differences: unknown[]
beforeAll(async () => {
  database = await createTestDatabase()
  proxy = await startAnswerCuttingProxy(database.url)
  service = await startService({ databaseUrl: proxy.url, env: { BACKGROUND_WORK: 'off' } })
  tenant = await richTenant(service)
  // The wallet of the test was filled past the ledger.
  differences = await findDifferences()
})
afterAll(async () => {
  await service?.close()
  await proxy?.close()
  await database?.drop()
})

const countOf = async (table: 'runs' | 'receipts' | 'escrows' | 'wallets') =>
  Number(
    (
      await service.db
        .selectFrom(table)
        .select((each) => each.fn.countAll<bigint>().as('count'))
        .execute()
    )[0]!.count,
  )

const findDifferences = async () =>
  (await checkBooks(service.db)).flatMap((check) =>
    check.differences.map(({ subject, found, expected }) => ({ subject, gap: BigInt(found) - BigInt(expected) })),
  )

describe('a lost answer to a commit', () => {
  test.each(['admit_runs', 'keep_runs', 'complete_runs'])(
    'of %s: an x402 run is done and charged once',
    async (step) => {
      const body = { task: `Tell a joke about ${step}.`, agent_id: 'comedian-v1' }
      const payer = await service.payer(1)
      const payment = await signPayment(payer, readChallenge((await service.post('/api/run', body)).headers))
      const before = { runs: await countOf('runs'), receipts: await countOf('receipts'), cuts: proxy.cuts() }
      proxy.cutAnswerTo(`"${step}"`)
      const answer = await service.post('/api/run', body, payment)
      expect(answer.status, answer.text).toBe(200)
      expect(proxy.cuts()).toBe(before.cuts + 1)
      expect(answer.body.settlement).toMatchObject({ status: 'settled' })
      expect(await service.balance(payer.address)).toBe(990_000n)
      expect([await countOf('runs'), await countOf('receipts')]).toEqual([before.runs + 1, before.receipts + 1])
      const again = await service.post('/api/run', body, payment)
      expect([again.status, again.body.run_id]).toEqual([200, answer.body.run_id])
      expect(await service.balance(payer.address)).toBe(990_000n)
      expect(await findDifferences()).toEqual(differences)
    },
  )

  test.each([
    ['complete_at_once', {}],
    // A run of a session reads its memory, so it is admitted first.
    ['admit_runs', { session_id: 'ses_lost' }],
    ['complete_runs', { session_id: 'ses_lost' }],
  ])('of %s: a wallet-paid run is done and charged once', async (step, changes) => {
    const readWallet = () =>
      service.db
        .selectFrom('wallets')
        .select(['available_micro', 'reserved_micro'])
        .where('id', '=', tenant.walletId)
        .executeTakeFirstOrThrow()
    const body = {
      task: `Tell a joke about a wallet and ${step}.`,
      agent_id: 'comedian-v1',
      payment: { wallet_id: tenant.walletId },
      ...changes,
    }
    const before = { runs: await countOf('runs'), wallet: await readWallet(), cuts: proxy.cuts() }
    proxy.cutAnswerTo(`"${step}"`)
    const answer = await service.post('/api/run', body, { ...tenant.headers, 'idempotency-key': `lost-${step}` })
    expect(answer.status, answer.text).toBe(200)
    expect(proxy.cuts()).toBe(before.cuts + 1)
    expect(await countOf('runs')).toBe(before.runs + 1)
    const { available_micro, reserved_micro } = before.wallet
    expect(await readWallet()).toEqual({ available_micro: available_micro - 10_000n, reserved_micro })
    expect(await findDifferences()).toEqual(differences)
  })

  test('of an interactive transaction: the caller is told that it may have been done, and the same key gets the stored answer', async () => {
    const headers = { ...tenant.headers, 'idempotency-key': 'lost-wallet' }
    const before = { wallets: await countOf('wallets'), cuts: proxy.cuts() }
    proxy.cutAnswerTo('Q\0\0\0\x0bcommit\0')
    const lost = await service.post('/api/wallets', { name: 'second' }, headers)
    expect(proxy.cuts()).toBe(before.cuts + 1)
    expect(lost, lost.text).toMatchObject({ status: 503, body: { code: 'unavailable', retryable: true } })
    expect(lost.headers.get('retry-after')).toBe('2')
    expect(lost.body.message).toMatch(/may have been done/)
    const again = await service.post('/api/wallets', { name: 'second' }, headers)
    expect(again.status, again.text).toBeLessThan(300)
    expect(await countOf('wallets')).toBe(before.wallets + 1)
  })

  test('of a read: it is read again, and the caller notices nothing', async () => {
    const before = proxy.cuts()
    proxy.cutAnswerTo('from "wallets"')
    const answer = await service.get('/api/wallets', tenant.headers)
    expect(proxy.cuts()).toBe(before + 1)
    expect(answer.status, answer.text).toBe(200)
  })
})
