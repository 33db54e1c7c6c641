import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  decodeSignedOffers,
  extractOffersFromPaymentRequired,
  extractReceiptFromResponse,
  extractReceiptPayload,
  findAcceptsObjectFromSignedOffer,
  verifyOfferSignatureJWS,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testKeys } from '../../../test/receipts/helpers.ts'
import { didDocument, didOfUrl, publishedJwk } from './key-set.ts'
import { type Issuer, offerExtension, receiptExtension, signOffer, signReceiptExtension } from './offer-receipt.ts'

// The official verifier fetches the DID document itself, so one has to be served.
let server: Server
let did: string
let issuer: Issuer
const keys = testKeys()

beforeAll(async () => {
  server = createServer((request, response) => {
    const document = didDocument(
      did,
      keys.publicJwks().map((jwk) => ({ jwk: publishedJwk(jwk), retired_at: null })),
    )
    response.writeHead(request.url === '/.well-known/did.json' ? 200 : 404).end(JSON.stringify(document))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  did = didOfUrl(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  issuer = { did, signer: keys.signer('receipts') }
})
afterAll(() => server.close())

const resourceUrl = 'https://api.example/api/run'
const terms = {
  scheme: 'exact',
  network: 'eip155:8453',
  asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  payTo: '0x00000000000000000000000000000000000000aa',
  amount: '15000',
}
const accepts = [{ ...terms, maxTimeoutSeconds: 300, extra: {} }] as never
const payer = '0x00000000000000000000000000000000000000bb'
const issuedAt = new Date()

const challenge = () => {
  const offer = signOffer(issuer, { resourceUrl, terms, acceptIndex: 0, validUntil: new Date('2026-11-16T15:05:00Z') })
  return { x402Version: 2, accepts, resource: { url: resourceUrl }, extensions: offerExtension([offer]) } as never
}

const answer = (transaction?: string) => {
  const signed = signReceiptExtension(issuer, { resourceUrl, network: terms.network, payer, issuedAt, transaction })
  const settled = {
    success: true,
    payer,
    network: terms.network,
    transaction: '0x1',
    extensions: receiptExtension(signed),
  }
  return new Response('', { headers: { 'PAYMENT-RESPONSE': Buffer.from(JSON.stringify(settled)).toString('base64') } })
}

test('the official client finds our offer, verifies it by our DID, and finds the terms it is about', async () => {
  const [offer] = extractOffersFromPaymentRequired(challenge())
  const payload = await verifyOfferSignatureJWS(offer as never)
  expect(payload).toEqual({ version: 1, resourceUrl, ...terms, validUntil: 1794841500 })
  expect(findAcceptsObjectFromSignedOffer(offer!, accepts)).toMatchObject(terms)
})

test('the official client verifies our receipt, and finds that it matches the offer and the payer', async () => {
  const receipt = extractReceiptFromResponse(answer(`0x${'ab'.repeat(32)}`))
  expect(await verifyReceiptSignatureJWS(receipt as never)).toMatchObject({
    payer,
    transaction: `0x${'ab'.repeat(32)}`,
  })
  const [offer] = decodeSignedOffers(extractOffersFromPaymentRequired(challenge()))
  expect(verifyReceiptMatchesOffer(receipt!, offer!, [payer])).toBe(true)
  expect(verifyReceiptMatchesOffer(receipt!, offer!, ['0x00000000000000000000000000000000000000cc'])).toBe(false)
})

test('a changed offer does not verify, nor does one of another key', async () => {
  const [offer] = extractOffersFromPaymentRequired(challenge())
  const [header, body, signature] = offer!.signature.split('.')
  const cheaper = Buffer.from(body!, 'base64url').toString().replace('15000', '15')
  const changedOffer = { ...offer!, signature: `${header}.${Buffer.from(cheaper).toString('base64url')}.${signature}` }
  await expect(verifyOfferSignatureJWS(changedOffer as never)).rejects.toThrow('signature verification failed')
  const otherIssuer = { did, signer: testKeys('stranger').signer('receipts') }
  const forgedOffer = signOffer(otherIssuer, { resourceUrl, terms, acceptIndex: 0, validUntil: issuedAt })
  await expect(verifyOfferSignatureJWS(forgedOffer)).rejects.toThrow('No verification method')
})

test('a repeated response has the same bytes, and no transaction when none is given', () => {
  expect(extractReceiptFromResponse(answer())).toEqual(extractReceiptFromResponse(answer()))
  expect(extractReceiptPayload(extractReceiptFromResponse(answer())!)).not.toHaveProperty('transaction')
})
