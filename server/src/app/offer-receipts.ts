import type { PaymentTerms } from '../modules/payments/facilitator.ts'
import { QUOTE_VALIDITY_MS } from '../modules/payments/quote.ts'
import { NETWORK } from '../modules/payments/x402.ts'
import { offerExtension, receiptExtension, signOffer, signReceiptExtension } from '../modules/receipts/offer-receipt.ts'
import type { Receipts } from '../modules/receipts/receipts.ts'
import type { OfferReceipt } from '../modules/runs/run-deps.ts'
import type { Clock } from '../platform/clock.ts'

const MAX_OFFERS = 1_000

/** Signs the x402 extension `offer-receipt` with our keys: offers with the quote key, receipts with the receipt key. */
export function createOfferReceipts(receipts: Pick<Receipts, 'issuer'>, clock: Clock): OfferReceipt {
  /** The offers of the current second: whoever asks in it is offered the same, so it is signed once. */
  const offers = new Map<string, ReturnType<typeof offerExtension>>()
  let second = 0

  return {
    offered(resourceUrl: string, { scheme, network, asset, payTo, amountMicro }: PaymentTerms) {
      const terms = { scheme, network, asset, payTo, amount: amountMicro.toString() }
      const validUntil = new Date(clock.now().getTime() + QUOTE_VALIDITY_MS)
      const issuer = receipts.issuer('quotes')
      const now = Math.floor(validUntil.getTime() / 1000)
      if (now !== second || offers.size >= MAX_OFFERS) offers.clear()
      second = now
      const key = JSON.stringify([issuer.did, issuer.signer.keyId, resourceUrl, Object.values(terms)])
      const signed = offers.get(key)
      if (signed) return signed
      const offer = offerExtension([signOffer(issuer, { resourceUrl, terms, acceptIndex: 0, validUntil })])
      offers.set(key, offer)
      return offer
    },
    delivered({ publicUrl, path }, paid) {
      const content = { resourceUrl: `${publicUrl}${path}`, network: NETWORK, ...paid }
      return receiptExtension(signReceiptExtension(receipts.issuer('receipts', publicUrl), content))
    },
  }
}
