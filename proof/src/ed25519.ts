import { ed25519 } from '@noble/curves/ed25519.js'
import { type Jwk, publicKeyBytes } from './jwk.ts'

export const SIGNATURE_BYTES = 64

/**
 * Strict ed25519 (RFC 8032 with canonical encodings, no small-order keys). Returns false for anything else, never throws.
 * ZIP 215 leniency is off because a receipt must not have several valid encodings of one signature.
 */
export function verifyEd25519(key: Jwk | Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const publicKey = key instanceof Uint8Array ? key : publicKeyBytes(key)
  if (publicKey?.length !== 32 || signature.length !== SIGNATURE_BYTES) return false
  try {
    return ed25519.verify(signature, message, publicKey, { zip215: false })
  } catch {
    return false
  }
}
