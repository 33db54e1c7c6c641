import { createPrivateKey } from 'node:crypto'
import fc from 'fast-check'
import { SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { check, issuerKey, jwks, makeToken, testKey, untrustedKey } from '../test/fixtures.ts'
import { toBase64Url, utf8 } from './encoding.ts'
import { MAX_TOKEN_LENGTH, verifyPreauthToken } from './verify-preauth-token.ts'

const now = new Date('2026-11-16T15:00:00Z')
const seconds = now.getTime() / 1000
const claims = {
  iss: 'https://countersign.test',
  sub: 'research-agent',
  aud: 'merchant.test',
  jti: 'pa_01',
  iat: seconds,
  exp: seconds + 600,
  amount: '15000',
  asset: 'USDC',
  network: 'eip155:8453',
  pay_to: `0x${'a'.repeat(40)}`,
  mandate_id: null,
  policy_hash: `sha256:${'1'.repeat(64)}`,
  request_hash: null,
}
const token = makeToken(claims)
const options = { jwks, now }

test('a token verifies offline and returns its claims', () => {
  const result = verifyPreauthToken(token, options)
  expect(result).toMatchObject({ ok: true, claims })
})

test('a token made by jose verifies', async () => {
  const pkcs8 = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, 1)])
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
  const token = await new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', kid: issuerKey.jwk.kid }).sign(key)
  expect(verifyPreauthToken(token, options).ok).toBe(true)
})

test('changing any character of a token makes it invalid', () => {
  for (let i = 0; i < token.length; i += 1) {
    const character = token[i] === 'A' ? 'B' : 'A'
    expect(verifyPreauthToken(token.slice(0, i) + character + token.slice(i + 1), options).ok, `at ${i}`).toBe(false)
  }
})

describe('time', () => {
  const at = (offset: number) => verifyPreauthToken(token, { jwks, now: new Date(now.getTime() + offset * 1000) })
  test('it expires exactly at exp, and a small clock skew is allowed at iat', () => {
    expect(at(599.9).ok).toBe(true)
    expect(check(at(600), 'exp')).toBe(false)
    expect(at(-60).ok).toBe(true)
    expect(check(at(-61), 'iat')).toBe(false)
  })

  test('an invalid date makes the token invalid', () => {
    const result = verifyPreauthToken(token, { jwks, now: new Date('never') })
    expect([result.ok, check(result, 'exp'), check(result, 'iat')]).toEqual([false, false, false])
  })

  test('a token that expires before it was issued is rejected', () => {
    expect(verifyPreauthToken(makeToken({ ...claims, iat: seconds + 30, exp: seconds + 20 }), options).ok).toBe(false)
  })
})

describe('expected claims and charge', () => {
  test('expected claims must match exactly', () => {
    const expect_ = { aud: 'merchant.test', network: 'eip155:8453', mandate_id: null }
    expect(verifyPreauthToken(token, { ...options, expect: expect_ }).ok).toBe(true)
    const result = verifyPreauthToken(token, { ...options, expect: { ...expect_, aud: 'thief.test' } })
    expect([result.ok, check(result, 'claim:aud'), result.claims]).toEqual([false, false, null])
    expect(verifyPreauthToken(token, { ...options, expect: { mandate_id: 'man_01' } }).ok).toBe(false)
  })

  test('the amount must cover the charge', () => {
    expect(verifyPreauthToken(token, { ...options, charge: 15_000n }).ok).toBe(true)
    expect(check(verifyPreauthToken(token, { ...options, charge: 15_001n }), 'charge')).toBe(false)
    expect(verifyPreauthToken(token, { ...options, charge: -1n }).ok).toBe(false)
  })
})

