import { isDevelopmentAccount } from './accounts.ts'
import type { PayingAccount } from './client-types.ts'
import { isObject } from './http.ts'
import { chooseTerms } from './payment-terms.ts'
import { type SignedPayment, signPayment } from './sign-payment.ts'

export { accountFromKey, createDevelopmentAccount } from './accounts.ts'
export type { PayingAccount } from './client-types.ts'
export { DevelopmentChainRefused, PaymentRefused } from './errors.ts'

export type PayOptions = {
  fetch?: typeof fetch
  /** Maximum price of a single call; one dollar by default. */
  maxUsdc?: number
  /**
   * Also sign for a development chain with a key that `createDevelopmentAccount` did not make. Such a chain has the id and
   * the USDC address of Base, so whoever runs it could use the signature on Base if the key has money there.
   */
  allowDevelopmentChain?: boolean
}

/** Clocks differ: as long after its end a payment is still not replaced by another. */
const EXPIRY_MARGIN_MS = 30_000
const MAX_OPEN_PAYMENTS = 1_000

/**
 * A `fetch` that pays any x402 server (version 2, USDC on Base) with one account. It sends each request once; when the
 * outcome stayed open (no response, 503 and the like), the same request made again sends the same payment instead of
 * signing another. For a call that is repeated by itself and survives a restart use `createClient({ account, store })`.
 */
export async function payingFetch(account: PayingAccount, options: PayOptions = {}): Promise<typeof fetch> {
  const send = options.fetch ?? fetch
  const isDevelopmentChainAllowed = options.allowDevelopmentChain === true || isDevelopmentAccount(account)
  const openPayments = new Map<string, SignedPayment>()

  return async (input, init) => {
    const request = new Request(input, init)
    const body = request.body === null ? undefined : await request.clone().text()
    const identity = JSON.stringify([request.method, request.url, request.headers.get('idempotency-key'), body])
    const sendPaid = async (payment: SignedPayment): Promise<Response> => {
      const paidRequest = new Request(request.clone())
      paidRequest.headers.set('payment-signature', payment.header)
      const response = await send(paidRequest)
      if (await isAnswer(response)) openPayments.delete(identity)
      return response
    }

    const openPayment = openPayments.get(identity)
    if (openPayment && mayCount(openPayment)) return sendPaid(openPayment)
    const response = await send(request.clone())
    if (response.status !== 402 || request.headers.has('payment-signature')) return response
    const challengeBody: unknown = await response
      .clone()
      .json()
      .catch(() => undefined)
    const challenge = chooseTerms(response.headers, challengeBody, {
      maxUsdc: options.maxUsdc,
      isDevelopmentChainAllowed,
    })
    for (const [name, { validBefore }] of openPayments) if (!mayCount({ validBefore })) openPayments.delete(name)
    if (openPayments.size >= MAX_OPEN_PAYMENTS) throw new Error('Too many payments wait for their outcome.')
    const payment = await signPayment(account, challenge)
    openPayments.set(identity, payment)
    return sendPaid(payment)
  }
}

const mayCount = ({ validBefore }: Pick<SignedPayment, 'validBefore'>) =>
  validBefore * 1000 + EXPIRY_MARGIN_MS > Date.now()

/** Whether a response says for good what became of the payment. */
async function isAnswer(response: Response): Promise<boolean> {
  if (response.status < 300) return true
  if (response.status !== 500) return false
  const body: unknown = await response
    .clone()
    .json()
    .catch(() => undefined)
  return isObject(body) && body.charged === false
}
