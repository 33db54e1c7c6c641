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

async function serverThat(behaves: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    behaves(socket)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  closers.push(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function limiterAt(url: string): SharedRateLimiter {
  const limiter = createRedisRateLimiter({ url, local: createRateLimiter(createTestClock()), log: createLog('silent') })
  closers.push(limiter.close)
  return limiter
}

async function allowedOf(limiter: SharedRateLimiter, asks: number, perMinute: number) {
  let allowed = 0
  for (let n = 0; n < asks; n += 1) if ((await limiter.take('key:a', perMinute)).allowed) allowed += 1
  return allowed
}

test('with nobody there the limit is the local one, and no request waits', async () => {
  const limiter = limiterAt('redis://127.0.0.1:1')
  const began = performance.now()
  expect(await allowedOf(limiter, 50, 20)).toBe(20)
  // A request that waited for the connection would take seconds, and there are fifty.
  expect(performance.now() - began).toBeLessThan(5_000)
  expect(await limiter.state()).toBe('unreachable')
})

test('a server that takes connections and never answers holds nobody up', async () => {
  const limiter = limiterAt(await serverThat(() => {}))
  const began = performance.now()
  expect(await allowedOf(limiter, 50, 20)).toBe(20)
  expect(performance.now() - began).toBeLessThan(5_000)
})

test('a server that talks nonsense or hangs up changes nothing', async () => {
  const babbling = limiterAt(await serverThat((socket) => socket.on('data', () => socket.write('what?\r\n'))))
  const leaving = limiterAt(await serverThat((socket) => socket.destroy()))
  for (const limiter of [babbling, leaving]) expect(await allowedOf(limiter, 50, 20)).toBe(20)
})

test('an answer that makes no sense is no answer', async () => {
  // Everything is answered with an array of two texts: it reads as a reply and is none.
  const limiter = limiterAt(
    await serverThat((socket) => socket.on('data', () => socket.write('*2\r\n$4\r\nwhat\r\n$3\r\nNaN\r\n'))),
  )
  await new Promise((done) => setTimeout(done, 50))
  expect(await allowedOf(limiter, 50, 20)).toBe(20)
})
