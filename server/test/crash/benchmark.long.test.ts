import { expect, test } from 'vitest'
import { readBenchmarkSuite } from '../../src/adapters/lanes/benchmark.ts'
import { createTestDatabase, spawnService } from '../harness.ts'
import { startModelServer } from '../model-server.ts'

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
  let hold = true
  // The first process gets no answer, so that it is in the middle of a task.
  const model = await startModelServer({ answerTask: () => (hold ? () => {} : { text: 'An answer.' }) })
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
    await until(async () => (model.requests.length > 0 ? true : undefined))
    // The model holds the first task, and the service answers all the same.
    expect((await first.get('/api/benchmark', headers)).body).toMatchObject({ as_of: null, lanes: [] })
    await first.stop('SIGKILL')
    hold = false

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
    model.close()
    await database.drop()
  }
}, 180_000)