describe('forgeries', () => {
  test('an unknown key, no key, or a key for something else', () => {
    expect(check(verifyPreauthToken(makeToken(claims, { key: untrustedKey }), options), 'key')).toBe(false)
    expect(verifyPreauthToken(makeToken(claims, { header: { kid: undefined } }), options).ok).toBe(false)
    const receiptKeys = { keys: [testKey(1, 'receipt').jwk] }
    expect(check(verifyPreauthToken(token, { jwks: receiptKeys, now }), 'key_purpose')).toBe(false)
  })

  test("an untrusted signature under the issuer's key id", () => {
    const forged = makeToken(claims, { key: untrustedKey, header: { kid: issuerKey.jwk.kid } })
    expect(check(verifyPreauthToken(forged, options), 'signature')).toBe(false)
  })

  test.each(['none', 'HS256', 'ES256', 'eddsa', undefined])('the algorithm %s', (alg) => {
    expect(verifyPreauthToken(makeToken(claims, { header: { alg } }), options).ok).toBe(false)
  })

  test('a critical extension', () => {
    expect(verifyPreauthToken(makeToken(claims, { header: { crit: ['b64'], b64: false } }), options).ok).toBe(false)
  })

  test('duplicate claims', () => {
    const [head] = token.split('.')
    const body = toBase64Url(utf8(`${JSON.stringify(claims).slice(0, -1)},"amount":"99999999"}`))
    const signature = toBase64Url(issuerKey.sign(utf8(`${head}.${body}`)))
    expect(verifyPreauthToken(`${head}.${body}.${signature}`, options).ok).toBe(false)
  })
})

test.each<[string, unknown]>([
  ['an amount as number', { amount: 15_000 }],
  ['an amount with a point', { amount: '1.5' }],
  ['a negative amount', { amount: '-1' }],
  ['a leading zero', { amount: '015000' }],
  ['no audience', { aud: undefined }],
  ['an audience list', { aud: ['merchant.test'] }],
  ['an expiry as text', { exp: String(seconds + 600) }],
  ['no expiry', { exp: undefined }],
  ['a fraction of a second', { iat: seconds - 0.5 }],
  ['a recipient that is not a string', { pay_to: 7 }],
  ['a mandate that is not a string', { mandate_id: 7 }],
  ['a policy that is not a string', { policy_hash: {} }],
  ['a request that is an empty string', { request_hash: '' }],
])('%s is malformed, although signed', (_, change) => {
  const result = verifyPreauthToken(makeToken({ ...claims, ...(change as object) }), options)
  expect([result.ok, check(result, 'shape')]).toEqual([false, false])
})

test.each([
  ['one part', 'x', 'A token has three parts.'],
  ['two parts', token.split('.').slice(0, 2).join('.'), 'A token has three parts.'],
  ['four parts', `${token}.x`, 'A token has three parts.'],
  ['more than the limit', 'x'.repeat(MAX_TOKEN_LENGTH + 1), `at most ${MAX_TOKEN_LENGTH} characters`],
  ['as much as the limit', 'x'.repeat(MAX_TOKEN_LENGTH), 'A token has three parts.'],
  ['no text', 7, `at most ${MAX_TOKEN_LENGTH} characters`],
  ['a header that is no JSON', `${toBase64Url(utf8('{'))}.${token.split('.').slice(1).join('.')}`, 'cannot be read'],
  ['a header that is no object', `${toBase64Url(utf8('[]'))}.${token.split('.').slice(1).join('.')}`, 'cannot be read'],
  ['bytes that are no UTF-8', `_w.${token.split('.').slice(1).join('.')}`, 'cannot be read'],
])('a token with %s says what is wrong', (_, value, reason) => {
  expect(verifyPreauthToken(value, options).checks).toEqual([
    { name: 'shape', ok: false, reason: expect.stringContaining(reason) },
  ])
})

test('a token that expires when it is issued is refused, one without optional claims and a charge of nothing is not', () => {
  const soon = seconds + 30
  expect(check(verifyPreauthToken(makeToken({ ...claims, iat: soon, exp: soon }), options), 'iat')).toBe(false)
  const { mandate_id: _, ...others } = claims
  expect(verifyPreauthToken(makeToken(others), { ...options, charge: 0n }).ok).toBe(true)
})

test('it never throws, whatever the input', () => {
  for (const input of [
    '',
    '.',
    '..',
    'a.b.c',
    `${token}.x`,
    token.slice(0, -1),
    'x'.repeat(MAX_TOKEN_LENGTH + 1),
    '.'.repeat(5000),
  ]) {
    expect(verifyPreauthToken(input, options).ok).toBe(false)
  }
  fc.assert(
    fc.property(fc.anything(), (value) => {
      expect(verifyPreauthToken(value, options).ok).toBe(false)
    }),
  )
})
