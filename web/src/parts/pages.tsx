import { useState } from 'react'

export type Pages = { cursor: string | undefined; number: number; older(next: string): void; newer(): void }

/** Keyset paging goes forward by cursor; the way back is remembered here. A new filter starts at the newest page. */
export function usePages(filter: string): Pages {
  const [trail, setTrail] = useState<{ filter: string; cursors: string[] }>({ filter, cursors: [] })
  const cursors = trail.filter === filter ? trail.cursors : []
  return {
    cursor: cursors.at(-1),
    number: cursors.length + 1,
    older: (next) => setTrail({ filter, cursors: [...cursors, next] }),
    newer: () => setTrail({ filter, cursors: cursors.slice(0, -1) }),
  }
}

export function Pager({ pages, next }: { pages: Pages; next: string | null | undefined }) {
  if (pages.number === 1 && !next) return null
  return (
    <nav className="pager" aria-label="Pages of the list">
      <button type="button" className="quiet" disabled={pages.number === 1} onClick={pages.newer}>
        Newer
      </button>
      <span>Page {pages.number}</span>
      <button type="button" className="quiet" disabled={!next} onClick={() => next && pages.older(next)}>
        Older
      </button>
    </nav>
  )
}
