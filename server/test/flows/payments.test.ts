import { verifyReceipt } from '@countersign/proof'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readChallenge, readJson, signPayment, signPaymentV1, startService, type TestService } from '../harness.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

const body = { task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }

async function challenge(path = '/api/run', request: unknown = body) {
  const response = await service.post(path, request)
  expect(response.status).toBe(402)
  return { required: readChallenge(response.headers), v1: response.body, headers: response.headers }
}

const countRuns = async () =>
  Number(
    (
      await service.db
        .selectFrom('runs')
        .select((on) => on.fn.countAll().as('n'))
        .executeTakeFirstOrThrow()
    ).n,
  )

describe('one 402 serves both versions', () => {
  test('the header is version 2, the body version 1 with error and message', async () => {
    const { required, v1, headers } = await challenge()
    expect(required).toMatchObject({
      x402Version: 2,
      accepts: [
        {
          scheme: 'exact',
          network: 'eip155:8453',
          amount: '10000',
          maxTimeoutSeconds: 300,
          extra: { name: 'USD Coin', version: '2' },
        },
      ],
    })
    expect(v1).toMatchObject({
      error: 'payment_required',
      x402Version: 1,
      accepts: [{ network: 'base', maxAmountRequired: '10000' }],
    })
    expect(v1.message).toMatch(/0\.01 USDC/)
    expect(headers.get('cache-control')).toBe('no-store')
  })

  test('a version 1 client pays', async () => {
    const payer = await service.payer(1)
    const { v1 } = await challenge()
    const paid = await service.post('/api/run', body, await signPaymentV1(payer, v1))
    expect(paid.status, paid.text).toBe(200)
    const paymentResponse = JSON.parse(Buffer.from(paid.headers.get('x-payment-response')!, 'base64').toString())
    expect(paymentResponse).toMatchObject({
      success: true,
      network: 'base',
      transaction: paid.body.settlement.transaction,
    })
    expect(await service.balance(payer.address)).toBe(990_000n)
  })

  test('the official client pays a loop, at the lane’s base price', async () => {
    const payer = await service.payer(1)
    const response = await payer.fetch(`${service.url}/api/loop`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ input: 'hello there' }),
    })
    const loop = await readJson(response)
    expect(response.status, JSON.stringify(loop)).toBe(200)
    expect(loop).toMatchObject({ status: 'success', paid: true, price_usdc: 0.005, amount: '5000' })
    expect(await service.balance(payer.address)).toBe(995_000n)
    const { body: jwks } = await service.get('/.well-known/jwks.json')
    const { body: receipt } = await service.get(loop.receipt_url)
    expect(receipt.kind).toBe('loop')
    expect(verifyReceipt(receipt, { jwks })).toMatchObject({ ok: true })
  })

  test('a loop on a named lane costs that lane’s base price', async () => {
    const { required } = await challenge('/api/loop', { input: 'x', agent_id: 'researcher-v2' })
    expect(required.accepts[0].amount).toBe('18000')
  })
})

