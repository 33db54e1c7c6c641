import type { Signer } from '../../platform/keys.ts'
import { parseStrictJson } from '../../platform/strict-json.ts'

/** `amount` is in atomic units, as text; times are whole seconds since 1970. */
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
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** An EdDSA JWT whose key is in the public key set. Ed25519 has no randomness, so the same claims are the same token. */
export function signPreauthToken(signer: Signer, claims: PreauthClaims): string {
  const signed = `${part({ alg: 'EdDSA', typ: 'JWT', kid: signer.keyId })}.${part(claims)}`
  return `${signed}.${signer.sign(signed).toString('base64url')}`
}

/** The claims, if it is ours to the last bit. Whether it is still good, its row tells. */
export function readPreauthToken(signer: Signer, token: string): PreauthClaims | undefined {
  if (token.length > MAX_TOKEN) return undefined
  const [header, payload, signature, ...rest] = token.split('.')
  if (!header || !payload || !signature || rest.length > 0) return undefined
  const bytes = Buffer.from(signature, 'base64url')
  // Base64 has several spellings of the same bytes; ours is the one that counts.
  if (bytes.toString('base64url') !== signature || !signer.verify(`${header}.${payload}`, bytes)) return undefined
  return parseStrictJson(Buffer.from(payload, 'base64url').toString('utf8')) as PreauthClaims
}
