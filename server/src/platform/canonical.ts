import { createHash } from 'node:crypto'
import canonicalizeJson from 'canonicalize'

/** RFC 8785 bytes of a value, as text. `proof/` holds an independent second implementation that auditors use. */
export function canonical(value: unknown): string {
  const text = canonicalizeJson(value)
  if (text === undefined) throw new TypeError('This value has no JSON form.')
  return text
}

export const sha256 = (data: string | Uint8Array): string => `sha256:${createHash('sha256').update(data).digest('hex')}`

/** The hash that requests, policies and receipts are known by. */
export const hashJson = (value: unknown): string => sha256(canonical(value))
