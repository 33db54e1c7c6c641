import { calculateJwkThumbprint } from 'jose'
import { expect, test } from 'vitest'
import { testKey } from '../test/fixtures.ts'
import {
  allowsPurpose,
  findKey,
  type Jwk,
  jwkFromPublicKey,
  MAX_KEYS,
  publicKeyBytes,
  readKeys,
  thumbprint,
} from './jwk.ts'

const one = testKey(1)
const two = testKey(2)

// RFC 8037 appendices A.2 and A.3.
const RFC_8037: Jwk = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }

test('the thumbprint of the RFC 8037 key', async () => {
  expect(thumbprint(RFC_8037)).toBe('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k')
  expect(thumbprint(one.jwk)).toBe(await calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x: one.jwk.x! }))
})

test('a public key and its JWK are two forms of one thing', () => {
  expect(publicKeyBytes(jwkFromPublicKey(one.publicKey))).toEqual(one.publicKey)
  expect(() => jwkFromPublicKey(new Uint8Array(31))).toThrow('32 bytes')
})

test('a key is found by its kid, or by its thumbprint when it names none', () => {
  const { kid, ...unnamed } = two.jwk
  const jwks = { keys: [one.jwk, unnamed, { kty: 'RSA', n: 'AQAB', kid: 'rsa' }] }
  expect(findKey(jwks, one.jwk.kid)).toEqual(one.jwk)
  expect(findKey(jwks, kid)).toEqual(unnamed)
  expect(findKey({ keys: [{ ...one.jwk, kid: 'k1' }] }, 'k1')?.x).toBe(one.jwk.x)
})

test.each<[string, unknown, unknown]>([
  ['an unknown kid', { keys: [one.jwk] }, 'nobody'],
  ['an empty kid', { keys: [{ ...one.jwk, kid: '' }] }, ''],
  ['a kid that is no text', { keys: [one.jwk] }, 7],
  ['no key set', undefined, one.jwk.kid],
  ['a key set that is no list', { keys: one.jwk }, one.jwk.kid],
  ['a key set of nonsense', { keys: [null, 1, 'x', []] }, one.jwk.kid],
  ['another curve', { keys: [{ ...one.jwk, crv: 'X25519' }] }, one.jwk.kid],
  ['a key for encryption', { keys: [{ ...one.jwk, use: 'enc' }] }, one.jwk.kid],
  ['a key for signing only', { keys: [{ ...one.jwk, key_ops: ['sign'] }] }, one.jwk.kid],
  ['another algorithm', { keys: [{ ...one.jwk, alg: 'ES256' }] }, one.jwk.kid],
  ['a key cut short', { keys: [{ ...one.jwk, x: one.jwk.x!.slice(4) }] }, one.jwk.kid],
  ['two keys under one kid', { keys: [one.jwk, { ...two.jwk, kid: one.jwk.kid }] }, one.jwk.kid],
  ['too many keys', { keys: Array.from({ length: MAX_KEYS + 1 }, () => one.jwk) }, one.jwk.kid],
])('%s finds nothing', (_, jwks, kid) => {
  expect(findKey(jwks, kid)).toBeUndefined()
})

test('the same key listed twice is still that key', () => {
  expect(findKey({ keys: [one.jwk, { ...one.jwk }] }, one.jwk.kid)?.x).toBe(one.jwk.x)
})

test('a mark restricts a key, no mark does not', () => {
  expect(allowsPurpose(one.jwk, 'receipt')).toBeUndefined()
  expect(allowsPurpose(testKey(1, 'receipt').jwk, 'receipt')).toBe(true)
  expect(allowsPurpose(testKey(1, 'receipt').jwk, 'log')).toBe(false)
  expect(readKeys({ keys: [one.jwk, two.jwk] })).toHaveLength(2)
})
