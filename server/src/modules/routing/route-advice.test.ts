import { expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { guest } from '../../platform/auth-context.ts'
import { createHttp } from '../../platform/http.ts'
import { createIds } from '../../platform/ids.ts'
import { createLog } from '../../platform/log.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { createRateLimiter } from '../../platform/rate-limit.ts'
import { buildPriceList } from '../catalog/price-list.ts'
import { type Assess, createRouteAdvice, type IssueQuote } from './route-advice.ts'
import { routingRoutes } from './routing.routes.ts'
import { createRouting } from './routing.ts'

const list = buildPriceList([])
const catalog = {
  all: () => list.lanes,
  fallback: () => list.fallback,
  find: (agentId: string) =>
    agentId === 'default' ? list.fallback : list.lanes.find((lane) => lane.agentId === agentId),
  version: () => list.version,
}
const allowAll: Assess = async (_request, offer) => ({ refused: false, offer, summary: { decision: 'approved' } })
const quoteDrafts: Parameters<IssueQuote>[0][] = []
const issueQuote: IssueQuote = (draft) => {
  quoteDrafts.push(draft)
  return { quote: { quote_id: 'qot_1', expires_at: '2026-11-16T15:10:00.000Z' }, token: 'body.signature' }
}

const createTestAdvice = (assess: Assess = allowAll) =>
  createRouteAdvice({ routing: createRouting({ catalog }), catalog, assess, issueQuote, laneMode: () => 'offline' })

async function startApp(assess: Assess = allowAll) {
  const clock = createTestClock()
  const http = await createHttp({
    log: createLog('silent'),
    clock,
    ids: createIds(clock),
    metrics: createMetrics(),
    authenticate: { key: async () => undefined, admin: () => false },
    limiter: createRateLimiter(clock),
    limits: { anonymousPerMinute: 0, keyPerMinute: 0 },
    publicUrl: () => 'http://localhost',
  })
  routingRoutes(http, createTestAdvice(assess))
  return {
    async post(url: string, payload: object) {
      const response = await http.inject({ method: 'POST', url, payload })
      return { status: response.statusCode, body: response.json() as Record<string, unknown> }
    },
  }
}

const TASK = 'Write a Python function that parses a CSV file and add unit tests'

test('a route has lane, price, reason, every alternative, and a quote bound to the task', async () => {
  const { post } = await startApp()
  const { status, body } = await post('/api/route', { task: TASK })
  expect(status).toBe(200)
  expect(body).toMatchObject({
    recommended_agent_id: 'coder-v1',
    price_usdc: 0.025,
    decision: 'approved',
    quote: { quote_id: 'qot_1', signature: 'body.signature' },
  })
  expect(body.alternatives).toHaveLength(7)
  expect(quoteDrafts.at(-1)).toMatchObject({
    kind: 'run',
    agent_id: 'coder-v1',
    amount: '25000',
    bound_to: { task_hash: expect.stringMatching(/^sha256:/) },
  })
})

test('the same request has the same response and id; another task has another id', async () => {
  const first = await createTestAdvice().adviseRoute(guest, { task: TASK })
  expect(await createTestAdvice().adviseRoute(guest, { task: TASK })).toEqual(first)
  expect((await createTestAdvice().adviseRoute(guest, { task: `${TASK}.` })).route_id).not.toBe(first.route_id)
})

test('an unknown agent and an unknown property are refused', async () => {
  const { post } = await startApp()
  expect(await post('/api/route', { task: TASK, agent_id: 'nobody-v1' })).toMatchObject({
    status: 400,
    body: { error: 'invalid_request' },
  })
  expect((await post('/api/route', { task: TASK, price_usdc: 0 })).status).toBe(400)
  expect((await post('/api/route', { task: '' })).status).toBe(400)
  expect((await post('/api/route', {})).status).toBe(400)
})

test('agent_id and preferred_agent_id both select the lane', async () => {
  const { post } = await startApp()
  expect((await post('/api/route', { task: TASK, agent_id: 'comedian-v1' })).body).toMatchObject({
    recommended_agent_id: 'comedian-v1',
    posture: 'explicit',
  })
  expect((await post('/api/route', { task: TASK, preferred_agent_id: 'default' })).body).toMatchObject({
    recommended_agent_id: 'default',
    price_usdc: 0.01,
  })
})

test('a limit that no lane meets gives a blocked decision without a quote', async () => {
  const { post } = await startApp()
  const { status, body } = await post('/api/route', { task: TASK, constraints: { max_cost_usdc: 0.001 } })
  expect([status, body.recommended_agent_id, body.decision, body.quote, body.price_usdc]).toEqual([
    200,
    null,
    'blocked',
    null,
    null,
  ])
})

test('a route that governance refuses gets no quote, and the reason is passed on', async () => {
  const { post } = await startApp(async () => ({
    refused: true,
    outcome: 'review_required',
    message: 'A person must agree.',
  }))
  expect((await post('/api/route', { task: TASK })).body).toMatchObject({
    decision: 'review_required',
    decision_reason: 'A person must agree.',
    quote: null,
  })
})

test('a downgrade recommends and quotes the lane that governance chose, at its price', async () => {
  const { post } = await startApp(async (_request, offer) => ({
    refused: false,
    offer: offer.alternatives.find((alternative) => alternative.agentId === 'writer-v1')!,
    summary: { decision: 'downgrade' },
  }))
  expect((await post('/api/route', { task: TASK, budget: { max_price_usdc: 0.013 } })).body).toMatchObject({
    recommended_agent_id: 'writer-v1',
    price_usdc: 0.013,
    decision: 'downgrade',
  })
  expect(quoteDrafts.at(-1)).toMatchObject({ agent_id: 'writer-v1', amount: '13000' })
})

test('routing-intel returns lane, cost and posture', async () => {
  const { post } = await startApp()
  expect((await post('/api/routing-intel', { task: TASK })).body).toMatchObject({
    recommended_lane: 'coder-v1',
    estimated_cost_usdc: 0.025,
    routing_posture: 'confident',
  })
  expect((await post('/api/routing-intel', { task: 'hello' })).body).toMatchObject({
    recommended_lane: 'default',
    estimated_cost_usdc: 0.01,
    routing_posture: 'fallback',
  })
})

test('routed actions are planned: 501 with a pointer', async () => {
  const { post } = await startApp()
  expect(await post('/api/route-intent', { intent: 'buy' })).toMatchObject({
    status: 501,
    body: { error: 'error', code: 'planned', next_action: '/api/pricing#routed_actions' },
  })
})
