import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { TenantCaller } from './auth-context.ts'
import { systemClock } from './clock.ts'
import { createFairQueue, type FairQueue } from './fair-queue.ts'
import { createHttp } from './http.ts'
import type { App } from './http-app.ts'
import { createIds } from './ids.ts'
import { createLog } from './log.ts'
import { createMetrics } from './metrics.ts'
import { createRateLimiter } from './rate-limit.ts'

const SLOTS = 8
/** One owner alone gets half of the slots. */
const SHARE = SLOTS / 2

let app: App
let port: number
let runs: FairQueue
let requests: FairQueue
let bodiesRead: number
let finishHandlers: () => void
let sockets: Socket[]

beforeEach(async () => {
  ;[bodiesRead, sockets] = [0, []]
  const finished = Promise.withResolvers<void>()
  finishHandlers = finished.resolve
  runs = createFairQueue({ slots: 4 * SLOTS })
  requests = createFairQueue({ slots: SLOTS, maxWaiting: 4 })
  app = await createHttp({
    log: createLog('silent'),
    clock: systemClock,
    ids: createIds(systemClock),
    metrics: createMetrics(),
    authenticate: {
      key: async (key) => ({ kind: 'tenant', tenantId: key, keyId: key, scopes: [] }) as unknown as TenantCaller,
      admin: () => false,
    },
    limiter: createRateLimiter(systemClock),
    limits: { anonymousPerMinute: 0, keyPerMinute: 0 },
    publicUrl: () => 'http://127.0.0.1',
    queues: { runs, requests },
  })
  app.addHook('preHandler', async () => void bodiesRead++)
  const body = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }
  app.post('/wait', { config: { auth: 'optional' }, schema: { body } }, async () => {
    await finished.promise
    return { ok: true }
  })
  app.post('/run', { config: { auth: 'optional', paid: true }, schema: { body } }, async (request) => {
    request.endTurn()
    await finished.promise
    return { ok: true }
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  port = (app.server.address() as { port: number }).port
})
afterEach(async () => {
  finishHandlers()
  for (const socket of sockets) socket.destroy()
  await app.close()
})

const post = (path: string, owner: string, body: unknown = { a: 1 }) =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': owner },
    body: JSON.stringify(body),
  })

/** Sends the head of a request and `text` of a body that shall have `length` bytes. */
async function sendRaw(path: string, owner: string, text: string, length = text.length) {
  const socket = connect({ host: '127.0.0.1', port })
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${owner}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${text}`,
  )
  return socket
}

const until = async (isTrue: () => boolean) => {
  for (let tries = 0; tries < 200 && !isTrue(); tries++) await delay(10)
  expect(isTrue()).toBe(true)
}

test('of a burst only the share of its caller is read; the rest waits unread, and another caller is read at once', async () => {
  const burst = Array.from({ length: SHARE + 3 }, () => post('/wait', 'flood'))
  await until(() => requests.load('flood').waiting === 3)
  expect(bodiesRead).toBe(SHARE)
  const other = post('/wait', 'quiet')
  await until(() => bodiesRead === SHARE + 1)
  finishHandlers()
  expect((await Promise.all([...burst, other])).map(({ status }) => status)).toEqual(Array(SHARE + 4).fill(200))
  expect(requests.load('flood')).toEqual({ underWay: 0, waiting: 0 })
})

test('what waits beyond the limit of its caller is 503 with Retry-After, before its body is read', async () => {
  const burst = Array.from({ length: SHARE + 4 }, () => post('/wait', 'flood'))
  await until(() => requests.load('flood').waiting === 4)
  const refused = await post('/wait', 'flood', { not: 'valid' })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  finishHandlers()
  await Promise.all(burst)
})

test('a caller that hangs up does not free the place of work that goes on', async () => {
  for (let index = 0; index < SHARE; index++) {
    const socket = await sendRaw('/wait', 'flood', '{"a":1}')
    await until(() => bodiesRead === index + 1)
    socket.destroy()
  }
  const next = post('/wait', 'flood')
  await until(() => requests.load('flood').waiting === 1)
  await delay(50)
  expect([bodiesRead, requests.load('flood')]).toEqual([SHARE, { underWay: SHARE, waiting: 1 }])
  finishHandlers()
  expect((await next).status).toBe(200)
})

test('a body that is cut off, not JSON or against the schema frees its place', async () => {
  for (let round = 0; round < 3; round++) {
    const cutOff = await Promise.all(Array.from({ length: SHARE }, () => sendRaw('/run', 'flood', '{"a"', 100)))
    await until(() => requests.load('flood').underWay === SHARE)
    for (const socket of cutOff) socket.destroy()
    await until(() => requests.load('flood').underWay === 0 && runs.load('flood').underWay === 0)
    await sendRaw('/run', 'flood', '{"a"')
    expect((await post('/run', 'flood', {})).status).toBe(400)
    await until(() => requests.load('flood').underWay === 0 && runs.load('flood').underWay === 0)
  }
})

test('a request whose caller left while it waited never begins', async () => {
  const burst = Array.from({ length: SHARE }, () => post('/wait', 'flood'))
  await until(() => bodiesRead === SHARE)
  const left = await sendRaw('/run', 'flood', '{"a":1}')
  await until(() => requests.load('flood').waiting === 1)
  left.destroy()
  await until(() => runs.load('flood').underWay === 0)
  finishHandlers()
  await Promise.all(burst)
  await until(() => requests.load('flood').waiting === 0 && requests.load('flood').underWay === 0)
  expect(bodiesRead).toBe(SHARE)
})

test('a run that works leaves its turn to the next request, and its place among runs to nobody', async () => {
  const burst = Array.from({ length: 2 * SHARE }, () => post('/run', 'flood'))
  await until(() => bodiesRead === 2 * SHARE)
  expect([requests.load('flood').underWay, runs.load('flood').underWay]).toEqual([0, 2 * SHARE])
  finishHandlers()
  await Promise.all(burst)
  await until(() => runs.load('flood').underWay === 0)
})
