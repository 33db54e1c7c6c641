import { Type } from 'typebox'
import { pattern } from './schema.ts'

/**
 * The query parameter that continues a list: the last id of the previous page. Any other value is refused, because
 * it would restart or end the list without the caller noticing.
 */
export const cursorParameter = (prefix: string, description = 'next_cursor of the page before') =>
  Type.Optional(
    Type.String({
      ...pattern(`^${prefix}_[\\w-]{1,64}$`, `an id of the list, which begins with '${prefix}_'`),
      description,
    }),
  )

/** The paging fields of a list response. */
export const pageFields = { has_more: Type.Boolean(), next_cursor: Type.Union([Type.String(), Type.Null()]) }

/** A page with filters that have no index looks at so many rows at most; the page after it goes on behind them. */
export const MAX_EXAMINED = 5_000
export const PAGE_MAY_BE_SHORT = `Whether there may be more. With filters that few rows pass, a page may have fewer rows than \`limit\`, or none: it looks at ${MAX_EXAMINED.toLocaleString('en')} rows at most, and the page after it goes on behind them.`

type Page<Row> = { rows: Row[]; has_more: boolean; next_cursor: string | null }

/** Cuts a page out of rows that were read with `limit + 1`: the extra row only shows that another page follows. */
export function toPage<Row extends { id: string }>(rows: readonly Row[], limit: number): Page<Row>
export function toPage<Row>(rows: readonly Row[], limit: number, cursorOf: (row: Row) => string): Page<Row>
export function toPage<Row extends { id: string }>(
  rows: readonly Row[],
  limit: number,
  cursorOf = (row: Row) => row.id,
): Page<Row> {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const has_more = rows.length > limit
  return { rows: page, has_more, next_cursor: has_more && last ? cursorOf(last) : null }
}

/** A page of a list whose rows may be large ends early, so that the answer stays below about so many bytes. */
export const MAX_PAGE_BYTES = 256 * 1024
const FIRST_ROWS = 20

/**
 * Reads a page of at most `limit` rows and about `MAX_PAGE_BYTES`, at least one row. Rows are read in parts, so that large
 * ones are not read in vain. `read` returns the next rows after a row, or the first ones.
 */
export async function readPage<Row>(
  limit: number,
  read: (count: number, after: Row | undefined) => Promise<readonly Row[]>,
  cursorOf: (row: Row) => string,
): Promise<Page<Row>> {
  const rows: Row[] = []
  let bytes = 0
  let count = Math.min(limit + 1, FIRST_ROWS)
  for (;;) {
    const part = await read(count, rows.at(-1))
    for (const row of part) {
      const size = JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? String(value) : value)).length
      if (rows.length === limit || (rows.length > 0 && bytes + size > MAX_PAGE_BYTES))
        return { rows, has_more: true, next_cursor: cursorOf(rows.at(-1)!) }
      rows.push(row)
      bytes += size
    }
    if (part.length < count) return { rows, has_more: false, next_cursor: null }
    const fitting = Math.ceil((MAX_PAGE_BYTES - bytes) / Math.max(1, bytes / rows.length))
    count = Math.max(1, Math.min(limit + 1 - rows.length, fitting))
  }
}
