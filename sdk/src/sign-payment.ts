import type { PayingAccount } from './client-types.ts'
import { PaymentRefused } from './errors.ts'
import { isObject } from './http.ts'
import { type Challenge, decodeHeader, NETWORK } from './payment-terms.ts'

/** A signed payment as it is sent, and what says when it can no longer count. */
export type SignedPayment = {
  /** The value of PAYMENT-SIGNATURE. */
  header: string
  payer: string
  payTo: string
  asset: string
  amount: string
  nonce: string
  /** Seconds since 1970; from then on the token contract refuses it. */
  validBefore: number
}

/**
 * Signs the one way to pay that a challenge has left, with the official x402 client. The libraries are loaded on first
 * use, so that reading and verifying do not need them.
 */
export async function signPayment(account: PayingAccount, challenge: Challenge): Promise<SignedPayment> {
  const [{ x402Client, x402HTTPClient }, { ExactEvmScheme }] = await Promise.all([
    import('@x402/fetch'),
    import('@x402/evm'),
  ])
  // The price was compared with maxUsdc; the library's own limit would refuse what the caller allows.
  const client = x402Client.fromConfig({
    schemes: [{ network: NETWORK, client: new ExactEvmScheme(account) }],
    spendControls: false,
  })
  const http = new x402HTTPClient(client)
  const payload = await http.createPaymentPayload(challenge as never)
  const header = http.encodePaymentSignatureHeader(payload)['PAYMENT-SIGNATURE']
  return readSignedPayment(header, account.address, challenge)
}

/** Reads back what was signed: it must be what was asked for, to the payee, from this account. */
function readSignedPayment(header: string | undefined, payer: string, { accepts }: Challenge): SignedPayment {
  const terms = accepts[0]!
  const payment = header === undefined ? undefined : decodeHeader(header)
  const payload = isObject(payment) && isObject(payment.payload) ? payment.payload : {}
  const { from, to, value, nonce, validBefore } = isObject(payload.authorization) ? payload.authorization : {}
  const isAsAsked =
    String(from).toLowerCase() === payer.toLowerCase() &&
    String(to).toLowerCase() === terms.payTo.toLowerCase() &&
    String(value) === terms.amount &&
    typeof nonce === 'string' &&
    Number.isSafeInteger(Number(validBefore))
  if (header === undefined || !isAsAsked)
    throw new PaymentRefused('unreadable', 'The payment library signed something else than was asked for.')
  return {
    header,
    payer,
    payTo: terms.payTo,
    asset: terms.asset,
    amount: terms.amount,
    nonce,
    validBefore: Number(validBefore),
  }
}
