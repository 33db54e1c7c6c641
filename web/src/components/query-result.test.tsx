import { CountersignError } from '@countersign/sdk'
import { expect, test } from 'vitest'
import { renderHtml } from '../../test/render.tsx'
import { QueryResult } from './query-result.tsx'

const render = (data: string | undefined, error: Error | null) =>
  renderHtml(<QueryResult query={{ data, error, isFetching: false }}>{(text) => <b>{text}</b>}</QueryResult>)
const createError = (status: number, message = 'It failed.') => new CountersignError(status, { message })

test('a query without data is loading until it fails', () => {
  expect(render(undefined, null)).toContain('Loading')
  expect(render(undefined, createError(500))).toContain('role="alert"')
  expect(render(undefined, createError(500))).toContain('It failed.')
})

test('a missing or forbidden feature is explained, not shown as an error', () => {
  expect(render(undefined, createError(404))).toContain('Not available on this service.')
  expect(render(undefined, createError(403, 'Not in your plan.'))).toContain('Not in your plan.')
  for (const status of [403, 404]) expect(render(undefined, createError(status))).not.toContain('role="alert"')
})

test('data stays visible when a refresh fails, with a notice', () => {
  const html = render('old data', createError(500))
  expect(html).toContain('<b>old data</b>')
  expect(html).toContain('Could not refresh: It failed.')
})

test('an unreachable service adds no notice here: the banner of the page shows it', () => {
  expect(render('old data', createError(0))).toBe('<b>old data</b>')
})

test('a list that could not be read on says so, beside a button that tries again', () => {
  const query = { data: 'first page', error: createError(0), isFetching: false, isFetchNextPageError: true }
  const html = renderHtml(<QueryResult query={query}>{(text) => <b>{text}</b>}</QueryResult>)
  expect(html).toContain('<b>first page</b>')
  expect(html).toContain('Could not load more: It failed.')
  expect(html).toContain('Try again</button>')
  expect(html).not.toContain('Could not refresh')
})
