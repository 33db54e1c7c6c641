import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { richTenant, type Tenant } from '../governance/world.ts'
import { readChallenge, type SignOptions, signPayment, startService, type TestService } from '../harness.ts'
import { createHeldLane, type HeldLane } from './held-lane.ts'

/** Runs with `Prefer: respond-async`: what is refused, who may read and cancel them, and when they are charged. */
const ASYNC = { prefer: 'respond-async' }
const PRICE_MICRO = 10_000n
const ADMIN = { 'x-admin-key': 'a'.repeat(40) }

let lane: HeldLane
let world: TestService
let tenant: Tenant
let stranger: Tenant
beforeAll(async () => {
  lane = createHeldLane()
  world = await startService({ lane, env: { BACKGROUND_WORK: 'off', ADMIN_KEY: 'a'.repeat(40) } })
  tenant = await richTenant(world)
  stranger = await richTenant(world)
})
afterEach(async () => {
  // A run that waits for its turn is held only when it has it.
  const timer = setInterval(() => lane.letGo(), 10)
  await world.service.background.idle()
  clearInterval(timer)
})
afterAll(() => world?.close())

let count = 0
const slowTask = () => {
  count += 1
  return `Tell a slow joke, number ${count}.`
}
const walletBody = (task: string, fields: Record<string, unknown> = {}) => ({
  task,
  agent_id: 'comedian-v1',
  payment: { wallet_id: tenant.walletId },
  ...fields,
})
const start = (task: string, fields?: Record<string, unknown>, headers: Record<string, string> = {}) =>
  world.post('/api/run', walletBody(task, fields), { ...tenant.headers, ...ASYNC, ...headers })

const payFor = async (body: { task: string }, options: SignOptions = {}, path = '/api/run') => {
  const payer = await world.payer(1)
  const challenge = readChallenge((await world.post(path, body)).headers)
  return { payer, payment: await signPayment(payer, challenge, options) }
}
const guestBody = (task: string) => ({ task, agent_id: 'comedian-v1' })
const startAsGuest = async (task: string) => {
  const body = guestBody(task)
  const { payer, payment } = await payFor(body)
  const answer = await world.post('/api/run', body, { ...payment, ...ASYNC })
  expect(answer.status, answer.text).toBe(202)
  return { payer, payment, body, runId: answer.body.run_id as string, answer }
}
const walletOf = async ({ walletId }: Tenant) => {
  const { available_micro, reserved_micro } = await world.db
    .selectFrom('wallets')
    .select(['available_micro', 'reserved_micro'])
    .where('id', '=', walletId)
    .executeTakeFirstOrThrow()
  return { available: available_micro, reserved: reserved_micro }
}
const untilEnded = (runId: string) =>
  expect
    .poll(async () => (await world.db.selectFrom('runs').select('state').where('id', '=', runId).execute())[0]?.state)
    .toMatch(/completed|failed/)
const untilHeld = (task: string) => expect.poll(() => lane.held.has(task)).toBe(true)

/** The events of a stream until it ends, or until there are `max` of them. */
async function readEvents(path: string, headers: Record<string, string> = {}, max = Number.POSITIVE_INFINITY) {
  const response = await fetch(`${world.url}${path}`, { headers })
  if (response.status !== 200) return { status: response.status, events: [] }
  let text = ''
  const decoder = new TextDecoder()
  const parse = () =>
    [...text.matchAll(/event: (\w+)\nid: (\d+)\ndata: (.*)\n\n/g)].map(([, event, id, data]) => ({
      event,
      id,
      data: JSON.parse(data!),
    }))
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    if (parse().length >= max) break
  }
  return { status: 200, events: parse() }
}

