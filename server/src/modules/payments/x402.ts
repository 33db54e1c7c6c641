import { Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { usdcFromMicro } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import { parseStrictJson, StrictJsonError } from '../../platform/strict-json.ts'
import type { ExactPayment, Hex, PaymentTerms } from './facilitator.ts'

/** The x402 wire format, both versions at once: one 402 serves either client, and either payment header is read. */
export type Headers = Record<string, string | string[] | undefined>

export type ReadPayment = {
  payment: ExactPayment
  /** What the client says it agreed to. v2 echoes our terms word for word, the quote included; v1 echoes nothing. */
  accepted: { scheme?: string; network?: string; asset?: string; amount?: string; payTo?: string; quote?: string }
}

export const NETWORK = 'eip155:8453'
const V1_NETWORK = 'base'

const MAX_HEADER = 16_384

const hex = (bytes: number) => Type.String({ pattern: `^0x[0-9a-fA-F]{${bytes * 2}}$` })
const unsigned = Type.String({ pattern: '^(0|[1-9][0-9]{0,77})$' })

const ExactPayload = Type.Object({
  // A contract wallet's signature may be longer than the 65 bytes of a plain account's.
  signature: Type.String({ pattern: '^0x([0-9a-fA-F]{2})+$', maxLength: 8_194 }),
  authorization: Type.Object({
    from: hex(20),
    to: hex(20),
    value: unsigned,
    validAfter: unsigned,
    validBefore: unsigned,
    nonce: hex(32),
  }),
})

const PayloadV2 = Type.Object({
  x402Version: Type.Literal(2),
  accepted: Type.Object({
    scheme: Type.String(),
    network: Type.String(),
    asset: Type.String(),
    amount: Type.String(),
    payTo: Type.String(),
    extra: Type.Optional(Type.Object({ quote: Type.Optional(Type.String({ maxLength: 8_192 })) })),
  }),
  payload: ExactPayload,
})

const PayloadV1 = Type.Object({
  x402Version: Type.Literal(1),
  scheme: Type.String(),
  network: Type.String(),
  payload: ExactPayload,
})

const isV2 = Compile(PayloadV2)
const isV1 = Compile(PayloadV1)

/** Undefined when nothing was paid yet; a header that cannot be read is a 400, since asking again would not mend it. */
export function readPayment(headers: Headers): ReadPayment | undefined {
  const v2 = headers['payment-signature']
  const v1 = headers['x-payment']
  if (v2 === undefined && v1 === undefined) return undefined
  if (v2 !== undefined && v1 !== undefined) throw invalid('Send either PAYMENT-SIGNATURE or X-PAYMENT, not both.')
  const name = v2 !== undefined ? 'PAYMENT-SIGNATURE' : 'X-PAYMENT'
  const version = v2 !== undefined ? 2 : 1
  const read = readPayload(decode(name, v2 ?? v1))
  if (read?.payment.x402Version !== version)
    throw invalid(`${name} is not an x402 version ${version} payment of the scheme exact.`)
  return read
}

/** A payment as it stands in a header or in a body, of either version; undefined when it is none of the scheme exact. */
export function readPayload(payload: unknown): ReadPayment | undefined {
  if (isV2.Check(payload)) {
    const { scheme, network, asset, amount, payTo, extra } = payload.accepted
    return {
      payment: toPayment(2, payload, payload.payload),
      accepted: { scheme, network, asset, amount, payTo, quote: extra?.quote },
    }
  }
  if (!isV1.Check(payload)) return undefined
  const network = payload.network === V1_NETWORK ? NETWORK : payload.network
  return { payment: toPayment(1, payload, payload.payload), accepted: { scheme: payload.scheme, network } }
}

function decode(name: string, header: string | string[] | undefined): unknown {
  if (typeof header !== 'string' || header.length > MAX_HEADER)
    throw invalid(`${name} is longer than ${MAX_HEADER} characters.`)
  try {
    return parseStrictJson(Buffer.from(header, 'base64').toString('utf8'))
  } catch (error) {
    if (error instanceof StrictJsonError) throw invalid(`${name} is not base64 of JSON.`)
    throw error
  }
}

type WirePayload = {
  signature: string
  authorization: Record<'from' | 'to' | 'value' | 'validAfter' | 'validBefore' | 'nonce', string>
}

const toPayment = (x402Version: 1 | 2, payload: unknown, exact: WirePayload): ExactPayment => ({
  x402Version,
  signature: exact.signature.toLowerCase() as Hex,
  authorization: {
    from: exact.authorization.from.toLowerCase() as Hex,
    to: exact.authorization.to.toLowerCase() as Hex,
    value: BigInt(exact.authorization.value),
    validAfter: BigInt(exact.authorization.validAfter),
    validBefore: BigInt(exact.authorization.validBefore),
    nonce: exact.authorization.nonce.toLowerCase() as Hex,
  },
  payload,
})

export type Challenge = { headers: Record<string, string>; body: Record<string, unknown> }

export type ChallengeInput = {
  terms: PaymentTerms
  quote: string
  resource: { url: string; description: string }
  /** Why an offered payment was not taken; absent on a first call. */
  refusal?: { reason: string; message: string }
  extensions?: Record<string, unknown>
}

/** v2 clients read the header first, v1 clients the body; the body also carries our own `error` and `message`. */
export function buildChallenge({ terms, quote, resource, refusal, extensions }: ChallengeInput): Challenge {
  const error = refusal?.reason ?? 'payment_required'
  const message =
    refusal?.message ??
    `This call costs ${usdcFromMicro(terms.amountMicro)} USDC. Pay it by x402 and send the same request again.`
  const amount = terms.amountMicro.toString()
  const { name, version } = terms.extra
  const required = {
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
        extra: { name, version, quote },
      },
    ],
    ...(extensions && { extensions }),
  }
  return {
    headers: { 'payment-required': encode(required), 'cache-control': 'no-store' },
    body: {
      error: 'payment_required',
      message,
      reason: error,
      price_usdc: usdcFromMicro(terms.amountMicro),
      amount,
      quote,
      x402Version: 1,
      accepts: [
        {
          scheme: terms.scheme,
          network: V1_NETWORK,
          maxAmountRequired: amount,
          resource: resource.url,
          description: resource.description,
          mimeType: 'application/json',
          outputSchema: null,
          payTo: terms.payTo,
          maxTimeoutSeconds: terms.maxTimeoutSeconds,
          asset: terms.asset,
          extra: { name, version },
        },
      ],
    },
  }
}

/** What happened to the payment, for both versions of client. A paid answer must not be kept by a cache on the way. */
export function paymentResponseHeaders(result: {
  success: boolean
  transaction: string
  payer: string
  amountMicro: bigint
  errorReason?: string
  /** Version 2 only: what the extensions have to say. */
  extensions?: Record<string, unknown>
}) {
  const base = {
    success: result.success,
    transaction: result.transaction,
    payer: result.payer,
    ...(result.errorReason && { errorReason: result.errorReason }),
  }
  return {
    'payment-response': encode({
      ...base,
      network: NETWORK,
      amount: result.amountMicro.toString(),
      ...(result.extensions && { extensions: result.extensions }),
    }),
    'x-payment-response': encode({ ...base, network: V1_NETWORK }),
    'cache-control': 'no-store',
  }
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value), 'utf8').toString('base64')
