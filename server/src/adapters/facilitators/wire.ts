/** x402's wire format on one side, the port's types on the other. Version 1 calls the network `base`, version 2 `eip155:8453`. */
import type {
  ExactPayment,
  Facilitator,
  Hex,
  PaymentTerms,
  SettleResult,
  VerifyResult,
} from '../../modules/payments/facilitator.ts'
import { REASON } from './reasons.ts'

const NETWORK_NAMES: Record<string, string> = { base: 'eip155:8453', 'base-sepolia': 'eip155:84532' }

export const networkFromWire = (network: string): string =>
  Object.hasOwn(NETWORK_NAMES, network) ? NETWORK_NAMES[network]! : network

export const networkForVersion = (network: string, x402Version: 1 | 2): string =>
  x402Version === 1 ? (Object.keys(NETWORK_NAMES).find((name) => NETWORK_NAMES[name] === network) ?? network) : network

export function chainIdOf(network: string): number | undefined {
  const digits = /^eip155:(\d{1,15})$/.exec(network)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

type Json = Record<string, unknown>
const asObject = (value: unknown): Json | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined

/** What the client says it pays for: `accepted` in version 2, the payload's own fields in version 1. */
export function offerOf(payload: unknown): { scheme: unknown; network: string } | undefined {
  const body = asObject(payload)
  const offer = body && (asObject(body.accepted) ?? (body.x402Version === 1 ? body : undefined))
  return offer && { scheme: offer.scheme, network: networkFromWire(String(offer.network)) }
}

const HEX = /^0x[0-9a-f]*$/i
const MAX_SIGNATURE_CHARACTERS = 20_000

const hex = (value: unknown, digits?: number): Hex | undefined =>
  typeof value === 'string' &&
  HEX.test(value) &&
  (digits === undefined ? value.length <= MAX_SIGNATURE_CHARACTERS : value.length === digits + 2)
    ? (value as Hex)
    : undefined

/** A whole number as text, or as a number that JSON carries exactly; at most 78 digits, which is a uint256. */
function whole(value: unknown): bigint | undefined {
  if (typeof value === 'string' && /^\d{1,78}$/.test(value)) return BigInt(value)
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : undefined
}

/** An `exact` payment with an EIP-3009 authorisation, or undefined when it is anything else. */
export function paymentFromWire(payload: unknown): ExactPayment | undefined {
  const body = asObject(payload)
  const x402Version = body?.x402Version
  if (!body || (x402Version !== 1 && x402Version !== 2)) return undefined
  const exact = asObject(body.payload)
  const signed = asObject(exact?.authorization)
  const signature = hex(exact?.signature)
  if (!signed || !signature || !offerOf(body)) return undefined
  const [from, to, nonce] = [hex(signed.from, 40), hex(signed.to, 40), hex(signed.nonce, 64)]
  const [value, validAfter, validBefore] = [whole(signed.value), whole(signed.validAfter), whole(signed.validBefore)]
  if (!from || !to || !nonce || value === undefined || validAfter === undefined || validBefore === undefined)
    return undefined
  return { x402Version, authorization: { from, to, value, validAfter, validBefore, nonce }, signature, payload }
}

export function termsFromWire(requirements: unknown): PaymentTerms | undefined {
  const body = asObject(requirements)
  const amountMicro = whole(body?.amount ?? body?.maxAmountRequired)
  const [asset, payTo] = [hex(body?.asset, 40), hex(body?.payTo, 40)]
  const extra = asObject(body?.extra) ?? {}
  if (!body || amountMicro === undefined || !asset || !payTo || typeof body.network !== 'string') return undefined
  return {
    scheme: body.scheme as 'exact',
    network: networkFromWire(body.network),
    asset,
    amountMicro,
    payTo,
    maxTimeoutSeconds: typeof body.maxTimeoutSeconds === 'number' ? body.maxTimeoutSeconds : 60,
    extra: { ...extra, name: textOrEmpty(extra.name), version: textOrEmpty(extra.version) },
  }
}

const textOrEmpty = (value: unknown) => (typeof value === 'string' ? value : '')

/** The body that a facilitator's `/verify` and `/settle` take. */
export function facilitatorBody(payment: ExactPayment, terms: PaymentTerms): Json {
  const { x402Version, payload } = payment
  const { scheme, network, asset, amountMicro, payTo, maxTimeoutSeconds, extra } = terms
  const common = { scheme, network: networkForVersion(network, x402Version), asset, payTo, maxTimeoutSeconds, extra }
  const paymentRequirements =
    x402Version === 2
      ? { ...common, amount: amountMicro.toString() }
      : { ...common, maxAmountRequired: amountMicro.toString(), ...resourceOf(extra) }
  return { x402Version, paymentPayload: payload, paymentRequirements }
}

/** Version 1 wants these in every requirement, and says nothing about what they must be. */
const resourceOf = (extra: Json) => ({
  resource: textOrEmpty(extra.resource) || 'https://localhost/',
  description: '',
  mimeType: 'application/json',
})

export type FacilitatorHttp = {
  verify(body: unknown): Promise<Json>
  settle(body: unknown): Promise<Json>
  supported(): Promise<Json>
}

/** A facilitator as others call it over HTTP: three handlers, bodies in and bodies out. */
export function facilitatorHttp(facilitator: Facilitator): FacilitatorHttp {
  const read = (body: unknown) => {
    const envelope = asObject(body)
    const payment = paymentFromWire(envelope?.paymentPayload)
    const terms = termsFromWire(envelope?.paymentRequirements)
    return payment && terms && envelope?.x402Version === payment.x402Version ? { payment, terms } : undefined
  }

  return {
    async verify(body) {
      const asked = read(body)
      if (!asked) return { isValid: false, invalidReason: REASON.payload, invalidMessage: MALFORMED }
      return verifyToWire(await facilitator.verify(asked.payment, asked.terms), asked.payment)
    },
    async settle(body) {
      const asked = read(body)
      if (!asked)
        return { success: false, errorReason: REASON.payload, errorMessage: MALFORMED, transaction: '', network: '' }
      return settleToWire(await facilitator.settle(asked.payment, asked.terms), asked.payment, asked.terms)
    },
    supported: () => facilitator.supported(),
  }
}

const MALFORMED = 'The body is not an exact payment with its requirements.'

const verifyToWire = (result: VerifyResult, { authorization }: ExactPayment): Json =>
  result.valid
    ? { isValid: true, payer: result.payer }
    : { isValid: false, invalidReason: result.reason, invalidMessage: result.message, payer: authorization.from }

function settleToWire(result: SettleResult, payment: ExactPayment, terms: PaymentTerms): Json {
  const common = { network: networkForVersion(terms.network, payment.x402Version), payer: payment.authorization.from }
  if (result.state === 'settled') {
    return { success: true, transaction: result.transaction, ...common, amount: result.amountMicro.toString() }
  }
  // Whoever cannot tell must not say "failed": `settlement_pending` is the reference's word for it.
  const errorReason = result.state === 'unknown' ? REASON.pending : result.reason
  return { success: false, errorReason, errorMessage: result.message, transaction: '', ...common }
}