describe('refused', () => {
  test('another tenant’s run is not found, by run, events and cancel; without a key they want one', async () => {
    const { body } = await start(slowTask())
    const path = `/api/runs/${body.run_id}`
    expect((await world.get(path, stranger.headers)).status).toBe(404)
    expect((await world.get(`${path}/events`, stranger.headers)).status).toBe(404)
    expect((await world.post(`${path}/cancel`, undefined, stranger.headers)).status).toBe(404)
    expect((await world.get(path)).status).toBe(401)
    expect((await world.get(`${path}/events`)).status).toBe(401)
    expect((await world.post(`${path}/cancel`, undefined)).status).toBe(401)
    expect((await world.get(path, tenant.headers)).body.outcome).toBe('pending')
  })

  test('an unknown run is not found by a key, and wants a credential without one', async () => {
    const path = '/api/runs/run_00000000-0000-7000-8000-000000000000'
    expect((await world.get(`${path}/events`, tenant.headers)).status).toBe(404)
    expect((await world.post(`${path}/cancel`, undefined, tenant.headers)).status).toBe(404)
    expect((await world.get(path)).status).toBe(401)
    expect((await world.get(`${path}/events`)).status).toBe(401)
  })

  test.each(['respond-sync', 'respond-async=5', 'handling="respond-async"', ';;,='])(
    'a preference that is not respond-async is ignored: %s',
    async (prefer) => {
      const answer = await start(`Tell a joke about ${prefer.length} clocks.`, {}, { prefer })
      expect(answer.status, answer.text).toBe(200)
      expect(answer.headers.get('preference-applied')).toBeNull()
    },
  )

  test('a refusal of governance and a 402 are answered at once, as without the preference', async () => {
    const unpaid = await world.post('/api/run', guestBody('Tell a slow joke.'), ASYNC)
    expect(unpaid.status).toBe(402)
    const capped = await start(slowTask(), { budget: { max_price_usdc: 0.001, strict: true } })
    expect(capped.status, capped.text).toBe(429)
    expect(lane.held.size).toBe(0)
  })

  test('a guest’s run cannot be cancelled without its payment, nor with another', async () => {
    const task = slowTask()
    const { runId, payer } = await startAsGuest(task)
    const { payment: other } = await payFor(guestBody('Another joke.'))
    expect((await world.post(`/api/runs/${runId}/cancel`, undefined)).status).toBe(401)
    expect((await world.post(`/api/runs/${runId}/cancel`, undefined, other)).status).toBe(404)
    expect((await world.post(`/api/runs/${runId}/cancel`, undefined, stranger.headers)).status).toBe(404)
    await untilHeld(task)
    lane.letGo()
    await untilEnded(runId)
    expect(await world.balance(payer.address)).toBe(1_000_000n - PRICE_MICRO)
  })

  test('a run that has ended cannot be cancelled and stays charged', async () => {
    const before = await walletOf(tenant)
    const { body } = await start('Tell a quick joke.')
    await untilEnded(body.run_id)
    const cancelled = await world.post(`/api/runs/${body.run_id}/cancel`, undefined, tenant.headers)
    expect(cancelled.status).toBe(409)
    expect(cancelled.body).toMatchObject({ run_id: body.run_id, status: 'completed' })
    expect((await walletOf(tenant)).available).toBe(before.available - PRICE_MICRO)
  })

  test('the task and the output of a guest’s run are not shown for its id, to nobody', async () => {
    const { runId } = await startAsGuest('Tell a joke about secret plans.')
    await untilEnded(runId)
    for (const headers of [{}, stranger.headers]) {
      const shown = await world.get(`/api/runs/${runId}`, headers)
      expect(shown.text).not.toMatch(/secret|output/)
      expect(shown.body.answer ?? null).toBeNull()
    }
  })

  test('a guest’s token reads and cancels its own run alone', async () => {
    const task = slowTask()
    const [{ answer, runId }, other] = [await startAsGuest(task), await startAsGuest('Tell a joke about tokens.')]
    const own = { 'x-run-token': answer.body.token as string }
    for (const wrong of [{ 'x-run-token': other.answer.body.token }, { 'x-run-token': '' }, { 'x-run-token': runId }]) {
      expect((await world.get(`/api/runs/${runId}`, wrong)).status).toBe(401)
      expect((await world.post(`/api/runs/${runId}/cancel`, undefined, wrong)).status).toBe(404)
    }
    expect((await world.get(`/api/runs/${runId}`, { ...own, ...stranger.headers })).status).toBe(404)
    expect((await world.get(`/api/runs/${runId}`, own)).body).toMatchObject({ outcome: 'pending', answer: null })
    // A tenant's run has no token: its key is needed.
    const { body: ofTenant } = await start('Tell a joke about keys.')
    expect(ofTenant).not.toHaveProperty('token')
    expect((await world.get(`/api/runs/${ofTenant.run_id}`, own)).status).toBe(401)
    await untilEnded(other.runId)
    const read = await world.get(`/api/runs/${other.runId}`, { 'x-run-token': other.answer.body.token })
    expect(read.headers.get('cache-control')).toBe('no-store')
    expect(read.body.answer).toMatchObject({ status: 200, body: { run_id: other.runId, output: expect.any(String) } })
    const cancelled = await world.post(`/api/runs/${runId}/cancel`, undefined, own)
    expect(cancelled.body, cancelled.text).toMatchObject({ reason: 'cancelled', charged: false })
  })

  test('a payment that would expire before a long lane is done is refused with how long it must be valid, and is not used', async () => {
    const created = await world.post(
      '/api/lane',
      { agent_id: 'long-v1', display_name: 'Long', category: 'test', base_price_usdc: 0.01, deadline_seconds: 3_300 },
      ADMIN,
    )
    expect(created.status, created.text).toBe(201)
    const body = { task: 'Take your time.', agent_id: 'long-v1' }
    const unpaid = await world.post('/api/run', body)
    expect(readChallenge(unpaid.headers).accepts[0].maxTimeoutSeconds).toBe(3_480)
    expect(unpaid.body.accepts[0].maxTimeoutSeconds).toBe(3_480)
    expect(unpaid.body.min_validity_seconds).toBe(3_330)
    const seconds = BigInt(Math.floor(Date.now() / 1000))
    const short = await payFor(body, { validBefore: seconds + 3_300n })
    const refused = await world.post('/api/run', body, { ...short.payment, ...ASYNC })
    expect(refused.status).toBe(402)
    expect(refused.body.message).toMatch(/at least 3330 seconds.*valid for 3480 seconds/)
    expect(await world.balance(short.payer.address)).toBe(1_000_000n)
    const long = await payFor(body, { validBefore: seconds + 3_480n })
    const answer = await world.post('/api/run', body, { ...long.payment, ...ASYNC })
    expect(answer.status, answer.text).toBe(202)
    const { deadline_at, created_at } = await world.db
      .selectFrom('runs')
      .select(['deadline_at', 'created_at'])
      .where('id', '=', answer.body.run_id)
      .executeTakeFirstOrThrow()
    expect(deadline_at!.getTime() - created_at!.getTime()).toBe(3_300_000)
  })

  test('a lane’s deadline is at most 55 minutes', async () => {
    const { status } = await world.call('PATCH', '/api/lane/long-v1', { deadline_seconds: 3_301 }, ADMIN)
    expect(status).toBe(400)
  })

  test('a payment for a shipped lane is offered 300 seconds and is taken as long as 150 are left', async () => {
    const body = guestBody('Tell a joke about time.')
    const unpaid = await world.post('/api/run', body)
    expect(readChallenge(unpaid.headers).accepts[0].maxTimeoutSeconds).toBe(300)
    expect(unpaid.body.min_validity_seconds).toBe(150)
    const seconds = BigInt(Math.floor(Date.now() / 1000))
    const late = await payFor(body, { validBefore: seconds + 145n })
    const refused = await world.post('/api/run', body, late.payment)
    expect(refused.status).toBe(402)
    expect(refused.body.message).toMatch(/at least 150 seconds.*valid for 300 seconds/)
    const inTime = await payFor(body, { validBefore: seconds + 160n })
    expect((await world.post('/api/run', body, inTime.payment)).status).toBe(200)
  })

  test('the 21st stream of one caller is refused; a closed one makes room', async () => {
    const { body } = await start(slowTask())
    const path = `/api/runs/${body.run_id}/events`
    const controllers = Array.from({ length: 20 }, () => new AbortController())
    for (const { signal } of controllers) await fetch(`${world.url}${path}`, { headers: tenant.headers, signal })
    const refused = await world.get(path, tenant.headers)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('60')
    controllers[0]!.abort()
    await expect
      .poll(async () => (await readEvents(path, tenant.headers, 1)).events.map(({ data }) => data.status))
      .toEqual(['pending'])
    for (const controller of controllers) controller.abort()
  })
})

