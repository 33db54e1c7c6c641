import { canonicalize, hashJson as proofHashJson } from '@countersign/proof'
import library from 'canonicalize'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalJson, hashJson } from '../../src/platform/canonical.ts'

// The service and the offline verifier use two implementations of canonical JSON that share no code.
test('for any JSON value both implementations of canonical JSON give the same bytes and the same hash', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary', maxDepth: 5 }), (value) => {
      expect(canonicalJson(value)).toBe(canonicalize(value))
      expect(canonicalJson(value)).toBe(library(value))
      expect(hashJson(value)).toBe(proofHashJson(value))
    }),
    { numRuns: 200 },
  )
})

test('both implementations write every double in the same way', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
      expect(canonicalJson(number)).toBe(canonicalize(number))
    }),
    { numRuns: 1000 },
  )
  for (const number of [0, -0, 1e21, 1e-7, 5e-324, Number.MAX_VALUE, Number.MAX_SAFE_INTEGER + 2, 0.1 + 0.2])
    expect(canonicalJson([number])).toBe(canonicalize([number]))
})

test('both implementations order keys by UTF-16 code units, not by code points', () => {
  const value = { '\u{1f600}': 1, '\ufb33': 2, '€': 3, '\r': 4, '1': 5, '': 6, é: 7, 'e\u0301': 8 }
  expect(canonicalJson(value)).toBe(canonicalize(value))
})

test('both implementations refuse values without a canonical form', () => {
  for (const value of [{ text: '\ud800' }, { '\udfff': 1 }, [Number.NaN], [Number.POSITIVE_INFINITY]]) {
    expect(() => canonicalJson(value)).toThrow()
    expect(() => canonicalize(value)).toThrow()
  }
})

test('dates, boxed values and members without a JSON form are written as by the canonicalize library', () => {
  const values = [
    {
      at: new Date(0),
      left_out: undefined,
      call() {},
      kept: null,
      nested: [undefined, Symbol('s'), { b: 1, a: undefined }],
    },
    [Object('text'), Object(1), Object(false)],
    { toJSON: () => ({ b: 2, a: [1] }) },
    { dropped: { toJSON: () => undefined } },
  ]
  for (const value of values) expect(canonicalJson(value)).toBe(library(value))
  expect(() => canonicalJson(undefined)).toThrow()
  expect(() => canonicalJson({ amount: 1n })).toThrow()
})
