import { canonicalize } from './canonicalize.ts'
import { fromBase64Url, toBase64Url, tryDecode, utf8 } from './encoding.ts'
import { ProofError } from './proof-error.ts'
import { sha256 } from './sha256.ts'

/** An ed25519 public key in RFC 8037 form. */
export type Jwk = {
  kty: string
  crv?: string
  x?: string
  kid?: string
  use?: string
  alg?: string
  key_ops?: readonly string[]
  /** What the issuer uses this key for, for example `attestation-preview`. A key without one is not restricted. */
  purpose?: string
}

export type Jwks = { keys: readonly Jwk[] }

/** The purposes a key may be marked with, so that a signature of one kind cannot pass as another. */
export type KeyPurpose = 'receipt' | 'log' | 'attestation' | 'attestation-preview' | 'preauth' | 'statement'

/** A key set is read in full for every look-up, so larger ones are rejected. */
export const MAX_KEYS = 256

/** The 32 bytes of the public key, or undefined when this is not an ed25519 key meant for verifying. */
export function publicKeyBytes(jwk: unknown): Uint8Array | undefined {
  if (!isObject(jwk) || jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519') return undefined
  if (jwk.use !== undefined && jwk.use !== 'sig') return undefined
  if (jwk.alg !== undefined && jwk.alg !== 'EdDSA' && jwk.alg !== 'Ed25519') return undefined
  if (jwk.key_ops !== undefined && !(Array.isArray(jwk.key_ops) && jwk.key_ops.includes('verify'))) return undefined
  const bytes = tryDecode(fromBase64Url, jwk.x)
  return bytes?.length === 32 ? bytes : undefined
}

/** The JWK of 32 public key bytes, with its thumbprint as kid. */
export function jwkFromPublicKey(publicKey: Uint8Array): Jwk & { kid: string; x: string } {
  if (publicKey.length !== 32) throw new ProofError('An ed25519 public key has 32 bytes.')
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: toBase64Url(publicKey) }
  return { ...jwk, kid: thumbprint(jwk), use: 'sig', alg: 'EdDSA' }
}

/** RFC 7638: SHA-256 over the required members only. It is also the kid of every key of the service. */
export function thumbprint(jwk: Jwk): string {
  if (jwk.kty !== 'OKP' || typeof jwk.crv !== 'string' || typeof jwk.x !== 'string') {
    throw new ProofError('Thumbprints are supported for OKP keys (ed25519) only.')
  }
  return toBase64Url(sha256(utf8(canonicalize({ crv: jwk.crv, kty: jwk.kty, x: jwk.x }))))
}

/**
 * The key with this kid, or undefined. A key without a kid is found by its thumbprint. Two different keys with the same
 * kid are never found, because a verifier must not guess which one was meant.
 */
export function findKey(jwks: unknown, kid: unknown): Jwk | undefined {
  if (typeof kid !== 'string' || kid === '') return undefined
  const matches = readKeys(jwks).filter((jwk) => (jwk.kid ?? thumbprint(jwk)) === kid)
  const [first] = matches
  return first && matches.every((jwk) => jwk.x === first.x) ? first : undefined
}

/** The ed25519 keys of a key set; other keys are ignored. Empty when the value is not a key set. */
export function readKeys(jwks: unknown): Jwk[] {
  if (!isObject(jwks) || !Array.isArray(jwks.keys) || jwks.keys.length > MAX_KEYS) return []
  return jwks.keys.filter((jwk): jwk is Jwk => publicKeyBytes(jwk) !== undefined)
}

/** Whether the key may be used for this purpose; undefined when the key has no purpose. */
export function allowsPurpose(jwk: Jwk, purpose: KeyPurpose): boolean | undefined {
  return jwk.purpose === undefined ? undefined : jwk.purpose === purpose
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
