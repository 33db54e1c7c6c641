import { randomBytes } from 'node:crypto'
import type { Keys } from '../../platform/keys.ts'

/**
 * `csk_` + the cell that made it, if cells have names, and `_` + 32 random bytes + 6 characters of a keyed checksum over
 * all of it. The checksum lets a guessed key be refused with one hash, so that guesses never reach the database; the
 * cell is in the open, so that a proxy before several cells knows where the key belongs (docs/scale.md).
 */
const KEY_PATTERN = /^csk_(?:([a-z][a-z0-9]{1,7})_)?([A-Za-z0-9_-]{43})([A-Za-z0-9_-]{6})$/
const SHOWN_CHARACTERS = 8

export type GeneratedKey = { apiKey: string; prefix: string; hash: string }

export function generateApiKey(keys: Pick<Keys, 'fingerprint'>, cell?: string): GeneratedKey {
  const start = cell ? `${cell}_` : ''
  const secret = randomBytes(32).toString('base64url')
  const apiKey = `csk_${start}${secret}${checksum(keys, `${start}${secret}`)}`
  const prefix = `csk_${start}${secret.slice(0, SHOWN_CHARACTERS)}`
  return { apiKey, prefix, hash: hashApiKey(keys, apiKey) }
}

export function isWellFormedApiKey(keys: Pick<Keys, 'fingerprint'>, text: string): boolean {
  const [, cell, secret, check] = KEY_PATTERN.exec(text) ?? []
  return secret !== undefined && checksum(keys, cell ? `${cell}_${secret}` : secret) === check
}

/** The cell that a key names, whether or not the key is one. */
export const cellOfApiKey = (text: string): string | undefined => KEY_PATTERN.exec(text)?.[1]

export const hashApiKey = (keys: Pick<Keys, 'fingerprint'>, apiKey: string) => keys.fingerprint(`api-key:${apiKey}`)

const checksum = (keys: Pick<Keys, 'fingerprint'>, text: string) =>
  Buffer.from(keys.fingerprint(`api-key-check:${text}`), 'hex')
    .toString('base64url')
    .slice(0, 6)
