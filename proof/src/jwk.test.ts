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

const firstKey = testKey(1)
const secondKey = testKey(2)

// RFC 8037 appendices A.2 and A.3.
const RFC_8037: Jwk = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }

test('the thumbprint of the RFC 8037 key', async () => {
  expect(thumbprint(RFC_8037)).toBe('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k')
  expect(thumbprint(firstKey.jwk)).toBe(
    await calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x: firstKey.jwk.x! }),
  )
})

test('a public key and its JWK convert into each other', () => {
  expect(publicKeyBytes(jwkFromPublicKey(firstKey.publicKey))).toEqual(firstKey.publicKey)
  expect(() => jwkFromPublicKey(new Uint8Array(31))).toThrow('32 bytes')
})

test('a key is found by its kid, or by its thumbprint when it has none', () => {
  const { kid, ...unnamed } = secondKey.jwk
  const jwks = { keys: [firstKey.jwk, unnamed, { kty: 'RSA', n: 'AQAB', kid: 'rsa' }] }
  expect(findKey(jwks, firstKey.jwk.kid)).toEqual(firstKey.jwk)
  expect(findKey(jwks, kid)).toEqual(unnamed)
  expect(findKey({ keys: [{ ...firstKey.jwk, kid: 'k1' }] }, 'k1')?.x).toBe(firstKey.jwk.x)
})

test.each<[string, unknown, unknown]>([
  ['an unknown kid', { keys: [firstKey.jwk] }, 'unknown'],
  ['an empty kid', { keys: [{ ...firstKey.jwk, kid: '' }] }, ''],
  ['a kid that is not a string', { keys: [firstKey.jwk] }, 7],
  ['no key set', undefined, firstKey.jwk.kid],
  ['a key set that is not a list', { keys: firstKey.jwk }, firstKey.jwk.kid],
  ['a key set of nonsense', { keys: [null, 1, 'x', []] }, firstKey.jwk.kid],
  ['another key type', { keys: [{ ...firstKey.jwk, kty: 'EC' }] }, firstKey.jwk.kid],
  ['a key without its point', { keys: [{ ...firstKey.jwk, x: undefined }] }, firstKey.jwk.kid],
  ['another curve', { keys: [{ ...firstKey.jwk, crv: 'X25519' }] }, firstKey.jwk.kid],
  ['a key for encryption', { keys: [{ ...firstKey.jwk, use: 'enc' }] }, firstKey.jwk.kid],
  ['a key for signing only', { keys: [{ ...firstKey.jwk, key_ops: ['sign'] }] }, firstKey.jwk.kid],
  ['another algorithm', { keys: [{ ...firstKey.jwk, alg: 'ES256' }] }, firstKey.jwk.kid],
  ['a truncated key', { keys: [{ ...firstKey.jwk, x: firstKey.jwk.x!.slice(4) }] }, firstKey.jwk.kid],
  ['two keys under one kid', { keys: [firstKey.jwk, { ...secondKey.jwk, kid: firstKey.jwk.kid }] }, firstKey.jwk.kid],
  ['too many keys', { keys: Array.from({ length: MAX_KEYS + 1 }, () => firstKey.jwk) }, firstKey.jwk.kid],
])('%s finds nothing', (_, jwks, kid) => {
  expect(findKey(jwks, kid)).toBeUndefined()
})

test('a key may state that it is for verifying, and under either name of its algorithm', () => {
  for (const more of [{ key_ops: ['verify'] }, { alg: 'Ed25519' }, { alg: 'EdDSA', use: 'sig' }])
    expect(publicKeyBytes({ ...firstKey.jwk, ...more })).toEqual(firstKey.publicKey)
})

test('a key set may have as many keys as the limit', () => {
  const keys = Array.from({ length: MAX_KEYS }, () => firstKey.jwk)
  expect(findKey({ keys }, firstKey.jwk.kid)?.x).toBe(firstKey.jwk.x)
})

test.each<[string, Partial<Jwk>]>([
  ['another key type', { kty: 'EC' }],
  ['no curve', { crv: undefined }],
  ['no point', { x: undefined }],
])('a key with %s has no thumbprint', (_, change) => {
  expect(() => thumbprint({ ...RFC_8037, ...change })).toThrow('OKP keys')
})

test('a key listed twice is still found', () => {
  expect(findKey({ keys: [firstKey.jwk, { ...firstKey.jwk }] }, firstKey.jwk.kid)?.x).toBe(firstKey.jwk.x)
})

test('a key with a purpose is restricted to it, a key without one is not', () => {
  expect(allowsPurpose(firstKey.jwk, 'receipt')).toBeUndefined()
  expect(allowsPurpose(testKey(1, 'receipt').jwk, 'receipt')).toBe(true)
  expect(allowsPurpose(testKey(1, 'receipt').jwk, 'log')).toBe(false)
  expect(readKeys({ keys: [firstKey.jwk, secondKey.jwk] })).toHaveLength(2)
})
