import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createStripePortal } from '../../src/adapters/billing/stripe.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
import { ask, type Node, onboard, openNode } from './test-app.ts'

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: Node
let bare: Node
let stripe: Server
const asked: { path: string | undefined; headers: IncomingHttpHeaders; form: URLSearchParams }[] = []

/** Answers as the provider's API does: a session, an unknown customer, or trouble. */
beforeAll(async () => {
  stripe = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const form = new URLSearchParams(body)
    asked.push({ path: request.url, headers: request.headers, form })
    const answer = (status: number, json: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json', 'request-id': 'req_1' })
      response.end(JSON.stringify(json))
    }
    if (form.get('customer') === 'cus_known')
      return answer(200, {
        id: 'bps_1',
        object: 'billing_portal.session',
        url: 'https://billing.stripe.test/session/1',
      })
    if (form.get('customer') === 'cus_trouble') return answer(500, { error: { type: 'api_error', message: 'trouble' } })
    answer(400, {
      error: {
        type: 'invalid_request_error',
        code: 'resource_missing',
        message: 'No such customer',
        param: 'customer',
      },
    })
  })
  await new Promise<void>((done) => stripe.listen(0, '127.0.0.1', done))
  const apiUrl = `http://127.0.0.1:${(stripe.address() as AddressInfo).port}`
  scratch = await createTestDatabase()
  database = scratch.open()
  node = await openNode(database, { portal: createStripePortal({ secretKey: 'sk_test_canary', apiUrl }) })
  bare = await openNode(database)
})
afterAll(async () => {
  await node?.close()
  await bare?.close()
  await database?.close()
  await scratch?.drop()
  stripe?.close()
})

async function customer(id: string | null) {
  const { tenant_id, api_key } = await onboard(node)
  await ask(node, `PATCH /api/admin/tenants/${tenant_id}`, { billing_customer_id: id }, { admin: true })
  return api_key
}

test('a tenant with a customer gets the address of its portal', async () => {
  const key = await customer('cus_known')
  const answer = await ask(node, 'POST /api/billing/portal', undefined, { key })
  expect([answer.status, answer.body]).toEqual([200, { url: 'https://billing.stripe.test/session/1' }])
  expect(answer.headers['cache-control']).toBe('no-store')
  const { path, headers, form } = asked.at(-1)!
  expect(path).toBe('/v1/billing_portal/sessions')
  expect(headers.authorization).toBe('Bearer sk_test_canary')
  expect(Object.fromEntries(form)).toEqual({ customer: 'cus_known', return_url: 'https://countersign.test' })
})

test('a session opens the portal too', async () => {
  const key = await customer(null)
  const session = await ask(node, 'POST /api/session', { api_key: key })
  const headers = {
    cookie: String(session.headers['set-cookie']).split(';')[0]!,
    'x-csrf-token': session.body.csrf_token,
  }
  expect((await ask(node, 'POST /api/billing/portal', undefined, { headers })).status).toBe(404)
  expect((await ask(node, 'POST /api/billing/portal', undefined, { headers: { cookie: headers.cookie } })).status).toBe(
    403,
  )
})

test('without a customer, here or at the provider, it is 404; without a credential 401', async () => {
  expect((await ask(node, 'POST /api/billing/portal')).status).toBe(401)
  const before = asked.length
  expect((await ask(node, 'POST /api/billing/portal', undefined, { key: await customer(null) })).status).toBe(404)
  expect(asked.length).toBe(before)
  const forgotten = await ask(node, 'POST /api/billing/portal', undefined, { key: await customer('cus_forgotten') })
  expect(forgotten.status).toBe(404)
})

test('a provider in trouble or not configured is 503, and no key is told', async () => {
  const trouble = await ask(node, 'POST /api/billing/portal', undefined, { key: await customer('cus_trouble') })
  expect([trouble.status, trouble.body.code, trouble.body.retryable]).toEqual([503, 'unavailable', true])
  expect(trouble.text).not.toContain('canary')
  const none = await ask(bare, 'POST /api/billing/portal', undefined, { key: await customer('cus_other') })
  expect([none.status, none.body.code]).toEqual([503, 'not_configured'])
})

test('the plan of a tenant shows its name and features, of an unknown one the default, without the header 400', async () => {
  const { tenant_id } = await onboard(node)
  await ask(node, `PATCH /api/admin/tenants/${tenant_id}`, { plan: 'team' }, { admin: true })
  const plan = (id: string) => ask(node, 'GET /api/billing/plan', undefined, { headers: { 'x-tenant-id': id } })
  const known = await plan(tenant_id)
  expect(known.status).toBe(200)
  expect(Object.keys(known.body)).toEqual(['plan', 'features'])
  expect(known.body).toMatchObject({ plan: 'team', features: { predictive_alerts: true } })
  expect((await plan('ten_unknown')).body).toMatchObject({ plan: 'free', features: { predictive_alerts: false } })
  const missing = await ask(node, 'GET /api/billing/plan')
  expect([missing.status, missing.body.error]).toEqual([400, 'invalid_request'])
})
