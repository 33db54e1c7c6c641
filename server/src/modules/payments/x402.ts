import { Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { usdcFromMicro } from '../../platform/money.ts'
import { invalid, Problem } from '../../platform/problem.ts'
import { parseStrictJson, StrictJsonError } from '../../platform/strict-json.ts'
import {
  isPermit2Payment,
  PERMIT2_MESSAGE,
  PERMIT2_REASON,
  readAcceptedTerms,
  readExactPayment,
} from '../../platform/x402-wire.ts'
import type { ExactPayment, Hex, PaymentTerms } from './facilitator.ts'
import { paymentIdentifierEcho, paymentIdentifierOffer, readPaymentIdentifier } from './payment-identifier.ts'
import { minValiditySeconds } from './payment-validity.ts'

/** x402 over HTTP in both versions: one 402 serves either kind of client, and either payment header is read. */
export type Headers = Record<string, string | string[] | undefined>

export type ReceivedPayment = {
  payment: ExactPayment
  /** The terms that the client agreed to: all of ours with the quote in version 2, scheme and network in version 1. */
  accepted: { scheme?: string; network?: string; asset?: string; amount?: string; payTo?: string; quote?: string }
  /** Of the extension `payment-identifier`. */
  identifier?: string
}

/** What identifies a payment on a chain: a payer may use the same nonce once for each token. */
export type PaymentNonce = { payer: string; nonce: string; network: string; asset: string }

/** A version 1 payment does not name the token; it can only be meant for ours. */
export const toPaymentNonce = (
  { payment: { authorization }, accepted }: ReceivedPayment,
  ours: Pick<PaymentTerms, 'network' | 'asset'>,
): PaymentNonce => ({
  payer: authorization.from,
  nonce: authorization.nonce,
  network: accepted.network ?? ours.network,
  asset: accepted.asset ?? ours.asset,
})

export const NETWORK = 'eip155:8453'
/** The EIP-712 domain of USDC. */
export const TOKEN_DOMAIN = { name: 'USD Coin', version: '2' }
const V1_NETWORK = 'base'

const MAX_HEADER_LENGTH = 16_384

const AcceptedV1 = Type.Object({ scheme: Type.String(), network: Type.String() })

const AcceptedV2 = Type.Object({
  scheme: Type.String(),
  network: Type.String(),
  asset: Type.String(),
  amount: Type.String(),
  payTo: Type.String(),
  extra: Type.Optional(Type.Object({ quote: Type.Optional(Type.String({ maxLength: 8_192 })) })),
})

const isAcceptedV1 = Compile(AcceptedV1)
const isAcceptedV2 = Compile(AcceptedV2)

/** By the headers of a request: a payment is read when its request takes its turn and again when it is handled. */
const payments = new WeakMap<Headers, ReceivedPayment>()

/** Undefined when the request carries no payment. A header that cannot be read is a 400: another 402 would not help. */
export function readPayment(headers: Headers): ReceivedPayment | undefined {
  const earlierPayment = payments.get(headers)
  if (earlierPayment) return earlierPayment
  const payment = parsePayment(headers)
  if (payment) payments.set(headers, payment)
  return payment
}

function parsePayment(headers: Headers): ReceivedPayment | undefined {
  const v2 = headers['payment-signature']
  const v1 = headers['x-payment']
  if (v2 === undefined && v1 === undefined) return undefined
  if (v2 !== undefined && v1 !== undefined) throw invalid('Send either PAYMENT-SIGNATURE or X-PAYMENT, not both.')
  const name = v2 !== undefined ? 'PAYMENT-SIGNATURE' : 'X-PAYMENT'
  const version = v2 !== undefined ? 2 : 1
  const payload = decodeHeader(name, v2 ?? v1)
  if (isPermit2Payment(payload))
    throw new Problem('invalid_request', PERMIT2_MESSAGE, { status: 400, extra: { reason: PERMIT2_REASON } })
  const payment = readPayload(payload)
  if (payment?.payment.x402Version !== version)
    throw invalid(`${name} is not an x402 version ${version} payment of the scheme exact.`)
  return payment
}

/** A payment from a header or a body, of either version; undefined when it is not one of the scheme `exact`. */
export function readPayload(payload: unknown): ReceivedPayment | undefined {
  const payment = readExactPayment(payload)
  const terms = readAcceptedTerms(payload)
  if (payment?.x402Version === 2 && isAcceptedV2.Check(terms)) {
    const { scheme, network, asset, amount, payTo, extra } = terms
    const identifier = readPaymentIdentifier(payload)
    return {
      payment: toLowerCase(payment),
      accepted: { scheme, network, asset, amount, payTo, quote: extra?.quote },
      ...(identifier !== undefined && { identifier }),
    }
  }
  if (payment?.x402Version === 1 && isAcceptedV1.Check(terms)) {
    const network = terms.network === V1_NETWORK ? NETWORK : terms.network
    return { payment: toLowerCase(payment), accepted: { scheme: terms.scheme, network } }
  }
  return undefined
}

function decodeHeader(name: string, header: string | string[] | undefined): unknown {
  if (typeof header !== 'string' || header.length > MAX_HEADER_LENGTH)
    throw invalid(`${name} is longer than ${MAX_HEADER_LENGTH} characters.`)
  try {
    return parseStrictJson(Buffer.from(header, 'base64').toString('utf8'))
  } catch (error) {
    if (error instanceof StrictJsonError) throw invalid(`${name} is not base64-encoded JSON.`)
    throw error
  }
}

/** Payers and nonces are stored and compared in lower case. */
const toLowerCase = ({ authorization, signature, ...payment }: ExactPayment): ExactPayment => ({
  ...payment,
  signature: signature.toLowerCase() as Hex,
  authorization: {
    ...authorization,
    from: authorization.from.toLowerCase() as Hex,
    to: authorization.to.toLowerCase() as Hex,
    nonce: authorization.nonce.toLowerCase() as Hex,
  },
})

export type Challenge = { headers: Record<string, string>; body: Record<string, unknown> }

export type ChallengeInput = {
  terms: PaymentTerms
  /** Absent where no request was sent that a price could be bound to. */
  quote?: string
  /** The highest price of such a call; the terms have the lowest. */
  maxAmountMicro?: bigint
  /** How the lane that would do the work works; absent where no lane is paid for. */
  laneMode?: 'offline' | 'live' | undefined
  /** How the call is made, for indexes of version 1. */
  inputDescription?: Record<string, unknown>
  resource: { url: string; description: string }
  /** Why the payment was refused; absent on a first call. */
  refusal?: { reason: string; message: string }
  extensions?: Record<string, unknown>
  /** The embedded chain has Base's id and USDC's address: a signature of a key with money on Base would be live there. */
  isDevelopmentChain?: boolean
}

/** v2 clients read the header first, v1 clients the body; the body also carries our own `error` and `message`. */
export function buildChallenge({
  terms,
  quote,
  maxAmountMicro,
  laneMode,
  inputDescription,
  resource,
  refusal,
  extensions,
  isDevelopmentChain,
}: ChallengeInput): Challenge {
  const error = refusal?.reason ?? 'payment_required'
  const amount = terms.amountMicro.toString()
  const range = maxAmountMicro === undefined ? undefined : { min_amount: amount, max_amount: maxAmountMicro.toString() }
  const message = refusal?.message ?? describePrice(terms.amountMicro, maxAmountMicro)
  const { name, version } = terms.extra
  const mode = laneMode && { lane_mode: laneMode }
  const development = isDevelopmentChain ? { development: true } : {}
  const v2Challenge = {
    x402Version: 2,
    error,
    resource: { url: resource.url, description: resource.description, mimeType: 'application/json' },
    accepts: [
      {
        scheme: terms.scheme,
        network: terms.network,
        asset: terms.asset,
        amount,
        payTo: terms.payTo,
        maxTimeoutSeconds: terms.maxTimeoutSeconds,
        extra: { name, version, ...(quote && { quote }), ...range, ...mode, ...development },
      },
    ],
    extensions: { ...extensions, ...paymentIdentifierOffer },
  }
  return {
    headers: { 'payment-required': encodeHeader(v2Challenge), 'cache-control': 'no-store' },
    body: {
      error: 'payment_required',
      message,
      reason: error,
      price_usdc: usdcFromMicro(terms.amountMicro),
      amount,
      ...(quote && { quote }),
      ...mode,
      min_validity_seconds: minValiditySeconds(terms),
      ...(range && {
        price_range: {
          min_usdc: usdcFromMicro(terms.amountMicro),
          max_usdc: usdcFromMicro(maxAmountMicro!),
          ...range,
        },
      }),
      x402Version: 1,
      accepts: [
        {
          scheme: terms.scheme,
          network: V1_NETWORK,
          maxAmountRequired: amount,
          resource: resource.url,
          description: resource.description,
          mimeType: 'application/json',
          ...(inputDescription && { outputSchema: inputDescription }),
          payTo: terms.payTo,
          maxTimeoutSeconds: terms.maxTimeoutSeconds,
          asset: terms.asset,
          extra: { name, version, ...range, ...development },
        },
      ],
    },
  }
}

/** What version 2 says in the header of a 402. */
export type PaymentRequired = {
  x402Version: 2
  error: string
  resource: { url: string; description: string; mimeType: string }
  accepts: Record<string, unknown>[]
  extensions: Record<string, unknown>
}

export const readPaymentRequired = ({ headers }: { headers?: Record<string, string> }): PaymentRequired =>
  JSON.parse(Buffer.from(headers!['payment-required']!, 'base64').toString('utf8'))

const describePrice = (amountMicro: bigint, maxAmountMicro: bigint | undefined) =>
  maxAmountMicro === undefined
    ? `This call costs ${usdcFromMicro(amountMicro)} USDC. Pay it by x402 and send the same request again.`
    : `This call costs ${usdcFromMicro(amountMicro)} to ${usdcFromMicro(maxAmountMicro)} USDC. Send the request as JSON to get the price of exactly that request, then pay it by x402.`

/** The outcome of the payment for clients of both versions. Caches must not store a paid response. */
export function paymentResponseHeaders(result: {
  success: boolean
  transaction: string
  payer: string
  amountMicro: bigint
  errorReason?: string
  /** Version 2 only. */
  extensions?: Record<string, unknown> | undefined
  /** The identifier in the payment. */
  identifier?: string | undefined
}) {
  const base = {
    success: result.success,
    transaction: result.transaction,
    payer: result.payer,
    ...(result.errorReason && { errorReason: result.errorReason }),
  }
  const { identifier } = result
  const extensions = { ...result.extensions, ...(identifier !== undefined && paymentIdentifierEcho(identifier)) }
  return {
    'payment-response': encodeHeader({
      ...base,
      network: NETWORK,
      amount: result.amountMicro.toString(),
      ...(Object.keys(extensions).length > 0 && { extensions }),
    }),
    'x-payment-response': encodeHeader({ ...base, network: V1_NETWORK }),
    'cache-control': 'no-store',
  }
}

const encodeHeader = (value: unknown) => Buffer.from(JSON.stringify(value), 'utf8').toString('base64')

/** What a paid operation costs, in the form that agents read from OpenAPI before they call it. */
export const paymentInfo = ({ minMicro, maxMicro }: { minMicro: bigint; maxMicro: bigint }) => ({
  'x-payment-info': {
    price: {
      mode: 'dynamic',
      currency: 'USD',
      min: usdcFromMicro(minMicro).toString(),
      max: usdcFromMicro(maxMicro).toString(),
    },
    protocols: [{ x402: {} }],
  },
})
