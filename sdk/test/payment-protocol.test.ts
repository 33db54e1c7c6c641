import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { failingLane } from '../../server/test/money/world.ts'
import { memoryStore } from '../src/call-store.ts'
import {
  type CallStore,
  createClient,
  createDevelopmentAccount,
  IdempotencyKeyReused,
  PaymentRefused,
  PaymentRejected,
  PaymentRequired,
  RunFailed,
  SettlementUnknown,
  StoreFailed,
} from '../src/client.ts'
import { fileStore } from '../src/file-store.ts'
import { payingFetch } from '../src/pay.ts'
import type { Fault } from './fault-proxy.ts'
import { changeTerms, firstPaid, type PayingWorld, PRICE, REQUEST, reject, startPayingWorld } from './paying-world.ts'

let paying: PayingWorld
let world: PayingWorld['world']
let proxy: PayingWorld['proxy']
let startPayer: PayingWorld['startPayer']
beforeAll(async () => {
  paying = await startPayingWorld()
  ;({ world, proxy, startPayer } = paying)
}, 120_000)
afterAll(() => paying?.close())
afterEach(() => {
  proxy.setFault(() => 'none')
  world.setLane(undefined)
})

describe('the same payment is sent again, and no second one is signed,', () => {
  const faults: [string, Fault][] = [
    ['when the answer is 503 after the payment was settled', '503-after'],
    ['when the answer is 503 before anything was done', '503-before'],
    ['when the connection drops after the payment was settled', 'drop-after'],
    ['when the connection drops before the request arrived', 'drop-before'],
    ['when half of the answer arrives', 'cut-after'],
    ['when the answer is an internal error', { status: 500, body: { error: 'error', code: 'internal' } }],
    ['when the answer is 504 of a gateway', { status: 504, body: 'gateway' }],
    ['when the answer is a 200 that is not JSON', { rewrite: (body) => body.slice(0, 40) }],
  ]
  test.each(faults)('%s', async (_, fault) => {
    proxy.setFault(firstPaid(fault, 2))
    const payer = await startPayer()
    const { output, run, receipt } = await payer.createClient().run(REQUEST)
    expect([output, run.status, receipt.verified]).toEqual([expect.any(String), 'completed', true])
    expect([payer.signatures(), await payer.spent()]).toEqual([1, PRICE])
    const paid = proxy.requests.filter((request) => request.paid)
    expect(paid).toHaveLength(3)
    expect(new Set(paid.map(({ headers }) => headers['payment-signature'])).size).toBe(1)
    expect(
      new Set(proxy.requests.filter(({ path }) => path === '/api/run').map(({ headers }) => headers['idempotency-key']))
        .size,
    ).toBe(1)
  })

  test('when the service takes longer than the client waits for one response', async () => {
    world.setLane(async () => {
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      return undefined
    })
    const payer = await startPayer()
    const { run } = await payer.createClient({ timeoutMs: 400 }).run(REQUEST)
    expect([run.status, payer.signatures(), await payer.spent()]).toEqual(['completed', 1, PRICE])
  })

  test('by a second client after the first gave up, with the file store that they share', async () => {
    const folder = paying.temporaryFolder()
    const payer = await startPayer()
    proxy.setFault(({ paid }) => (paid ? 'drop-after' : 'none'))
    const error = await reject(
      payer.createClient({ store: fileStore(folder) }).run(REQUEST, { idempotencyKey: 'order-1', deadlineMs: 3_000 }),
    )
    expect(error).toBeInstanceOf(SettlementUnknown)
    expect(error).toMatchObject({ idempotencyKey: 'order-1', retryable: true, validBefore: expect.any(Date) })
    expect(await payer.spent()).toBe(PRICE)

    proxy.setFault(() => 'none')
    const second = payer.createClient({ store: fileStore(folder) })
    const { run, replayed } = await second.run(REQUEST, { idempotencyKey: 'order-1' })
    expect([run.status, replayed, payer.signatures(), await payer.spent()]).toEqual(['completed', true, 1, PRICE])
    const again = await second.run(REQUEST, { idempotencyKey: 'order-1' })
    expect([again.run.run_id, payer.signatures()]).toEqual([run.run_id, 1])
  })

  test('by resume() after a restart, which signs nothing and forgets the task once it has the answer', async () => {
    const folder = paying.temporaryFolder()
    const payer = await startPayer()
    proxy.setFault(({ paid }) => (paid ? '503-after' : 'none'))
    await reject(payer.createClient({ store: fileStore(folder) }).run(REQUEST, { deadlineMs: 300 }))
    proxy.setFault(() => 'none')
    const restarted = createClient({ baseUrl: `${proxy.url}/`, store: fileStore(folder) })
    const [resumed, ...others] = await restarted.resume()
    expect(others).toEqual([])
    expect(resumed).toMatchObject({ kind: 'run', result: { run: { status: 'completed' }, replayed: true } })
    expect([payer.signatures(), await payer.spent()]).toEqual([1, PRICE])
    expect(await restarted.resume()).toEqual([])
    const files = readdirSync(folder)
    expect(files).toHaveLength(1)
    expect(readFileSync(join(folder, files[0]!), 'utf8')).not.toContain('Say hello')
    expect(statSync(join(folder, files[0]!)).mode & 0o077).toBe(0)
  })

  test('by ten calls at once with one key, in one client and in three that share a folder', async () => {
    const folder = paying.temporaryFolder()
    const payer = await startPayer()
    proxy.setFault(firstPaid('drop-after', 2))
    const clients = [1, 2, 3].map(() => payer.createClient({ store: fileStore(folder) }))
    const calls = Array.from({ length: 10 }, (_, i) => clients[i % 3]!.run(REQUEST, { idempotencyKey: 'together' }))
    const results = await Promise.all(calls)
    expect(new Set(results.map(({ run }) => run.run_id)).size).toBe(1)
    expect(await payer.spent()).toBe(PRICE)
    const sent = proxy.requests.flatMap(({ headers }) => headers['payment-signature'] ?? [])
    expect(new Set(sent).size).toBe(1)
  })

  test('when the caller aborts: the error says that the payment may have counted', async () => {
    const payer = await startPayer()
    const controller = new AbortController()
    proxy.setFault(({ paid }) => {
      if (paid) setTimeout(() => controller.abort(), 300)
      return paid ? '503-after' : 'none'
    })
    const client = payer.createClient()
    const error = await reject(client.run(REQUEST, { signal: controller.signal }))
    expect(error).toBeInstanceOf(SettlementUnknown)
    proxy.setFault(() => 'none')
    const { run } = await client.run(REQUEST, { idempotencyKey: (error as SettlementUnknown).idempotencyKey })
    expect([run.status, payer.signatures(), await payer.spent()]).toEqual(['completed', 1, PRICE])
  })

  test('from a wallet: the same key, one run, one charge', async () => {
    const tenant = await world.tenantWithWallet(1)
    let seen = 0
    proxy.setFault(({ path }) => (path === '/api/run' && seen++ < 2 ? 'drop-after' : 'none'))
    const client = createClient({ baseUrl: proxy.url, apiKey: `${tenant.apiKey}\n`, walletId: tenant.walletId })
    const { run, receipt } = await client.run(REQUEST)
    expect([run.status, receipt.verified, seen]).toEqual(['completed', true, 3])
    expect((await world.balanceOf(tenant)).available).toBe('990000')
  })
})