describe('the same payment sent again', () => {
  test('gets the same bytes and is charged once', async () => {
    const payer = await service.payer(1)
    const { required } = await challenge()
    const header = await signPayment(payer, required)
    const first = await service.post('/api/run', body, header)
    const second = await service.post('/api/run', body, header)
    expect(first.status).toBe(200)
    expect(second.status).toBe(200)
    expect(second.text).toBe(first.text)
    expect(second.headers.get('idempotent-replayed')).toBe('true')
    expect(await service.balance(payer.address)).toBe(990_000n)
  })

  test('with another body is a 409, is not used, and still pays for its own request', async () => {
    const payer = await service.payer(1)
    const { required } = await challenge()
    const header = await signPayment(payer, required)
    const otherResponse = await service.post('/api/run', { ...body, task: 'Another task altogether.' }, header)
    expect(otherResponse.status).toBe(409)
    expect(await service.balance(payer.address)).toBe(1_000_000n)
    const acceptedResponse = await service.post('/api/run', body, header)
    expect(acceptedResponse.status).toBe(200)
    const reusedResponse = await service.post('/api/run', { ...body, task: 'Another task altogether.' }, header)
    expect(reusedResponse.status).toBe(409)
    expect(await service.balance(payer.address)).toBe(990_000n)
  })

  test('of version 1 is bound to the request it was first used for', async () => {
    const payer = await service.payer(1)
    const { v1 } = await challenge()
    const header = await signPaymentV1(payer, v1)
    expect((await service.post('/api/run', body, header)).status).toBe(200)
    expect((await service.post('/api/run', { ...body, task: 'Something else.' }, header)).status).toBe(409)
    expect(await service.balance(payer.address)).toBe(990_000n)
  })

  test('cannot pay for a more expensive lane', async () => {
    const payer = await service.payer(1)
    const { v1 } = await challenge()
    const response = await service.post('/api/run', { ...body, agent_id: 'coder-v1' }, await signPaymentV1(payer, v1))
    expect(response.status).toBe(402)
    expect(response.body.message).toMatch(/exactly 25000/)
    expect(await service.balance(payer.address)).toBe(1_000_000n)
  })
})

describe('an idempotency key', () => {
  test('with a new payment returns the stored response and charges nothing', async () => {
    const payer = await service.payer(1)
    const key = { 'idempotency-key': 'order-1' }
    const first = await service.post('/api/run', body, {
      ...key,
      ...(await signPayment(payer, (await challenge()).required)),
    })
    const second = await service.post('/api/run', body, {
      ...key,
      ...(await signPayment(payer, (await challenge()).required)),
    })
    expect(first.status).toBe(200)
    expect(second.text).toBe(first.text)
    expect(await service.balance(payer.address)).toBe(990_000n)
  })

  test('with another body is a 409', async () => {
    const payer = await service.payer(1)
    const key = { 'idempotency-key': 'order-2' }
    const stranger = { ...body, task: 'A second task.' }
    expect(
      (await service.post('/api/run', body, { ...key, ...(await signPayment(payer, (await challenge()).required)) }))
        .status,
    ).toBe(200)
    const refusedResponse = await service.post('/api/run', stranger, {
      ...key,
      ...(await signPayment(payer, (await challenge('/api/run', stranger)).required)),
    })
    expect(refusedResponse.status).toBe(409)
    expect(await service.balance(payer.address)).toBe(990_000n)
  })

  test('that was first sent without a payment can still be used', async () => {
    const payer = await service.payer(1)
    const key = { 'idempotency-key': 'order-3' }
    const unpaid = await service.post('/api/run', body, key)
    expect(unpaid.status).toBe(402)
    const paid = await service.post('/api/run', body, {
      ...key,
      ...(await signPayment(payer, readChallenge(unpaid.headers))),
    })
    expect(paid.status).toBe(200)
  })
})

describe('a tenant', () => {
  test('finds its runs, loops and settlements; guests and other tenants find nothing', async () => {
    const owner = await service.onboard()
    const otherTenant = await service.onboard()
    const payer = await service.payer(1)
    const header = { ...owner.headers, ...(await signPayment(payer, (await challenge()).required)) }
    const run = await service.post('/api/run', body, header)
    expect(run.status, run.text).toBe(200)
    const id = run.body.run_id
    expect((await service.get('/api/runs', owner.headers)).body.runs).toMatchObject([
      { run_id: id, outcome: 'completed', receipt_url: run.body.receipt_url },
    ])
    expect((await service.get('/api/runs?agent_id=nobody-v1', owner.headers)).body.runs).toEqual([])
    const record = await service.get(`/api/runs/${id}`, owner.headers)
    expect(record.body).toMatchObject({ run_id: id, outcome: 'completed', answer: { status: 200, body: run.body } })
    expect((await service.get(`/api/runs/${id}`, otherTenant.headers)).status).toBe(404)
    expect((await service.get('/api/runs/run_x', owner.headers)).status).toBe(404)
    expect((await service.get('/api/loops', owner.headers)).body).toMatchObject({
      count: 1,
      loops: [{ run_id: id, paid: true }],
    })
    const settlement = run.body.settlement.settlement_id
    expect((await service.get('/api/settlements', owner.headers)).body.settlements).toMatchObject([
      { settlement_id: settlement, status: 'settled' },
    ])
    expect((await service.get(`/api/settle/${settlement}`, owner.headers)).status).toBe(200)
    const strangersView = await service.get(`/api/settle/${settlement}`, otherTenant.headers)
    const unknown = await service.get('/api/settle/stl_00000000-0000-7000-8000-000000000000', otherTenant.headers)
    expect(strangersView.status).toBe(404)
    expect(strangersView.body.message).toBe(unknown.body.message)
    expect((await service.get('/api/runs', otherTenant.headers)).body.runs).toEqual([])
    expect((await service.get('/api/loops')).body).toEqual({ loops: [], count: 0 })
    expect((await service.get('/api/runs')).status).toBe(401)
  })
})

