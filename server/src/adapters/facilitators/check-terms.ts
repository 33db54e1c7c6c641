/** The checks of a payment that need neither the chain nor a key. */
import type { ExactPayment, PaymentTerms } from '../../modules/payments/facilitator.ts'
import { networkFromWire, parseChainId, readAcceptedTerms } from '../../platform/x402-wire.ts'
import { REASON } from './reasons.ts'

export type Refusal = { reason: string; message: string }

/** Settling takes a moment, and the token compares with the block's time: a payment that expires sooner is refused. */
export const EXPIRY_MARGIN_SECONDS = 6n

const UINT256 = 1n << 256n

export function checkTerms(payment: ExactPayment, terms: PaymentTerms, now: Date): Refusal | undefined {
  const { authorization } = payment
  const seconds = BigInt(Math.floor(now.getTime() / 1000))
  const accepted = readAcceptedTerms(payment.payload)
  if (terms.scheme !== 'exact' || (accepted && accepted.scheme !== 'exact')) {
    return { reason: REASON.scheme, message: 'Only the scheme `exact` is accepted.' }
  }
  if (!terms.extra.name || !terms.extra.version) {
    return { reason: REASON.domain, message: 'The terms lack the EIP-712 name and version of the token.' }
  }
  if (
    parseChainId(terms.network) === undefined ||
    (accepted && networkFromWire(String(accepted.network)) !== terms.network)
  ) {
    return { reason: REASON.network, message: `The payment is not for ${terms.network}.` }
  }
  if (!isWellFormed(payment)) {
    return { reason: REASON.payload, message: 'A field of the authorisation does not conform to EIP-3009.' }
  }
  if (authorization.to.toLowerCase() !== terms.payTo.toLowerCase()) {
    return { reason: REASON.recipient, message: `The payment goes to ${authorization.to}, not to ${terms.payTo}.` }
  }
  if (authorization.value !== terms.amountMicro) {
    return {
      reason: REASON.value,
      message: `The payment is ${authorization.value}, but the price is ${terms.amountMicro}.`,
    }
  }
  if (authorization.validBefore < seconds + EXPIRY_MARGIN_SECONDS) {
    return { reason: REASON.validBefore, message: 'The authorisation has expired or is about to.' }
  }
  if (authorization.validAfter > seconds) {
    return { reason: REASON.validAfter, message: 'The authorisation is not valid yet.' }
  }
  return undefined
}

const isAddress = (value: string) => /^0x[0-9a-f]{40}$/i.test(value)
const isUint256 = (value: bigint) => value >= 0n && value < UINT256

function isWellFormed({ authorization, signature }: ExactPayment): boolean {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  return (
    isAddress(from) &&
    isAddress(to) &&
    /^0x[0-9a-f]{64}$/i.test(nonce) &&
    [value, validAfter, validBefore].every(isUint256) &&
    /^0x([0-9a-f]{2})*$/i.test(signature)
  )
}
