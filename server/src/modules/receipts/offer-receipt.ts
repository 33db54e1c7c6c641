import { canonicalJson } from '../../platform/canonical.ts'
import type { Signer } from '../../platform/keys.ts'

/**
 * The x402 extension `offer-receipt`: a signed offer in the 402 and a signed receipt in the response, which any x402
 * client can verify by resolving the DID in them. It states less than our own receipt and is for clients that support only this.
 */
export const OFFER_RECEIPT = 'offer-receipt'

const VERSION = 1

export type Issuer = { did: string; signer: Signer }

/** One entry of a 402's `accepts`. */
export type OfferTerms = { scheme: string; network: string; asset: string; payTo: string; amount: string }

export type SignedOffer = { format: 'jws'; acceptIndex: number; signature: string }
export type SignedReceiptExtension = { format: 'jws'; signature: string }

/** Proves that this price for this resource was offered by us. */
export function signOffer(
  issuer: Issuer,
  offer: { resourceUrl: string; terms: OfferTerms; acceptIndex: number; validUntil: Date },
): SignedOffer {
  const { scheme, network, asset, payTo, amount } = offer.terms
  const { resourceUrl, acceptIndex } = offer
  const validUntil = seconds(offer.validUntil)
  const payload = { version: VERSION, resourceUrl, scheme, network, asset, payTo, amount, validUntil }
  return { format: 'jws', acceptIndex, signature: signCompact(issuer, payload) }
}

/** Proves that the resource was delivered after payment. `issuedAt` is an input so that a replayed response has the same bytes. */
export function signReceiptExtension(
  issuer: Issuer,
  receipt: { resourceUrl: string; network: string; payer: string; issuedAt: Date; transaction?: string },
): SignedReceiptExtension {
  const { resourceUrl, network, payer, transaction } = receipt
  const issuedAt = seconds(receipt.issuedAt)
  const payload = { version: VERSION, network, resourceUrl, payer, issuedAt, ...(transaction && { transaction }) }
  return { format: 'jws', signature: signCompact(issuer, payload) }
}

/** The `extensions` member of a PaymentRequired. */
export const offerExtension = (offers: readonly SignedOffer[]) => ({
  [OFFER_RECEIPT]: { info: { offers }, schema: infoSchema('offers', { type: 'array', items: signedSchema }) },
})

/** The `extensions` member of a settlement response. */
export const receiptExtension = (receipt: SignedReceiptExtension) => ({
  [OFFER_RECEIPT]: { info: { receipt }, schema: infoSchema('receipt', signedSchema) },
})

// Short, because it stands in the header of every 402.
const signedSchema = { type: 'object', required: ['format', 'signature'] }

const infoSchema = (member: string, schema: object) => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: { [member]: schema },
  required: [member],
})

const seconds = (at: Date) => Math.floor(at.getTime() / 1000)

/** JWS in compact form over the canonical payload; the key id is a DID URL that resolves to our key set. */
function signCompact({ did, signer }: Issuer, payload: object): string {
  const header = base64url(JSON.stringify({ alg: 'EdDSA', kid: `${did}#${signer.keyId}` }))
  const body = base64url(canonicalJson(payload))
  return `${header}.${body}.${signer.sign(`${header}.${body}`).toString('base64url')}`
}

const base64url = (text: string) => Buffer.from(text, 'utf8').toString('base64url')