describe('budget inputs', () => {
  test('a strict ceiling below the price is a 429 before any payment', async () => {
    const refusedResponse = await service.post('/api/run', { ...body, budget: { max_price_usdc: 0.001 } })
    expect(refusedResponse.status).toBe(429)
    expect(refusedResponse.body).toMatchObject({ error: 'budget_exceeded', outcome: 'blocked' })
    expect(refusedResponse.headers.get('retry-after')).toBeNull()
  })

  test('a foreign currency is a 400', async () => {
    expect((await service.post('/api/run', { ...body, budget: { currency: 'EUR', max_price_usdc: 1 } })).status).toBe(
      400,
    )
  })
})

describe('bad input gets a clear error and is not charged', () => {
  const cases: [string, unknown, number, RegExp][] = [
    ['broken JSON', '{"task": ', 400, /not valid JSON/],
    ['a duplicate key', '{"task":"a","task":"b"}', 400, /twice/],
    ['a number beyond all bounds', '{"task":"a","budget":{"max_price_usdc":1e400}}', 400, /too large/],
    ['deep nesting', `{"task":${'['.repeat(50)}${']'.repeat(50)}}`, 400, /nested deeper/],
    ['a task that is no text', { task: 5 }, 400, /task/],
    ['no task', {}, 400, /task/],
    ['a blank task', { task: '   ' }, 400, /blank/],
    ['an unknown property', { task: 'a', colour: 'red' }, 400, /colour/],
    ['an unknown agent', { task: 'a', agent_id: 'nobody-v9' }, 400, /nobody-v9/],
    ['aliases that disagree', { task: 'a', agent_id: 'coder-v1', lane_id: 'writer-v1' }, 400, /aliases/],
    ['a body of 300 KiB', { task: 'a', session_id: 'x'.repeat(300 * 1024) }, 413, /256 KiB/],
    ['a task of 40,000 characters', { task: 'a'.repeat(40_000) }, 400, /32000/],
  ]
  for (const [name, request, status, message] of cases) {
    test(name, async () => {
      const response = await service.post('/api/run', request)
      expect(response.status).toBe(status)
      expect(response.body.message).toMatch(message)
      expect(response.body.request_id).toBe(response.headers.get('x-request-id'))
    })
  }

  test('another content type is a 415, another method a 405', async () => {
    const text = await fetch(`${service.url}/api/run`, {
      method: 'POST',
      headers: { 'content-type': 'text/plain' },
      body: 'hi',
    })
    expect(text.status).toBe(415)
    const method = await service.call('DELETE', '/api/run')
    expect(method.status).toBe(405)
    expect(method.headers.get('allow')).toMatch(/POST/)
    expect(method.body.code).toBe('method_not_allowed')
  })

  const badPayments: [string, Parameters<typeof signPayment>[2], RegExp][] = [
    ['another recipient', { to: '0x1111111111111111111111111111111111111111' }, /must go to/],
    ['too little', { value: 9_999n }, /exactly 10000/],
    ['too much', { value: 10_001n }, /exactly 10000/],
    ['expired', { validBefore: 1_000n }, /expired/],
    ['valid too long', { validBefore: BigInt(Math.floor(Date.now() / 1000) + 7_200) }, /within an hour/],
    ['not valid yet', { validAfter: BigInt(Math.floor(Date.now() / 1000) + 100) }, /not valid yet/],
    ['signed for another chain', { chainId: 1 }, /signature/i],
    ['signed for another token', { asset: '0x2222222222222222222222222222222222222222' }, /signature/i],
    ['another network in accepted', { accepted: { network: 'eip155:1' } }, /network must be/],
    [
      'another asset in accepted',
      { accepted: { asset: '0x2222222222222222222222222222222222222222' } },
      /asset must be/,
    ],
    ['sent in the name of another payer', { from: '0x3333333333333333333333333333333333333333' }, /signature/i],
  ]
  for (const [name, changes, message] of badPayments) {
    test(`a payment that is ${name}`, async () => {
      const payer = await service.payer(1)
      const before = await countRuns()
      const response = await service.post(
        '/api/run',
        body,
        await signPayment(payer, (await challenge()).required, changes),
      )
      expect(response.status, response.text).toBe(402)
      expect(response.body.error).toBe('payment_required')
      expect(response.body.message).toMatch(message)
      expect(await service.balance(payer.address)).toBe(1_000_000n)
      expect(await countRuns()).toBe(before)
    })
  }

  test('a payer without funds gets a 402', async () => {
    const payer = await service.payer(0)
    const response = await service.post('/api/run', body, await signPayment(payer, (await challenge()).required))
    expect(response.status).toBe(402)
    expect(response.body.reason).toMatch(/insufficient/)
  })

  test('payment headers that are malformed or of both versions are refused', async () => {
    const payer = await service.payer(1)
    const { required, v1 } = await challenge()
    expect((await service.post('/api/run', body, { 'payment-signature': 'not base64 json' })).status).toBe(400)
    expect(
      (await service.post('/api/run', body, { 'x-payment': Buffer.from('{"x402Version":1}').toString('base64') }))
        .status,
    ).toBe(400)
    const both = { ...(await signPayment(payer, required)), ...(await signPaymentV1(payer, v1)) }
    expect((await service.post('/api/run', body, both)).status).toBe(400)
    expect(await service.balance(payer.address)).toBe(1_000_000n)
  })
})

