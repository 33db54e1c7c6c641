import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { richTenant, type Tenant } from '../governance/world.ts'
import { startService, type TestService } from '../harness.ts'
import { createHeldLane, type HeldLane } from '../runs/held-lane.ts'

/** Long runs as tasks of revision 2025-11-25, in that revision's own JSON. The official client does it in the long test. */
let service: TestService
let lane: HeldLane
let tenant: Tenant
let stranger: Tenant
beforeAll(async () => {
  lane = createHeldLane()
  service = await startService({ lane, env: { BACKGROUND_WORK: 'off' } })
  tenant = await richTenant(service)
  stranger = await richTenant(service)
})
afterEach(async () => {
  const timer = setInterval(() => lane.letGo(), 10)
  await service.service.background.idle()
  clearInterval(timer)
})
afterAll(() => service?.close())

// biome-ignore lint/suspicious/noExplicitAny: tests assert on the answer
type Message = { result?: any; error?: { code: number; message: string; data?: any } }

async function send(method: string, params: object, headers: Record<string, string> = {}): Promise<Message> {
  const { text, body } = await service.post(
    '/mcp',
    { jsonrpc: '2.0', id: 1, method, params },
    { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25', ...headers },
  )
  return body ?? JSON.parse(/^data: (.*)$/m.exec(text)![1]!)
}

const callAsTask = (args: object, headers: Record<string, string> = {}, meta?: object) =>
  send('tools/call', { name: 'run', arguments: args, task: { ttl: 60_000 }, ...(meta && { _meta: meta }) }, headers)
const walletRun = (task: string) => ({ task, agent_id: 'comedian-v1', payment: { wallet_id: tenant.walletId } })

test('a task of another tenant or guest, or of nobody, is unknown to get, result and cancel', async () => {
  const { result } = await callAsTask(walletRun('A slow joke about strangers.'), tenant.headers)
  const { taskId } = result.task
  for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
    for (const [id, headers] of [
      [taskId, stranger.headers],
      [taskId, {}],
      ['run_00000000-0000-7000-8000-000000000000', tenant.headers],
      ['../../api/keys', tenant.headers],
    ] as const)
      expect((await send(method, { taskId: id }, headers)).error, `${method} ${id}`).toMatchObject({ code: -32602 })
  expect((await send('tasks/get', { taskId }, tenant.headers)).result.status).toBe('working')
})

test('a call that is not paid for, or refused, begins no task: the error has the terms or the rule', async () => {
  const unpaid = await callAsTask({ task: 'A joke.', agent_id: 'comedian-v1' })
  expect(unpaid.error).toMatchObject({ data: { status: 402, x402Version: 2, accepts: [expect.anything()] } })
  const refused = await callAsTask(
    { ...walletRun('A joke.'), budget: { max_price_usdc: 0.001, strict: true } },
    tenant.headers,
  )
  expect(refused.error).toMatchObject({ data: { status: 429 } })
  const other = await send('tools/call', { name: 'route', arguments: { task: 'A joke.' }, task: { ttl: 1 } })
  expect(other.result.structuredContent.route ?? other.result.structuredContent).toBeDefined()
  expect(other.result).not.toHaveProperty('task')
})

test('only revision 2025-11-25 is offered tasks, and only for the tool run', async () => {
  const { result } = await send('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'test', version: '1.0.0' },
  })
  expect(result.capabilities.tasks).toEqual({ requests: { tools: { call: {} } }, cancel: {} })
  const { result: list } = await send('tools/list', {}, tenant.headers)
  const supporting = list.tools.filter(({ execution }: { execution?: object }) => execution !== undefined)
  expect(supporting).toMatchObject([{ name: 'run', execution: { taskSupport: 'optional' } }])
})

test('a run as a task: working at once, then completed, and its result is that of the call', async () => {
  const task = 'A slow joke about tasks.'
  const { result } = await callAsTask(walletRun(task), tenant.headers)
  const { taskId } = result.task
  expect(result.task).toMatchObject({ taskId: expect.stringMatching(/^run_/), status: 'working', ttl: null })
  await expect.poll(() => lane.held.has(task)).toBe(true)
  const waiting = send('tasks/result', { taskId }, tenant.headers)
  lane.letGo()
  const { result: final } = await waiting
  expect(final.structuredContent).toMatchObject({ status: 'completed', run_id: taskId, output: expect.any(String) })
  expect(final._meta).toEqual({ 'io.modelcontextprotocol/related-task': { taskId } })
  expect((await send('tasks/get', { taskId }, tenant.headers)).result).toMatchObject({ taskId, status: 'completed' })
  expect((await send('tasks/cancel', { taskId }, tenant.headers)).error).toMatchObject({ code: -32602 })
})

test('a guest’s task, paid by x402, is read and cancelled by its id alone, which nobody can guess', async () => {
  const payer = await service.payer(1)
  const args = { task: 'A slow joke about guests.', agent_id: 'comedian-v1' }
  const { error } = await callAsTask(args)
  const x402 = new x402Client().register('eip155:8453', new ExactEvmScheme(payer))
  const payment = await x402.createPaymentPayload(error!.data)
  const { result } = await callAsTask(args, {}, { 'x402/payment': payment })
  const { taskId } = result.task
  await expect.poll(() => lane.held.has(args.task)).toBe(true)
  const runId = taskId.split('.')[0]
  expect((await send('tasks/cancel', { taskId: runId })).error).toMatchObject({ code: -32602 })
  expect((await send('tasks/cancel', { taskId })).result).toMatchObject({ taskId, status: 'cancelled' })
  const { result: final } = await send('tasks/result', { taskId })
  expect(final).toMatchObject({ isError: true, structuredContent: { charged: false } })
  expect(await service.balance(payer.address)).toBe(1_000_000n)
})
