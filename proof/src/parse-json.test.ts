import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseJson } from './parse-json.ts'

test('any JSON value parses as with JSON.parse', () => {
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' }),
      fc.constantFrom(undefined, 2, '\t'),
      (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        expect(parseJson(text)).toEqual(JSON.parse(text))
      },
    ),
  )
})

test.each(['{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '{"x":[{"a":1 ,\n"b":2, "a" : 3}]}', '{"\\"":1,"\\u0022":1}'])(
  'a duplicate key is refused: %s',
  (text) => {
    expect(() => parseJson(text)).toThrow('appears twice')
  },
)

test.each([
  '[{"a":1},{"a":1}]',
  '{"a":{"a":1}}',
  '{"a":"\\"a\\":1","b":"a"}',
  '["a","a"]',
  '{"a":["a","a:"]}',
  '{"a":{"b":1},"b":2}',
  '{"a":[{"b":1}],"b":2}',
])('the same key in different objects is accepted: %s', (text) => {
  expect(parseJson(text)).toEqual(JSON.parse(text))
})

test('invalid JSON and too deep nesting are rejected', () => {
  expect(() => parseJson('{')).toThrow('Not JSON')
  expect(() => parseJson('')).toThrow('Not JSON')
  expect(parseJson('['.repeat(128) + ']'.repeat(128))).toHaveLength(1)
  expect(() => parseJson('['.repeat(129) + ']'.repeat(129))).toThrow('deeper')
  for (const sibling of ['[]', '{}']) expect(parseJson(`[${`${sibling},`.repeat(200)}${sibling}]`)).toHaveLength(201)
  expect(() => parseJson('['.repeat(200) + ']'.repeat(200))).toThrow('deeper')
})

test('a string of a megabyte is parsed', () => {
  const text = JSON.stringify({ a: 'x\\"'.repeat(300_000) })
  expect(parseJson(text)).toEqual(JSON.parse(text))
})
