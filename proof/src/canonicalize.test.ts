import { readdirSync, readFileSync } from 'node:fs'
import npmCanonicalize from 'canonicalize'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CanonicalizeError, canonicalize, MAX_JSON_DEPTH, MAX_JSON_VALUES } from './canonicalize.ts'

const testdata = new URL('../testdata/jcs/', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, testdata), 'utf8')

describe('RFC 8785', () => {
  test.each(readdirSync(new URL('input', testdata)))('published vector %s', (file) => {
    expect(canonicalize(JSON.parse(read(`input/${file}`)))).toBe(read(`output/${file}`))
  })

  // Appendix B of the RFC: IEEE 754 bits and the text they must have.
  test.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('number %s is %s', (bits, text) => {
    const view = new DataView(new ArrayBuffer(8))
    view.setBigUint64(0, BigInt(`0x${bits}`))
    expect(canonicalize(view.getFloat64(0))).toBe(text)
  })

  test('keys are ordered by UTF-16 code units, not by code points', () => {
    const sorted = ['\r', '1', '\u0080', '\u00f6', '\u20ac', '\ud83d\ude00', '\ufb33']
    const shuffled = Object.fromEntries(sorted.toReversed().map((key) => [key, 0]))
    expect(canonicalize(shuffled)).toBe(`{${sorted.map((key) => `${JSON.stringify(key)}:0`).join()}}`)
  })

  test('an object without a prototype is plain', () => {
    expect(canonicalize(Object.assign(Object.create(null), { a: 1 }))).toBe('{"a":1}')
  })

  test('a key named __proto__ is preserved', () => {
    expect(canonicalize(JSON.parse('{"b":1,"__proto__":{"x":1}}'))).toBe('{"__proto__":{"x":1},"b":1}')
  })
})

describe('against an independent implementation', () => {
  const json = fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' })

  test('the text is the same for any JSON value', () => {
    fc.assert(
      fc.property(json, (value) => canonicalize(value) === npmCanonicalize(value)),
      { numRuns: 1000 },
    )
  })

  test('the text parses back to the same value, and canonicalising it again does not change it', () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = canonicalize(value)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
        expect(canonicalize(JSON.parse(text))).toBe(text)
      }),
      { numRuns: 300 },
    )
  })

  test('every finite double has the same text', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (n) => canonicalize(n) === npmCanonicalize(n)),
      { numRuns: 2000 },
    )
  })
})

describe('refusals', () => {
  const circle: Record<string, unknown> = {}
  circle.self = circle

  test.each<[string, unknown, string]>([
    ['NaN', { a: [Number.NaN] }, '$.a[0]'],
    ['Infinity', Number.POSITIVE_INFINITY, '$'],
    ['minus Infinity', [0, Number.NEGATIVE_INFINITY], '$[1]'],
    ['undefined', { a: undefined }, '$.a'],
    ['a hole in an array', Object.assign([1], { 2: 2 }), '$[1]'],
    ['a function', { f: () => 1 }, '$.f'],
    ['a symbol', [Symbol('s')], '$[0]'],
    ['a bigint', { n: 1n }, '$.n'],
    ['a lone high surrogate', { s: '\ud800' }, '$.s'],
    ['a lone low surrogate', ['a\udc00b'], '$[0]'],
    ['a lone surrogate in a key', { '\udfff': 1 }, '$["\\udfff"]'],
    ['a date', { at: new Date(0) }, '$.at'],
    ['a map', new Map(), '$'],
    ['bytes', { b: new Uint8Array(2) }, '$.b'],
    ['an instance of a class', { e: new (class Thing {})() }, '$.e'],
    ['a boxed text', [Object('x')], '$[0]'],
    ['NaN under a key with a space', { 'a b': Number.NaN }, '$["a b"]'],
    ['NaN under a key that starts with a digit', { '1a': Number.NaN }, '$["1a"]'],
  ])('%s is refused, and the error names its path', (_, value, path) => {
    expect(() => canonicalize(value)).toThrow(CanonicalizeError)
    try {
      canonicalize(value)
    } catch (error) {
      expect((error as CanonicalizeError).path).toBe(path)
      expect((error as CanonicalizeError).message).toContain(path)
    }
  })

  test('a circular value is rejected at the depth limit', () => {
    expect(() => canonicalize(circle)).toThrow(/deeper than 128 levels/)
  })

  test('the deepest allowed nesting passes, one level more does not', () => {
    const nest = (depth: number) => JSON.parse('['.repeat(depth) + ']'.repeat(depth))
    expect(canonicalize(nest(MAX_JSON_DEPTH + 1))).toHaveLength((MAX_JSON_DEPTH + 1) * 2)
    expect(() => canonicalize(nest(MAX_JSON_DEPTH + 2))).toThrow(/deeper/)
  })

  test('the largest number of values passes, one more does not', () => {
    expect(canonicalize(new Array(MAX_JSON_VALUES - 1).fill(0))).toHaveLength(2 * MAX_JSON_VALUES - 1)
    expect(() => canonicalize(new Array(MAX_JSON_VALUES).fill(0))).toThrow(`more than ${MAX_JSON_VALUES} values`)
  })

  test('an object that shares its children is rejected at the value limit', () => {
    let nested: unknown = 'ha'
    for (let i = 0; i < 60; i += 1) nested = [nested, nested]
    expect(() => canonicalize(nested)).toThrow(`more than ${MAX_JSON_VALUES} values`)
  })
})
