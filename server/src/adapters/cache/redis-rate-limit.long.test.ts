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

/** These tests need `redis-server` on the PATH, which npm does not install; without it they are skipped with a warning. */
const installed = spawnSync('redis-server', ['--version']).status === 0
if (!installed) console.warn('redis-server is not installed: the tests of the shared rate limit are skipped.')

describe.runIf(installed)('with a real Redis', () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-redis-'))
  const socket = join(folder, 'redis.sock')
  let server: ChildProcess
  let nodes: SharedRateLimiter[]

  const startRedis = async () => {
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
  const killRedis = async () => {
    const exited = new Promise((resolve) => server.once('exit', resolve))
    server.kill('SIGKILL')
    await exited
  }
  const openNode = () =>
    createRedisRateLimiter({ url: socket, local: createRateLimiter(systemClock), log: createLog('silent') })
  /** Sends requests to both nodes in turn and counts the allowed ones. */
  const countAllowed = async (subject: string, requests: number, perMinute: number) => {
    const allowances = await Promise.all(
      Array.from({ length: requests }, (_, index) => nodes[index % nodes.length]!.take(subject, perMinute)),
    )
    return allowances.filter(({ allowed }) => allowed).length
  }

  beforeAll(async () => {
    nodes = [openNode(), openNode()]
    await startRedis()
  })
  afterAll(async () => {
    for (const node of nodes) await node.close()
    await killRedis()
    rmSync(folder, { recursive: true, force: true })
  })

  test('two nodes share one limit', async () => {
    const allowed = await countAllowed('shared', 300, 100)
    // A token is added every 0.6 s, so one or two more requests may pass during the test.
    expect(allowed).toBeGreaterThanOrEqual(100)
    expect(allowed).toBeLessThanOrEqual(102)
    const refused = await nodes[0]!.take('shared', 100)
    expect(refused).toMatchObject({ allowed: false, limit: 100, remaining: 0 })
    expect(refused.resetSeconds).toBeGreaterThanOrEqual(1)
  })

  test('a process that was busy itself does not call Redis unreachable', async () => {
    const state = nodes[0]!.state()
    await Promise.resolve()
    const until = performance.now() + 300
    while (performance.now() < until);
    expect(await state).toBe('ok')
  })

  test('subjects have separate limits', async () => {
    await countAllowed('greedy', 50, 10)
    expect(await countAllowed('modest', 5, 10)).toBe(5)
  })

  test('when Redis is killed and flushed under load, each node allows at most its own limit, and the limit is shared again afterwards', async () => {
    let allowed = await countAllowed('storm', 60, 100)
    await killRedis()
    allowed += await countAllowed('storm', 400, 100)
    await startRedis()
    const redis = new Redis(socket)
    await redis.flushall()
    redis.disconnect()
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    allowed += await countAllowed('storm', 400, 100)
    expect(allowed).toBeLessThanOrEqual(2 * 100 + 20)
    expect(allowed).toBeGreaterThanOrEqual(100)
    expect(await countAllowed('after', 300, 100)).toBeLessThanOrEqual(102)
  })
})
