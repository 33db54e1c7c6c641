import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseRoute, routeHref } from './route.ts'

test('parsing a link gives back its segments and query, whatever characters they contain', () => {
  const segment = fc.string({ minLength: 1, unit: 'grapheme' }).filter((text) => text.isWellFormed())
  fc.assert(
    fc.property(fc.array(segment, { minLength: 1, maxLength: 3 }), fc.dictionary(segment, segment), (path, query) => {
      const { page, segments, query: parsedQuery } = parseRoute(routeHref(path, query))
      expect([page, ...segments]).toEqual(path)
      expect([...parsedQuery].sort()).toEqual(Object.entries(query).sort())
    }),
  )
})

test('empty values are left out of the URL, and an incomplete escape is kept as it is', () => {
  expect(routeHref(['receipts'], { kind: '', run_id: undefined })).toBe('#/receipts')
  expect(parseRoute('')).toMatchObject({ page: '', segments: [] })
  expect(parseRoute('#/receipts/%E0%A4%A')).toMatchObject({ page: 'receipts', segments: ['%E0%A4%A'] })
})
