import type { Worker } from 'node:cluster'
import { EventEmitter } from 'node:events'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createProcessPool } from './process-pool.ts'

/** A process that becomes ready or ends as the test says. */
class TestWorker extends EventEmitter {
  dead = false
  stopsOnTerm = true
  sent: unknown[] = []
  process = { kill: (signal: string) => void ((signal === 'SIGKILL' || this.stopsOnTerm) && this.end(null, signal)) }
  isDead = () => this.dead
  isConnected = () => !this.dead
  send = (message: unknown) => void this.sent.push(message)
  end(code: number | null, signal: string | null = null) {
    if (this.dead) return
    this.dead = true
    this.emit('exit', code, signal)
  }
  ready = () => this.emit('message', { kind: 'ready' })
}

function createTestPool(options: { steadyMs?: number } = {}) {
  const forked: TestWorker[] = []
  const crashLoops: string[] = []
  const pool = createProcessPool({
    processes: ['api-1', 'api-2'].map((name) => ({
      name,
      fork() {
        const worker = new TestWorker()
        forked.push(worker)
        return worker as unknown as Worker
      },
    })),
    log: pino({ level: 'silent' }),
    onMessage: () => {},
    onChange: () => {},
    onCrashLoop: (message) => crashLoops.push(message),
    firstBackOffMs: 1,
    stopTimeoutMs: 20,
    ...options,
  })
  return { pool, forked, crashLoops }
}

async function startTestPool(options: { steadyMs?: number } = {}) {
  const parts = createTestPool(options)
  const start = parts.pool.start()
  for (const worker of parts.forked) worker.ready()
  await start
  return parts
}

test('an ended process is started again under its name, and gets messages once it is ready', async () => {
  const { pool, forked } = await startTestPool()
  expect(pool.ready()).toEqual(['api-1', 'api-2'])
  forked[0]!.end(null, 'SIGKILL')
  expect(pool.ready()).toEqual(['api-2'])
  await expect.poll(() => forked.length).toBe(3)
  pool.send('api-1', { kind: 'early' })
  expect(forked[2]!.sent).toEqual([])
  forked[2]!.ready()
  expect(pool.ready()).toEqual(['api-1', 'api-2'])
  pool.send('api-1', { kind: 'late' })
  expect(forked[2]!.sent).toEqual([{ kind: 'late' }])
})

test('a process that ends again and again is reported once and no longer started', async () => {
  const { forked, crashLoops } = await startTestPool()
  for (let ends = 1; ends <= 6; ends++) {
    const count = forked.length
    forked.findLast((worker) => !worker.dead && worker !== forked[1])!.end(1)
    if (ends < 6) await expect.poll(() => forked.length).toBe(count + 1)
  }
  expect(crashLoops).toEqual([
    'The process api-1 ended 6 times in a row and was never ready for 10 s, the last time with code 1.',
  ])
})

test('a process that ran long enough starts a new back-off', async () => {
  const { forked, crashLoops } = await startTestPool({ steadyMs: -1 })
  for (let ends = 1; ends <= 10; ends++) {
    const count = forked.length
    forked.findLast((worker) => !worker.dead && worker !== forked[1])!.end(1)
    await expect.poll(() => forked.length).toBe(count + 1)
    forked.at(-1)!.ready()
  }
  expect(crashLoops).toEqual([])
})

test('a start fails when a process ends before it is ready', async () => {
  const { pool, forked } = createTestPool()
  const start = pool.start()
  forked[0]!.ready()
  forked[1]!.end(1)
  await expect(start).rejects.toThrow('The process api-2 ended with code 1 before it was ready.')
  await pool.stop()
})

test('a stop ends every process, kills one that does not end, and starts none again', async () => {
  const { pool, forked } = await startTestPool()
  forked[1]!.stopsOnTerm = false
  expect(await pool.stop()).toBe(false)
  expect(forked.every(({ dead }) => dead)).toBe(true)
  expect(forked).toHaveLength(2)
})
