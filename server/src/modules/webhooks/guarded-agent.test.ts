import type { LookupAddress } from 'node:dns'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { createGuardedAgent, type ResolveAll } from './guarded-agent.ts'
import { createSender } from './send.ts'

// A server that must never be connected to: it counts connections, not requests.
let internalServer: Server
let port: number
let connections = 0
const agents: { close(): Promise<void> }[] = []

beforeAll(async () => {
  internalServer = createServer((_request, response) => response.end('secret'))
  internalServer.on('connection', () => {
    connections += 1
  })
  await new Promise<void>((resolve) => internalServer.listen(0, '127.0.0.1', resolve))
  port = (internalServer.address() as AddressInfo).port
})
afterEach(async () => {
  for (const agent of agents.splice(0)) await agent.close()
})
afterAll(() => {
  internalServer.close()
})

const message = { id: 'evt_1', timestamp: 1, body: '{}' }
const neverAborted = new AbortController().signal

function sendWith(resolveAll: ResolveAll | undefined, allowLoopback = false) {
  const agent = createGuardedAgent({ allowLoopback }, resolveAll)
  agents.push(agent)
  const send = createSender(agent, 10_000)
  return (url: string) => send({ url, message, secrets: ['whsec_AAAA'] }, neverAborted)
}

const resolvesTo =
  (...answers: string[][]): ResolveAll =>
  async () => {
    const addresses = answers.length > 1 ? answers.shift()! : answers[0]!
    return addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 }))
  }

test.each([
  'http://127.0.0.1:PORT/',
  'http://2130706433:PORT/',
  'http://0x7f000001:PORT/',
  'http://0177.0.0.1:PORT/',
  'http://127.1:PORT/',
  'http://0:PORT/',
  'http://0.0.0.0:PORT/',
  'http://[::1]:PORT/',
  'http://[::]:PORT/',
  'http://[::ffff:127.0.0.1]:PORT/',
  'http://[::ffff:7f00:1]:PORT/',
  'http://[64:ff9b::7f00:1]:PORT/',
  'http://localhost:PORT/',
])('%s is never connected to, even when the URL check was bypassed', async (url) => {
  const before = connections
  const outcome = await sendWith(undefined)(url.replace('PORT', String(port)))
  expect(outcome).toMatchObject({ ok: false, status: null })
  expect(outcome.error).toContain('does not lead to a public address')
  expect(connections).toBe(before)
})

test.each([
  ['a private address', ['10.0.0.1']],
  ['the loopback address', ['127.0.0.1']],
  ['a mapped loopback address', ['::ffff:127.0.0.1']],
  ['the metadata service', ['169.254.169.254']],
  ['several, none of them public', ['192.168.1.1', '::1', 'fd00::1']],
  ['nothing', []],
])('a name that resolves to %s is refused', async (_description, addresses) => {
  const before = connections
  const outcome = await sendWith(resolvesTo(addresses))(`http://hook.example:${port}/`)
  expect(outcome.error).toBe('hook.example does not lead to a public address')
  expect(connections).toBe(before)
})

test('a name that was public when it was checked and is private when connecting is refused', async () => {
  const before = connections
  const resolve = resolvesTo(['93.184.215.14'], ['127.0.0.1'])
  // The first lookup stands for the check at creation; the connection gets the second answer.
  expect(await resolve('hook.example')).toEqual([{ address: '93.184.215.14', family: 4 }])
  const outcome = await sendWith(resolve)(`http://hook.example:${port}/`)
  expect(outcome.error).toBe('hook.example does not lead to a public address')
  expect(connections).toBe(before)
})

test('in development, loopback is reached by a loopback name or address only', async () => {
  const before = connections
  const direct = await sendWith(undefined, true)(`http://127.0.0.1:${port}/`)
  expect(direct).toMatchObject({ ok: true, status: 200 })
  expect(connections).toBe(before + 1)
  const disguisedOutcome = await sendWith(resolvesTo(['127.0.0.1']), true)(`http://hook.example:${port}/`)
  expect(disguisedOutcome.error).toBe('hook.example does not lead to a public address')
  const resolvedPrivate = await sendWith(resolvesTo(['10.0.0.1']), true)(`http://localhost:${port}/`)
  expect(resolvedPrivate.error).toBe('localhost does not lead to a public address')
  expect(connections).toBe(before + 1)
})
