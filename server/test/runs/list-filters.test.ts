import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'

let service: TestService
let tenant: Awaited<ReturnType<TestService['onboard']>>
let other: Awaited<ReturnType<TestService['onboard']>>
const runs: Record<string, string> = {}
beforeAll(async () => {
  service = await startService()
  ;[tenant, other] = [await service.onboard('Acme'), await service.onboard('Other')]
  const payer = await service.payer(5)
  const run = async (headers: Record<string, string>, body: Record<string, unknown>) => {
    const response = await payer.fetch(`${service.url}/api/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    const answer = (await response.json()) as { run_id: string }
    expect(response.status, JSON.stringify(answer)).toBe(200)
    return answer.run_id
  }
  const task = 'Add 1 and 2.'
  runs.apollo = await run(tenant.headers, {
    task,
    agent_id: 'comedian-v1',
    spender: 'buyer-1',
    tags: { project: 'apollo', phase: 'a:b' },
  })
  runs.gemini = await run(tenant.headers, {
    task,
    agent_id: 'analyst-v1',
    spender: 'buyer-2',
    tags: { project: 'gemini' },
  })
  runs.plain = await run(tenant.headers, { task, agent_id: 'writer-v1' })
  runs.foreign = await run(other.headers, {
    task,
    agent_id: 'comedian-v1',
    spender: 'buyer-1',
    tags: { project: 'apollo' },
  })
})
afterAll(() => service.close())

const list = async (query: string) => (await service.get(`/api/runs?${query}`, tenant.headers)).body.runs
const names = async (query: string) =>
  (await list(query)).map(({ run_id }: { run_id: string }) => Object.keys(runs).find((name) => runs[name] === run_id))

test('runs are found by spender, tag and price, and never those of another tenant', async () => {
  expect(await names('spender=buyer-1')).toEqual(['apollo'])
  expect(await names('tag=project')).toEqual(['gemini', 'apollo'])
  expect(await names('tag=project:apollo')).toEqual(['apollo'])
  expect(await names('tag=phase:a:b')).toEqual(['apollo'])
  expect(await names('tag=project:')).toEqual([])
  expect(await names('min_usdc=0.013')).toEqual(['plain', 'gemini'])
  expect(await names('min_usdc=0.0130001')).toEqual(['gemini'])
  expect(await names('max_usdc=0.01')).toEqual(['apollo'])
  expect(await names('max_usdc=0.0099999')).toEqual([])
  expect(await names('team=nobody')).toEqual([])
})

test('a row says who spent, with which tags, and when it ended', async () => {
  const [row] = await list('spender=buyer-1')
  expect(row).toMatchObject({ spender: 'buyer-1', team: null, tags: { project: 'apollo', phase: 'a:b' } })
  expect(Date.parse(row.finished_at)).toBeGreaterThanOrEqual(Date.parse(row.created_at))
  const { body } = await service.get(`/api/runs/${runs.apollo}`, tenant.headers)
  expect(body).toMatchObject({ spender: 'buyer-1', tags: { project: 'apollo' }, finished_at: row.finished_at })
  const [plain] = await list('agent_id=writer-v1')
  expect(plain.spender).toMatch(/^key:key_/)
})

for (const [what, query] of [
  ['an empty spender', 'spender='],
  ['a price below zero', 'min_usdc=-1'],
  ['a price that is no number', 'max_usdc=much'],
  ['an unknown filter', 'spenders=x'],
] as const)
  test(`${what} is refused`, async () => {
    const { status, body } = await service.get(`/api/runs?${query}`, tenant.headers)
    expect(status).toBe(400)
    expect(body.message).toEqual(expect.any(String))
  })
