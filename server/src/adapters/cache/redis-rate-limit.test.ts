import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { createLog } from '../../platform/log.ts'
import { createRateLimiter } from '../../platform/rate-limit.ts'
import { createRedisRateLimiter, type SharedRateLimiter } from './redis-rate-limit.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function startServer(onConnection: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    onConnection(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function createLimiter(url: string): SharedRateLimiter {
  const limiter = createRedisRateLimiter({ url, local: createRateLimiter(createTestClock()), log: createLog('silent') })
  closers.push(limiter.close)
  return limiter
}

async function countAllowed(limiter: SharedRateLimiter, requests: number, perMinute: number) {
  let allowed = 0
  for (let n = 0; n < requests; n += 1) if ((await limiter.take('key:a', perMinute)).allowed) allowed += 1
  return allowed
}

test('without a server the local limit applies, and no request waits', async () => {
  const limiter = createLimiter('redis://127.0.0.1:1')
  const startedAt = performance.now()
  expect(await countAllowed(limiter, 50, 20)).toBe(20)
  // Each of the fifty requests would take seconds if it waited for the connection.
  expect(performance.now() - startedAt).toBeLessThan(5_000)
  expect(await limiter.state()).toBe('unreachable')
})

test('a server that accepts connections and never replies delays no request', async () => {
  const limiter = createLimiter(await startServer(() => {}))
  const startedAt = performance.now()
  expect(await countAllowed(limiter, 50, 20)).toBe(20)
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})

test('with a server that sends garbage or closes the connection the local limit applies', async () => {
  const garbageLimiter = createLimiter(
    await startServer((socket) => socket.on('data', () => socket.write('what?\r\n'))),
  )
  const closingLimiter = createLimiter(await startServer((socket) => socket.destroy()))
  for (const limiter of [garbageLimiter, closingLimiter]) expect(await countAllowed(limiter, 50, 20)).toBe(20)
})

test('a malformed reply is ignored', async () => {
  // Every command gets an array of two strings, which is valid RESP but not a valid reply to the script.
  const limiter = createLimiter(
    await startServer((socket) => socket.on('data', () => socket.write('*2\r\n$4\r\nwhat\r\n$3\r\nNaN\r\n'))),
  )
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(await countAllowed(limiter, 50, 20)).toBe(20)
})
