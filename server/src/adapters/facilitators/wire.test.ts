import { expect, test } from 'vitest'
import { newPayer, signPayment, termsOf } from '../../../test/contract/payments.ts'
import type { Facilitator } from '../../modules/payments/facilitator.ts'
import { systemClock } from '../../platform/clock.ts'
import {
  chainIdOf,
  facilitatorBody,
  facilitatorHttp,
  networkForVersion,
  networkFromWire,
  paymentFromWire,
  termsFromWire,
} from './wire.ts'

const TRANSACTION = `0x${'cd'.repeat(32)}` as const

test('networks have a name in version 1 and a CAIP-2 id in version 2', () => {
  expect(networkFromWire('base')).toBe('eip155:8453')
  expect(networkFromWire('eip155:1')).toBe('eip155:1')
  expect(networkFromWire('constructor')).toBe('constructor')
  expect([networkForVersion('eip155:8453', 1), networkForVersion('eip155:8453', 2)]).toEqual(['base', 'eip155:8453'])
  expect([chainIdOf('eip155:8453'), chainIdOf('solana:main'), chainIdOf('eip155:x')]).toEqual([
    8453,
    undefined,
    undefined,
  ])
})

test.each([1, 2] as const)('a version %i payment goes over the wire and comes back as itself', async (x402Version) => {
  const terms = termsOf()
  const payment = await signPayment(newPayer(), terms, { clock: systemClock, x402Version })
  const body = JSON.parse(JSON.stringify(facilitatorBody(payment, terms))) as Record<string, unknown>
  expect(paymentFromWire(body.paymentPayload)).toEqual(payment)
  expect(termsFromWire(body.paymentRequirements)).toEqual(terms)
  expect(body.paymentRequirements).toMatchObject(
    x402Version === 2 ? { amount: '10000', network: 'eip155:8453' } : { maxAmountRequired: '10000', network: 'base' },
  )
})

test('what is no exact payment is none', async () => {
  const terms = termsOf()
  const { payload } = await signPayment(newPayer(), terms, { clock: systemClock })
  const good = payload as { payload: { authorization: Record<string, unknown> } }
  expect(paymentFromWire(good)).toBeDefined()
  const wrong: [string, unknown][] = [
    ['value', '1e3'],
    ['value', -1],
    ['value', 1.5],
    ['value', '9'.repeat(79)],
    ['validBefore', undefined],
    ['validAfter', null],
    ['nonce', '0x12'],
    ['from', '0xabc'],
    ['to', {}],
  ]
  for (const [field, value] of wrong) {
    const authorization = { ...good.payload.authorization, [field]: value }
    expect(paymentFromWire({ ...good, payload: { ...good.payload, authorization } })).toBeUndefined()
  }
  for (const nothing of [
    null,
    [],
    'text',
    {},
    { ...good, x402Version: 3 },
    { ...good, payload: null },
    { ...good, accepted: undefined },
  ]) {
    expect(paymentFromWire(nothing)).toBeUndefined()
  }
})

const told = (answers: Partial<Facilitator>): Facilitator => ({
  name: 'told',
  verify: async () => ({ valid: false, reason: 'no', message: 'No.' }),
  settle: async () => ({ state: 'unknown', reason: 'timeout', message: 'Not known.' }),
  supported: async () => ({ kinds: [], extensions: [], signers: {} }),
  ...answers,
})

test('an unknown settlement goes out as pending, never as a failure and never as a success', async () => {
  const terms = termsOf()
  const payment = await signPayment(newPayer(), terms, { clock: systemClock })
  const answer = await facilitatorHttp(told({})).settle(facilitatorBody(payment, terms))
  expect(answer).toMatchObject({ success: false, errorReason: 'settlement_pending', transaction: '' })
})

test('a settlement goes out with its transaction, payer, amount and the network in the words of the version', async () => {
  const terms = termsOf()
  const payment = await signPayment(newPayer(), terms, { clock: systemClock, x402Version: 1 })
  const { from } = payment.authorization
  const settle: Facilitator['settle'] = async () => ({
    state: 'settled',
    transaction: TRANSACTION,
    payer: from,
    network: terms.network,
    amountMicro: 10_000n,
    block: 5n,
  })
  expect(await facilitatorHttp(told({ settle })).settle(facilitatorBody(payment, terms))).toEqual({
    success: true,
    transaction: TRANSACTION,
    payer: from,
    network: 'base',
    amount: '10000',
  })
})

test('a body that cannot be read is refused without asking anybody', async () => {
  const nobody = told({
    verify: () => Promise.reject(new Error('asked')),
    settle: () => Promise.reject(new Error('asked')),
  })
  const http = facilitatorHttp(nobody)
  for (const body of [undefined, null, {}, [], 'x', { x402Version: 2, paymentPayload: {}, paymentRequirements: {} }]) {
    expect(await http.verify(body)).toMatchObject({ isValid: false, invalidReason: 'invalid_payload' })
    expect(await http.settle(body)).toMatchObject({ success: false, errorReason: 'invalid_payload' })
  }
  const terms = termsOf()
  const payment = await signPayment(newPayer(), terms, { clock: systemClock })
  expect(await http.verify({ ...facilitatorBody(payment, terms), x402Version: 1 })).toMatchObject({ isValid: false })
})
