import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { hashJson, isHashText } from './hash-json.ts'

test('the hash is computed over the canonical text, so key order does not matter', () => {
  const expected = `sha256:${createHash('sha256').update('{"a":[1,"é"],"b":null}').digest('hex')}`
  expect(hashJson({ b: null, a: [1.0, 'é'] })).toBe(expected)
  expect(hashJson({ a: [1, 'é'], b: null })).toBe(expected)
})

test('a hash text is sha256: and 64 lower-case digits', () => {
  expect(isHashText(hashJson(1))).toBe(true)
  for (const value of [
    hashJson(1).toUpperCase(),
    hashJson(1).slice(0, -1),
    `${hashJson(1)}\n`,
    hashJson(1).slice(7),
    `x${hashJson(1)}`,
    [hashJson(1)],
    null,
  ]) {
    expect(isHashText(value)).toBe(false)
  }
})
