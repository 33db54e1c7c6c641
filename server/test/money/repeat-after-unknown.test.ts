import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { verifyOpening } from '@countersign/proof'
import { ExactEvmScheme } from '@x402/evm'
import {
  appendPaymentIdentifierToExtensions,
  declarePaymentIdentifierExtension,
} from '@x402/extensions/payment-identifier'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import type { PrivateKeyAccount } from 'viem'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Payer, readChallenge, readJson, signPayment, startService, type TestService } from '../harness.ts'

/**
 * A seller on another service's chain, behind a facilitator that can settle and lose its answer. The reconciler is off:
 * `POST /api/settle` asks the chain when a test wants to know.
 */
let chain: TestService
let seller: TestService
let facilitator: Awaited<ReturnType<typeof startFacilitator>>
beforeAll(async () => {
  chain = await startService()
  facilitator = await startFacilitator(chain.url)
  const payTo = readChallenge((await chain.post('/api/run', { task: 'hello' })).headers).accepts[0].payTo
  seller = await startService({
    env: {
      BACKGROUND_WORK: 'off',
      FACILITATOR_URL: facilitator.url,
      CHAIN_RPC_URL: `${chain.url}/api/dev/rpc`,
      PAY_TO_ADDRESS: payTo,
    },
  })
})
beforeEach(() => {
  facilitator.mode = 'honest'
})
afterAll(async () => {
  await seller?.close()
  await facilitator?.close()
  await chain?.close()
})

type Mode = 'honest' | 'loses its answer' | 'invents a settlement' | 'does nothing'

async function startFacilitator(target: string) {
  const state = { mode: 'honest' as Mode }
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const isSettle = request.url === '/settle'
    if (isSettle && state.mode === 'does nothing') return void request.socket.destroy()
    if (isSettle && state.mode === 'invents a settlement') {
      const { authorization } = JSON.parse(text).paymentPayload.payload
      const { from: payer, value: amount } = authorization
      const transaction = `0x${'ab'.repeat(32)}`
      response.setHeader('content-type', 'application/json')
      return void response.end(JSON.stringify({ success: true, transaction, payer, amount, network: 'eip155:8453' }))
    }
    const forwarded = await fetch(`${target}/facilitator${request.url}`, {
      method: request.method!,
      ...(text && { body: text, headers: { 'content-type': 'application/json' } }),
    })
    const answer = await forwarded.text()
    if (isSettle && state.mode === 'loses its answer') return void request.socket.destroy()
    response.writeHead(forwarded.status, { 'content-type': 'application/json' }).end(answer)
  }
  const server = createServer((request, response) => {
    handle(request, response).catch(() => request.socket.destroy())
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((closed) => server.close(closed)),
  })
}

let count = 0
const newTask = () => ({ task: `Tell me a joke about clock number ${++count}.`, agent_id: 'comedian-v1' })
const PRICE = 10_000n

/** The official client, unmodified; with an id it uses the official extension. */
function officialClient(account: PrivateKeyAccount, paymentIdentifier?: string) {
  const client = new x402Client().register('eip155:8453', new ExactEvmScheme(account))
  if (paymentIdentifier !== undefined)
    client.registerExtension({
      key: 'payment-identifier',
      enrichPaymentPayload: async (payload) => ({
        ...payload,
        extensions: appendPaymentIdentifierToExtensions({ ...payload.extensions }, paymentIdentifier),
      }),
    })
  return wrapFetchWithPayment(fetch, client) as typeof fetch
}