describe('a run from a wallet', () => {
  test('is answered 202 with its location while the work goes on, and is charged when it is done', async () => {
    const before = await walletOf(tenant)
    const task = slowTask()
    const answer = await start(task, {}, { 'idempotency-key': `async-${count}` })
    expect(answer.status, answer.text).toBe(202)
    const runId = answer.body.run_id
    expect(answer.body).toEqual({
      run_id: expect.stringMatching(/^run_/),
      status: 'pending',
      location: `/api/runs/${runId}`,
      events: `/api/runs/${runId}/events`,
    })
    expect(answer.headers.get('location')).toBe(`/api/runs/${runId}`)
    expect(answer.headers.get('preference-applied')).toBe('respond-async')
    await untilHeld(task)
    expect(await walletOf(tenant)).toEqual({ available: before.available - PRICE_MICRO, reserved: PRICE_MICRO })
    expect((await world.get(`/api/runs/${runId}`, tenant.headers)).body).toMatchObject({
      outcome: 'pending',
      answer: null,
    })

    // The same key gets the same answer while it runs, with the preference or without.
    const again = await start(task, {}, { 'idempotency-key': `async-${count}` })
    expect([again.status, again.text]).toEqual([202, answer.text])
    const { prefer: _, ...noPreference } = ASYNC
    const plain = await world.post('/api/run', walletBody(task), {
      ...tenant.headers,
      ...noPreference,
      'idempotency-key': `async-${count}`,
    })
    expect([plain.status, plain.text]).toEqual([202, answer.text])

    lane.letGo()
    await untilEnded(runId)
    const final = await start(task, {}, { 'idempotency-key': `async-${count}` })
    expect(final.status).toBe(200)
    expect(final.body).toMatchObject({ run_id: runId, status: 'completed', output: expect.any(String) })
    expect(final.headers.get('idempotent-replayed')).toBe('true')
    const { body: read } = await world.get(`/api/runs/${runId}`, tenant.headers)
    expect(read).toMatchObject({ outcome: 'completed', answer: { status: 200, body: final.body } })
    expect(await walletOf(tenant)).toEqual({ available: before.available - PRICE_MICRO, reserved: 0n })
  })

  test('in escrow, and a loop: both are 202, then done and charged', async () => {
    const before = await walletOf(tenant)
    const escrow = await start('Tell a joke about escrow.', {
      payment: { wallet_id: tenant.walletId, escrow: true },
    })
    const loop = await world.post(
      '/api/loop',
      { input: 'Tell a joke about loops.', agent_id: 'comedian-v1', payment: { wallet_id: tenant.walletId } },
      { ...tenant.headers, ...ASYNC },
    )
    expect([escrow.status, loop.status]).toEqual([202, 202])
    for (const { body } of [escrow, loop]) await untilEnded(body.run_id)
    const { body: read } = await world.get(`/api/runs/${loop.body.run_id}`, tenant.headers)
    expect(read.answer.body).toMatchObject({ status: 'success', run_id: loop.body.run_id })
    const after = await walletOf(tenant)
    expect(after.reserved).toBe(0n)
    expect(after.available).toBe(before.available - PRICE_MICRO - BigInt(read.answer.body.amount))
  })

  test('cancelled before it is done: nothing is charged, nothing is shown, the work is aborted, a receipt says so', async () => {
    const before = await walletOf(tenant)
    const task = slowTask()
    const { body } = await start(task, {}, { 'idempotency-key': `cancel-${count}` })
    await untilHeld(task)
    const path = `/api/runs/${body.run_id}/cancel`
    const cancelled = await world.post(path, undefined, tenant.headers)
    expect(cancelled.status, cancelled.text).toBe(200)
    expect(cancelled.body).toMatchObject({
      run_id: body.run_id,
      status: 'failed',
      reason: 'cancelled',
      charged: false,
    })
    expect(await walletOf(tenant)).toEqual(before)
    await expect.poll(() => lane.aborted.has(task)).toBe(true)
    const receipt = await world.get(cancelled.body.receipt_url)
    expect(receipt.body).toMatchObject({ kind: 'failure', charged: false, settlement: { reason: 'cancelled' } })
    // Again: the same answer. The same request: the stored failure, without an output.
    expect((await world.post(path, undefined, tenant.headers)).text).toBe(cancelled.text)
    await world.service.background.idle()
    const repeated = await start(task, {}, { 'idempotency-key': `cancel-${count}` })
    expect(repeated.status).toBe(500)
    expect(repeated.body).toMatchObject({ run_id: body.run_id, charged: false })
    expect(repeated.body).not.toHaveProperty('output')
    expect(await walletOf(tenant)).toEqual(before)
    const { body: recent } = await world.get('/api/loops?limit=1', tenant.headers)
    expect(recent.loops).toMatchObject([{ run_id: body.run_id, paid: false, grade: null, output_hash: null }])
  })

  test('a run whose caller waits can be cancelled, too: the waiting request gets the failure', async () => {
    const before = await walletOf(tenant)
    const task = slowTask()
    const waiting = world.post('/api/run', walletBody(task), tenant.headers)
    await untilHeld(task)
    const { body } = await world.get('/api/runs?limit=1', tenant.headers)
    const cancelled = await world.post(`/api/runs/${body.runs[0].run_id}/cancel`, undefined, tenant.headers)
    expect(cancelled.status, cancelled.text).toBe(200)
    lane.letGo()
    const answer = await waiting
    expect(answer.status).toBe(500)
    expect(answer.body).toMatchObject({ charged: false, run_id: body.runs[0].run_id })
    expect(await walletOf(tenant)).toEqual(before)
  })

  test('fifty cancellations race with the end of the work: each run is either charged and shown, or neither', async () => {
    const before = await walletOf(tenant)
    const runs = await Promise.all(Array.from({ length: 50 }, () => start(slowTask())))
    await expect.poll(() => lane.held.size).toBe(50)
    lane.letGo()
    const answers = await Promise.all(
      runs.map(async ({ body }, index) => {
        await sleep(index % 10)
        return world.post(`/api/runs/${body.run_id}/cancel`, undefined, tenant.headers)
      }),
    )
    await world.service.background.idle()
    let charged = 0n
    for (const [index, { body }] of runs.entries()) {
      const { body: run } = await world.get(`/api/runs/${body.run_id}`, tenant.headers)
      const wasCancelled = answers[index]!.status === 200
      expect([200, 409]).toContain(answers[index]!.status)
      expect(run.outcome).toBe(wasCancelled ? 'failed' : 'completed')
      expect(run.answer.body.output === undefined).toBe(wasCancelled)
      if (!wasCancelled) charged += PRICE_MICRO
    }
    expect(await walletOf(tenant)).toEqual({ available: before.available - charged, reserved: 0n })
  })
})

