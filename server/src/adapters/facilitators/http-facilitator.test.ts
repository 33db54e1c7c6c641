import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { generatePrivateKey } from 'viem/accounts'
import { afterEach, describe, expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { facilitatorContract } from '../../../test/contract/facilitator.ts'
import { createMemoryJournal } from '../../../test/contract/memory-journal.ts'
import { NETWORK, newPayer, signPayment, termsOf } from '../../../test/contract/payments.ts'
import { FacilitatorUnavailable } from '../../modules/payments/facilitator.ts'
import { createChainReader } from '../chain/chain-reader.ts'
import { USDC } from '../chain/edr.ts'
import { createEmbeddedChain } from '../chain/embedded-chain.ts'
import { createFacilitatorHandlers } from './facilitator-wire.ts'
import { createHttpFacilitator } from './http-facilitator.ts'
import { createLocalFacilitator } from './local-facilitator.ts'

type Json = Record<string, unknown>
type Handler = (body: Json, response: ServerResponse, socket: Socket) => unknown
type Handlers = { verify?: Handler; settle?: Handler; supported?: Handler }

const closers: (() => Promise<void>)[] = []

/** A real server on the loopback. A handler answers with what it returns, or does something worse by itself. */
async function serve(handlers: Handlers) {
  const calls = { verify: 0, settle: 0, supported: 0 }
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    const name = request.url!.slice(1) as keyof Handlers
    calls[name] += 1
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const answer = await handlers[name]?.(text ? JSON.parse(text) : {}, response, request.socket)
    if (answer === undefined) return
    response.setHeader('content-type', 'application/json')
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    server.closeAllConnections()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  closers.push(close)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls, close }
}

const KINDS = { kinds: [{ x402Version: 2, scheme: 'exact', network: NETWORK }], extensions: [], signers: {} }
const TRANSACTION = `0x${'ab'.repeat(32)}`

afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

facilitatorContract('a facilitator over HTTP', async () => {
  const clock = createTestClock()
  const { request, mint, close } = await createEmbeddedChain({
    journal: createMemoryJournal(),
    clock,
    log: { info() {}, warn() {} },
  })
  const own = createLocalFacilitator({
    request,
    network: NETWORK,
    asset: USDC,
    privateKeys: [generatePrivateKey()],
    clock,
  })
  const handlers = createFacilitatorHandlers(own)
  const server = await serve({ verify: handlers.verify, settle: handlers.settle, supported: handlers.supported })
  closers.pop()
  const facilitator = createHttpFacilitator({ urls: [server.url], clock })
  return {
    facilitator,
    chain: createChainReader({ request }),
    clock,
    mint,
    close: async () => {
      await facilitator.close()
      await server.close()
      await close()
    },
  }
})

async function world(handlers: Handlers, ...more: Handlers[]) {
  const clock = createTestClock()
  const servers = await Promise.all([handlers, ...more].map((one) => serve({ supported: () => KINDS, ...one })))
  const urls = servers.map((server) => server.url)
  const facilitator = createHttpFacilitator({ urls, clock, verifyTimeoutMs: 300, settleTimeoutMs: 300 })
  closers.push(() => facilitator.close())
  const terms = termsOf()
  const payment = await signPayment(newPayer(), terms, { clock })
  return { clock, servers, facilitator, terms, payment }
}

const settledAnswer = (changes: Json = {}) => ({
  success: true,
  transaction: TRANSACTION,
  network: NETWORK,
  ...changes,
})

describe('an ambiguous settle is unknown, and nobody else is asked', () => {
  const lies: [string, Handler][] = [
    ['no answer in time', () => undefined],
    ['a reset after the request', (_body, _response, socket) => socket.destroy() && undefined],
    [
      'half an answer',
      (_body, response, socket) => {
        response.writeHead(200, { 'content-length': '100' })
        response.write('{"success":')
        setTimeout(() => socket.destroy(), 10)
      },
    ],
    ['a 504 page', (_body, response) => void response.writeHead(504).end('<html>gateway time-out</html>')],
    ['a 500 with JSON', (_body, response) => void response.writeHead(500).end('{"error":"internal"}')],
    ['garbage', () => '}{'],
    ['an array', () => '[]'],
    ['no word about success', () => ({})],
    [
      'a pending one',
      () => ({ success: false, errorReason: 'settlement_pending', transaction: TRANSACTION, network: NETWORK }),
    ],
    [
      'an unknown reason',
      () => ({ success: false, errorReason: 'unexpected_settle_error', transaction: '', network: NETWORK }),
    ],
    [
      'a failure with a transaction',
      () => ({ success: false, errorReason: 'invalid_exact_evm_signature', transaction: TRANSACTION }),
    ],
    ['a used nonce', () => ({ success: false, errorReason: 'invalid_exact_evm_nonce_already_used', transaction: '' })],
    ['another payer', () => settledAnswer({ payer: `0x${'99'.repeat(20)}` })],
    ['another network', () => settledAnswer({ network: 'eip155:1' })],
    ['no network', () => settledAnswer({ network: undefined })],
    ['another amount', () => settledAnswer({ amount: '9999' })],
    ['a transaction that is none', () => settledAnswer({ transaction: '0x1234' })],
    ['an empty transaction', () => settledAnswer({ transaction: '' })],
    [
      'an answer without end',
      (_body, response) => {
        response.writeHead(200)
        const write = () => response.writable && response.write('x'.repeat(100_000), write)
        write()
      },
    ],
  ]
  test.each(lies)('%s', async (_, settle) => {
    const { facilitator, terms, payment, servers } = await world({ settle }, { settle: () => settledAnswer() })
    expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'unknown' })
    expect(servers[0]!.calls.settle).toBe(1)
    expect(servers[1]!.calls.settle).toBe(0)
  })

  test('after an unknown settle, "insufficient balance" does not make it a failure: the first try may have gone through', async () => {
    const answers = [
      undefined,
      { success: false, errorReason: 'invalid_exact_evm_insufficient_balance', transaction: '' },
    ]
    const { facilitator, terms, payment } = await world({ settle: () => answers.shift() })
    expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'unknown' })
    expect(await facilitator.settle(payment, terms, true)).toMatchObject({ state: 'unknown' })
  })

  test('a "settled" that proved false is not remembered: asked again, the facilitator may do what it claimed', async () => {
    const { facilitator, terms, payment, servers } = await world({ settle: () => settledAnswer() })
    await facilitator.settle(payment, terms)
    expect(await facilitator.settle(payment, terms, true)).toMatchObject({ state: 'settled' })
    expect(servers[0]!.calls.settle).toBe(2)
  })
})

