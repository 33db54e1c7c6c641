/** The requests and responses of the facilitator API (`/verify`, `/settle`), read and written. */
import type {
  ExactPayment,
  Facilitator,
  PaymentTerms,
  SettleResult,
  VerifyResult,
} from '../../modules/payments/facilitator.ts'
import {
  asObject,
  isPermit2Payment,
  type JsonObject,
  networkForVersion,
  networkFromWire,
  normalisePayload,
  PERMIT2_MESSAGE,
  PERMIT2_REASON,
  readExactPayment,
  readHex,
  readUint,
} from '../../platform/x402-wire.ts'
import { REASON } from './reasons.ts'

export function readTerms(requirements: unknown): PaymentTerms | undefined {
  const body = asObject(requirements)
  const amountMicro = readUint(body?.amount ?? body?.maxAmountRequired)
  const [asset, payTo] = [readHex(body?.asset, 20), readHex(body?.payTo, 20)]
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
export function buildFacilitatorRequest(payment: ExactPayment, terms: PaymentTerms): JsonObject {
  const { x402Version } = payment
  const { scheme, network, asset, amountMicro, payTo, maxTimeoutSeconds, extra } = terms
  const common = { scheme, network: networkForVersion(network, x402Version), asset, payTo, maxTimeoutSeconds, extra }
  const paymentRequirements =
    x402Version === 2
      ? { ...common, amount: amountMicro.toString() }
      : { ...common, maxAmountRequired: amountMicro.toString(), ...describeResource(extra) }
  return { x402Version, paymentPayload: normalisePayload(payment), paymentRequirements }
}

/** Version 1 requires these fields in every requirement and leaves their content open. */
const describeResource = (extra: JsonObject) => ({
  resource: textOrEmpty(extra.resource) || 'https://localhost/',
  description: '',
  mimeType: 'application/json',
})

export type FacilitatorHandlers = {
  verify(body: unknown): Promise<JsonObject>
  settle(body: unknown): Promise<JsonObject>
  supported(): Promise<JsonObject>
}

/** The HTTP handlers that let other x402 servers use a facilitator: bodies in, bodies out. */
export function createFacilitatorHandlers(facilitator: Facilitator): FacilitatorHandlers {
  const readRequest = (body: unknown) => {
    const envelope = asObject(body)
    const payment = readExactPayment(envelope?.paymentPayload)
    const terms = readTerms(envelope?.paymentRequirements)
    return payment && terms && envelope?.x402Version === payment.x402Version ? { payment, terms } : undefined
  }

  return {
    async verify(body) {
      const request = readRequest(body)
      if (!request) {
        const { reason, message } = explainUnreadable(body)
        return { isValid: false, invalidReason: reason, invalidMessage: message }
      }
      return verifyToWire(await facilitator.verify(request.payment, request.terms), request.payment)
    },
    async settle(body) {
      const request = readRequest(body)
      if (!request) {
        const { reason, message } = explainUnreadable(body)
        return { success: false, errorReason: reason, errorMessage: message, transaction: '', network: '' }
      }
      return settleToWire(await facilitator.settle(request.payment, request.terms), request.payment, request.terms)
    },
    supported: () => facilitator.supported(),
  }
}

const explainUnreadable = (body: unknown) =>
  isPermit2Payment(asObject(body)?.paymentPayload)
    ? { reason: PERMIT2_REASON, message: PERMIT2_MESSAGE }
    : { reason: REASON.payload, message: 'The body is not an exact payment with its requirements.' }

const verifyToWire = (result: VerifyResult, { authorization }: ExactPayment): JsonObject =>
  result.valid
    ? { isValid: true, payer: result.payer }
    : { isValid: false, invalidReason: result.reason, invalidMessage: result.message, payer: authorization.from }

function settleToWire(result: SettleResult, payment: ExactPayment, terms: PaymentTerms): JsonObject {
  const common = { network: networkForVersion(terms.network, payment.x402Version), payer: payment.authorization.from }
  if (result.state === 'settled') {
    return { success: true, transaction: result.transaction, ...common, amount: result.amountMicro.toString() }
  }
  // An unknown outcome must not be reported as failed: `settlement_pending` is the reference's code for it.
  const errorReason = result.state === 'unknown' ? REASON.pending : result.reason
  return { success: false, errorReason, errorMessage: result.message, transaction: '', ...common }
}
