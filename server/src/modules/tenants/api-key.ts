import { randomBytes } from 'node:crypto'
import type { Keys } from '../../platform/keys.ts'

/**
 * `csk_` + 32 random bytes + 6 characters of a keyed checksum over them. The checksum lets a guess be refused for the
 * price of one hash, so that somebody trying keys never reaches the database.
 */
const SHAPE = /^csk_([A-Za-z0-9_-]{43})([A-Za-z0-9_-]{6})$/
const SHOWN_PREFIX = 12

export type FreshKey = { apiKey: string; prefix: string; hash: string }

export function makeApiKey(keys: Pick<Keys, 'fingerprint'>): FreshKey {
  const secret = randomBytes(32).toString('base64url')
  const apiKey = `csk_${secret}${checksum(keys, secret)}`
  return { apiKey, prefix: apiKey.slice(0, SHOWN_PREFIX), hash: hashApiKey(keys, apiKey) }
}

export function couldBeApiKey(keys: Pick<Keys, 'fingerprint'>, text: string): boolean {
  const [, secret, check] = SHAPE.exec(text) ?? []
  return secret !== undefined && checksum(keys, secret) === check
}

export const hashApiKey = (keys: Pick<Keys, 'fingerprint'>, apiKey: string) => keys.fingerprint(`api-key:${apiKey}`)

const checksum = (keys: Pick<Keys, 'fingerprint'>, secret: string) =>
  Buffer.from(keys.fingerprint(`api-key-check:${secret}`), 'hex')
    .toString('base64url')
    .slice(0, 6)
