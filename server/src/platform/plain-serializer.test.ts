import { expect, test } from 'vitest'
import { buildPlainSerializer, withPlainUnions } from './plain-serializer.ts'

const build = buildPlainSerializer({}, {})
const write = (schema: object, value: unknown) =>
  build({ schema: schema as never, method: 'GET', url: '/', httpStatus: '200' })(value)
const object = (property: object) => ({ type: 'object', properties: { a: property } })
const literals = (...names: string[]) => names.map((name) => ({ const: name, type: 'string' }))

test.each([
  ['one of some words', object({ anyOf: literals('x', 'y') }), { a: 'y' }],
  ['one of some words or nothing', object({ anyOf: [...literals('x', 'y'), { type: 'null' }] }), { a: null }],
  ['a number or nothing', object({ anyOf: [{ type: 'number' }, { type: 'null' }] }), { a: 1.5 }],
  [
    'a list or nothing',
    object({ anyOf: [{ type: 'array', items: { type: 'string' } }, { type: 'null' }] }),
    { a: null },
  ],
  ['an object or nothing', object({ anyOf: [object({ type: 'string' }), { type: 'null' }] }), { a: { a: 'x' } }],
  ['a word or a number', object({ anyOf: [{ type: 'string' }, { type: 'number' }] }), { a: 7 }],
])('%s is written as it is', (_, schema, value) => {
  expect(JSON.parse(write(schema, value))).toEqual(value)
})

test('a union that types tell apart has no anyOf, and one that they do not keeps it', () => {
  const text = (schema: object) => JSON.stringify(withPlainUnions(object(schema)))
  expect(text({ anyOf: [...literals('x', 'y'), { type: 'null' }] })).not.toContain('anyOf')
  expect(text({ anyOf: [object({ type: 'string' }), { type: 'null' }] })).not.toContain('anyOf')
  expect(text({ anyOf: [object({ type: 'string' }), { type: 'object' }] })).toContain('anyOf')
})

test('a member of an object that the schema does not name is not written, also in a union with nothing', () => {
  const closed = { ...object({ type: 'string' }), additionalProperties: false }
  expect(write(object({ anyOf: [closed, { type: 'null' }] }), { a: { a: 'x', secret: 'y' } })).toBe('{"a":{"a":"x"}}')
})
