import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseStrictJson, StrictJsonError } from './strict-json.ts'

test('the output of JSON.stringify is parsed to the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6, noUnicodeString: false }), (value) => {
      const text = JSON.stringify(value)
      const unsafe = /"__proto__":/.test(text) || /\\u(0000|d[89a-f])/.test(text) || hasUnsafeInteger(value)
      if (unsafe) expect(() => parseStrictJson(text)).toThrow(StrictJsonError)
      else expect(parseStrictJson(text)).toEqual(JSON.parse(text))
    }),
  )
})

function hasUnsafeInteger(value: unknown): boolean {
  if (typeof value === 'number') return !/[.eE]/.test(JSON.stringify(value)) && !Number.isSafeInteger(value)
  if (typeof value === 'object' && value !== null) return Object.values(value).some(hasUnsafeInteger)
  return false
}

for (const text of ['', '{', '"', '{"a":1,}', '[1 2]', '{"a"}', 'nul', "{'a':1}", '"\\x"', '01', '1.', '--1', '[]]']) {
  test(`refuses invalid JSON: ${text || '(empty)'}`, () => {
    expect(() => parseStrictJson(text)).toThrow(StrictJsonError)
  })
}

test('refuses duplicate keys, however they are escaped', () => {
  expect(() => parseStrictJson('{"a":1,"a":2}')).toThrow(/twice/)
  expect(() => parseStrictJson('{"a":1,"\\u0061":2}')).toThrow(/twice/)
  expect(() => parseStrictJson('{"o":{"a":1},"p":[{"b":1,"c":{"d":1,"d":1}}]}')).toThrow(/twice/)
  expect(parseStrictJson('{"a":{"a":1},"b":[{"a":1},{"a":2}]}')).toEqual({ a: { a: 1 }, b: [{ a: 1 }, { a: 2 }] })
})

test('refuses numbers that a double cannot represent', () => {
  expect(() => parseStrictJson('1e400')).toThrow(/too large/)
  expect(() => parseStrictJson('-1e400')).toThrow(/too large/)
  expect(() => parseStrictJson('9007199254740993')).toThrow(/exactly/)
  expect(parseStrictJson('9007199254740991')).toBe(9007199254740991)
  expect(parseStrictJson('-0.5e-3')).toBe(-0.0005)
})

test('refuses deep nesting, too many keys and __proto__', () => {
  expect(() => parseStrictJson('['.repeat(33) + ']'.repeat(33))).toThrow(/nested deeper/)
  const nested = '['.repeat(32) + ']'.repeat(32)
  expect(parseStrictJson(nested)).toEqual(JSON.parse(nested))
  const keys = (count: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 0])))
  expect(() => parseStrictJson(keys(5_001))).toThrow(/more than 5000 keys/)
  expect(Object.keys(parseStrictJson(keys(5_000)) as object)).toHaveLength(5_000)
  expect(() => parseStrictJson('{"__proto__":{"admin":true}}')).toThrow(/__proto__/)
})

test('braces and numbers inside strings are ignored', () => {
  expect(parseStrictJson('["{\\"a\\":1,\\"a\\":2}", "1e400", "]["]')).toEqual(['{"a":1,"a":2}', '1e400', ']['])
})

test('refuses strings with NUL or a lone surrogate', () => {
  expect(() => parseStrictJson('["a\\u0000b"]')).toThrow(/NUL/)
  expect(() => parseStrictJson('["\\ud800"]')).toThrow(/surrogate/)
  expect(() => parseStrictJson('{"\\udc00":1}')).toThrow(/surrogate/)
  expect(parseStrictJson('["\\ud83d\\ude00", "\\\\u0000"]')).toEqual(['😀', '\\u0000'])
})
