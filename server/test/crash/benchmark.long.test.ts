import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { readBenchmarkSuite } from '../../src/adapters/lanes/benchmark.ts'
import { createTestDatabase, spawnService } from '../harness.ts'

/** Speaks the wire format of an OpenAI-compatible server; `hold` keeps every answer back. */
async function startModel() {
  const state = { calls: 0, hold: true }
  const server = createServer(async (request, response) => {
    for await (const _chunk of request);
    state.calls += 1
    if (state.hold) return
    const chunk = (delta: object, finish_reason: string | null) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`${chunk({ role: 'assistant', content: 'An answer.' }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { state, server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` }
}

async function until<Value>(read: () => Promise<Value | undefined>): Promise<Value> {
  const giveUpAt = Date.now() + 90_000
  for (;;) {
    const value = await read()
    if (value !== undefined) return value
    if (Date.now() > giveUpAt) throw new Error('It did not happen in time.')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

test('a process killed in the middle of the suite leaves it to the next one, and the start does not wait for it', async () => {
  const model = await startModel()
  const database = await createTestDatabase()
  const env = {
    DATABASE_URL: database.url,
    BENCHMARK_SUITE: 'on',
    LANE_PROVIDER: 'openai-compatible',
    LANE_BASE_URL: model.url,
    LANE_MODEL: 'm',
  }
  const first = await spawnService(env)
  try {
    const { headers } = await first.onboard()
    await until(async () => (model.state.calls > 0 ? true : undefined))
    // The model holds the first task, and the service answers all the same.
    expect((await first.get('/api/benchmark', headers)).body).toMatchObject({ as_of: null, lanes: [] })
    await first.stop('SIGKILL')
    model.state.hold = false

    const second = await spawnService({ ...env, COUNTERSIGN_DATA_DIR: first.dataDir })
    try {
      const results = await until(async () => {
        const { body } = await second.get('/api/benchmark', headers)
        return body.as_of === null ? undefined : body
      })
      expect(results.mode).toBe('live')
      const measured = results.lanes.reduce((sum: number, lane: { n: number }) => sum + lane.n, 0)
      expect(measured).toBe(readBenchmarkSuite().tasks.length)
    } finally {
      await second.stop()
    }
  } finally {
    first.child.kill('SIGKILL')
    model.server.closeAllConnections()
    model.server.close()
    await database.drop()
  }
}, 180_000)
