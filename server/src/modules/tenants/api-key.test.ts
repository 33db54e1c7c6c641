import { expect, test } from 'vitest'
import { createKeys } from '../../platform/keys.ts'
import { cellOfApiKey, generateApiKey, hashApiKey, isWellFormedApiKey } from './api-key.ts'

const keys = createKeys({ signing: 's'.repeat(32), encryption: 'e'.repeat(32) })
const otherServiceKeys = createKeys({ signing: 's'.repeat(32), encryption: 'f'.repeat(32) })

test('keys are unique, contain 256 random bits, and their prefix shows only a few of them', () => {
  const generatedKeys = Array.from({ length: 200 }, () => generateApiKey(keys))
  expect(new Set(generatedKeys.map(({ apiKey }) => apiKey)).size).toBe(200)
  expect(new Set(generatedKeys.map(({ hash }) => hash)).size).toBe(200)
  for (const { apiKey, prefix, hash } of generatedKeys) {
    expect(Buffer.from(apiKey.slice(4, 47), 'base64url')).toHaveLength(32)
    expect(apiKey.startsWith(prefix)).toBe(true)
    expect(prefix).toHaveLength(12)
    expect(hash).toBe(hashApiKey(keys, apiKey))
    expect(isWellFormedApiKey(keys, apiKey)).toBe(true)
  }
})

test('the checksum is spread over all characters, so that a guess passes once in 2^36', () => {
  const checksums = Array.from({ length: 400 }, () => generateApiKey(keys).apiKey.slice(-6))
  expect(new Set(checksums.join('')).size).toBeGreaterThan(60)
})

test('a key with any character changed, or from another service, fails the checksum', () => {
  const { apiKey } = generateApiKey(keys)
  expect(isWellFormedApiKey(otherServiceKeys, apiKey)).toBe(false)
  for (let index = 0; index < apiKey.length; index += 1) {
    const changed = apiKey.slice(0, index) + (apiKey[index] === 'x' ? 'y' : 'x') + apiKey.slice(index + 1)
    expect(isWellFormedApiKey(keys, changed)).toBe(false)
  }
  for (const text of ['', 'csk_', `${apiKey}x`, `csk_${'A'.repeat(49)}`])
    expect(isWellFormedApiKey(keys, text)).toBe(false)
})

test('a key of a cell names it in the open, and the checksum holds it there', () => {
  const { apiKey, prefix, hash } = generateApiKey(keys, 'eu1')
  expect(apiKey).toMatch(/^csk_eu1_[A-Za-z0-9_-]{49}$/)
  expect(prefix).toBe(apiKey.slice(0, 16))
  expect(hash).toBe(hashApiKey(keys, apiKey))
  expect(cellOfApiKey(apiKey)).toBe('eu1')
  expect(isWellFormedApiKey(keys, apiKey)).toBe(true)
  for (const moved of [apiKey.replace('eu1', 'eu2'), apiKey.replace('eu1_', '')])
    expect(isWellFormedApiKey(keys, moved)).toBe(false)
  expect(isWellFormedApiKey(keys, generateApiKey(keys).apiKey.replace('csk_', 'csk_eu1_'))).toBe(false)
})

test('a key without a cell names none, whatever its random characters are', () => {
  for (let index = 0; index < 500; index += 1) expect(cellOfApiKey(generateApiKey(keys).apiKey)).toBeUndefined()
  expect(cellOfApiKey(`csk_eu1_${'A'.repeat(41)}`)).toBeUndefined()
})
