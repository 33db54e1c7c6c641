import { expect, test } from 'vitest'
import { renderHtml } from '../../test/render.tsx'
import { createPagination, Pager } from './pagination.tsx'

/** Pagination with the state that a component would keep. */
function createStatefulPagination() {
  let visited = { filter: '', cursors: [] as string[] }
  return (filter: string) =>
    createPagination(visited, filter, (next) => {
      visited = next
    })
}

test('older pages follow the cursors, and newer pages go back the same way', () => {
  const paginate = createStatefulPagination()
  expect(paginate('')).toMatchObject({ cursor: undefined, pageNumber: 1 })
  paginate('').showOlder('a')
  paginate('').showOlder('b')
  expect(paginate('')).toMatchObject({ cursor: 'b', pageNumber: 3 })
  paginate('').showNewer()
  expect(paginate('')).toMatchObject({ cursor: 'a', pageNumber: 2 })
  paginate('').showNewer()
  expect(paginate('')).toMatchObject({ cursor: undefined, pageNumber: 1 })
})

test('a new filter starts at the first page and never uses a cursor of another filter', () => {
  const paginate = createStatefulPagination()
  paginate('').showOlder('a')
  expect(paginate('outcome=blocked')).toMatchObject({ cursor: undefined, pageNumber: 1 })
  paginate('outcome=blocked').showOlder('c')
  expect(paginate('outcome=blocked')).toMatchObject({ cursor: 'c', pageNumber: 2 })
})

const renderPager = (cursors: string[], next: string | null) =>
  renderHtml(<Pager pagination={createPagination({ filter: '', cursors }, '', () => undefined)} next={next} />)

test('a single page shows no pager', () => {
  expect(renderPager([], null)).toBe('')
})

test('the first page has no newer page, the last has no older one', () => {
  const isDisabled = (html: string, label: string) => new RegExp(`<button[^>]*disabled=""[^>]*>${label}<`).test(html)
  const first = renderPager([], 'a')
  expect([isDisabled(first, 'Newer'), isDisabled(first, 'Older')]).toEqual([true, false])
  const last = renderPager(['a'], null)
  expect([isDisabled(last, 'Newer'), isDisabled(last, 'Older')]).toEqual([false, true])
})
