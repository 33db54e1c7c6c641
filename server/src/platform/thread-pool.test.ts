import { getPriority } from 'node:os'
import { afterEach, expect, test } from 'vitest'
import { createThreadPool, type ThreadPool, type ThreadPoolOptions } from './thread-pool.ts'

const pools: ThreadPool<string, string>[] = []
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close()
})

const openPool = (options: Partial<ThreadPoolOptions> = {}) => {
  const module = new URL('../../test/text/test-thread.ts', import.meta.url)
  const pool = createThreadPool<string, string>({
    module,
    maxThreads: 2,
    maxWaiting: 8,
    deadlineMs: 20_000,
    ...options,
  })
  pools.push(pool)
  return pool
}
const done = (output: string) => ({ state: 'done', output })

test('no thread runs before there is work, and jobs share at most as many as allowed', async () => {
  const pool = openPool()
  expect(pool.size()).toBe(0)
  const jobs = ['a', 'b', 'c', 'd', 'e']
  expect(await Promise.all(jobs.map((job) => pool.run(job)))).toEqual(jobs.map((job) => done(`did ${job}`)))
  expect(pool.size()).toBeLessThanOrEqual(2)
})

test('a job past its deadline fails, its thread is replaced, and jobs before, beside and behind it are done', async () => {
  const pool = openPool({ deadlineMs: 3_000 })
  const results = await Promise.all(['a', 'hang', 'b', 'hang', 'c', 'd'].map((job) => pool.run(job)))
  expect(results.map((result) => result.state)).toEqual(['done', 'timeout', 'done', 'timeout', 'done', 'done'])
  expect(await pool.run('e')).toEqual(done('did e'))
})

test('the event loop runs on while a thread hangs', async () => {
  const pool = openPool({ deadlineMs: 2_000 })
  let turns = 0
  const timer = setInterval(() => turns++, 5)
  expect(await pool.run('hang')).toEqual({ state: 'timeout' })
  clearInterval(timer)
  expect(turns).toBeGreaterThan(5)
})

test('a thread that ends, runs out of memory or throws fails its own job only', async () => {
  const pool = openPool({ maxThreads: 1, maxMemoryMb: 32 })
  expect((await pool.run('die')).state).toBe('failed')
  expect((await pool.run('fill')).state).toBe('failed')
  expect(await pool.run('throw')).toEqual({ state: 'failed', message: 'no' })
  expect(await pool.run('a')).toEqual(done('did a'))
})

test('one job more than may wait is refused at once', async () => {
  const pool = openPool({ maxThreads: 1, maxWaiting: 2 })
  const results = await Promise.all(['a', 'b', 'c'].map((job) => pool.run(job)))
  expect(results.map((result) => result.state)).toEqual(['done', 'done', 'full'])
})

test('a caller that gives up frees its place in the queue, or the thread that works for it', async () => {
  const pool = openPool({ maxThreads: 1 })
  await pool.run('a')
  const running = new AbortController()
  const waiting = new AbortController()
  const results = Promise.all([pool.run('hang', running.signal), pool.run('b', waiting.signal), pool.run('c')])
  waiting.abort()
  running.abort()
  expect((await results).map((result) => result.state)).toEqual(['timeout', 'timeout', 'done'])
})

test('a thread without work ends, and one is started again when it is needed', async () => {
  const pool = openPool({ idleMs: 50 })
  await pool.run('a')
  await expect.poll(() => pool.size()).toBe(0)
  expect(await pool.run('b')).toEqual(done('did b'))
})

test('a module that cannot be loaded fails the jobs instead of starting threads for ever', async () => {
  const pool = openPool({ module: new URL('./no-such-module.ts', import.meta.url) })
  const results = await Promise.all(['a', 'b', 'c'].map((job) => pool.run(job)))
  expect(results.map((result) => result.state)).toEqual(['failed', 'failed', 'failed'])
})

test('a thread has no setting of the service in its environment', async () => {
  process.env.SOME_SECRET = 'canary'
  expect(await openPool().run('env')).toEqual(done('{}'))
})

test.runIf(process.platform === 'linux')(
  'a thread has a lower priority than the event loop of its process',
  async () => {
    const before = getPriority()
    expect(await openPool().run('priority')).toEqual(done(String(Math.max(before, 10))))
    expect(getPriority()).toBe(before)
  },
)
