import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { generatePrivateKey } from 'viem/accounts'
import { afterEach, describe, expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { facilitatorContract } from '../../../test/contract/facilitator.ts'
import { createMemoryJournal } from '../../../test/contract/memory-journal.ts'
import { createPayer, createTerms, NETWORK, signPayment } from '../../../test/contract/payments.ts'
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

/** A real server on the loopback. A handler returns the response body, or writes to the response or socket itself. */
async function startServer(handlers: Handlers) {
  const calls = { verify: 0, settle: 0, supported: 0 }
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    const name = request.url!.slice(1) as keyof Handlers
    calls[name] += 1
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const body = await handlers[name]?.(text ? JSON.parse(text) : {}, response, request.socket)
    if (body === undefined) return
    response.setHeader('content-type', 'application/json')
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
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
  const localFacilitator = createLocalFacilitator({
    request,
    network: NETWORK,
    asset: USDC,
    privateKeys: [generatePrivateKey()],
    clock,
  })
  const handlers = createFacilitatorHandlers(localFacilitator)
  const server = await startServer({ verify: handlers.verify, settle: handlers.settle, supported: handlers.supported })
  closers.pop()
  const facilitator = createHttpFacilitator({ urls: [server.url], clock })
  return {
    facilitator,
    chain: createChainReader({ request }),
    clock,
    mint,
    // Outside its validity period a payment is not sent, and an earlier attempt may have gone through.
    stateWhen: { expired: 'unknown', 'about to expire': 'unknown', 'not valid yet': 'unknown' },
    close: async () => {
      await facilitator.close()
      await server.close()
      await close()
    },
  }
})

async function startFacilitators(handlers: Handlers, ...otherHandlers: Handlers[]) {
  const clock = createTestClock()
  const servers = await Promise.all(
    [handlers, ...otherHandlers].map((serverHandlers) => startServer({ supported: () => KINDS, ...serverHandlers })),
  )
  const urls = servers.map((server) => server.url)
  const facilitator = createHttpFacilitator({ urls, clock, verifyTimeoutMs: 1_000, settleTimeoutMs: 1_000 })
  closers.push(() => facilitator.close())
  const terms = createTerms()
  const payment = await signPayment(createPayer(), terms, { clock })
  return { clock, servers, facilitator, terms, payment }
}

const settledBody = (changes: Json = {}) => ({
  success: true,
  transaction: TRANSACTION,
  network: NETWORK,
  ...changes,
})

describe('an ambiguous settle response is unknown, and no other facilitator is asked', () => {
  const ambiguousResponses: [string, Handler][] = [
    ['no response in time', () => undefined],
    ['a reset after the request', (_body, _response, socket) => socket.destroy() && undefined],
    [
      'a truncated response',
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
    ['no success field', () => ({})],
    [
      'a pending settlement',
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
    ['another payer', () => settledBody({ payer: `0x${'99'.repeat(20)}` })],
    ['another network', () => settledBody({ network: 'eip155:1' })],
    ['no network', () => settledBody({ network: undefined })],
    ['another amount', () => settledBody({ amount: '9999' })],
    ['a malformed transaction', () => settledBody({ transaction: '0x1234' })],
    ['an empty transaction', () => settledBody({ transaction: '' })],
    [
      'an endless response',
      (_body, response) => {
        response.writeHead(200)
        const write = () => response.writable && response.write('x'.repeat(100_000), write)
        write()
      },
    ],
  ]
  test.each(ambiguousResponses)('%s', async (_, settle) => {
    const { facilitator, terms, payment, servers } = await startFacilitators(
      { settle },
      { settle: () => settledBody() },
    )
    expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'unknown' })
    expect(servers[0]!.calls.settle).toBe(1)
    expect(servers[1]!.calls.settle).toBe(0)
  })

  test('after an unknown settle, "insufficient balance" is no failure: the first attempt may have gone through', async () => {
    const responses = [
      undefined,
      { success: false, errorReason: 'invalid_exact_evm_insufficient_balance', transaction: '' },
    ]
    const { facilitator, terms, payment } = await startFacilitators({ settle: () => responses.shift() })
    expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'unknown' })
    expect(await facilitator.settle(payment, terms, true)).toMatchObject({ state: 'unknown' })
  })

  test('a "settled" response is not remembered: a retry reaches the facilitator again', async () => {
    const { facilitator, terms, payment, servers } = await startFacilitators({ settle: () => settledBody() })
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
  const { facilitator, terms, payment } = await startFacilitators({ settle: () => refusal })
  expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'failed', reason: refusal.errorReason })
})

