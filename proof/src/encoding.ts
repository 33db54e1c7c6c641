import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js'
import { ProofError } from './proof-error.ts'

const encoder = new TextEncoder()
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export const concat = (...parts: Uint8Array[]): Uint8Array => concatBytes(...parts)

export const utf8 = (text: string): Uint8Array => encoder.encode(text)

/** Undefined when the bytes are not UTF-8. */
export function fromUtf8(bytes: Uint8Array): string | undefined {
  try {
    return strictDecoder.decode(bytes)
  } catch {
    return undefined
  }
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i += 1) if (a[i] !== b[i]) return false
  return true
}

export const toHex = (bytes: Uint8Array): string => bytesToHex(bytes)

/** Accepts lower case only, so that every value has one encoding. Throws otherwise. */
export function fromHex(text: string): Uint8Array {
  if (!/^(?:[0-9a-f]{2})*$/.test(text))
    throw new ProofError('Not lower-case hexadecimal with an even number of digits.')
  return hexToBytes(text)
}

const STANDARD = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const URL_SAFE = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

export const toBase64 = (bytes: Uint8Array): string => {
  const text = encode(bytes, STANDARD)
  return text + '='.repeat((4 - (text.length % 4)) % 4)
}

/** RFC 4648 section 4 with padding. Throws for whitespace or a non-canonical encoding of the same bytes. */
export function fromBase64(text: string): Uint8Array {
  const bytes = decode(text.replace(/={1,2}$/, ''), standardValues)
  if (!bytes || toBase64(bytes) !== text) throw new ProofError('Not canonical base64.')
  return bytes
}

/** RFC 4648 section 5 without padding, as JOSE uses it. */
export const toBase64Url = (bytes: Uint8Array): string => encode(bytes, URL_SAFE)

/** Throws for padding, whitespace, or a non-canonical encoding of the same bytes. */
export function fromBase64Url(text: string): Uint8Array {
  const bytes = decode(text, urlSafeValues)
  if (!bytes || toBase64Url(bytes) !== text) throw new ProofError('Not canonical base64url.')
  return bytes
}

/** The decoded bytes, or undefined where the decoder would throw, because verifiers must not throw. */
export function tryDecode(decoder: (text: string) => Uint8Array, text: unknown): Uint8Array | undefined {
  if (typeof text !== 'string') return undefined
  try {
    return decoder(text)
  } catch {
    return undefined
  }
}

const valuesOf = (alphabet: string) =>
  new Map([...alphabet].map((character, value) => [character.charCodeAt(0), value]))
const standardValues = valuesOf(STANDARD)
const urlSafeValues = valuesOf(URL_SAFE)

function encode(bytes: Uint8Array, alphabet: string): string {
  let text = ''
  let bits = 0
  let buffer = 0
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte
    bits += 8
    while (bits >= 6) {
      bits -= 6
      text += alphabet[(buffer >> bits) & 63]
    }
    buffer &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + alphabet[(buffer << (6 - bits)) & 63]
}

function decode(text: string, values: Map<number, number>): Uint8Array | undefined {
  const bytes = new Uint8Array(Math.floor((text.length * 6) / 8))
  let bits = 0
  let buffer = 0
  let length = 0
  for (let i = 0; i < text.length; i += 1) {
    const value = values.get(text.charCodeAt(i))
    if (value === undefined) return undefined
    buffer = (buffer << 6) | value
    bits += 6
    if (bits < 8) continue
    bits -= 8
    bytes[length] = buffer >> bits
    length += 1
    buffer &= (1 << bits) - 1
  }
  return bytes
}
