import { expect, test } from 'vitest'
import { identityOf, isOnlyControlKey, sameIdentity } from './identity.ts'

type Key = Parameters<typeof isOnlyControlKey>[1][number] & { spender: string | null }

const key = (id: string, fields: Partial<Key> = {}): Key => ({
  id,
  created_by: null,
  replaced_by: null,
  spender: null,
  scopes: ['control'],
  expires_at: null,
  revoked_at: null,
  ...fields,
})
const NOW = new Date('2026-11-15T12:00:00Z')
const EARLIER = new Date('2026-11-15T11:00:00Z')
const LATER = new Date('2026-11-15T13:00:00Z')

test('a key is the same identity as the key that made it, and as what that one made through others', () => {
  const keys = [key('a'), key('b', { created_by: 'a' }), key('c', { created_by: 'b' })]
  for (const [left, right] of ['ab', 'ba', 'ac', 'ca', 'bc', 'cb'] as const)
    expect(sameIdentity(left!, right!, keys), `${left}${right}`).toBe(true)
})

test('two keys of one maker are different identities, and so are keys without a bond', () => {
  const keys = [key('a'), key('b', { created_by: 'a' }), key('c', { created_by: 'a' }), key('d')]
  expect(sameIdentity('b', 'c', keys)).toBe(false)
  expect(sameIdentity('a', 'd', keys)).toBe(false)
})

test('keys bound to the same spender are the same identity, to another spender they are not', () => {
  const keys = [key('a', { spender: 'bot' }), key('b', { spender: 'bot' }), key('c', { spender: 'other' }), key('d')]
  expect([...identityOf('a', keys)].sort()).toEqual(['a', 'b'])
})

test('a rotation stays the same identity, also for what was made before and after it', () => {
  const keys = [
    key('a', { replaced_by: 'a2' }),
    key('a2', { replaced_by: 'a3' }),
    key('a3'),
    key('b', { created_by: 'a', replaced_by: 'b2' }),
    key('b2', { created_by: 'a' }),
    key('c', { created_by: 'a3' }),
  ]
  for (const id of ['a', 'a2', 'a3'])
    expect([...identityOf(id, keys)].sort()).toEqual(['a', 'a2', 'a3', 'b', 'b2', 'c'])
  expect([...identityOf('b2', keys)].sort()).toEqual(['a', 'a2', 'a3', 'b', 'b2'])
})

test('a revoked or expired key between two keys does not separate them', () => {
  const keys = [key('a'), key('b', { created_by: 'a', revoked_at: EARLIER }), key('c', { created_by: 'b' })]
  expect(sameIdentity('a', 'c', keys)).toBe(true)
})

test('circles of makers or rotations end', () => {
  const circle = [key('a', { created_by: 'b' }), key('b', { created_by: 'a' })]
  expect(sameIdentity('a', 'b', circle)).toBe(true)
  const rotations = [key('a', { replaced_by: 'b' }), key('b', { replaced_by: 'a' })]
  expect(sameIdentity('a', 'b', rotations)).toBe(true)
  expect(sameIdentity('unknown', 'a', rotations)).toBe(false)
})

test('ten thousand keys of one spender in one chain of makers are judged at once', () => {
  const keys = Array.from({ length: 10_000 }, (_, index) =>
    key(`k${index}`, { spender: 'bot', created_by: index === 0 ? null : `k${index - 1}` }),
  )
  const before = process.cpuUsage()
  expect(identityOf('k5000', keys).size).toBe(10_000)
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000)
})

test('the only control key may have a rotation in its overlap; any other active control key counts', () => {
  const rotated = [key('a', { replaced_by: 'a2', expires_at: LATER }), key('a2')]
  expect(isOnlyControlKey('a', rotated, NOW)).toBe(true)
  expect(isOnlyControlKey('a2', rotated, NOW)).toBe(true)
  expect(isOnlyControlKey('a2', [...rotated, key('b')], NOW)).toBe(false)
  expect(isOnlyControlKey('a2', [...rotated, key('b', { created_by: 'a' })], NOW)).toBe(false)
})

test('revoked and expired keys and keys without control do not count, and a key without control is never the only one', () => {
  const keys = [
    key('a'),
    key('revoked', { revoked_at: EARLIER }),
    key('expired', { expires_at: NOW }),
    key('reader', { scopes: ['read', 'mandate', 'admin'] }),
  ]
  expect(isOnlyControlKey('a', keys, NOW)).toBe(true)
  for (const id of ['revoked', 'expired', 'reader']) expect(isOnlyControlKey(id, keys, NOW)).toBe(false)
})
