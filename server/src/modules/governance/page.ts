/** One row more than asked for was read: it says whether there is another page, and is not shown. */
export function page<T extends { id: string }>(read: readonly T[], limit: number) {
  const rows = read.slice(0, limit)
  const has_more = read.length > limit
  return { rows, more: { has_more, next_cursor: has_more ? rows.at(-1)!.id : null } }
}
