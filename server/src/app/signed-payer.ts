import { authorizationDigest, parseSignature, recoverSigner } from '../adapters/facilitators/authorization.ts'
import { loadCurve } from '../adapters/facilitators/secp256k1.ts'
import type { Hex } from '../modules/payments/facilitator.ts'
import { type Headers, NETWORK, readPayment, TOKEN_DOMAIN } from '../modules/payments/x402.ts'
import { parseChainId } from '../platform/x402-wire.ts'

/**
 * The payer of the payment in the headers, when the signature is that of the payer's own key. It reads no chain, so it
 * says nothing about balance and nonce, and a contract wallet's signature is not recognised.
 */
export function createSignedPayerFinder(asset: Hex) {
  const domain = { ...TOKEN_DOMAIN, chainId: parseChainId(NETWORK)!, asset }
  const curve = loadCurve()
  return (headers: Headers): Hex | undefined => {
    const payment = readValidPayment(headers)
    const signature = payment && parseSignature(payment.signature)
    if (!payment || !signature) return undefined
    const { authorization } = payment
    const signer = recoverSigner(curve, authorizationDigest(authorization, domain), signature)
    return signer === authorization.from ? signer : undefined
  }
}

/** A header that cannot be read is refused by its route, which knows the version that was expected. */
function readValidPayment(headers: Headers) {
  try {
    return readPayment(headers)?.payment
  } catch {
    return undefined
  }
}
