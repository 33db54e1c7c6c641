import { expect, test } from 'vitest'
import { createKeys } from '../../platform/keys.ts'
import { couldBeApiKey, hashApiKey, makeApiKey } from './api-key.ts'

const keys = createKeys({ signing: 's'.repeat(32), encryption: 'e'.repeat(32) })
const elsewhere = createKeys({ signing: 's'.repeat(32), encryption: 'f'.repeat(32) })

test('keys are unlike each other, carry 256 random bits and show only a few of them', () => {
  const made = Array.from({ length: 200 }, () => makeApiKey(keys))
  expect(new Set(made.map(({ apiKey }) => apiKey)).size).toBe(200)
  for (const { apiKey, prefix, hash } of made) {
    expect(Buffer.from(apiKey.slice(4, 47), 'base64url')).toHaveLength(32)
    expect(apiKey.startsWith(prefix)).toBe(true)
    expect(prefix).toHaveLength(12)
    expect(hash).toBe(hashApiKey(keys, apiKey))
    expect(couldBeApiKey(keys, apiKey)).toBe(true)
  }
})

test('a guess is known for one without the database: every character counts, and so does the service', () => {
  const { apiKey } = makeApiKey(keys)
  expect(couldBeApiKey(elsewhere, apiKey)).toBe(false)
  for (let at = 0; at < apiKey.length; at += 1) {
    const changed = apiKey.slice(0, at) + (apiKey[at] === 'x' ? 'y' : 'x') + apiKey.slice(at + 1)
    expect(couldBeApiKey(keys, changed)).toBe(false)
  }
  for (const text of ['', 'csk_', `${apiKey}x`, `csk_${'A'.repeat(49)}`]) expect(couldBeApiKey(keys, text)).toBe(false)
})