describe('a guest’s run paid by x402', () => {
  test('is settled when the work is done, not before; the same payment gets 202 and then the answer', async () => {
    const task = slowTask()
    const { payer, payment, body, runId, answer } = await startAsGuest(task)
    await untilHeld(task)
    expect(await world.balance(payer.address)).toBe(1_000_000n)
    const again = await world.post('/api/run', body, payment)
    expect([again.status, again.text]).toEqual([202, answer.text])
    // Whoever knows the id sees how it goes, and no more.
    const pending = await world.get(`/api/runs/${runId}`)
    expect(pending.body).toMatchObject({ run_id: runId, outcome: 'pending', answer: null })
    const events = readEvents(`/api/runs/${runId}/events`)
    lane.letGo()
    expect((await events).events.at(-1)!.data).toMatchObject({ run_id: runId, status: 'completed' })
    expect(await world.balance(payer.address)).toBe(1_000_000n - PRICE_MICRO)
    const final = await world.post('/api/run', body, payment)
    expect(final.status).toBe(200)
    expect(final.body).toMatchObject({ run_id: runId, status: 'completed', settlement: { status: 'settled' } })
    expect(final.headers.get('payment-response')).not.toBeNull()
    expect((await world.get(`/api/runs/${runId}`)).body).toMatchObject({
      outcome: 'completed',
      answer: null,
      next_action: expect.stringContaining('same payment'),
    })
    const { body: shown } = await world.get(`/api/runs/${runId}`, { 'x-run-token': answer.body.token })
    expect(shown.answer.body).toEqual(final.body)
    expect((await world.post('/api/run', guestBody('Another task.'), payment)).status).toBe(409)
  })

  test('is cancelled by its payment: the payment never reaches the chain', async () => {
    const task = slowTask()
    const { payer, payment, body, runId } = await startAsGuest(task)
    await untilHeld(task)
    const cancelled = await world.post(`/api/runs/${runId}/cancel`, undefined, payment)
    expect(cancelled.status, cancelled.text).toBe(200)
    await expect.poll(() => lane.aborted.has(task)).toBe(true)
    await world.service.background.idle()
    const repeated = await world.post('/api/run', body, payment)
    expect(repeated.status).toBe(500)
    expect(repeated.body).toMatchObject({ run_id: runId, charged: false, settlement: { status: 'failed' } })
    expect(await world.balance(payer.address)).toBe(1_000_000n)
  })
})

