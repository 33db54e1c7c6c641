import { canonicalize } from './canonicalize.ts'
import { toHex, utf8 } from './encoding.ts'
import { sha256 } from './sha256.ts'

/** `sha256:` and the hexadecimal SHA-256 of the value's canonical JSON: the format of every hash in the API. */
export const hashJson = (value: unknown): string => `sha256:${toHex(sha256(utf8(canonicalize(value))))}`

export const isHashText = (value: unknown): value is string =>
  typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value)
