import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toHex, utf8 } from './encoding.ts'
import { decodeEntryBundle, encodeEntryBundle, MAX_ENTRY_BYTES } from './entry-bundle.ts'

test('each entry is preceded by its length in two bytes', () => {
  expect(toHex(encodeEntryBundle([utf8('a'), utf8(''), utf8('bc')]))).toBe('00016100000002' + '6263')
})

test('decoding a bundle returns its entries', () => {
  const entries = fc.array(fc.uint8Array({ maxLength: 400 }), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(entries, (value) => {
      expect(decodeEntryBundle(encodeEntryBundle(value), value.length).map(toHex)).toEqual(value.map(toHex))
    }),
  )
})

test('a bundle that is truncated, or has more or fewer entries than its width, is rejected', () => {
  const bundle = encodeEntryBundle([utf8('abc'), utf8('def')])
  for (let length = 0; length < bundle.length; length += 1)
    expect(() => decodeEntryBundle(bundle.slice(0, length), 2)).toThrow()
  expect(() => decodeEntryBundle(bundle, 1)).toThrow('exactly 1')
  expect(() => decodeEntryBundle(bundle, 3)).toThrow('exactly 3')
})

test('entries have a maximum size, and a bundle is neither empty nor wider than a tile', () => {
  expect(encodeEntryBundle([new Uint8Array(MAX_ENTRY_BYTES)])).toHaveLength(MAX_ENTRY_BYTES + 2)
  expect(() => encodeEntryBundle([new Uint8Array(MAX_ENTRY_BYTES + 1)])).toThrow('at most')
  expect(encodeEntryBundle(Array.from({ length: 256 }, () => utf8('x')))).toHaveLength(256 * 3)
  expect(() => encodeEntryBundle([])).toThrow('1 to 256')
  expect(() => encodeEntryBundle(Array.from({ length: 257 }, () => utf8('x')))).toThrow('1 to 256')
})
