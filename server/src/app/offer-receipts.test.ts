import { expect, test } from 'vitest'
import { testKeys } from '../../test/receipts/helpers.ts'
import type { PaymentTerms } from '../modules/payments/facilitator.ts'
import { createOfferReceipts } from './offer-receipts.ts'

const terms = (amountMicro: bigint): PaymentTerms => ({
  scheme: 'exact',
  network: 'eip155:8453',
  asset: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
  amountMicro,
  payTo: '0x00000000000000000000000000000000000000aa',
  maxTimeoutSeconds: 300,
  extra: { name: 'USD Coin', version: '2' },
})

const setUp = () => {
  const state = { ms: 1_800_000_000_000, did: 'did:web:one.example', signed: 0 }
  const signer = testKeys().signer('quotes')
  const counted = {
    ...signer,
    sign(text: string | Uint8Array) {
      state.signed += 1
      return signer.sign(text)
    },
  }
  const offers = createOfferReceipts(
    { issuer: () => ({ did: state.did, signer: counted }) },
    { now: () => new Date(state.ms) },
  )
  const offer = (amountMicro = 10_000n, url = 'https://one.example/api/run') =>
    JSON.stringify(offers.offered(url, terms(amountMicro)))
  return { state, offer }
}

test('the same offer in the same second is signed once', () => {
  const { state, offer } = setUp()
  const first = offer()
  state.ms += 999
  expect(offer()).toBe(first)
  expect(state.signed).toBe(1)
})

test('another price, address, issuer or second has an offer of its own', () => {
  const { state, offer } = setUp()
  const offers = [offer(), offer(20_000n), offer(10_000n, 'https://one.example/api/loop')]
  state.did = 'did:web:two.example'
  offers.push(offer())
  state.did = 'did:web:one.example'
  state.ms += 1_000
  offers.push(offer())
  expect(new Set(offers).size).toBe(5)
  expect(state.signed).toBe(5)
})
