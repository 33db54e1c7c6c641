import { describe, expect, test } from 'vitest'
import { issuerKey, jwks, makeStatement, testKey } from '../test/fixtures.ts'
import {
  allChecksPass,
  canonicalBytes,
  checkPurpose,
  checkSignature,
  failed,
  isJsonObject,
  isShortText,
  isTime,
  omit,
  passed,
  skipped,
} from './checks.ts'

describe('a verification passes', () => {
  const required = ['shape', 'signature']
  test('when each required check passed and none failed', () => {
    expect(allChecksPass([passed('shape', ''), passed('signature', ''), skipped('log', '')], required)).toBe(true)
    expect(allChecksPass([passed('shape', ''), passed('signature', ''), failed('log', '')], required)).toBe(false)
  })

  test('not when a required check was skipped or not made, although all others passed', () => {
    expect(allChecksPass([passed('shape', ''), skipped('signature', '')], required)).toBe(false)
    expect(allChecksPass([passed('shape', ''), passed('log', '')], required)).toBe(false)
  })
})

test('a short text has 1 to 256 characters', () => {
  for (const value of ['x', ' ', 'x'.repeat(256)]) expect(isShortText(value)).toBe(true)
  for (const value of ['', 'x'.repeat(257), 7, null, ['x']]) expect(isShortText(value)).toBe(false)
})

test('an object is neither null nor a list', () => {
  expect([{}, { a: 1 }].every(isJsonObject)).toBe(true)
  for (const value of [null, [], 'x', 7, undefined]) expect(isJsonObject(value)).toBe(false)
})

test('a time is UTC with a day and an hour that exist', () => {
  for (const time of ['2026-11-16T15:00:00Z', '2028-02-29T23:59:59.123456789Z', '2026-11-16T15:00:00.1Z'])
    expect(isTime(time)).toBe(true)
  for (const time of [
    '2026-02-30T15:00:00Z',
    '2026-13-01T15:00:00Z',
    '2026-11-16T24:00:00Z',
    '2026-11-16T15:00:00',
    '2026-11-16T15:00:00+00:00',
    '2026-11-16T15:00:00.Z',
    '2026-11-16T15:00:00.1234567890Z',
    ' 2026-11-16T15:00:00Z',
    '2026-11-16T15:00:00Z ',
    '+002026-11-16T15:00:00Z',
    '2026-11-16',
    'soon',
    1_763_305_200_000,
    null,
    [],
  ])
    expect(isTime(time), String(time)).toBe(false)
})

test('the members that are left out are those that are named', () => {
  expect(omit({ a: 1, b: 2, c: 3 }, 'a', 'c')).toEqual({ b: 2 })
})

test('a value without canonical bytes has the reason instead', () => {
  expect(canonicalBytes({ a: 1 })).toEqual({ bytes: new TextEncoder().encode('{"a":1}') })
  expect(canonicalBytes({ a: Number.NaN })).toEqual({ problem: expect.stringContaining('$.a') })
})

describe('the checks of a signature', () => {
  const { signature, ...content } = makeStatement({ a: 1 })
  const block = signature as { alg: string; key_id: string; value: string }
  const checksOf = (changed: unknown, keys: unknown = jwks, value: unknown = content) =>
    checkSignature(changed, value, { jwks: keys, purpose: 'receipt' })

  test('are three, of which the purpose is skipped when the key has none', () => {
    expect(checksOf(block)).toEqual([
      passed('key', `It names key '${issuerKey.jwk.kid}' of the key set.`),
      skipped('key_purpose', 'The key set does not state a purpose for this key.'),
      passed('signature', 'The ed25519 signature covers exactly these contents.'),
    ])
    expect(checksOf({ value: block.value, key_id: block.key_id, alg: block.alg })).toEqual(checksOf(block))
  })

  test.each([
    ['another algorithm', { ...block, alg: 'none' }],
    ['no key id', { ...block, key_id: '' }],
    ['a value that is short', { ...block, value: block.value.slice(4) }],
    ['a value that is not base64', { ...block, value: '!' }],
    ['a member more', { ...block, kid: 'x' }],
    ['a member less', { alg: block.alg, value: block.value }],
    ['nothing', null],
    ['a text', block.value],
  ])('fail at the key with %s', (_, changed) => {
    expect(checksOf(changed)).toEqual([
      failed('key', expect.stringContaining('The signature must be {alg: "ed25519", key_id, value}')),
      skipped('key_purpose', 'There is no readable signature.'),
      skipped('signature', 'There is no readable signature.'),
    ])
  })

  test('fail for an unknown key, for other contents and for contents without canonical bytes', () => {
    expect(checksOf(block, { keys: [] })).toEqual([
      failed('key', `No trusted key has the id '${block.key_id}'.`),
      skipped('key_purpose', 'The key is unknown.'),
      skipped('signature', 'The key is unknown.'),
    ])
    expect(checksOf(block, jwks, { a: 2 })[2]).toEqual(
      failed('signature', 'The signature does not match: the contents or the signature were changed.'),
    )
    expect(checksOf(block, jwks, { a: undefined })[2]).toEqual(failed('signature', expect.stringContaining('$.a')))
  })

  test('say what the key is for', () => {
    const key = testKey(1, 'receipt').jwk
    expect(checkPurpose(key, 'receipt')).toEqual(passed('key_purpose', "The key is marked for 'receipt'."))
    expect(checkPurpose(key, 'log')).toEqual(failed('key_purpose', "The key is marked for 'receipt', not for 'log'."))
    expect(checkPurpose(key, undefined)).toEqual(skipped('key_purpose', 'No key purpose is required.'))
  })
})
