import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { richTenant, type Tenant } from '../governance/world.ts'
import { readChallenge, signPayment, startService, type TestService } from '../harness.ts'

/** The text of asynchronous runs while a model writes it: who sees it, and what it changes about money. */
const ASYNC = { prefer: 'respond-async' }
const PRICE_MICRO = 10_000n

let provider: Server
let world: TestService
let tenant: Tenant
let stranger: Tenant

/** The answers that the model is writing, by task. */
const answers = new Map<string, Answer>()
type Answer = { write(text: string): void; end(): void; fail(): void; wasClosed(): boolean }

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

function createAnswer(response: ServerResponse): Answer {
  let wasClosed = false
  response.on('close', () => {
    wasClosed = true
  })
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  return {
    write: (text) => void response.write(chunk({ role: 'assistant', content: text })),
    end: () => response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`),
    fail: () => response.destroy(),
    wasClosed: () => wasClosed,
  }
}

beforeAll(async () => {
  provider = createServer(async (request, response) => {
    let body = ''
    for await (const part of request) body += part
    const { messages } = JSON.parse(body) as { messages: { role: string; content: string }[] }
    answers.set(messages.at(-1)!.content, createAnswer(response))
  })
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve))
  world = await startService({
    env: {
      BACKGROUND_WORK: 'off',
      INSTANCE_BEAT_MS: '250',
      INSTANCE_GRACE_MS: '2500',
      LANE_PROVIDER: 'openai-compatible',
      LANE_BASE_URL: `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`,
      LANE_MODEL: 'a-model',
      LANE_RETRIES: '1',
      LANE_STALL_MS: '60000',
      LANE_TIMEOUT_MS: '60000',
      // The provider of this file answers when a test says so, a judge's question too.
      JUDGE_PROVIDER: 'off',
    },
  })
  tenant = await richTenant(world)
  stranger = await richTenant(world)
})
afterEach(async () => {
  for (const answer of answers.values()) answer.end()
  await world.service.background.idle()
})
afterAll(async () => {
  await world?.close()
  provider.closeAllConnections()
  provider.close()
})

let count = 0
const newTask = () => {
  count += 1
  return `Tell a joke about clocks, number ${count}.`
}
const start = (task: string, options: Record<string, unknown> = { accept_unverified: true }) =>
  world.post(
    '/api/run',
    { task, agent_id: 'comedian-v1', payment: { wallet_id: tenant.walletId }, options },
    { ...tenant.headers, ...ASYNC },
  )
const startWriting = async (task: string, options?: Record<string, unknown>) => {
  const started = await start(task, options)
  expect(started.status, started.text).toBe(202)
  return { runId: started.body.run_id as string, answer: await answerTo(task) }
}
const answerTo = async (task: string): Promise<Answer> => {
  await expect.poll(() => answers.has(task), { timeout: 20_000 }).toBe(true)
  return answers.get(task)!
}
const availableMicro = async () =>
  (
    await world.db
      .selectFrom('wallets')
      .select('available_micro')
      .where('id', '=', tenant.walletId)
      .executeTakeFirstOrThrow()
  ).available_micro
const runState = async (runId: string) =>
  (await world.db.selectFrom('runs').select('state').where('id', '=', runId).executeTakeFirst())?.state

/** Follows a run in the background; `text` is what a client would show. */
function follow(runId: string, headers: Record<string, string> = tenant.headers) {
  const controller = new AbortController()
  const seen = { states: [] as string[], text: '', parts: 0, restarts: 0, done: false }
  const read = async () => {
    const response = await fetch(`${world.url}/api/runs/${runId}/events`, { headers, signal: controller.signal })
    expect(response.status).toBe(200)
    let unread = ''
    for await (const bytes of response.body!.pipeThrough(new TextDecoderStream())) {
      const blocks = (unread + bytes).split('\n\n')
      unread = blocks.pop()!
      for (const block of blocks) {
        const event = /^event: (\w+)/.exec(block)?.[1]
        const data = JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? '{}')
        if (event === 'state') seen.states.push(data.status)
        if (event !== 'text') continue
        expect(block).not.toMatch(/^id:/m)
        if (data.offset === 0 && seen.text !== '') seen.restarts += 1
        seen.text = seen.text.slice(0, data.offset) + data.text
        seen.parts += 1
      }
    }
    seen.done = true
  }
  const reading = read().catch((error: Error) => {
    if (error.name !== 'AbortError') throw error
  })
  return {
    seen,
    stop: async () => {
      controller.abort()
      await reading
    },
    ended: () => reading,
  }
}
const untilSeen = (followed: ReturnType<typeof follow>, text: string) =>
  expect.poll(() => followed.seen.text, { timeout: 20_000 }).toBe(text)

describe('what is not shown', () => {
  test('the text of a run whose output must be verified', async () => {
    const { runId, answer } = await startWriting(newTask(), {})
    const followed = follow(runId)
    answer.write('Why did the clock blush? ')
    // The same stream of a run that may be shown has its text by then.
    const shown = await startWriting(newTask())
    const other = follow(shown.runId)
    shown.answer.write('Tick.')
    await untilSeen(other, 'Tick.')
    answer.write('It was wound up.')
    answer.end()
    await followed.ended()
    expect(followed.seen).toMatchObject({ parts: 0, states: ['pending', 'completed'] })
    shown.answer.end()
    await other.ended()
  })

  test('the text of a run that is paid by x402, accepted unverified or not', async () => {
    const payer = await world.payer(1)
    const task = newTask()
    const body = { task, agent_id: 'comedian-v1', options: { accept_unverified: true } }
    const payment = await signPayment(
      payer,
      readChallenge((await world.post('/api/run', body, tenant.headers)).headers),
    )
    const started = await world.post('/api/run', body, { ...tenant.headers, ...payment, ...ASYNC })
    expect(started.status, started.text).toBe(202)
    const followed = follow(started.body.run_id)
    const answer = await answerTo(task)
    answer.write('Why did the clock blush? ')
    answer.write('It was wound up.')
    answer.end()
    await followed.ended()
    expect(followed.seen).toMatchObject({ parts: 0, done: true })
    expect(await world.balance(payer.address)).toBe(1_000_000n - PRICE_MICRO)
  })

  test('anything to another tenant or to nobody', async () => {
    const { runId, answer } = await startWriting(newTask())
    answer.write('Private.')
    const followed = follow(runId)
    await untilSeen(followed, 'Private.')
    for (const headers of [stranger.headers, {}]) {
      const { status, text } = await world.get(`/api/runs/${runId}/events`, headers)
      expect([401, 404]).toContain(status)
      expect(text).not.toContain('Private')
    }
    answer.end()
    await followed.ended()
  })
})

test('the text arrives while it is written, to every stream from its beginning, and the answer has all of it', async () => {
  const { runId, answer } = await startWriting(newTask())
  const first = follow(runId)
  answer.write('Why did the clock blush? ')
  await untilSeen(first, 'Why did the clock blush? ')
  expect(await runState(runId)).toBe('executing')
  await first.stop()

  answer.write('It was wound up. 🕰')
  const second = follow(runId)
  await untilSeen(second, 'Why did the clock blush? It was wound up. 🕰')
  answer.write(' Tick.')
  answer.end()
  await second.ended()
  expect(second.seen.states).toEqual(['pending', 'completed'])
  const { body } = await world.get(`/api/runs/${runId}`, tenant.headers)
  expect(body.answer).toMatchObject({
    status: 200,
    body: { output: 'Why did the clock blush? It was wound up. 🕰 Tick.' },
  })
})

test('a text of many parts arrives whole', async () => {
  const { runId, answer } = await startWriting(newTask())
  const followed = follow(runId)
  const long = 'Tick, tock. 🕰 '.repeat(1_500)
  answer.write(long)
  await untilSeen(followed, long)
  expect(followed.seen.parts).toBeGreaterThan(2)
  answer.end()
  await followed.ended()
})

test('a provider that breaks off is tried again, and the text begins anew', async () => {
  const task = newTask()
  const { runId, answer } = await startWriting(task)
  const followed = follow(runId)
  answer.write('Half of a')
  await untilSeen(followed, 'Half of a')
  answers.delete(task)
  answer.fail()
  const again = await answerTo(task)
  again.write('A whole joke about clocks.')
  await untilSeen(followed, 'A whole joke about clocks.')
  expect(followed.seen.restarts).toBe(1)
  again.end()
  await followed.ended()
  expect(followed.seen.states.at(-1)).toBe('completed')
})

test('a process that dies after text was shown is followed by another, whose text begins anew; the run is charged once', async () => {
  const before = await availableMicro()
  const task = newTask()
  const { runId, answer } = await startWriting(task)
  const followed = follow(runId)
  answer.write('Said by the dead')
  await untilSeen(followed, 'Said by the dead')
  answers.delete(task)
  // What is left of a process that was killed: a run whose process is not among the instances, over the whole grace.
  await sql`update open_runs set instance = 'dead' where id = ${runId}`.execute(world.db)
  await vi.waitUntil(async () => (await world.service.reconciler.sweepOrphans()) > 0, 20_000)
  const again = await answerTo(task)
  again.write('Said by the living.')
  await untilSeen(followed, 'Said by the living.')
  // A step of the first process comes too late.
  answer.write(' and more')
  answer.end()
  again.end()
  await followed.ended()
  const { body } = await world.get(`/api/runs/${runId}`, tenant.headers)
  expect(body.answer.body.output).toBe('Said by the living.')
  expect(await availableMicro()).toBe(before - PRICE_MICRO)
})

describe('cancelling', () => {
  const cancel = (runId: string) => world.post(`/api/runs/${runId}/cancel`, {}, tenant.headers)

  test('before the first text charges nothing', async () => {
    const before = await availableMicro()
    const { runId, answer } = await startWriting(newTask())
    expect((await cancel(runId)).body).toMatchObject({ status: 'failed', reason: 'cancelled', charged: false })
    expect(await availableMicro()).toBe(before)
    await expect.poll(() => answer.wasClosed()).toBe(true)
    answer.write('Too late.')
    expect(await runState(runId)).toBe('failed')
  })

  test('after the first text charges once, and the answer is what there was', async () => {
    const before = await availableMicro()
    const { runId, answer } = await startWriting(newTask())
    const followed = follow(runId)
    answer.write('Why did the clock blush? ')
    await untilSeen(followed, 'Why did the clock blush? ')

    const responses = await Promise.all([cancel(runId), cancel(runId), cancel(runId)])
    for (const { status, body } of responses)
      expect({ status, ...body }).toMatchObject({ status: 'completed', reason: 'cancelled', charged: true })
    expect(await availableMicro()).toBe(before - PRICE_MICRO)
    await expect.poll(() => answer.wasClosed()).toBe(true)
    await followed.ended()
    expect(followed.seen.states.at(-1)).toBe('completed')

    const { body } = await world.get(`/api/runs/${runId}`, tenant.headers)
    expect(body.answer.body).toMatchObject({
      output: 'Why did the clock blush? ',
      execution: { cancelled: true, model: 'a-model' },
      receipt: { charged: true },
    })
    expect(body.answer.body.execution.usage.output_tokens).toBeGreaterThan(0)
    const receipt = (await world.get(`/api/receipts/${body.answer.body.receipt.receipt_id}`)).body
    expect(receipt.verification.verified).not.toBe(true)
    expect((await world.get(`/api/runs/${runId}`, tenant.headers)).body.answer).toEqual(body.answer)
  })

  test('of a cancellation and the first text one wins: text that was seen is paid for', async () => {
    for (let round = 0; round < 12; round++) {
      const before = await availableMicro()
      const { runId, answer } = await startWriting(newTask())
      const followed = follow(runId)
      answer.write('Tick.')
      const cancelled = await cancel(runId)
      await followed.ended()
      const paid = before - (await availableMicro())
      expect(paid).toBe(cancelled.body.charged ? PRICE_MICRO : 0n)
      if (followed.seen.text !== '') expect(paid).toBe(PRICE_MICRO)
    }
  })
})
