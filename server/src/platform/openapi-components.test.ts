import { expect, test } from 'vitest'
import { extractComponents } from './openapi-components.ts'

const receipt = { title: 'Receipt', type: 'object', properties: { id: { type: 'string' } } }

test('a titled schema becomes one component, wherever it is used', () => {
  const { paths, schemas } = extractComponents({
    list: { schema: { type: 'array', items: receipt } },
    one: { schema: { ...receipt, description: 'The newest.' } },
  })
  expect(paths).toEqual({
    list: { schema: { type: 'array', items: { $ref: '#/components/schemas/Receipt' } } },
    one: { schema: { $ref: '#/components/schemas/Receipt', description: 'The newest.' } },
  })
  expect(schemas).toEqual({ Receipt: { type: 'object', properties: { id: { type: 'string' } } } })
})

test('two different schemas of one title are refused', () => {
  const other = { ...receipt, properties: { id: { type: 'integer' } } }
  expect(() => extractComponents({ first: receipt, second: other })).toThrow(
    "Two different schemas have the title 'Receipt'.",
  )
})

test('a property that is called title stays a property', () => {
  const schema = { type: 'object', properties: { title: { type: 'string' } } }
  expect(extractComponents({ schema })).toEqual({ paths: { schema }, schemas: {} })
})
