import { randomBytes } from 'node:crypto'
import type { Keys } from '../../platform/keys.ts'

/**
 * `csk_` + 32 random bytes + 6 characters of a keyed checksum over them. The checksum lets a guessed key be refused
 * with one hash, so that guesses never reach the database.
 */
const KEY_PATTERN = /^csk_([A-Za-z0-9_-]{43})([A-Za-z0-9_-]{6})$/
const PREFIX_LENGTH = 12

export type GeneratedKey = { apiKey: string; prefix: string; hash: string }

export function generateApiKey(keys: Pick<Keys, 'fingerprint'>): GeneratedKey {
  const secret = randomBytes(32).toString('base64url')
  const apiKey = `csk_${secret}${checksum(keys, secret)}`
  return { apiKey, prefix: apiKey.slice(0, PREFIX_LENGTH), hash: hashApiKey(keys, apiKey) }
}

export function isWellFormedApiKey(keys: Pick<Keys, 'fingerprint'>, text: string): boolean {
  const [, secret, check] = KEY_PATTERN.exec(text) ?? []
  return secret !== undefined && checksum(keys, secret) === check
}

export const hashApiKey = (keys: Pick<Keys, 'fingerprint'>, apiKey: string) => keys.fingerprint(`api-key:${apiKey}`)

const checksum = (keys: Pick<Keys, 'fingerprint'>, secret: string) =>
  Buffer.from(keys.fingerprint(`api-key-check:${secret}`), 'hex')
    .toString('base64url')
    .slice(0, 6)
