import type { Signer } from '../../../platform/keys.ts'
import { parseStrictJson } from '../../../platform/strict-json.ts'

/** `amount` is in atomic units, as a string; times are Unix seconds. */
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

const MAX_TOKEN = 8_192
const encodePart = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** An EdDSA JWT whose key is in the public key set. Ed25519 is deterministic, so the same claims give the same token. */
export function signPreauthToken(signer: Signer, claims: PreauthClaims): string {
  const signingInput = `${encodePart({ alg: 'EdDSA', typ: 'JWT', kid: signer.keyId })}.${encodePart(claims)}`
  return `${signingInput}.${signer.sign(signingInput).toString('base64url')}`
}

/** The claims of a token signed by this service. Whether it can still be used is decided by its row. */
export function readPreauthToken(signer: Signer, token: string): PreauthClaims | undefined {
  if (token.length > MAX_TOKEN) return undefined
  const [header, payload, signature, ...extraParts] = token.split('.')
  if (!header || !payload || !signature || extraParts.length > 0) return undefined
  const bytes = Buffer.from(signature, 'base64url')
  // Base64url has several spellings of the same bytes; only the canonical one is accepted.
  if (bytes.toString('base64url') !== signature || !signer.verify(`${header}.${payload}`, bytes)) return undefined
  return parseStrictJson(Buffer.from(payload, 'base64url').toString('utf8')) as PreauthClaims
}
