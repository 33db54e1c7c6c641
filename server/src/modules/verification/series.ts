import { spendSteps } from '../../platform/step-budget.ts'
import { readNumbers } from './numbers.ts'
import { headedRowsOf, type TaskRecord } from './records.ts'

const MAX_LINES = 60
const MAX_COLUMNS = 2
const MAX_NAMES = 20

/**
 * Readings of a task in which a name has any number of figures, to be added up or averaged: "W14: 120.50, 89.00",
 * "Mon: Ana 7.5, Bo 8" for each person, rows of a table for each value of a column.
 */
export function seriesOf(text: string): TaskRecord[][] {
  spendSteps(text.length * 4)
  const lines = text.split('\n').slice(0, MAX_LINES)
  return [listsOf(lines), crossedLists(lines), ...columnsOf(text)].filter(
    (series) => series.length >= 2 && series.length <= MAX_NAMES && series.some(({ figures }) => figures.length >= 2),
  )
}

const LABELLED = /^[\s*•-]{0,6}(\p{L}[\p{L}\d .'-]{0,30}?) ?: ?(?=\S)(.{1,200})$/u
/** A figure with at most a unit. */
const FIGURE = /^[$€£]? ?\d[\d.,]{0,12} ?(?:[$€£%]|\p{L}{1,8})?\.?$/u

const figuresOf = (text: string) => readNumbers(text).map(({ values }) => values[0]!)

/** Lines of a name and its figures. */
const listsOf = (lines: readonly string[]): TaskRecord[] =>
  lines.flatMap((line) => {
    const [, name, rest] = LABELLED.exec(line) ?? []
    const parts = rest?.split(/[,;+/] | [+/] /).map((part) => part.trim()) ?? []
    return name && parts.every((part) => FIGURE.test(part))
      ? [{ name: name.toLowerCase(), figures: parts.flatMap(figuresOf) }]
      : []
  })

const PAIR = /^(\p{L}[\p{L}.'-]{0,20}(?: \p{L}{1,20})?) ?[:=]? (\d[\d.,]{0,12}) ?(?:[$€£%]|\p{L}{1,8})?$/u

/** Lines that each have a figure for the same names. */
function crossedLists(lines: readonly string[]): TaskRecord[] {
  const rows = lines.flatMap((line) => {
    const rest = LABELLED.exec(line)?.[2]
    const pairs = rest?.split(/[,;] /).map((part) => PAIR.exec(part.trim())) ?? []
    return pairs.length >= 2 && pairs.every((pair) => pair !== null) ? [pairs] : []
  })
  const names = [...new Set(rows.flat().map(([, name]) => name!.toLowerCase()))]
  if (rows.length < 2 || rows.some((row) => row.length !== names.length)) return []
  return names.map((name) => ({
    name,
    figures: rows.flat().flatMap(([, own, figure]) => (own!.toLowerCase() === name ? figuresOf(figure!) : [])),
  }))
}

/** For each column of texts that come again and each column of figures the figures of each text. */
function columnsOf(text: string): TaskRecord[][] {
  const rows = headedRowsOf(text)
  const columns = Object.keys(rows[0] ?? {})
  const hasOnly = (column: string, type: 'string' | 'number') =>
    rows.every((row) => typeof row[column] === type && row[column] !== '')
  return columns
    .filter((column) => hasOnly(column, 'string') && new Set(rows.map((row) => row[column])).size < rows.length)
    .slice(0, MAX_COLUMNS)
    .flatMap((column) =>
      columns
        .filter((other) => hasOnly(other, 'number'))
        .slice(0, MAX_COLUMNS)
        .map((other) =>
          [...new Set(rows.map((row) => String(row[column])))].map((name) => ({
            name: name.toLowerCase(),
            figures: rows.filter((row) => row[column] === name).map((row) => Number(row[other])),
          })),
        ),
    )
}
