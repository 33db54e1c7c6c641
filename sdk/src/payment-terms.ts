import { DevelopmentChainRefused, PaymentRefused } from './errors.ts'
import { isObject } from './http.ts'

/** One way to pay, from the `PAYMENT-REQUIRED` header of a 402 (x402 version 2). */
export type PaymentTerms = {
  scheme: string
  network: string
  asset: string
  amount: string
  payTo: string
  maxTimeoutSeconds: number
  extra: Record<string, unknown>
}

export type Challenge = { x402Version: number; accepts: PaymentTerms[] } & Record<string, unknown>

export const NETWORK = 'eip155:8453'
/** USDC on Base. */
export const ASSET = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'
const DEFAULT_MAX_USDC = 1
/** A payment that could be used for longer would block its call for as long. */
const MAX_VALIDITY_SECONDS = 3_600

/** What the client is willing to sign. */
export type SigningRules = {
  maxUsdc: number | undefined
  isDevelopmentChainAllowed: boolean
  /** Of the first payment of the same call: a later one may not go to somebody else. */
  payTo?: string
}

/**
 * The terms to sign, from the headers and the body of a 402. Throws `PaymentRefused` for a price, network, token, payee or
 * validity that must not be signed.
 */
export function chooseTerms(headers: Headers, body: unknown, rules: SigningRules): Challenge {
  const challenge = readChallenge(headers)
  if (!rules.isDevelopmentChainAllowed && [challenge, body].some(isDevelopmentChain))
    throw new DevelopmentChainRefused()
  const candidates = challenge.accepts.filter(isTerms)
  const matching = narrow(
    narrow(
      narrow(candidates, ({ scheme, extra }) => scheme === 'exact' && isTransferAuthorization(extra), 'scheme'),
      ({ network }) => network === NETWORK,
      'network',
    ),
    ({ asset }) => asset.toLowerCase() === ASSET,
    'asset',
  )
  const [terms] = matching as [PaymentTerms]
  const maxMicro = toMicro(rules.maxUsdc ?? DEFAULT_MAX_USDC)
  if (BigInt(terms.amount) > maxMicro)
    throw new PaymentRefused(
      'price_above_max',
      `The call costs ${terms.amount} millionths of a USDC, and at most ${maxMicro} may be paid for one call (maxUsdc).`,
    )
  if (rules.payTo !== undefined && terms.payTo.toLowerCase() !== rules.payTo.toLowerCase())
    throw new PaymentRefused(
      'payee_changed',
      `The service now asks to pay ${terms.payTo}, and the first payment of this call was to ${rules.payTo}.`,
    )
  const { maxTimeoutSeconds } = terms
  if (!Number.isInteger(maxTimeoutSeconds) || maxTimeoutSeconds < 1 || maxTimeoutSeconds > MAX_VALIDITY_SECONDS)
    throw new PaymentRefused(
      'validity',
      `The payment would be valid for ${maxTimeoutSeconds} seconds; at most ${MAX_VALIDITY_SECONDS} are signed.`,
    )
  return { ...challenge, accepts: [terms] }
}

const REFUSALS = {
  scheme: "None of the ways to pay is the scheme 'exact' by transferWithAuthorization (EIP-3009).",
  network: `None of the ways to pay is on the network ${NETWORK}.`,
  asset: `None of the ways to pay is in USDC (${ASSET}).`,
}

function narrow(terms: PaymentTerms[], matches: (terms: PaymentTerms) => boolean, reason: keyof typeof REFUSALS) {
  const matching = terms.filter(matches)
  if (matching.length === 0) throw new PaymentRefused(reason, REFUSALS[reason])
  return matching
}

/** A Permit2 signature has another nonce and can be spent by another contract. */
const isTransferAuthorization = ({ assetTransferMethod }: Record<string, unknown>) =>
  assetTransferMethod === undefined || assetTransferMethod === 'eip3009'

function readChallenge(headers: Headers): Challenge {
  const header = headers.get('payment-required')
  const challenge = header === null ? undefined : decodeHeader(header)
  if (!isObject(challenge) || challenge.x402Version !== 2 || !Array.isArray(challenge.accepts))
    throw new PaymentRefused('unreadable', 'The 402 has no PAYMENT-REQUIRED header of x402 version 2.')
  return challenge as Challenge
}

export function decodeHeader(header: string): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(header), (character) => character.charCodeAt(0))))
  } catch {
    return undefined
  }
}

const isTerms = (terms: unknown): terms is PaymentTerms =>
  isObject(terms) &&
  typeof terms.scheme === 'string' &&
  typeof terms.network === 'string' &&
  typeof terms.asset === 'string' &&
  typeof terms.payTo === 'string' &&
  typeof terms.amount === 'string' &&
  /^[0-9]{1,30}$/.test(terms.amount) &&
  isObject(terms.extra)

/** The header has the terms of version 2, the body those of version 1; either may say so. */
const isDevelopmentChain = (challenge: unknown): boolean =>
  isObject(challenge) &&
  Array.isArray(challenge.accepts) &&
  challenge.accepts.some((terms) => isObject(terms) && isObject(terms.extra) && terms.extra.development === true)

function toMicro(usdc: number): bigint {
  if (!Number.isFinite(usdc) || usdc < 0) throw new TypeError(`maxUsdc must be a number from 0 on, not ${usdc}.`)
  return BigInt(Math.round(usdc * 1_000_000))
}
