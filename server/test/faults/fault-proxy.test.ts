import { createServer, request } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { createRandom } from '../fuzz/random.ts'
import { FAULT_KINDS, type FaultProxy, randomFault, startFaultProxy } from './fault-proxy.ts'

/** A real HTTP server behind the proxy, and real clients before it. */
const BODY = Buffer.alloc(40_000, 'x')
const server = createServer((incoming, response) => {
  if (incoming.method === 'POST') incoming.pipe(response)
  else response.end(BODY)
})
let proxy: FaultProxy
const sockets: Socket[] = []

beforeAll(() => new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening)))
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
beforeEach(async () => {
  proxy = await startFaultProxy({ port: (server.address() as AddressInfo).port }, { seed: 7 })
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await proxy.close()
})

/** One GET over a connection of its own: the length of the body, or the code of the error. */
function get(timeoutMs = 20_000): Promise<number | string> {
  return new Promise((resolve) => {
    const outgoing = request({ port: proxy.port, host: '127.0.0.1', agent: false }, (incoming) =>
      buffer(incoming).then(
        (body) => resolve(body.length),
        (error: NodeJS.ErrnoException) => resolve(error.code!),
      ),
    )
    outgoing.setTimeout(timeoutMs, () => {
      resolve('silence')
      outgoing.destroy()
    })
    outgoing.on('error', (error: NodeJS.ErrnoException) => resolve(error.code!))
    outgoing.end()
  })
}

const timed = async <T>(work: () => Promise<T>) => {
  const startedAt = performance.now()
  return { result: await work(), ms: performance.now() - startedAt }
}

/** A connection that is open before the fault begins. */
async function openConnection() {
  const socket = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true })
  sockets.push(socket)
  const events: string[] = []
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk
  })
  socket.on('end', () => events.push('end'))
  socket.on('error', (error: NodeJS.ErrnoException) => events.push(error.code!))
  const ask = () => socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nping')
  ask()
  await expect.poll(() => received).toContain('ping')
  return { socket, events, ask, received: () => received }
}

test('without a fault everything passes, in both directions', async () => {
  expect(await get()).toBe(BODY.length)
  await openConnection()
})

test('latency delays both directions, and ends with the fault', async () => {
  await proxy.setFault({ kind: 'latency', ms: 300, jitterMs: 50 })
  const slow = await timed(get)
  expect(slow.result).toBe(BODY.length)
  expect(slow.ms).toBeGreaterThan(600)
  await proxy.clear()
  expect(await get()).toBe(BODY.length)
})

test('a limited bandwidth lets all through, slowly', async () => {
  await proxy.setFault({ kind: 'bandwidth', bytesPerSecond: 40_000 })
  const slow = await timed(get)
  expect(slow.result).toBe(BODY.length)
  expect(slow.ms).toBeGreaterThan(900)
})

test('a black hole accepts and answers nothing, and what was sent meanwhile arrives when it ends', async () => {
  const open = await openConnection()
  await proxy.setFault({ kind: 'black_hole' })
  const length = open.received().length
  open.ask()
  expect(await get(300)).toBe('silence')
  expect(open.received()).toHaveLength(length)
  const late = get()
  await proxy.clear()
  expect(await late).toBe(BODY.length)
  await expect.poll(() => open.received().length).toBe(2 * length)
})

test('a reset takes open connections and new ones', async () => {
  const open = await openConnection()
  await proxy.setFault({ kind: 'reset' })
  await expect.poll(() => open.events).toEqual(['ECONNRESET'])
  expect(await get()).toBe('ECONNRESET')
  await proxy.clear()
  expect(await get()).toBe(BODY.length)
})

test('a half-close ends one direction only, of a side that the seed chooses', async () => {
  const connections = await Promise.all(Array.from({ length: 6 }, openConnection))
  await proxy.setFault({ kind: 'half_close' })
  const ended = () => connections.filter(({ events }) => events.includes('end'))
  await expect.poll(() => ended().length).toBeGreaterThan(0)
  // A client that was told of the end can still send: nobody has reset the connection.
  for (const { events } of connections) expect(events).not.toContain('ECONNRESET')
})

test('a connection is cut after so many bytes', async () => {
  await proxy.setFault({ kind: 'cut', afterBytes: 20_000 })
  expect(await get()).toBe('ECONNRESET')
  await proxy.setFault({ kind: 'cut', afterBytes: 100_000 })
  expect(await get()).toBe(BODY.length)
})

test('while connections are refused nobody listens, and the same port listens again afterwards', async () => {
  const open = await openConnection()
  await proxy.setFault({ kind: 'refuse' })
  expect(await get()).toBe('ECONNREFUSED')
  await expect.poll(() => open.events).toEqual(['ECONNRESET'])
  await proxy.clear()
  expect(await get()).toBe(BODY.length)
})

test('a fault for a share of the connections takes the same ones with the same seed, and others with another', async () => {
  const pattern = async (seed: number) => {
    const fresh = await startFaultProxy({ port: (server.address() as AddressInfo).port }, { seed })
    const previous = proxy
    proxy = fresh
    try {
      await fresh.setFault({ kind: 'reset' }, { share: 0.5 })
      const results = []
      for (let index = 0; index < 12; index++) results.push(await get())
      return results.map((result) => (result === BODY.length ? '+' : '-')).join('')
    } finally {
      proxy = previous
      await fresh.close()
    }
  }
  const first = await pattern(3)
  expect(first).toContain('+')
  expect(first).toContain('-')
  expect(await pattern(3)).toBe(first)
  expect(await pattern(4)).not.toBe(first)
})

test('a fault by chance is the same for the same seed', () => {
  const faults = (seed: number) => FAULT_KINDS.map((kind, index) => randomFault(kind, createRandom(seed, index)))
  expect(faults(1)).toEqual(faults(1))
  expect(faults(1)).not.toEqual(faults(2))
})
