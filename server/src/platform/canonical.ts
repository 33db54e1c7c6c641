import { createHash } from 'node:crypto'
import canonicalizeJson from 'canonicalize'

/** The RFC 8785 form of a value. `proof/` has an independent second implementation for auditors. */
export function canonicalJson(value: unknown): string {
  const text = canonicalizeJson(value)
  if (text === undefined) throw new TypeError('This value has no JSON form.')
  return text
}

export const sha256 = (data: string | Uint8Array): string => `sha256:${createHash('sha256').update(data).digest('hex')}`

/** The hash by which requests, policies and receipts are identified. */
export const hashJson = (value: unknown): string => sha256(canonicalJson(value))
