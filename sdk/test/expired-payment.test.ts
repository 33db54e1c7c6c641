import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { memoryStore } from '../src/call-store.ts'
import { PaymentRejected, SettlementUnknown } from '../src/client.ts'
import { changeTerms, type PayingWorld, PRICE, REQUEST, reject, startPayingWorld } from './paying-world.ts'

let paying: PayingWorld
let world: PayingWorld['world']
let proxy: PayingWorld['proxy']
let startPayer: PayingWorld['startPayer']
beforeAll(async () => {
  paying = await startPayingWorld()
  ;({ world, proxy, startPayer } = paying)
}, 120_000)
afterAll(() => paying?.close())
afterAll(() => vi.useRealTimers())
afterEach(() => proxy.setFault(() => 'none'))

const tooSoon = {
  error: 'payment_required',
  reason: 'invalid_exact_evm_payload_authorization_valid_before',
  accepts: [],
}

describe('a payment that has expired', () => {
  // Of client, service and chain alike, and never back: the time of a chain only grows.
  const expire = () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 400_000 })
  }

  test('and was taken: the stored answer comes, and nothing is signed', async () => {
    const store = memoryStore()
    const payer = await startPayer()
    proxy.setFault(({ paid }) => (paid ? 'drop-after' : 'none'))
    await reject(payer.createClient({ store }).run(REQUEST, { idempotencyKey: 'late', deadlineMs: 300 }))
    expect(await payer.spent()).toBe(PRICE)
    proxy.setFault(() => 'none')
    expire()
    const { run } = await payer.createClient({ store }).run(REQUEST, { idempotencyKey: 'late' })
    expect([run.status, payer.signatures(), await payer.spent()]).toEqual(['completed', 1, PRICE])
  })

  test('and never arrived: the service is asked first, then another is signed, to the same payee', async () => {
    const store = memoryStore()
    const payer = await startPayer()
    proxy.setFault(({ paid }) => (paid ? 'drop-before' : 'none'))
    await reject(payer.createClient({ store }).run(REQUEST, { idempotencyKey: 'lost', deadlineMs: 300 }))
    expire()
    const first = proxy.requests.find(({ paid }) => paid)!.headers['payment-signature']
    proxy.setFault(() => 'none')
    const chainRpcUrl = `${world.url}/api/dev/rpc`
    const { run } = await payer.createClient({ store, chainRpcUrl }).run(REQUEST, { idempotencyKey: 'lost' })
    expect([run.status, payer.signatures(), await payer.spent()]).toEqual(['completed', 2, PRICE])
    expect(proxy.requests[0]!.headers['payment-signature']).toBe(first)
  })

  test('and resume() finds that it never arrived: nothing is signed, and the call is forgotten', async () => {
    const store = memoryStore()
    const payer = await startPayer()
    proxy.setFault(({ paid }) => (paid ? 'drop-before' : 'none'))
    await reject(payer.createClient({ store }).run(REQUEST, { deadlineMs: 300 }))
    proxy.setFault(() => 'none')
    expire()
    const client = payer.createClient({ store })
    expect(await client.resume()).toMatchObject([{ kind: 'run', error: expect.any(PaymentRejected) }])
    expect([await client.resume(), await store.names(), payer.signatures()]).toEqual([[], [], 1])
  })

  test('too soon for the service to begin with it is waited out and then replaced, in one call', async () => {
    const payer = await startPayer()
    let paid = 0
    proxy.setFault((request) => {
      if (!request.paid) return 'none'
      paid += 1
      if (paid === 1) setTimeout(expire, 300)
      // An outage that leaves the payment less time than the service wants.
      return paid === 1 ? { status: 402, body: { ...tooSoon } } : 'none'
    })
    const { run } = await payer.createClient().run(REQUEST)
    expect([run.status, payer.signatures(), await payer.spent(), paid]).toEqual(['completed', 2, PRICE, 3])
  })

  test('by the clock of the client alone is not replaced', async () => {
    const store = memoryStore()
    const payer = await startPayer()
    proxy.setFault(({ paid }) => (paid ? 'drop-before' : 'none'))
    await reject(payer.createClient({ store }).run(REQUEST, { idempotencyKey: 'fast-clock', deadlineMs: 300 }))
    const serviceTime = new Date().toUTCString()
    expire()
    proxy.setFault(() => ({
      rewrite: (body, headers) => {
        headers['x-test-date'] = serviceTime
        return body
      },
    }))
    const error = await reject(payer.createClient({ store }).run(REQUEST, { idempotencyKey: 'fast-clock' }))
    expect(error).toBeInstanceOf(PaymentRejected)
    expect(payer.signatures()).toBe(1)
  })

  test('and a payee that changed meanwhile is not paid', async () => {
    const store = memoryStore()
    const payer = await startPayer()
    proxy.setFault(({ paid }) => (paid ? 'drop-before' : 'none'))
    await reject(payer.createClient({ store }).run(REQUEST, { idempotencyKey: 'moved', deadlineMs: 300 }))
    expire()
    proxy.setFault(() => ({ rewrite: changeTerms({ payTo: '0x00000000000000000000000000000000000000ab' }) }))
    const error = await reject(payer.createClient({ store }).run(REQUEST, { idempotencyKey: 'moved' }))
    expect(error).toMatchObject({ name: 'PaymentRefused', reason: 'payee_changed' })
    expect(payer.signatures()).toBe(1)
  })

  test('and is on the chain although the service says 402: nothing more is signed', async () => {
    const store = memoryStore()
    const payer = await startPayer()
    proxy.setFault(({ paid }) => (paid ? 'drop-after' : 'none'))
    await reject(payer.createClient({ store }).run(REQUEST, { idempotencyKey: 'denied', deadlineMs: 300 }))
    expire()
    // A service that denies what it took: the unpaid request gets its 402 instead of the stored answer.
    const challenge = await world.post('/api/run', REQUEST)
    const headers = { 'payment-required': challenge.headers.get('payment-required')! }
    proxy.setFault(({ paid }) => (paid ? { status: 402, headers, body: challenge.body } : 'none'))
    const chainRpcUrl = `${world.url}/api/dev/rpc`
    const error = await reject(payer.createClient({ store, chainRpcUrl }).run(REQUEST, { idempotencyKey: 'denied' }))
    expect(error).toBeInstanceOf(SettlementUnknown)
    expect(payer.signatures()).toBe(1)
  })
})
