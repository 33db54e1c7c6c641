import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createStripePortal } from '../../src/adapters/billing/stripe.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
import { type Node, onboard, openNode, sendRequest } from './test-node.ts'

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: Node
let nodeWithoutStripe: Node
let stripe: Server
const requests: { path: string | undefined; headers: IncomingHttpHeaders; form: URLSearchParams }[] = []

/** Responds like Stripe's API: with a session, an unknown customer or a failure. */
beforeAll(async () => {
  stripe = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const form = new URLSearchParams(body)
    requests.push({ path: request.url, headers: request.headers, form })
    const respond = (status: number, json: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json', 'request-id': 'req_1' })
      response.end(JSON.stringify(json))
    }
    if (form.get('customer') === 'cus_known')
      return respond(200, {
        id: 'bps_1',
        object: 'billing_portal.session',
        url: 'https://billing.stripe.test/session/1',
      })
    if (form.get('customer') === 'cus_failing')
      return respond(500, { error: { type: 'api_error', message: 'failure' } })
    respond(400, {
      error: {
        type: 'invalid_request_error',
        code: 'resource_missing',
        message: 'No such customer',
        param: 'customer',
      },
    })
  })
  await new Promise<void>((resolve) => stripe.listen(0, '127.0.0.1', resolve))
  const apiUrl = `http://127.0.0.1:${(stripe.address() as AddressInfo).port}`
  testDatabase = await createTestDatabase()
  database = testDatabase.open()
  node = await openNode(database, { portal: createStripePortal({ secretKey: 'sk_test_canary', apiUrl }) })
  nodeWithoutStripe = await openNode(database)
})
afterAll(async () => {
  await node?.close()
  await nodeWithoutStripe?.close()
  await database?.close()
  await testDatabase?.drop()
  stripe?.close()
})

async function onboardWithCustomer(id: string | null) {
  const { tenant_id, api_key } = await onboard(node)
  await sendRequest(node, `PATCH /api/admin/tenants/${tenant_id}`, { billing_customer_id: id }, { admin: true })
  return api_key
}

test('a tenant with a billing customer gets the URL of its portal', async () => {
  const key = await onboardWithCustomer('cus_known')
  const response = await sendRequest(node, 'POST /api/billing/portal', undefined, { key })
  expect([response.status, response.body]).toEqual([200, { url: 'https://billing.stripe.test/session/1' }])
  expect(response.headers['cache-control']).toBe('no-store')
  const { path, headers, form } = requests.at(-1)!
  expect(path).toBe('/v1/billing_portal/sessions')
  expect(headers.authorization).toBe('Bearer sk_test_canary')
  expect(Object.fromEntries(form)).toEqual({ customer: 'cus_known', return_url: 'https://countersign.test' })
})

test('the portal accepts a session with its CSRF token', async () => {
  const key = await onboardWithCustomer(null)
  const session = await sendRequest(node, 'POST /api/session', { api_key: key })
  const headers = {
    cookie: String(session.headers['set-cookie']).split(';')[0]!,
    'x-csrf-token': session.body.csrf_token,
  }
  expect((await sendRequest(node, 'POST /api/billing/portal', undefined, { headers })).status).toBe(404)
  expect(
    (await sendRequest(node, 'POST /api/billing/portal', undefined, { headers: { cookie: headers.cookie } })).status,
  ).toBe(403)
})

test('a customer unknown here or at the provider is 404; a missing credential is 401', async () => {
  expect((await sendRequest(node, 'POST /api/billing/portal')).status).toBe(401)
  const before = requests.length
  expect(
    (await sendRequest(node, 'POST /api/billing/portal', undefined, { key: await onboardWithCustomer(null) })).status,
  ).toBe(404)
  expect(requests.length).toBe(before)
  const response = await sendRequest(node, 'POST /api/billing/portal', undefined, {
    key: await onboardWithCustomer('cus_unknown'),
  })
  expect(response.status).toBe(404)
})

test('a billing customer of one tenant is refused to another', async () => {
  const { tenant_id } = await onboard(node)
  await onboardWithCustomer('cus_taken')
  const change = { billing_customer_id: 'cus_taken' }
  const refused = await sendRequest(node, `PATCH /api/admin/tenants/${tenant_id}`, change, { admin: true })
  expect([refused.status, refused.body.error]).toEqual([400, 'invalid_request'])
  expect(refused.body.message).toContain('belongs to another tenant')
})

test('a failing or unconfigured provider is 503, without revealing its key', async () => {
  const failure = await sendRequest(node, 'POST /api/billing/portal', undefined, {
    key: await onboardWithCustomer('cus_failing'),
  })
  expect([failure.status, failure.body.code, failure.body.retryable]).toEqual([503, 'unavailable', true])
  expect(failure.text).not.toContain('canary')
  const notConfigured = await sendRequest(nodeWithoutStripe, 'POST /api/billing/portal', undefined, {
    key: await onboardWithCustomer('cus_other'),
  })
  expect([notConfigured.status, notConfigured.body.code]).toEqual([503, 'not_configured'])
})

test('a billing plan shows name and features; an unknown tenant gets the default plan, a missing header 400', async () => {
  const { tenant_id } = await onboard(node)
  await sendRequest(node, `PATCH /api/admin/tenants/${tenant_id}`, { plan: 'team' }, { admin: true })
  const plan = (id: string) => sendRequest(node, 'GET /api/billing/plan', undefined, { headers: { 'x-tenant-id': id } })
  const response = await plan(tenant_id)
  expect(response.status).toBe(200)
  expect(Object.keys(response.body)).toEqual(['plan', 'features'])
  expect(response.body).toMatchObject({ plan: 'team', features: { predictive_alerts: true } })
  expect((await plan('ten_unknown')).body).toMatchObject({ plan: 'free', features: { predictive_alerts: false } })
  const responseWithoutHeader = await sendRequest(node, 'GET /api/billing/plan')
  expect([responseWithoutHeader.status, responseWithoutHeader.body.error]).toEqual([400, 'invalid_request'])
})