test('a definite refusal is a failure', async () => {
  const refusal = {
    success: false,
    errorReason: 'invalid_exact_evm_insufficient_balance',
    transaction: '',
    network: NETWORK,
  }
  const { facilitator, terms, payment } = await world({ settle: () => refusal })
  expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'failed', reason: refusal.errorReason })
})

test('a settle that could not be sent goes to the next facilitator', async () => {
  const { facilitator, terms, payment, servers } = await world({}, { settle: () => settledAnswer() })
  await facilitator.supported()
  await servers[0]!.close()
  expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'settled', transaction: TRANSACTION })
})

test('when nobody can be reached, settling is unknown and verifying says unavailable', async () => {
  const { facilitator, terms, payment, servers } = await world({})
  await servers[0]!.close()
  expect(await facilitator.settle(payment, terms)).toMatchObject({
    state: 'unknown',
    reason: 'facilitator_unavailable',
  })
  await expect(facilitator.verify(payment, terms)).rejects.toBeInstanceOf(FacilitatorUnavailable)
})

test('verifying goes on to the next facilitator when one is silent, broken or talks of somebody else', async () => {
  const { facilitator, terms, payment, servers } = await world(
    { verify: () => undefined },
    { verify: () => ({ isValid: true, payer: `0x${'99'.repeat(20)}` }) },
    { verify: () => ({ isValid: false, invalidReason: 'unexpected_verify_error' }) },
    { verify: () => ({ isValid: true }) },
  )
  expect(await facilitator.verify(payment, terms)).toEqual({
    valid: true,
    payer: payment.authorization.from.toLowerCase(),
  })
  expect(servers.map((server) => server.calls.verify)).toEqual([1, 1, 1, 1])
})

test('a bad signature costs no remote call', async () => {
  const { facilitator, terms, clock, servers } = await world({ verify: () => ({ isValid: true }) })
  const forged = await signPayment(newPayer(), terms, { clock, from: newPayer().address })
  expect(await facilitator.verify(forged, terms)).toMatchObject({ valid: false, reason: 'invalid_exact_evm_signature' })
  expect(await facilitator.settle(forged, terms)).toMatchObject({ state: 'failed' })
  expect(servers[0]!.calls).toEqual({ verify: 0, settle: 0, supported: 0 })
})

test('the short signature of a contract wallet is left to the facilitator, when the payer is known to be one', async () => {
  const clock = createTestClock()
  const server = await serve({ supported: () => KINDS, verify: () => ({ isValid: true }) })
  const facilitator = createHttpFacilitator({ urls: [server.url], clock, hasCode: async () => true })
  closers.push(() => facilitator.close())
  const terms = termsOf()
  const payment = await signPayment(newPayer(), terms, { clock, from: newPayer().address })
  expect(await facilitator.verify(payment, terms)).toMatchObject({ valid: true })
})

test('a facilitator that keeps failing is left alone for a while, then tried again', async () => {
  let broken = true
  const { facilitator, terms, payment, clock, servers } = await world({
    verify: (_body, response) => (broken ? void response.writeHead(500).end('{}') : { isValid: true }),
  })
  for (let attempt = 0; attempt < 5; attempt++) await facilitator.verify(payment, terms).catch(() => undefined)
  expect(servers[0]!.calls.verify).toBe(3)
  broken = false
  clock.advance(10_000)
  expect(await facilitator.verify(payment, terms)).toMatchObject({ valid: true })
  expect(await facilitator.verify(payment, terms)).toMatchObject({ valid: true })
})

test('what a facilitator supports is asked once, and a kind it lacks goes elsewhere', async () => {
  const other = { kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:84532' }] }
  const { facilitator, terms, payment, servers } = await world(
    { supported: () => other, verify: () => ({ isValid: true }) },
    { verify: () => ({ isValid: true }) },
  )
  for (let attempt = 0; attempt < 3; attempt++) await facilitator.verify(payment, terms)
  expect(servers[0]!.calls).toMatchObject({ verify: 0, supported: 1 })
  expect(servers[1]!.calls).toMatchObject({ verify: 3, supported: 1 })
})