const send = async (pay: typeof fetch, body: unknown, headers: Record<string, string> = {}) => {
  const response = await pay(`${seller.url}/api/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, body: await readJson(response) }
}

const spentBy = async (payer: Payer, funded: number) => BigInt(funded * 1e6) - (await chain.balance(payer.address))

/** A guest pays, and the facilitator loses its answer once. */
async function payWithoutAnswer() {
  const payer = await chain.payer(1)
  const pay = officialClient(payer)
  const task = newTask()
  facilitator.mode = 'loses its answer'
  const first = await send(pay, task)
  expect(first.status).toBe(503)
  facilitator.mode = 'honest'
  return { payer, pay, task, first }
}

/** Asks the chain about the payment of a run, as the reconciler does. */
async function reconcile(runId: string, headers: Record<string, string> = {}) {
  const { payment } = await seller.db
    .selectFrom('open_runs')
    .select('payment')
    .where('id', '=', runId)
    .executeTakeFirstOrThrow()
  const { payload } = payment as { payload: object }
  const { status, text } = await seller.post('/api/settle', { payment_payload: payload }, headers)
  expect(status, text).toBe(200)
}

describe('an official client that repeats its call after a 503 pays once', () => {
  test('of a tenant, without any key: 409 while it is not known, then the answer that was paid for', async () => {
    const tenant = await seller.onboard()
    const payer = await chain.payer(1)
    const pay = officialClient(payer)
    const task = newTask()
    facilitator.mode = 'loses its answer'
    const first = await send(pay, task, tenant.headers)
    expect(first).toMatchObject({ status: 503, body: { charged: null, retryable: true } })
    for (let attempt = 0; attempt < 3; attempt++) {
      const repeated = await send(pay, task, tenant.headers)
      expect(repeated).toMatchObject({ status: 409, body: { error: 'error', code: 'conflict', retryable: true } })
      expect(repeated.headers.get('retry-after')).toBe('2')
      expect(repeated.body.message).toMatch(/send this request again/i)
    }
    expect(await spentBy(payer, 1)).toBe(PRICE)
    facilitator.mode = 'honest'
    await reconcile(first.body.run_id, tenant.headers)
    const answer = await send(pay, task, tenant.headers)
    expect(answer).toMatchObject({ status: 200, body: { run_id: first.body.run_id, status: 'completed' } })
    expect(await spentBy(payer, 1)).toBe(PRICE)
    // The answer was delivered: asking once more buys once more.
    expect(await send(pay, task, tenant.headers)).toMatchObject({ status: 200 })
    expect(await spentBy(payer, 1)).toBe(2n * PRICE)
  })

  test('and the receipt of the run that was finished without its caller names the budget that counted it', async () => {
    const tenant = await seller.onboard()
    const pay = officialClient(await chain.payer(1))
    await seller.post('/api/budgets', { budget_id: 'all', window: 'day', limit_usdc: 1 }, tenant.headers)
    const task = newTask()
    facilitator.mode = 'loses its answer'
    const first = await send(pay, task, tenant.headers)
    facilitator.mode = 'honest'
    await reconcile(first.body.run_id, tenant.headers)
    const { receipt, evidence } = (await send(pay, task, tenant.headers)).body
    expect(evidence.counters.items).toEqual([
      expect.objectContaining({ counter: `budget:${tenant.tenantId}:all`, amount: `${PRICE}` }),
    ])
    expect(verifyOpening(receipt, { counters: evidence.counters }).ok).toBe(true)
  })

  test('of a guest, who is known by the payer', async () => {
    const { payer, pay, task, first } = await payWithoutAnswer()
    expect(await send(pay, task)).toMatchObject({ status: 409, body: { retryable: true } })
    expect(await spentBy(payer, 1)).toBe(PRICE)
    await reconcile(first.body.run_id)
    expect(await send(pay, task)).toMatchObject({ status: 200, body: { run_id: first.body.run_id } })
    expect(await spentBy(payer, 1)).toBe(PRICE)
  })

  test('a payment in the name of a guest that another key signed gets neither the answer nor rid of it', async () => {
    const { payer, pay, task, first } = await payWithoutAnswer()
    const forge = async () => {
      const challenge = readChallenge((await seller.post('/api/run', task)).headers)
      const forger = await chain.payer(1)
      return seller.post('/api/run', task, await signPayment({ ...forger, address: payer.address }, challenge))
    }
    expect(await forge()).toMatchObject({ status: 402, body: { error: 'payment_required' } })
    await reconcile(first.body.run_id)
    const forged = await forge()
    expect(forged).toMatchObject({ status: 402, body: { error: 'payment_required' } })
    expect(forged.text).not.toContain(first.body.run_id)
    expect(await send(pay, task)).toMatchObject({ status: 200, body: { run_id: first.body.run_id } })
    expect(await spentBy(payer, 1)).toBe(PRICE)
  })

  test('of a guest with a payment identifier, and with an Idempotency-Key', async () => {
    const clients: { identifier: string | undefined; headers: Record<string, string> }[] = [
      { identifier: `pay_${'a'.repeat(32)}`, headers: {} },
      { identifier: undefined, headers: { 'idempotency-key': 'once-only' } },
    ]
    for (const { identifier, headers } of clients) {
      const payer = await chain.payer(1)
      const pay = officialClient(payer, identifier)
      const task = newTask()
      facilitator.mode = 'loses its answer'
      const first = await send(pay, task, headers)
      expect(first.status).toBe(503)
      facilitator.mode = 'honest'
      expect(await send(pay, task, headers)).toMatchObject({ status: 409, body: { retryable: true } })
      await reconcile(first.body.run_id)
      const answers = [await send(pay, task, headers), await send(pay, task, headers)]
      for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: { run_id: first.body.run_id } })
      expect(await spentBy(payer, 1)).toBe(PRICE)
    }
  })

  test('a payment that certainly failed does not stand in the way of another', async () => {
    const tenant = await seller.onboard()
    const payer = await chain.payer(1)
    const pay = officialClient(payer)
    const task = newTask()
    facilitator.mode = 'does nothing'
    const first = await send(pay, task, tenant.headers)
    expect(first.status).toBe(503)
    await seller.db
      .updateTable('open_runs')
      .set((on) => ({
        payment: on.fn('jsonb_set', [on.ref('payment'), on.val('{authorization,validBefore}'), on.val('"1"')]),
      }))
      .where('id', '=', first.body.run_id)
      .execute()
    facilitator.mode = 'honest'
    await reconcile(first.body.run_id, tenant.headers)
    expect(await send(pay, task, tenant.headers)).toMatchObject({ status: 200 })
    expect(await spentBy(payer, 1)).toBe(PRICE)
  })

  test('nobody else is held up, and nobody else gets the answer', async () => {
    const [tenant, otherTenant] = [await seller.onboard(), await seller.onboard()]
    const [payer, otherPayer] = [await chain.payer(1), await chain.payer(1)]
    const task = newTask()
    facilitator.mode = 'loses its answer'
    const first = await send(officialClient(payer), task, tenant.headers)
    expect(first.status).toBe(503)
    facilitator.mode = 'honest'
    for (const headers of [otherTenant.headers, {}]) {
      expect((await seller.post('/api/run', task, headers)).status).toBe(402)
      const answer = await send(officialClient(otherPayer), task, headers)
      expect(answer.status).toBe(200)
      expect(answer.body.run_id).not.toBe(first.body.run_id)
    }
    await reconcile(first.body.run_id, tenant.headers)
    // A guest is told nothing about a tenant's run, even with the tenant's payer.
    const byPayer = await send(officialClient(payer), task)
    expect(byPayer.status).toBe(200)
    expect(byPayer.body.run_id).not.toBe(first.body.run_id)
    expect((await seller.post('/api/run', { ...task, task: 'Another joke.' }, tenant.headers)).status).toBe(402)
  })
})

describe('the payment identifier', () => {
  const identifier = () => `order-${String(++count).padStart(20, '0')}`

  test('is declared in the 402 as the official extension has it, and echoed in the answer and its replay', async () => {
    const challenge = readChallenge((await seller.post('/api/run', newTask())).headers)
    expect(challenge.extensions['payment-identifier']).toEqual(declarePaymentIdentifierExtension())
    const payer = await chain.payer(1)
    const [id, task] = [identifier(), newTask()]
    const pay = officialClient(payer, id)
    const answers = [await send(pay, task), await send(pay, task)]
    const [first, second] = answers.map(({ headers }) => readResponseHeader(headers))
    expect(first.extensions['payment-identifier']).toEqual({ info: { required: false, id } })
    expect(second).toEqual(first)
    expect(answers[1]!.body).toEqual(answers[0]!.body)
    expect(await spentBy(payer, 1)).toBe(PRICE)
  })

  test('with another body is a 409 that charges nothing', async () => {
    const payer = await chain.payer(1)
    const pay = officialClient(payer, identifier())
    expect((await send(pay, newTask())).status).toBe(200)
    expect(await send(pay, newTask())).toMatchObject({ status: 409, body: { code: 'conflict' } })
    expect(await spentBy(payer, 1)).toBe(PRICE)
  })

  test('binds beside an Idempotency-Key: either of them finds the answer', async () => {
    const payer = await chain.payer(1)
    const [id, task] = [identifier(), newTask()]
    const headers = { 'idempotency-key': identifier() }
    const first = await send(officialClient(payer, id), task, headers)
    expect(first.status).toBe(200)
    expect((await send(officialClient(payer, id), task)).body.run_id).toBe(first.body.run_id)
    expect((await send(officialClient(payer), task, headers)).body.run_id).toBe(first.body.run_id)
    expect(await spentBy(payer, 1)).toBe(PRICE)
  })

  test.each(['short', 'x'.repeat(129), 'with spaces in it, twenty', 17, null])('%j is a 400', async (id) => {
    const payer = await chain.payer(1)
    const task = newTask()
    const challenge = readChallenge((await seller.post('/api/run', task)).headers)
    const { 'payment-signature': header } = await signPayment(payer, challenge)
    const payload = JSON.parse(Buffer.from(header, 'base64').toString())
    payload.extensions = { 'payment-identifier': { info: { required: false, id } } }
    const answer = await seller.post('/api/run', task, { 'payment-signature': encode(payload) })
    expect(answer.status, answer.text).toBe(400)
    expect(answer.body.message).toMatch(/16 to 128 letters, digits/)
    expect(await spentBy(payer, 1)).toBe(0n)
  })
})

test('a facilitator that says settled with an invented transaction is not believed where the chain can be asked', async () => {
  const tenant = await seller.onboard()
  const payer = await chain.payer(1)
  facilitator.mode = 'invents a settlement'
  const task = newTask()
  const claimed = await send(officialClient(payer), task, tenant.headers)
  expect(claimed).toMatchObject({ status: 503, body: { charged: null } })
  expect(await spentBy(payer, 1)).toBe(0n)
  facilitator.mode = 'honest'
  await reconcile(claimed.body.run_id, tenant.headers)
  const answer = await send(officialClient(payer), task, tenant.headers)
  expect(answer).toMatchObject({ status: 200, body: { run_id: claimed.body.run_id } })
  expect(await spentBy(payer, 1)).toBe(PRICE)
  const { body: receipt } = await seller.get(answer.body.receipt_url)
  expect(receipt.settlement.asserted_by).toBe('chain')
})

test('a payment whose times are numbers pays, as our facilitator has it', async () => {
  const payer = await chain.payer(1)
  const task = newTask()
  const challenge = readChallenge((await seller.post('/api/run', task)).headers)
  const { 'payment-signature': header } = await signPayment(payer, challenge)
  const payload = JSON.parse(Buffer.from(header, 'base64').toString())
  for (const field of ['validAfter', 'validBefore', 'value'])
    payload.payload.authorization[field] = Number(payload.payload.authorization[field])
  const answer = await seller.post('/api/run', task, { 'payment-signature': encode(payload) })
  expect(answer.status, answer.text).toBe(200)
  expect(await spentBy(payer, 1)).toBe(PRICE)
})

test('a Permit2 payment is refused by name, at the service and at the facilitator', async () => {
  const task = newTask()
  const challenge = readChallenge((await seller.post('/api/run', task)).headers)
  const payload = {
    x402Version: 2,
    accepted: challenge.accepts[0],
    payload: { signature: `0x${'11'.repeat(65)}`, permit2Authorization: { from: `0x${'1'.repeat(40)}`, nonce: '1' } },
  }
  const answer = await seller.post('/api/run', task, { 'payment-signature': encode(payload) })
  expect(answer).toMatchObject({ status: 400, body: { reason: 'unsupported_payload_type' } })
  expect(answer.body.message).toMatch(/EIP-3009/)
  const body = { x402Version: 2, paymentPayload: payload, paymentRequirements: challenge.accepts[0] }
  expect((await chain.post('/facilitator/verify', body)).body).toMatchObject({
    isValid: false,
    invalidReason: 'unsupported_payload_type',
    invalidMessage: expect.stringContaining('EIP-3009'),
  })
  expect((await chain.post('/facilitator/settle', body)).body).toMatchObject({
    success: false,
    errorReason: 'unsupported_payload_type',
  })
})

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
const readResponseHeader = (headers: Headers) =>
  JSON.parse(Buffer.from(headers.get('payment-response')!, 'base64').toString())
