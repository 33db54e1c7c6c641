import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  equalBytes,
  fromBase64,
  fromBase64Url,
  fromHex,
  fromUtf8,
  toBase64,
  toBase64Url,
  toHex,
  utf8,
} from './encoding.ts'

const bytes = fc.uint8Array({ maxLength: 100 })

test('base64, base64url and hex agree with Node for any bytes, both ways', () => {
  fc.assert(
    fc.property(bytes, (value) => {
      const buffer = Buffer.from(value)
      expect(toBase64(value)).toBe(buffer.toString('base64'))
      expect(toBase64Url(value)).toBe(buffer.toString('base64url'))
      expect(toHex(value)).toBe(buffer.toString('hex'))
      expect(equalBytes(fromBase64(toBase64(value)), value)).toBe(true)
      expect(equalBytes(fromBase64Url(toBase64Url(value)), value)).toBe(true)
      expect(equalBytes(fromHex(toHex(value)), value)).toBe(true)
    }),
  )
})

test.each(['A', 'AA', 'AAA', 'AB==', 'AAB=', 'AA=', 'AA===', 'A A=', 'AA==\n', 'AA-_', '====', 'AAAA='])(
  'base64 %j is not canonical and is refused',
  (text) => {
    expect(() => fromBase64(text)).toThrow('Not canonical base64')
  },
)

test.each(['A', 'AB', 'AAB', 'AA==', 'AA+/', 'A A'])('base64url %j is refused', (text) => {
  expect(() => fromBase64Url(text)).toThrow('Not canonical base64url')
})

test.each(['a', 'AB', 'zz', '0x', ' aa'])('hex %j is refused', (text) => {
  expect(() => fromHex(text)).toThrow('hexadecimal')
})

test('bytes that are not UTF-8 decode to undefined', () => {
  expect(fromUtf8(new Uint8Array([0xc3, 0x28]))).toBeUndefined()
  expect(fromUtf8(new Uint8Array([0xed, 0xa0, 0x80]))).toBeUndefined()
  expect(fromUtf8(utf8('\ufeffé€😀'))).toBe('\ufeffé€😀')
})

test('bytes are equal when they have the same length and content', () => {
  const bytes = (...values: number[]) => new Uint8Array(values)
  expect([equalBytes(bytes(1, 2), bytes(1, 2)), equalBytes(bytes(), bytes())]).toEqual([true, true])
  for (const other of [bytes(1), bytes(1, 3), bytes(1, 2, 3), bytes()]) {
    expect(equalBytes(bytes(1, 2), other)).toBe(false)
    expect(equalBytes(other, bytes(1, 2))).toBe(false)
  }
})
