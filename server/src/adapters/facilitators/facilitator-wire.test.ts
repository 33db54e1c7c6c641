import { expect, test } from 'vitest'
import { createPayer, createTerms, signPayment } from '../../../test/contract/payments.ts'
import type { Facilitator } from '../../modules/payments/facilitator.ts'
import { systemClock } from '../../platform/clock.ts'
import { readExactPayment } from '../../platform/x402-wire.ts'
import { buildFacilitatorRequest, createFacilitatorHandlers, readTerms } from './facilitator-wire.ts'

const TRANSACTION = `0x${'cd'.repeat(32)}` as const

test.each([1, 2] as const)('a version %i payment survives the round trip over the wire', async (x402Version) => {
  const terms = createTerms()
  const payment = await signPayment(createPayer(), terms, { clock: systemClock, x402Version })
  const body = JSON.parse(JSON.stringify(buildFacilitatorRequest(payment, terms))) as Record<string, unknown>
  expect(readExactPayment(body.paymentPayload)).toEqual(payment)
  expect(readTerms(body.paymentRequirements)).toEqual(terms)
  expect(body.paymentRequirements).toMatchObject(
    x402Version === 2 ? { amount: '10000', network: 'eip155:8453' } : { maxAmountRequired: '10000', network: 'base' },
  )
})

const createStub = (overrides: Partial<Facilitator>): Facilitator => ({
  name: 'stub',
  verify: async () => ({ valid: false, reason: 'no', message: 'No.' }),
  settle: async () => ({ state: 'unknown', reason: 'timeout', message: 'Not known.' }),
  supported: async () => ({ kinds: [], extensions: [], signers: {} }),
  ...overrides,
})

test('an unknown settlement is reported as pending, neither as failed nor as settled', async () => {
  const terms = createTerms()
  const payment = await signPayment(createPayer(), terms, { clock: systemClock })
  const response = await createFacilitatorHandlers(createStub({})).settle(buildFacilitatorRequest(payment, terms))
  expect(response).toMatchObject({ success: false, errorReason: 'settlement_pending', transaction: '' })
})

test('a settlement is reported with transaction, payer, amount and the network name of the x402 version', async () => {
  const terms = createTerms()
  const payment = await signPayment(createPayer(), terms, { clock: systemClock, x402Version: 1 })
  const { from } = payment.authorization
  const settle: Facilitator['settle'] = async () => ({
    state: 'settled',
    transaction: TRANSACTION,
    payer: from,
    network: terms.network,
    amountMicro: 10_000n,
    block: 5n,
  })
  expect(
    await createFacilitatorHandlers(createStub({ settle })).settle(buildFacilitatorRequest(payment, terms)),
  ).toEqual({
    success: true,
    transaction: TRANSACTION,
    payer: from,
    network: 'base',
    amount: '10000',
  })
})

test('a body that cannot be read is refused without calling the facilitator', async () => {
  const unusedFacilitator = createStub({
    verify: () => Promise.reject(new Error('must not be called')),
    settle: () => Promise.reject(new Error('must not be called')),
  })
  const handlers = createFacilitatorHandlers(unusedFacilitator)
  for (const body of [undefined, null, {}, [], 'x', { x402Version: 2, paymentPayload: {}, paymentRequirements: {} }]) {
    expect(await handlers.verify(body)).toMatchObject({ isValid: false, invalidReason: 'invalid_payload' })
    expect(await handlers.settle(body)).toMatchObject({ success: false, errorReason: 'invalid_payload' })
  }
  const terms = createTerms()
  const payment = await signPayment(createPayer(), terms, { clock: systemClock })
  expect(await handlers.verify({ ...buildFacilitatorRequest(payment, terms), x402Version: 1 })).toMatchObject({
    isValid: false,
  })
})
