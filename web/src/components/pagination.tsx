import { useState } from 'react'

export type Pagination = {
  cursor: string | undefined
  pageNumber: number
  showOlder(next: string): void
  showNewer(): void
}

/** Cursor pagination: cursors only lead forward, so visited ones are kept for going back. A new filter starts at page 1. */
export function usePagination(filter: string): Pagination {
  const [visited, setVisited] = useState<{ filter: string; cursors: string[] }>({ filter, cursors: [] })
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
