import { useState } from 'react'

export type Pagination = {
  cursor: string | undefined
  pageNumber: number
  showOlder(next: string): void
  showNewer(): void
}

type VisitedPages = { filter: string; cursors: string[] }

/** Cursor pagination: cursors only lead forward, so visited ones are kept for going back. */
export function usePagination(filter: string): Pagination {
  const [visited, setVisited] = useState<VisitedPages>({ filter, cursors: [] })
  return createPagination(visited, filter, setVisited)
}

/** The pages visited with another filter do not count: a new filter starts at page 1. */
export function createPagination(
  visited: VisitedPages,
  filter: string,
  setVisited: (visited: VisitedPages) => void,
): Pagination {
  const cursors = visited.filter === filter ? visited.cursors : []
  return {
    cursor: cursors.at(-1),
    pageNumber: cursors.length + 1,
    showOlder: (next) => setVisited({ filter, cursors: [...cursors, next] }),
    showNewer: () => setVisited({ filter, cursors: cursors.slice(0, -1) }),
  }
}

export function Pager({ pagination, next }: { pagination: Pagination; next: string | null | undefined }) {
  if (pagination.pageNumber === 1 && !next) return null
  return (
    <nav className="pager" aria-label="Pagination">
      <button type="button" className="secondary" disabled={pagination.pageNumber === 1} onClick={pagination.showNewer}>
        Newer
      </button>
      <span>Page {pagination.pageNumber}</span>
      <button type="button" className="secondary" disabled={!next} onClick={() => next && pagination.showOlder(next)}>
        Older
      </button>
    </nav>
  )
}
