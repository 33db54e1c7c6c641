import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type CallStore, CountersignError, memoryStore, RunFailed, type StartedRun } from '../src/client.ts'
import { fileStore } from '../src/file-store.ts'
import { firstPaid, type PayingWorld, PRICE, REQUEST, reject, startPayingWorld } from './paying-world.ts'

/** `startRun`: runs that go on without a connection, on a real service behind a proxy that loses answers. */
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

/** Holds the work until it is let go. */
function holdLane() {
  let letGo = () => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  world.setLane(async () => {
    await gate
    return undefined
  })
  return letGo
}

test('a loop is started like a run, and text that may be shown arrives while it is written', async () => {
  const payer = await startPayer()
  const loop = await payer.createClient().startLoop({ input: 'Tell a joke about tides.', agent_id: 'comedian-v1' })
  const { loop: answer, receipt } = await loop.result()
  expect(answer).toMatchObject({ status: 'success', run_id: loop.runId })
  expect(receipt.verified).toBe(true)

  const { headers, walletId } = await world.tenantWithWallet()
  let letGo = () => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  world.setLane(async (_, { onText }) => {
    const usage = { inputTokens: 1, outputTokens: 1, costUsd: 0 }
    for (const output of ['The tide', 'The tide came in.', 'Another'])
      onText?.({ output, provider: 'test', model: 'test', usage })
    await gate
    return undefined
  })
  // The proxy passes an answer on when it has all of it.
  const client = payer.createClient({ baseUrl: world.url, apiKey: headers['x-api-key'], walletId })
  const run = await client.startRun({ ...REQUEST, options: { accept_unverified: true } })
  const texts: string[] = []
  const ended = (async () => {
    for await (const _ of run.events({ onText: (text) => texts.push(text) }));
  })()
  const seen = expect.poll(() => texts.at(-1), { timeout: 20_000 }).toBe('Another')
  await seen.finally(letGo)
  await ended
  expect((await run.result()).receipt.verified).toBe(true)
})

const statusesOf = async (run: StartedRun) => {
  const statuses = []
  for await (const { status } of run.events()) statuses.push(status)
  return statuses
}

describe('a started run', () => {
  test('is refused its answer and its cancellation for another payer, and throws when it is not paid for', async () => {
    const letGo = holdLane()
    const payer = await startPayer()
    const run = await payer.createClient().startRun(REQUEST)
    const stranger = (await startPayer()).createClient()
    const error = await reject(stranger.post('/api/runs/{id}/cancel', { path: { id: run.runId } }))
    expect((error as CountersignError).status).toBe(401)
    expect((await stranger.get('/api/runs/{id}', { path: { id: run.runId } })).answer).toBeNull()
    const poor = await startPayer(0n)
    expect(await reject(poor.createClient().startRun(REQUEST))).toBeInstanceOf(CountersignError)
    letGo()
    await run.result()
  })

  test('has its id at once, its states in order and a verified answer; one payment is signed', async () => {
    const letGo = holdLane()
    const payer = await startPayer()
    const run = await payer.createClient().startRun(REQUEST)
    expect(run.runId).toMatch(/^run_/)
    expect(await payer.spent()).toBe(0n)
    const statuses = statusesOf(run)
    letGo()
    const { output, receipt, run: answer } = await run.result()
    expect([output, receipt.verified, answer.run_id]).toEqual([expect.any(String), true, run.runId])
    expect((await statuses).filter((status) => status !== 'settling')).toEqual(['pending', 'completed'])
    expect([payer.signatures(), await payer.spent()]).toEqual([1, PRICE])
  })

  test.each(['drop-after', '503-after', 'cut-after'] as const)(
    'is started once when its 202 is lost (%s)',
    async (fault) => {
      proxy.setFault(firstPaid(fault, 2))
      const payer = await startPayer()
      const { receipt } = await (await payer.createClient().startRun(REQUEST)).result()
      expect([receipt.verified, payer.signatures(), await payer.spent()]).toEqual([true, 1, PRICE])
    },
  )

  test('streams on after its connection was cut: no event is lost or told twice', async () => {
    const letGo = holdLane()
    const payer = await startPayer()
    const run = await payer.createClient().startRun(REQUEST)
    let streams = 0
    proxy.setFault(({ path }) => {
      if (!path.endsWith('/events')) return 'none'
      streams += 1
      if (streams === 3) return 'cut-after'
      return streams < 3 ? 'drop-before' : 'none'
    })
    const statuses = statusesOf(run)
    await expect.poll(() => streams, { timeout: 10_000 }).toBeGreaterThanOrEqual(2)
    letGo()
    expect((await statuses).filter((status) => status !== 'settling')).toEqual(['pending', 'completed'])
    const seen = proxy.requests.filter(({ path }) => path.endsWith('/events'))
    expect(seen.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, undefined, undefined, '1'])
    await run.result()
  })

  test('is found again after a restart, by its key and by resume, and is not paid for twice', async () => {
    const letGo = holdLane()
    const payer = await startPayer()
    const folder = paying.temporaryFolder()
    const start = (store: CallStore) => payer.createClient({ store }).startRun(REQUEST, { idempotencyKey: 'report-7' })
    const first = await start(fileStore(folder))
    const again = await start(fileStore(folder))
    expect(again.runId).toBe(first.runId)
    letGo()
    const [resumed] = await payer.createClient({ store: fileStore(folder) }).resume()
    expect(resumed).toMatchObject({ kind: 'run', idempotencyKey: 'report-7', result: { run: { run_id: first.runId } } })
    const third = await start(fileStore(folder))
    expect((await third.result()).run.run_id).toBe(first.runId)
    expect([payer.signatures(), await payer.spent()]).toEqual([1, PRICE])
  })

  test('that is cancelled costs nothing: its result is a RunFailed, and a later cancel is a 409', async () => {
    const letGo = holdLane()
    const payer = await startPayer()
    const client = payer.createClient({ store: memoryStore() })
    const run = await client.startRun(REQUEST)
    expect(await run.cancel()).toMatchObject({ run_id: run.runId, reason: 'cancelled', charged: false })
    const error = await reject(run.result())
    expect(error).toBeInstanceOf(RunFailed)
    expect((error as RunFailed).run.charged).toBe(false)
    expect(await payer.spent()).toBe(0n)
    letGo()
    const done = await client.startRun(REQUEST)
    await done.result()
    expect(((await reject(done.cancel())) as CountersignError).status).toBe(409)
  })
})