test('a settle that could not be sent goes to the next facilitator', async () => {
  const { facilitator, terms, payment, servers } = await startFacilitators({}, { settle: () => settledBody() })
  await facilitator.supported()
  await servers[0]!.close()
  expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'settled', transaction: TRANSACTION })
})

test('when no facilitator can be reached, settle is unknown and verify is unavailable', async () => {
  const { facilitator, terms, payment, servers } = await startFacilitators({})
  await servers[0]!.close()
  expect(await facilitator.settle(payment, terms)).toMatchObject({
    state: 'unknown',
    reason: 'facilitator_unavailable',
  })
  await expect(facilitator.verify(payment, terms)).rejects.toBeInstanceOf(FacilitatorUnavailable)
})

test('verify moves on to the next facilitator when one does not respond, fails or names another payer', async () => {
  const { facilitator, terms, payment, servers } = await startFacilitators(
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

test('an invalid signature is refused without a remote call', async () => {
  const { facilitator, terms, clock, servers } = await startFacilitators({ verify: () => ({ isValid: true }) })
  const forgedPayment = await signPayment(createPayer(), terms, { clock, from: createPayer().address })
  expect(await facilitator.verify(forgedPayment, terms)).toMatchObject({
    valid: false,
    reason: 'invalid_exact_evm_signature',
  })
  expect(await facilitator.settle(forgedPayment, terms)).toMatchObject({
    state: 'failed',
    reason: 'invalid_exact_evm_signature',
  })
  expect(servers[0]!.calls).toEqual({ verify: 0, settle: 0, supported: 0 })
})

test('a 65-byte signature of a contract wallet is left to the facilitator', async () => {
  const clock = createTestClock()
  const server = await startServer({ supported: () => KINDS, verify: () => ({ isValid: true }) })
  const facilitator = createHttpFacilitator({ urls: [server.url], clock, hasCode: async () => true })
  closers.push(() => facilitator.close())
  const terms = createTerms()
  const payment = await signPayment(createPayer(), terms, { clock, from: createPayer().address })
  expect(await facilitator.verify(payment, terms)).toMatchObject({ valid: true })
})

test('a facilitator that keeps failing is skipped for a while, then tried again', async () => {
  let broken = true
  const { facilitator, terms, payment, clock, servers } = await startFacilitators({
    verify: (_body, response) => (broken ? void response.writeHead(500).end('{}') : { isValid: true }),
  })
  for (let attempt = 0; attempt < 5; attempt++) await facilitator.verify(payment, terms).catch(() => undefined)
  expect(servers[0]!.calls.verify).toBe(3)
  broken = false
  clock.advance(10_000)
  expect(await facilitator.verify(payment, terms)).toMatchObject({ valid: true })
  expect(await facilitator.verify(payment, terms)).toMatchObject({ valid: true })
})

test('answers of 400 that cannot be read are the payment’s doing and do not close the facilitator to others', async () => {
  let odd = true
  const { facilitator, terms, payment, servers } = await startFacilitators({
    verify: (_body, response) => (odd ? void response.writeHead(400).end('{}') : { isValid: true }),
  })
  for (let attempt = 0; attempt < 5; attempt++) await facilitator.verify(payment, terms).catch(() => undefined)
  odd = false
  expect(await facilitator.verify(payment, terms)).toMatchObject({ valid: true })
  expect(servers[0]!.calls.verify).toBe(6)
})

test('supported kinds are fetched once, and a payment of another kind goes to the next facilitator', async () => {
  const otherKinds = { kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:84532' }] }
  const { facilitator, terms, payment, servers } = await startFacilitators(
    { supported: () => otherKinds, verify: () => ({ isValid: true }) },
    { verify: () => ({ isValid: true }) },
  )
  for (let attempt = 0; attempt < 3; attempt++) await facilitator.verify(payment, terms)
  expect(servers[0]!.calls).toMatchObject({ verify: 0, supported: 1 })
  expect(servers[1]!.calls).toMatchObject({ verify: 3, supported: 1 })
})