describe('what the store promises', () => {
  test('the payment is on the disk before it is sent', async () => {
    const folder = paying.temporaryFolder()
    const payer = await startPayer()
    let wasStored = false
    proxy.setFault(({ paid, headers }) => {
      if (paid)
        wasStored = readdirSync(folder).some((file) =>
          readFileSync(join(folder, file), 'utf8').includes(String(headers['payment-signature'])),
        )
      return 'none'
    })
    await payer.createClient({ store: fileStore(folder) }).run(REQUEST)
    expect(wasStored).toBe(true)
  })

  test('a store that cannot be written: nothing is signed, nothing is sent', async () => {
    const payer = await startPayer()
    const store: CallStore = { ...memoryStore(), create: async () => Promise.reject(new Error('disk full')) }
    const error = await reject(payer.createClient({ store }).run(REQUEST))
    expect(error).toBeInstanceOf(StoreFailed)
    expect([payer.signatures(), proxy.requests.length]).toEqual([0, 0])
  })

  test('a store that fails with the payment in hand: what was signed is not sent', async () => {
    const payer = await startPayer()
    const memory = memoryStore()
    const create = (name: string, value: string) =>
      name.includes(' attempt-') ? Promise.reject(new Error('disk full')) : memory.create(name, value)
    const error = await reject(payer.createClient({ store: { ...memory, create } }).run(REQUEST))
    expect(error).toBeInstanceOf(StoreFailed)
    expect(proxy.requests.filter(({ paid }) => paid)).toEqual([])
    expect(await payer.spent()).toBe(0n)
  })

  test('an answer is returned even if the store cannot be told', async () => {
    const payer = await startPayer()
    const memory = memoryStore()
    const create = (name: string, value: string) =>
      name.includes(' outcome ') ? Promise.reject(new Error('disk full')) : memory.create(name, value)
    const { run } = await payer.createClient({ store: { ...memory, create } }).run(REQUEST)
    expect(run.status).toBe('completed')
  })

  test('a key of another request is refused before anything is sent, also after a restart', async () => {
    const folder = paying.temporaryFolder()
    const payer = await startPayer()
    await payer.createClient({ store: fileStore(folder) }).run(REQUEST, { idempotencyKey: 'one' })
    proxy.setFault(() => 'none')
    const other = payer.createClient({ store: fileStore(folder) })
    expect(await reject(other.run({ ...REQUEST, task: 'Another.' }, { idempotencyKey: 'one' }))).toBeInstanceOf(
      IdempotencyKeyReused,
    )
    expect(proxy.requests).toEqual([])
  })

  test('of fifty processes that create one entry, one wins, and nobody reads half of it', async () => {
    const folder = paying.temporaryFolder()
    const value = 'x'.repeat(100_000)
    const created = await Promise.all(Array.from({ length: 50 }, () => fileStore(folder).create('name', value)))
    expect(created.filter(Boolean)).toHaveLength(1)
    expect(await fileStore(folder).read('name')).toBe(value)
    expect(readdirSync(folder)).toHaveLength(1)
  })
})

