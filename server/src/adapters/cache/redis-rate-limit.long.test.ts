import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../platform/clock.ts'
import { createLog } from '../../platform/log.ts'
import { createRateLimiter } from '../../platform/rate-limit.ts'
import { createRedisRateLimiter, type SharedRateLimiter } from './redis-rate-limit.ts'

/** Against a real server, which npm does not bring: without `redis-server` on the PATH these are not run, and say so. */
const installed = spawnSync('redis-server', ['--version']).status === 0
if (!installed) console.warn('redis-server is not installed: the shared rate limit was not tried against a real one.')

describe.runIf(installed)('with a real Redis', () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-redis-'))
  const socket = join(folder, 'redis.sock')
  let server: ChildProcess
  let nodes: SharedRateLimiter[]

  const start = async () => {
    server = spawn(
      'redis-server',
      ['--port', '0', '--unixsocket', socket, '--save', '', '--appendonly', 'no', '--dir', folder],
      {
        stdio: 'ignore',
      },
    )
    await vi.waitFor(
      async () => expect(await Promise.all(nodes.map((node) => node.state()))).toEqual(['ok', 'ok']),
      10_000,
    )
  }
  const kill = async () => {
    const exited = new Promise((done) => server.once('exit', done))
    server.kill('SIGKILL')
    await exited
  }
  const openNode = () =>
    createRedisRateLimiter({ url: socket, local: createRateLimiter(systemClock), log: createLog('silent') })
  /** Asks both nodes in turn; answers how many were let through. */
  const hammer = async (subject: string, asks: number, perMinute: number) => {
    const answers = await Promise.all(
      Array.from({ length: asks }, (_, n) => nodes[n % nodes.length]!.take(subject, perMinute)),
    )
    return answers.filter(({ allowed }) => allowed).length
  }

  beforeAll(async () => {
    nodes = [openNode(), openNode()]
    await start()
  })
  afterAll(async () => {
    for (const node of nodes) await node.close()
    await kill()
    rmSync(folder, { recursive: true, force: true })
  })

  test('two nodes share one limit', async () => {
    const allowed = await hammer('shared', 300, 100)
    // A token comes back every 0.6 s, so one or two more may pass while we ask.
    expect(allowed).toBeGreaterThanOrEqual(100)
    expect(allowed).toBeLessThanOrEqual(102)
    const refused = await nodes[0]!.take('shared', 100)
    expect(refused).toMatchObject({ allowed: false, limit: 100, remaining: 0 })
    expect(refused.resetSeconds).toBeGreaterThanOrEqual(1)
  })

  test('one subject does not use up another’s', async () => {
    await hammer('greedy', 50, 10)
    expect(await hammer('modest', 5, 10)).toBe(5)
  })

  test('killed and emptied under load: the limit grows to one a node at most, and is shared again afterwards', async () => {
    let allowed = await hammer('storm', 60, 100)
    await kill()
    allowed += await hammer('storm', 400, 100)
    await start()
    const eraser = new Redis(socket)
    await eraser.flushall()
    eraser.disconnect()
    await new Promise((done) => setTimeout(done, 1_100))
    allowed += await hammer('storm', 400, 100)
    expect(allowed).toBeLessThanOrEqual(2 * 100 + 20)
    expect(allowed).toBeGreaterThanOrEqual(100)
    expect(await hammer('after', 300, 100)).toBeLessThanOrEqual(102)
  })
})