test('an official x402 client pays for an asynchronous run and reads the answer with its token', async () => {
  const payer = await world.payer(1)
  const response = await payer.fetch(`${world.url}/api/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...ASYNC },
    body: JSON.stringify(guestBody('Tell a joke about clients.')),
  })
  expect(response.status).toBe(202)
  const { token, location, events } = (await response.json()) as Record<string, string>
  expect((await readEvents(events!)).events.at(-1)!.data.status).toBe('completed')
  const { body } = await world.get(location!, { 'x-run-token': token! })
  expect(body.answer).toMatchObject({ status: 200, body: { output: expect.any(String) } })
  expect(await world.balance(payer.address)).toBe(1_000_000n - PRICE_MICRO)
})

describe('events', () => {
  test('name each state once with its id, in order, and end with the run; Last-Event-ID resumes', async () => {
    const task = slowTask()
    const { body } = await start(task)
    const path = `/api/runs/${body.run_id}/events`
    const stream = readEvents(path, tenant.headers)
    await untilHeld(task)
    // A second reader that has seen the first event is told the next one only.
    const resumed = readEvents(path, { ...tenant.headers, 'last-event-id': '1' })
    await sleep(600)
    lane.letGo()
    const { events } = await stream
    expect(events.map(({ event, id, data }) => [event, id, data.status])).toEqual([
      ['state', '1', 'pending'],
      ['state', '3', 'completed'],
    ])
    expect(events[1]!.data.receipt_url).toMatch(/^\/api\/receipts\/rcpt_/)
    expect((await resumed).events.map(({ id }) => id)).toEqual(['3'])
    // After the end: everything from the start, or nothing after the last.
    expect((await readEvents(path, tenant.headers)).events).toEqual(events)
    expect((await readEvents(path, { ...tenant.headers, 'last-event-id': '3' })).status).toBe(204)
    expect((await readEvents(path, { ...tenant.headers, 'last-event-id': 'x' })).events).toEqual(events)
  })

  test('of a cancelled run end with failed and its reason', async () => {
    const task = slowTask()
    const { body } = await start(task)
    const stream = readEvents(`/api/runs/${body.run_id}/events`, tenant.headers)
    await untilHeld(task)
    await world.post(`/api/runs/${body.run_id}/cancel`, undefined, tenant.headers)
    expect((await stream).events.at(-1)!.data).toMatchObject({ status: 'failed', reason: 'cancelled' })
  })

  test('are readable with curl -N', async () => {
    const { body } = await start('Tell a joke about curl.')
    const { stdout } = await promisify(execFile)('curl', [
      '-sN',
      '-H',
      `x-api-key: ${tenant.apiKey}`,
      `${world.url}/api/runs/${body.run_id}/events`,
    ])
    expect(stdout).toMatch(/^retry: 5000\n\nevent: state\nid: 1\ndata: .*"pending".*\n\n(.*\n)*data: .*"completed"/)
  })
})

test('an approved request sent again with the preference is answered 202 while the run goes on', async () => {
  const reviewed = await richTenant(world)
  await world.post(
    '/api/policies',
    { name: 'People first', rules: [{ field: 'amount_usdc', op: '>', value: 0, effect: 'review' }] },
    reviewed.headers,
  )
  const task = slowTask()
  const body = walletBody(task, { payment: { wallet_id: reviewed.walletId } })
  const { body: refusal } = await world.post('/api/run', body, { ...reviewed.headers, ...ASYNC })
  const { approval_id, run_id } = refusal
  await world.post('/api/approvals', { approval_id, decision: 'approve' }, reviewed.headers)
  await world.service.startApprovedRuns.sweep()
  await untilHeld(task)
  const answer = await world.post('/api/run', { ...body, approval_id }, { ...reviewed.headers, ...ASYNC })
  expect(answer.status, answer.text).toBe(202)
  expect(answer.body.run_id).toBe(run_id)
  lane.letGo()
  await world.service.background.idle()
  const final = await world.post('/api/run', { ...body, approval_id }, { ...reviewed.headers, ...ASYNC })
  expect(final.status, final.text).toBe(200)
})
