import fc from 'fast-check'
import { expect, test } from 'vitest'
import { check, jwks, makeStatement, testKey, untrustedKey } from '../test/fixtures.ts'
import { verifyStatement } from './verify-statement.ts'

const content = {
  schema: 'mandate-remaining/v1',
  mandate_id: 'man_01',
  remaining: '2500000',
  as_of: '2026-11-16T15:00:00Z',
}
const statement = makeStatement(content)

test('a signed statement verifies, and its schema must be the required one', () => {
  expect(verifyStatement(statement, { jwks }).ok).toBe(true)
  expect(check(verifyStatement(statement, { jwks, schema: 'mandate-remaining/v1' }), 'schema')).toBe(true)
  expect(verifyStatement(statement, { jwks, schema: 'other/v1' }).ok).toBe(false)
})

test.each(Object.keys(content))("changing or removing '%s' fails", (member) => {
  const { [member]: _, ...withoutMember } = statement
  expect(verifyStatement(withoutMember, { jwks }).ok).toBe(false)
  expect(verifyStatement({ ...statement, [member]: 'other' }, { jwks }).ok).toBe(false)
})

test('adding a member to the statement or its signature makes it invalid', () => {
  expect(verifyStatement({ ...statement, log: null }, { jwks }).ok).toBe(false)
  expect(verifyStatement({ ...statement, signature: { ...(statement.signature as object), x: 1 } }, { jwks }).ok).toBe(
    false,
  )
})

test('an unknown key, or one with another purpose, fails', () => {
  expect(check(verifyStatement(makeStatement(content, untrustedKey), { jwks }), 'key')).toBe(false)
  const previewKeys = { keys: [testKey(1, 'attestation-preview').jwk] }
  expect(check(verifyStatement(statement, { jwks: previewKeys }), 'key_purpose')).toBe(false)
  expect(verifyStatement(statement, { jwks: previewKeys, purpose: 'attestation-preview' }).ok).toBe(true)
})

test('it never throws, whatever the input', () => {
  fc.assert(
    fc.property(fc.anything(), (value) => {
      expect(verifyStatement(value, { jwks }).ok).toBe(false)
    }),
  )
})

test('a value that is no object has no other checks', () => {
  expect(verifyStatement('text', { jwks }).checks).toEqual([
    { name: 'shape', ok: false, reason: 'A statement is a JSON object.' },
  ])
})

test('each check of a statement has its name', () => {
  const names = verifyStatement(statement, { jwks, schema: 'other/v1' }).checks.map(({ name, ok }) => [name, ok])
  expect(names).toEqual([
    ['shape', true],
    ['schema', false],
    ['key', true],
    ['key_purpose', 'skipped'],
    ['signature', true],
  ])
})
