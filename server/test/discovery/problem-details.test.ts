import { afterAll, beforeAll, expect, test } from 'vitest'
import { readChallenge, readJson, startService, type TestService } from '../harness.ts'

const PROBLEM = 'application/problem+json'

let service: TestService
beforeAll(async () => {
  service = await startService({
    lane: {
      name: 'broken',
      mode: 'offline',
      execute: async () => ({ ok: false, reason: 'refused', message: 'The lane is out of order.', retryable: false }),
    },
  })
})
afterAll(() => service.close())

const ask = async (method: string, path: string, accept: string | undefined, body?: unknown, pay = fetch) => {
  const response = await pay(`${service.url}${path}`, {
    method,
    headers: { ...(accept && { accept }), ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { response, type: response.headers.get('content-type')!.split(';')[0], body: await readJson(response) }
}

test('nobody gets problem details who does not name them: the error is the usual one', async () => {
  for (const accept of [undefined, '*/*', 'application/*', 'application/json', `${PROBLEM};q=0`, `${PROBLEM}; q=0.0`]) {
    const { response, type, body } = await ask('POST', '/api/run', accept, {})
    expect([response.status, type], accept).toEqual([400, 'application/json'])
    expect(Object.keys(body).sort()).toEqual(['error', 'message', 'request_id'])
  }
})

test('a success is the same whether problem details are accepted or not', async () => {
  const plain = await ask('GET', '/api/pricing', 'application/json')
  const problem = await ask('GET', '/api/pricing', PROBLEM)
  expect([problem.response.status, problem.type, problem.body]).toEqual([200, 'application/json', plain.body])
})

test('an error has type, title, status and detail when they are accepted, and keeps its own members', async () => {
  for (const accept of [PROBLEM, `application/json, ${PROBLEM};q=0.9`, PROBLEM.toUpperCase()]) {
    const { response, type, body } = await ask('POST', '/api/run', accept, {})
    expect([response.status, type], accept).toEqual([400, PROBLEM])
    expect(response.headers.get('vary')).toContain('accept')
    expect(body).toEqual({
      type: 'urn:problem-type:countersign:invalid_request',
      title: 'Invalid request',
      status: 400,
      detail: 'body must have a task.',
      error: 'invalid_request',
      message: 'body must have a task.',
      request_id: response.headers.get('x-request-id'),
    })
  }
})

test.each([
  ['GET', '/api/nowhere', 404, 'not_found', 'Not found'],
  ['GET', '/api/run', 405, 'method_not_allowed', 'Method not allowed'],
  ['GET', '/api/runs', 401, 'unauthorized', 'Unauthorized'],
] as const)('%s %s is %i as problem details too', async (method, path, status, code, title) => {
  const { response, type, body } = await ask(method, path, PROBLEM)
  expect([response.status, type]).toEqual([status, PROBLEM])
  expect(body).toMatchObject({ type: `urn:problem-type:countersign:${code}`, title, status, detail: body.message })
})

test('a 402 as problem details still has everything that an x402 client of either version reads', async () => {
  const { response, body } = await ask('POST', '/api/run', PROBLEM, { task: 'Tell me a joke.' })
  expect(body).toMatchObject({
    type: 'urn:problem-type:countersign:payment_required',
    title: 'Payment required',
    status: 402,
    x402Version: 1,
    accepts: [{ scheme: 'exact', network: 'base' }],
  })
  expect(readChallenge(response.headers)).toMatchObject({ x402Version: 2, accepts: [{ network: 'eip155:8453' }] })
})

test('the status of a failed run goes under run_status', async () => {
  const payer = await service.payer()
  const task = { task: 'Tell me a joke.' }
  const plain = await ask('POST', '/api/run', undefined, task, payer.fetch)
  expect([plain.response.status, plain.body.status]).toEqual([500, 'failed'])
  expect(plain.body).not.toHaveProperty('run_status')
  const { response, type, body } = await ask('POST', '/api/run', PROBLEM, task, payer.fetch)
  expect([response.status, type]).toEqual([500, PROBLEM])
  expect(body).toMatchObject({ status: 500, run_status: 'failed', charged: false, detail: body.message })
})
