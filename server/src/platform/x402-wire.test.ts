import { describe, expect, test } from 'vitest'
import { createPayer, createTerms, signPayment } from '../../test/contract/payments.ts'
import { systemClock } from './clock.ts'
import {
  isPermit2Payment,
  networkForVersion,
  networkFromWire,
  normalisePayload,
  parseChainId,
  readAcceptedTerms,
  readExactPayment,
} from './x402-wire.ts'

type Wire = { payload: { signature: string; authorization: Record<string, unknown> } & Record<string, unknown> }

async function signedPayload(x402Version: 1 | 2 = 2) {
  const payment = await signPayment(createPayer(), createTerms(), { clock: systemClock, x402Version })
  return { payment, payload: payment.payload as Wire }
}
const withField = (payload: Wire, field: string, value: unknown) => ({
  ...payload,
  payload: { ...payload.payload, authorization: { ...payload.payload.authorization, [field]: value } },
})
const withSignature = (payload: Wire, signature: unknown) => ({
  ...payload,
  payload: { ...payload.payload, signature },
})

test('networks have a name in version 1 and a CAIP-2 id in version 2', () => {
  expect(networkFromWire('base')).toBe('eip155:8453')
  expect(networkFromWire('eip155:1')).toBe('eip155:1')
  expect(networkFromWire('constructor')).toBe('constructor')
  expect([networkForVersion('eip155:8453', 1), networkForVersion('eip155:8453', 2)]).toEqual(['base', 'eip155:8453'])
  expect(['eip155:8453', 'solana:main', 'eip155:x'].map(parseChainId)).toEqual([8453, undefined, undefined])
})

describe('the one reader of payments', () => {
  test.each([1, 2] as const)('reads a version %i payment', async (x402Version) => {
    const { payment, payload } = await signedPayload(x402Version)
    expect(readExactPayment(payload)).toEqual(payment)
    expect(readAcceptedTerms(payload)).toMatchObject(
      x402Version === 2 ? { scheme: 'exact', network: 'eip155:8453' } : { scheme: 'exact', network: 'base' },
    )
  })

  test.each([
    ['value', '1e3'],
    ['value', -1],
    ['value', 1.5],
    ['value', '9'.repeat(79)],
    ['validBefore', undefined],
    ['validAfter', null],
    ['nonce', '0x12'],
    ['from', '0xabc'],
    ['to', {}],
  ])('refuses the field %s as %j', async (field, value) => {
    const { payload } = await signedPayload()
    expect(readExactPayment(withField(payload, field, value))).toBeUndefined()
  })

  test('refuses everything that is not an exact payment', async () => {
    const { payload } = await signedPayload()
    const others = [
      null,
      [],
      'text',
      {},
      { ...payload, x402Version: 3 },
      { ...payload, payload: null },
      { ...payload, accepted: undefined },
      withSignature(payload, 'ab'),
      withSignature(payload, `0x${'ab'.repeat(10_000)}`),
    ]
    for (const other of others) expect(readExactPayment(other)).toBeUndefined()
  })
})

test('numbers, leading zeros and odd signatures are read, so that one judgement refuses what is wrong with them', async () => {
  const { payment, payload } = await signedPayload()
  const variants = [
    withField(payload, 'value', 10_000),
    withField(payload, 'value', '010000'),
    withField(payload, 'validBefore', Number(payment.authorization.validBefore)),
    withSignature(payload, '0x'),
    withSignature(payload, '0xabc'),
  ]
  for (const variant of variants) expect(readExactPayment(variant)?.authorization).toEqual(payment.authorization)
})

test('other facilitators get amounts and times as decimal strings, whatever the client sent', async () => {
  const { payment, payload } = await signedPayload()
  const numeric = withField(payload, 'validBefore', Number(payment.authorization.validBefore))
  expect(normalisePayload(readExactPayment(numeric)!)).toEqual(payload)
})

test('a Permit2 payment is told apart from a malformed one', async () => {
  const { payload } = await signedPayload()
  expect(isPermit2Payment(payload)).toBe(false)
  expect(isPermit2Payment({ ...payload, payload: { signature: '0x', permit2Authorization: { nonce: '1' } } })).toBe(
    true,
  )
})