describe('nothing is signed', () => {
  const refusals: [string, string, Record<string, unknown>][] = [
    ['for another network', 'network', { network: 'eip155:1' }],
    ['for another token', 'asset', { asset: '0x00000000000000000000000000000000000000ab' }],
    ['for another scheme', 'scheme', { scheme: 'upto' }],
    ['by Permit2, whose nonce is another', 'scheme', { extra: { assetTransferMethod: 'permit2' } }],
    ['above one dollar, without maxUsdc', 'price_above_max', { amount: '1000001' }],
    ['that would be valid for a day', 'validity', { maxTimeoutSeconds: 86_400 }],
    ['for an amount that is not a number', 'scheme', { amount: '0x10' }],
  ]
  test.each(refusals)('%s', async (_, reason, change) => {
    proxy.setFault(() => ({ rewrite: changeTerms(change) }))
    const payer = await startPayer()
    const error = await reject(payer.createClient().run(REQUEST))
    expect(error).toBeInstanceOf(PaymentRefused)
    expect(error).toMatchObject({ reason })
    expect([payer.signatures(), proxy.requests.filter(({ paid }) => paid)]).toEqual([0, []])
  })

  test('above maxUsdc, and for exactly maxUsdc it is', async () => {
    const payer = await startPayer()
    expect(await reject(payer.createClient({ maxUsdc: 0.009999 }).run(REQUEST))).toMatchObject({
      reason: 'price_above_max',
    })
    expect(payer.signatures()).toBe(0)
    await payer.createClient({ maxUsdc: 0.01 }).run(REQUEST)
    expect(await payer.spent()).toBe(PRICE)
  })

  test('for a development chain with a key of the caller’s own', async () => {
    const payer = await startPayer()
    expect(await reject(payer.createClient({ allowDevelopmentChain: false }).run(REQUEST))).toMatchObject({
      name: 'DevelopmentChainRefused',
      reason: 'development_chain',
    })
    expect(payer.signatures()).toBe(0)
  })

  test('when the client has no account', async () => {
    expect(await reject(createClient({ baseUrl: proxy.url }).run(REQUEST))).toBeInstanceOf(PaymentRequired)
  })
})

test('a payment that the service rejects is not replaced; the same one pays once it can', async () => {
  const payer = await startPayer(0n)
  const client = payer.createClient()
  const error = await reject(client.run(REQUEST, { idempotencyKey: 'poor' }))
  expect(error).toBeInstanceOf(PaymentRejected)
  expect(error).toMatchObject({ idempotencyKey: 'poor', reason: expect.stringContaining('insufficient') })
  await paying.fund(payer, PRICE)
  const { run } = await client.run(REQUEST, { idempotencyKey: 'poor' })
  expect([run.status, payer.signatures(), await world.balance(payer.address)]).toEqual(['completed', 1, 0n])
})

test('work that failed is not charged: RunFailed, and its key keeps saying so without another payment', async () => {
  world.setLane(failingLane)
  const payer = await startPayer()
  const client = payer.createClient()
  const error = await reject(client.run(REQUEST, { idempotencyKey: 'broken' }))
  expect(error).toBeInstanceOf(RunFailed)
  expect((error as RunFailed).run).toMatchObject({ charged: false, status: 'failed', receipt: { kind: 'failure' } })
  world.setLane(undefined)
  expect(await reject(client.run(REQUEST, { idempotencyKey: 'broken' }))).toBeInstanceOf(RunFailed)
  expect([payer.signatures(), await payer.spent()]).toEqual([1, 0n])
})

