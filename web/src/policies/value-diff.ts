import { isObject, joinPath } from '../schema/json-schema.ts'

export type Difference = { path: string; kind: 'added' | 'removed' | 'changed'; from?: unknown; to?: unknown }

/** What differs between two JSON values, field by field. A list of names differs by its entries, whatever their order. */
export function findDifferences(from: unknown, to: unknown, path = ''): Difference[] {
  if (isSame(from, to)) return []
  if (isObject(from) && isObject(to))
    return [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((name) =>
      findDifferences(from[name], to[name], joinPath(path, name)),
    )
  if (Array.isArray(from) && Array.isArray(to))
    return [...from, ...to].some(isObject) ? diffRows(from, to, path) : diffNames(from, to, path)
  if (from === undefined) return [{ path, kind: 'added', to }]
  if (to === undefined) return [{ path, kind: 'removed', from }]
  return [{ path, kind: 'changed', from, to }]
}

const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

const diffNames = (from: unknown[], to: unknown[], path: string): Difference[] => [
  ...from.filter((entry) => !to.includes(entry)).map((entry) => ({ path, kind: 'removed' as const, from: entry })),
  ...to.filter((entry) => !from.includes(entry)).map((entry) => ({ path, kind: 'added' as const, to: entry })),
]

/** Rows that both have are left out; the others are compared in their order. */
function diffRows(from: unknown[], to: unknown[], path: string): Difference[] {
  const rest = (rows: unknown[], others: unknown[]) =>
    [...rows.entries()].filter(([, row]) => !others.some((other) => isSame(row, other)))
  const [before, after] = [rest(from, to), rest(to, from)]
  return Array.from({ length: Math.max(before.length, after.length) }, (_, position) => {
    const [oldRow, newRow] = [before[position], after[position]]
    if (oldRow && newRow) return findDifferences(oldRow[1], newRow[1], joinPath(path, newRow[0]))
    if (newRow) return [{ path: joinPath(path, newRow[0]), kind: 'added' as const, to: newRow[1] }]
    return [{ path: joinPath(path, oldRow![0]), kind: 'removed' as const, from: oldRow![1] }]
  }).flat()
}
