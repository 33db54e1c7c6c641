import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { bitFlips, issuerKey } from '../test/fixtures.ts'
import { verifyEd25519 } from './ed25519.ts'
import { fromBase64Url, utf8 } from './encoding.ts'
import type { Jwk } from './jwk.ts'

type Vectors = {
  numberOfTests: number
  testGroups: {
    publicKeyJwk: Jwk
    tests: { tcId: number; comment: string; msg: string; sig: string; result: 'valid' | 'invalid' }[]
  }[]
}

const wycheproof: Vectors = JSON.parse(
  readFileSync(new URL('../testdata/wycheproof-ed25519.json', import.meta.url), 'utf8'),
)
const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'))

describe('Wycheproof', () => {
  const cases = wycheproof.testGroups.flatMap(({ publicKeyJwk, tests }) =>
    tests.map((item) => ({ publicKeyJwk, ...item })),
  )

  test('all 151 vectors are loaded', () => {
    expect(cases).toHaveLength(151)
    expect(wycheproof.numberOfTests).toBe(151)
  })

  test('every vector has the expected result', () => {
    const disagree = cases.filter(
      ({ publicKeyJwk, msg, sig, result }) =>
        verifyEd25519(publicKeyJwk, bytes(msg), bytes(sig)) !== (result === 'valid'),
    )
    expect(disagree.map(({ tcId, comment }) => `${tcId} ${comment}`)).toEqual([])
  })
})

test('the JWS of RFC 8037 appendix A.4', () => {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }
  const signingInput = utf8('eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc')
  const value = 'hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg'
  expect(verifyEd25519(jwk, signingInput, fromBase64Url(value))).toBe(true)
})

test('flipping any bit of the signature, the message or the key makes it invalid', () => {
  const message = utf8('pay')
  const signature = issuerKey.sign(message)
  expect(verifyEd25519(issuerKey.publicKey, message, signature)).toBe(true)
  for (const altered of bitFlips(signature)) expect(verifyEd25519(issuerKey.publicKey, message, altered)).toBe(false)
  for (const altered of bitFlips(message)) expect(verifyEd25519(issuerKey.publicKey, altered, signature)).toBe(false)
  for (const altered of bitFlips(issuerKey.publicKey)) expect(verifyEd25519(altered, message, signature)).toBe(false)
})

test('a key of small order is rejected, although the equation holds', () => {
  const identity = new Uint8Array(32)
  identity[0] = 1
  const signature = new Uint8Array(64)
  signature[0] = 1
  expect(verifyEd25519(identity, utf8('anything'), signature)).toBe(false)
})

test('keys and signatures of the wrong length return false and do not throw', () => {
  const signature = issuerKey.sign(utf8('x'))
  expect(verifyEd25519(issuerKey.publicKey.slice(1), utf8('x'), signature)).toBe(false)
  expect(verifyEd25519(issuerKey.publicKey, utf8('x'), signature.slice(1))).toBe(false)
  expect(verifyEd25519({ kty: 'RSA' }, utf8('x'), signature)).toBe(false)
})