describe('aliases', () => {
  test('redirect every method with 308 and keep the query', async () => {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
      const response = await service.call(method, '/api/settlement?a=1&b=2', method === 'GET' ? undefined : {})
      expect(response.status).toBe(308)
      expect(response.headers.get('location')).toBe('/api/settle?a=1&b=2')
    }
    expect((await service.get('/api/onboarding')).headers.get('location')).toBe('/api/onboard')
  })
})

describe('the x402 extension offer-receipt', () => {
  test('the 402 carries a signed offer and the answer a signed receipt that the official verifier accepts', async () => {
    const official = await import('@x402/extensions')
    const { body: jwks } = await service.get('/.well-known/jwks.json')
    const keyOf = (signature: string) => {
      const { kid } = JSON.parse(Buffer.from(signature.split('.')[0]!, 'base64url').toString())
      return jwks.keys.find((key: { kid: string }) => kid.endsWith(`#${key.kid}`))
    }
    const { required } = await challenge()
    const [offer] = official.extractOffersFromPaymentRequired(required) as { signature: string; format: 'jws' }[]
    const offered = await official.verifyOfferSignatureJWS(offer as never, keyOf(offer!.signature))
    expect(offered).toMatchObject({ amount: '10000', network: 'eip155:8453', payTo: required.accepts[0].payTo })
    const payer = await service.payer(1)
    const response = await fetch(`${service.url}/api/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(await signPayment(payer, required)) },
      body: JSON.stringify(body),
    })
    expect(response.status).toBe(200)
    const receipt = official.extractReceiptFromResponse(response) as { signature: string }
    const delivered = await official.verifyReceiptSignatureJWS(receipt as never, keyOf(receipt.signature))
    expect(delivered).toMatchObject({ payer: payer.address.toLowerCase(), network: 'eip155:8453' })
  })
})
