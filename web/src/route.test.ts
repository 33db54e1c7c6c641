import fc from 'fast-check'
import { expect, test } from 'vitest'
import { link, readRoute } from './route.ts'

test('a link leads where it says, whatever stands in it', () => {
  const part = fc.string({ minLength: 1, unit: 'grapheme' }).filter((text) => text.isWellFormed())
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 3 }), fc.dictionary(part, part), (parts, query) => {
      const { page, rest, query: read } = readRoute(link(parts, query))
      expect([page, ...rest]).toEqual(parts)
      expect([...read].sort()).toEqual(Object.entries(query).sort())
    }),
  )
})

test('what is empty is left out of the address, and half an escape stays as it is', () => {
  expect(link(['receipts'], { kind: '', run_id: undefined })).toBe('#/receipts')
  expect(readRoute('')).toMatchObject({ page: '', rest: [] })
  expect(readRoute('#/receipts/%E0%A4%A')).toMatchObject({ page: 'receipts', rest: ['%E0%A4%A'] })
})
