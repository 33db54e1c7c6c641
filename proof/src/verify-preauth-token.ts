import {
  allChecksPass,
  type Check,
  checkPurpose,
  failed,
  isJsonObject,
  isShortText,
  type JsonObject,
  passed,
  skipped,
  type Verification,
} from './checks.ts'
import { SIGNATURE_BYTES, verifyEd25519 } from './ed25519.ts'
import { fromBase64Url, fromUtf8, tryDecode, utf8 } from './encoding.ts'
import { findKey, type Jwk, type Jwks } from './jwk.ts'
import { parseJson } from './parse-json.ts'

/** The claims of a pre-authorisation. `amount` is in atomic units, as text; times are seconds since 1970. */
export type PreauthClaims = {
  iss: string
  sub: string
  aud: string
  jti: string
  iat: number
  exp: number
  amount: string
  asset: string
  network: string
  pay_to: string | null
  mandate_id: string | null
  policy_hash: string | null
  request_hash: string | null
}

export type VerifyPreauthTokenOptions = {
  jwks: Jwks
  now: Date
  /** Claims that must have exactly these values, for example `{ aud, pay_to, network }`. */
  expect?: Partial<PreauthClaims>
  /** The amount to be charged, in atomic units: the authorised amount must cover it. */
  charge?: bigint
}

export type PreauthVerification = Verification & { claims: PreauthClaims | null }

export const MAX_TOKEN_LENGTH = 8192
const SKEW_SECONDS = 60

/**
 * Verifies a pre-authorisation token, a JWT signed with EdDSA, offline. `claims` is null unless the token is valid.
 * Never throws, whatever the input.
 */
export function verifyPreauthToken(token: unknown, options: VerifyPreauthTokenOptions): PreauthVerification {
  const parsed = parseToken(token)
  if (typeof parsed === 'string') return { ok: false, checks: [failed('shape', parsed)], claims: null, does_not_prove }

  const { header, claims } = parsed
  const key = findKey(options.jwks, header.kid)
  const checks = [
    passed('shape', 'The token is a JWT with the claims of a pre-authorisation.'),
    ...checkKey(key, header.kid, parsed.signingInput, parsed.signature),
    ...checkTimes(claims, options.now),
    ...Object.entries(options.expect ?? {}).map(([name, value]) => checkClaim(name, claims, value)),
    ...(options.charge === undefined ? [] : [checkCharge(claims.amount, options.charge)]),
  ]
  const ok = allChecksPass(checks, ['shape', 'key', 'signature', 'exp', 'iat'])
  return { ok, checks, claims: ok ? claims : null, does_not_prove }
}

type TokenParts = { header: JsonObject; claims: PreauthClaims; signingInput: string; signature: Uint8Array }

/** The parsed token, or why it is malformed. */
function parseToken(token: unknown): TokenParts | string {
  if (typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH)
    return `A token is a text of at most ${MAX_TOKEN_LENGTH} characters.`
  const [head, body, tail, ...extra] = token.split('.')
  if (head === undefined || body === undefined || tail === undefined || extra.length > 0)
    return 'A token has three parts.'
  const header = decodePart(head)
  const claims = decodePart(body)
  const signature = tryDecode(fromBase64Url, tail)
  if (!header || !claims || signature?.length !== SIGNATURE_BYTES) return 'The parts of the token cannot be read.'
  // The token must not choose the algorithm: anything but EdDSA is rejected, including `none`.
  if (header.alg !== 'EdDSA') return "The token is not signed with 'EdDSA'."
  if (header.crit !== undefined) return 'The token requires unsupported extensions.'
  const problem = claimsProblem(claims)
  if (problem !== undefined) return problem
  return { header, claims: claims as PreauthClaims, signingInput: `${head}.${body}`, signature }
}

function decodePart(part: string): JsonObject | undefined {
  const bytes = tryDecode(fromBase64Url, part)
  const text = bytes && fromUtf8(bytes)
  if (text === undefined) return undefined
  try {
    const value = parseJson(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function claimsProblem(claims: JsonObject): string | undefined {
  for (const name of ['iss', 'sub', 'aud', 'jti', 'asset', 'network']) {
    if (!isShortText(claims[name])) return `The claim '${name}' must be a text.`
  }
  for (const name of ['pay_to', 'mandate_id', 'policy_hash', 'request_hash']) {
    const value = claims[name]
    if (value !== null && value !== undefined && !isShortText(value))
      return `The claim '${name}' must be a text or null.`
  }
  if (typeof claims.amount !== 'string' || !/^(?:0|[1-9]\d{0,77})$/.test(claims.amount)) {
    return "The claim 'amount' must be atomic units as decimal text."
  }
  for (const name of ['iat', 'exp']) {
    if (!Number.isSafeInteger(claims[name])) return `The claim '${name}' must be in whole seconds.`
  }
  return undefined
}

function checkKey(key: Jwk | undefined, kid: unknown, signingInput: string, signature: Uint8Array): Check[] {
  if (!key) {
    const reason = isShortText(kid) ? `No trusted key has the id '${kid}'.` : 'The token does not name its key.'
    return [failed('key', reason), skipped('key_purpose', reason), skipped('signature', reason)]
  }
  return [
    passed('key', `It names key '${kid}' of the key set.`),
    checkPurpose(key, 'preauth'),
    verifyEd25519(key, utf8(signingInput), signature)
      ? passed('signature', 'The ed25519 signature covers exactly these claims.')
      : failed('signature', 'The signature does not match: the claims or the signature were changed.'),
  ]
}

function checkTimes({ iat, exp }: PreauthClaims, now: Date): Check[] {
  const seconds = now.getTime() / 1000
  return [
    // Written so that an invalid date fails both.
    exp > seconds ? passed('exp', 'It has not expired.') : failed('exp', 'It has expired.'),
    iat <= seconds + SKEW_SECONDS && iat < exp
      ? passed('iat', 'It was issued in the past.')
      : failed('iat', 'It is dated in the future, or expires before it was issued.'),
  ]
}

function checkClaim(name: string, claims: PreauthClaims, expected: unknown): Check {
  const value: unknown = (claims as JsonObject)[name] ?? null
  return value === (expected ?? null)
    ? passed(`claim:${name}`, `The claim '${name}' is the expected one.`)
    : failed(`claim:${name}`, `The claim '${name}' is not the expected one.`)
}

const checkCharge = (amount: string, charge: bigint): Check =>
  charge >= 0n && charge <= BigInt(amount)
    ? passed('charge', `The authorised ${amount} atomic units cover ${charge}.`)
    : failed('charge', `The authorised ${amount} atomic units do not cover ${charge}.`)

const does_not_prove = [
  'That the token is unused: it is valid once, and only the service knows whether it was closed.',
  'That the mandate or policy behind it is still active: it may have been revoked since.',
  'That the key set belongs to the service: get it from a place you trust.',
]
