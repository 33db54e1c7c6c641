import type { PaymentTerms } from '../modules/payments/facilitator.ts'
import { QUOTE_VALIDITY_MS } from '../modules/payments/quote.ts'
import { NETWORK } from '../modules/payments/x402.ts'
import { offerExtension, receiptExtension, signOffer, signReceiptExtension } from '../modules/receipts/offer-receipt.ts'
import type { Receipts } from '../modules/receipts/receipts.ts'
import type { OfferReceipt } from '../modules/runs/run-deps.ts'
import type { Clock } from '../platform/clock.ts'

/** Signs the x402 extension `offer-receipt` with our keys: offers with the quote key, receipts with the receipt key. */
export function createOfferReceipts(receipts: Pick<Receipts, 'issuer'>, clock: Clock): OfferReceipt {
  return {
    offered(resourceUrl: string, { scheme, network, asset, payTo, amountMicro }: PaymentTerms) {
      const terms = { scheme, network, asset, payTo, amount: amountMicro.toString() }
      const validUntil = new Date(clock.now().getTime() + QUOTE_VALIDITY_MS)
      return offerExtension([signOffer(receipts.issuer('quotes'), { resourceUrl, terms, acceptIndex: 0, validUntil })])
    },
    delivered({ publicUrl, path }, paid) {
      const content = { resourceUrl: `${publicUrl}${path}`, network: NETWORK, ...paid }
      return receiptExtension(signReceiptExtension(receipts.issuer('receipts', publicUrl), content))
    },
  }
}
