import fc from 'fast-check'
import { expect, test } from 'vitest'
import { stringifyWithBigints } from './json.ts'

const withReplacer = (value: unknown) =>
  JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? item.toString() : item))

test('bigints are written as text at any depth, and everything else as by JSON.stringify', () => {
  const leaf = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.bigInt(),
    fc.constant(undefined),
    fc.date({ noInvalidDate: true }),
  )
  const tree = fc.letrec((tie) => ({
    node: fc.oneof(
      leaf,
      fc.array(tie('node'), { maxLength: 4 }),
      fc.dictionary(fc.string(), tie('node'), { maxKeys: 4 }),
    ),
  })).node
  fc.assert(
    fc.property(tree, (value) => {
      expect(stringifyWithBigints(value)).toBe(withReplacer(value))
    }),
  )
})

test('the value that is written is not changed', () => {
  const value = { amount: 1n, entries: [{ amount: 2n }], text: 'same' }
  expect(stringifyWithBigints(value)).toBe('{"amount":"1","entries":[{"amount":"2"}],"text":"same"}')
  expect(value).toEqual({ amount: 1n, entries: [{ amount: 2n }], text: 'same' })
})
