import { asObject } from '../../platform/x402-wire.ts'

/** x402 over MCP: the payment and its outcome are in `_meta`, the terms in a tool result that is an error. */
export const PAYMENT_META = 'x402/payment'
export const PAYMENT_RESPONSE_META = 'x402/payment-response'

/** The header that carries the same payment over HTTP; what it is worth is judged there and nowhere else. */
export function paymentHeader(meta: Record<string, unknown> | undefined): Record<string, string> {
  const payment = meta?.[PAYMENT_META]
  if (payment === undefined) return {}
  const name = asObject(payment)?.x402Version === 1 ? 'x-payment' : 'payment-signature'
  return { [name]: Buffer.from(JSON.stringify(payment)).toString('base64') }
}

/** What one of x402's headers says; undefined when the answer has none. */
export const decodeHeader = (header: string | undefined): Record<string, unknown> | undefined =>
  header === undefined ? undefined : asObject(JSON.parse(Buffer.from(header, 'base64').toString('utf8')))
