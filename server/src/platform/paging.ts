import { Type } from 'typebox'

/**
 * The query parameter that continues a list: the last id of the previous page. Any other value is refused, because
 * it would restart or end the list without the caller noticing.
 */
export const cursorParameter = (prefix: string, description = 'next_cursor of the page before') =>
  Type.Optional(Type.String({ pattern: `^${prefix}_[\\w-]{1,64}$`, description }))

/** The paging fields of a list response. */
export const pageFields = { has_more: Type.Boolean(), next_cursor: Type.Union([Type.String(), Type.Null()]) }

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