test('the paying fetch sends the same payment when the same request is made again after an open outcome', async () => {
  const account = await createDevelopmentAccount()
  await paying.fund(account, 1_000_000n)
  const pay = await payingFetch(account)
  const send = () =>
    pay(`${proxy.url}/api/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(REQUEST),
    })
  let seen = 0
  proxy.setFault(({ paid }) => (paid ? ((['drop-after', '503-after'] as const)[seen++] ?? 'none') : 'none'))
  await reject(send())
  expect((await send()).status).toBe(503)
  expect((await send()).status).toBe(200)
  expect(await world.balance(account.address)).toBe(1_000_000n - PRICE)
  const sent = proxy.requests.flatMap(({ headers }) => headers['payment-signature'] ?? [])
  expect([sent.length, new Set(sent).size]).toEqual([3, 1])
  // Answered: the next one is another purchase.
  expect((await send()).status).toBe(200)
  expect(await world.balance(account.address)).toBe(1_000_000n - 2n * PRICE)
})

test('a rate limit is waited out as Retry-After says, and a hook hears of it', async () => {
  const payer = await startPayer()
  const limited = { error: 'error', code: 'rate_limited', message: 'Too many requests.', retryable: true }
  proxy.setFault((_, index) => (index === 0 ? { status: 429, headers: { 'retry-after': '1' }, body: limited } : 'none'))
  const retries: number[] = []
  const hooks = {
    onRetry: ({ delayMs }: { delayMs: number }) => {
      retries.push(delayMs)
      throw new Error('A hook that fails changes nothing.')
    },
  }
  const { run } = await payer.createClient({ hooks }).run(REQUEST)
  expect(run.status).toBe('completed')
  expect(retries).toHaveLength(1)
  expect(retries[0]).toBeGreaterThanOrEqual(1_000)
})

test('hooks see each request and payment, and no key, token or signature', async () => {
  const payer = await startPayer()
  const tenant = await world.onboard()
  const events: unknown[] = []
  const note = (event: unknown) => void events.push(event)
  const hooks = { onRequest: note, onResponse: note, onPayment: note }
  await payer.createClient({ apiKey: tenant.apiKey, hooks }).run(REQUEST)
  const signature = proxy.requests.find(({ paid }) => paid)!.headers['payment-signature']
  const text = JSON.stringify(events)
  expect(events).toHaveLength(5)
  expect(text).toContain(payer.address)
  for (const secret of [tenant.apiKey, String(signature), 'Say hello']) expect(text).not.toContain(secret)
})

describe('receipt.verified', () => {
  test('is true for a run, a loop and a top-up, and is not part of the JSON', async () => {
    const payer = await startPayer()
    const tenant = await world.tenantWithWallet(0)
    const client = payer.createClient({ apiKey: tenant.apiKey })
    const results = [
      await client.run({ ...REQUEST, session_id: 'ses-1', tags: { project: 'a' } }),
      await client.loop({ input: 'Say hello.', agent_id: 'comedian-v1' }),
      await client.topUp(tenant.walletId, { amount_usdc: 0.5 }),
    ]
    for (const { receipt } of results) {
      expect(receipt.checks.filter(({ ok }) => ok === false)).toEqual([])
      expect(receipt.checks.map(({ name }) => name)).toEqual(expect.arrayContaining(['signature', 'run', 'payment']))
      expect(receipt.verified).toBe(true)
      expect(JSON.stringify(receipt)).not.toContain('verified":true,"checks')
      expect(Object.keys(receipt)).not.toContain('verified')
    }
    expect(results[0]!.receipt.checks.map(({ name }) => name)).toEqual(expect.arrayContaining(['request', 'output']))
  })

  const changes: [string, string, (answer: { receipt: object }) => unknown][] = [
    ['another output', 'output', (answer) => ({ ...answer, output: 'Bought for you.' })],
    ['another run', 'run', (answer) => ({ ...answer, run_id: 'run_other' })],
    ['a changed receipt', 'signature', (answer) => ({ ...answer, receipt: { ...answer.receipt, agent_id: 'x' } })],
    ['no receipt', 'shape', (answer) => ({ ...answer, receipt: null })],
  ]
  test.each(changes)('is false with %s', async (_, name, change) => {
    const rewrite = (body: string) => JSON.stringify(change(JSON.parse(body)))
    proxy.setFault(({ paid }) => (paid ? { rewrite } : 'none'))
    const payer = await startPayer()
    const { receipt } = await payer.createClient().run(REQUEST)
    expect(receipt.verified).toBe(false)
    expect(receipt.checks.filter(({ ok }) => ok === false).map((check) => check.name)).toContain(name)
  })

  test('is false with keys that are not the issuer’s, and null when it was not verified', async () => {
    const payer = await startPayer()
    const foreign = await payer.createClient({ verify: { jwks: { keys: [] } } }).run(REQUEST)
    expect(foreign.receipt.verified).toBe(false)
    const unverified = await payer.createClient({ verify: false }).run(REQUEST)
    expect(unverified.receipt.verified).toBe(null)
  })
})
