import { spendSteps } from '../../../platform/step-budget.ts'
import type { Brief } from './brief.ts'
import { trimEndOf } from './text.ts'

/** Named columns read from a task. A numeric column has `values`, any other has `labels`. */
export type Table = { source: string; columns: readonly Column[]; rows: number; skipped: number }
export type Column = {
  name: string
  values: readonly number[]
  labels: readonly string[]
  /** The row of each value, when some rows have none. */
  rows?: readonly number[]
}

const MAX_ROWS = 2000
const MAX_COLUMNS = 24

/** Reads the numbers in a task: as JSON, else as a delimited table, else as labelled or listed numbers. */
export function readTable(brief: Brief): Table | undefined {
  const text = brief.material || brief.task
  return (
    readJson(text) ??
    readDelimited(text) ??
    readDelimited(brief.task) ??
    readSeries(text) ??
    readSeries(brief.task) ??
    readPairs(text) ??
    readPairs(brief.task) ??
    readListedNumbers(brief.task)
  )
}

function readJson(text: string): Table | undefined {
  spendSteps(text.length)
  const start = text.search(/[[{]/)
  const end = Math.max(text.lastIndexOf(']'), text.lastIndexOf('}'))
  if (start < 0 || end <= start) return undefined
  let value: unknown
  try {
    value = JSON.parse(text.slice(start, end + 1))
  } catch {
    return undefined
  }
  return tableFromJson(value)
}

function tableFromJson(value: unknown): Table | undefined {
  if (Array.isArray(value)) {
    if (value.length > 0 && value.every(isRecord)) return tableFromRecords(value.slice(0, MAX_ROWS))
    const numbers = value.flatMap((item) => parseNumber(item) ?? [])
    return numbers.length >= 2
      ? singleColumnTable('JSON array', 'value', numbers, [], value.length - numbers.length)
      : undefined
  }
  if (!isRecord(value)) return undefined
  const arrays = Object.entries(value).filter(([, item]) => Array.isArray(item)) as [string, unknown[]][]
  const records = arrays.find(([, items]) => items.length > 0 && items.every(isRecord))
  if (records) return tableFromRecords((records[1] as Record<string, unknown>[]).slice(0, MAX_ROWS))
  const series = arrays
    .map(([name, items]) => ({
      name,
      values: items.slice(0, MAX_ROWS).flatMap((item) => parseNumber(item) ?? []),
      labels: [],
    }))
    .filter((column) => column.values.length >= 2)
    .slice(0, MAX_COLUMNS)
  if (series.length > 0) {
    return {
      source: 'JSON arrays',
      columns: series,
      rows: Math.max(...series.map((column) => column.values.length)),
      skipped: 0,
    }
  }
  const pairs = Object.entries(value).flatMap(([name, item]) =>
    typeof item === 'number' ? [[name, item] as const] : [],
  )
  if (pairs.length < 2) return undefined
  return singleColumnTable(
    'JSON object',
    'value',
    pairs.map((pair) => pair[1]),
    pairs.map((pair) => pair[0]),
    0,
  )
}

function tableFromRecords(records: readonly Record<string, unknown>[]): Table | undefined {
  const names = [...new Set(records.slice(0, 50).flatMap((record) => Object.keys(record)))].slice(0, MAX_COLUMNS)
  return buildTable(
    'JSON records',
    names,
    records.map((record) => names.map((name) => cellText(record[name]))),
  )
}

const cellText = (value: unknown) =>
  value === null || value === undefined ? '' : typeof value === 'object' ? '' : String(value)

/** A delimited table is a sequence of lines with the same number of cells, at least two. */
function readDelimited(text: string): Table | undefined {
  const lines = text.split('\n').slice(0, MAX_ROWS + 200)
  for (const delimiter of [',', '\t', ';', '|']) {
    spendSteps(text.length)
    const run = findLongestRun(lines, delimiter)
    if (run.length < 3) continue
    const [header, ...body] = run as [string[], ...string[][]]
    const hasHeader = header.every((cell) => parseNumber(cell) === undefined)
    const names = hasHeader ? header : header.map((_, i) => `column ${i + 1}`)
    const table = buildTable(delimiter === '|' ? 'table' : 'delimited text', names, hasHeader ? body : run)
    if (table) return table
  }
  return undefined
}

function findLongestRun(lines: readonly string[], delimiter: string): string[][] {
  let longest: string[][] = []
  let current: string[][] = []
  for (const line of [...lines, '']) {
    const cells = splitCells(line, delimiter)
    if (delimiter === '|' && cells.every((cell) => /^[:\s-]*$/.test(cell)) && cells.length > 1) continue
    const matchesWidth =
      cells.length >= 2 && cells.length <= MAX_COLUMNS && (current.length === 0 || current[0]!.length === cells.length)
    if (matchesWidth) {
      current.push(cells)
    } else {
      if (current.length > longest.length) longest = current
      current = cells.length >= 2 && cells.length <= MAX_COLUMNS ? [cells] : []
    }
  }
  return longest
}

function splitCells(line: string, delimiter: string): string[] {
  const body = delimiter === '|' ? line.trim().replace(/^\|/, '').replace(/\|$/, '') : line
  if (!body.includes('"')) return body.split(delimiter).map((cell) => cell.trim())
  const cells: string[] = []
  let cell = ''
  let inQuotes = false
  for (const character of body) {
    if (character === '"') inQuotes = !inQuotes
    else if (character === delimiter && !inQuotes) {
      cells.push(cell.trim())
      cell = ''
    } else cell += character
  }
  return [...cells, cell.trim()]
}

/** A column is numeric when at least 80 % of its filled cells are numbers; the other cells are counted as skipped. */
function buildTable(source: string, names: readonly string[], rows: readonly (readonly string[])[]): Table | undefined {
  spendSteps(names.length * rows.length)
  let skipped = 0
  const columns = names.map((name, i) => {
    const cells = rows.map((row) => row[i] ?? '')
    const filledCells = cells.filter((cell) => cell !== '')
    const numbers = cells.flatMap((cell, row) => {
      const value = parseNumber(cell)
      return value === undefined ? [] : [{ value, row }]
    })
    const isNumeric = numbers.length >= 2 && numbers.length >= filledCells.length * 0.8
    if (!isNumeric) return { name: name || `column ${i + 1}`, values: [], labels: cells }
    skipped += cells.length - numbers.length
    return {
      name: name || `column ${i + 1}`,
      values: numbers.map(({ value }) => value),
      labels: [],
      ...(numbers.length < cells.length && { rows: numbers.map(({ row }) => row) }),
    }
  })
  return columns.some((column) => column.values.length > 0)
    ? { source, columns, rows: rows.length, skipped }
    : undefined
}

/** Reads "Jan 120, Feb 131", "north: 40; south: 38" or one such pair per line. */
function readPairs(text: string): Table | undefined {
  spendSteps(text.length)
  const labels: string[] = []
  const values: number[] = []
  for (const raw of text.slice(0, 32_000).split(/[,;\n]+(?!\d{3}\b)/)) {
    // Single spaces and a short piece bound the backtracking of the pattern below.
    const piece = raw.slice(0, 120).replace(/\s+/g, ' ').trim()
    const pair =
      /^\s*(?:[-*•]\s*|and\s+)?([\p{L}][\p{L}\p{N} '&/._-]{0,40}?)\s*(?:[:=]|is|was|are|were|at|\s)\s*([$€£]?-?\d[\d,]*(?:\.\d+)?\s?(?:%|[kKmMbB](?!\p{L}))?)(?:\s?(?:mm|cm|km|kg|g|lbs?|ms|s|sec|min|hours?|days?|mb|gb|pcs|units?|usd|eur|gbp))?\s*[.!]?\s*$/iu.exec(
        piece,
      )
    const number = pair ? parseNumber(pair[2]!) : undefined
    if (number === undefined) continue
    labels.push(pair![1]!.trim())
    values.push(number)
    if (values.length >= MAX_ROWS) break
  }
  return values.length >= 3 ? singleColumnTable('labelled numbers', 'value', values, labels, 0) : undefined
}

/** Reads "spend 10, 20, 30; revenue 14, 22, 35": several named series of equal length. */
function readSeries(text: string): Table | undefined {
  spendSteps(text.length)
  const columns = text
    .slice(0, 32_000)
    .split(/[;\n]/, 10 * MAX_COLUMNS)
    .flatMap((raw) => {
      const piece = raw.slice(0, 4000).replace(/\s+/g, ' ').trim()
      const firstDigit = piece.search(/\d/)
      const name = trimEndOf(piece.slice(0, Math.max(0, firstDigit)), '-:=$€£( ')
        .replace(/^.*[:,.] /, '')
        .trim()
      const cells = trimEndOf(piece.slice(Math.max(0, firstDigit - 1)), '.)').split(/, | and |,(?!\d{3}\b)| /)
      const values = cells.filter(Boolean).map((cell) => parseNumber(cell))
      if (!/^\p{L}[\p{L}\p{N} _/-]{0,40}$/u.test(name) || values.length < 3 || values.includes(undefined)) return []
      return [{ name, values: values as number[], labels: [] }]
    })
    .slice(0, MAX_COLUMNS)
  const rows = columns[0]?.values.length
  if (columns.length < 2 || rows === undefined || columns.some((column) => column.values.length !== rows))
    return undefined
  return { source: 'named series', columns, rows, skipped: 0 }
}

export type Figure = { text: string; value: number; start: number; end: number }

const FIGURE = /(?<![\p{L}\d.#-])[$€£]?-?\d+(?:,\d{3})*(?:\.\d+)?(?:\s?%|[kKmM]\b)?(?![\p{L}\d])/gu

/** Every number in a text, with its position. */
export function findFigures(text: string): Figure[] {
  spendSteps(text.length)
  const figures: Figure[] = []
  for (const match of text.slice(0, 32_000).matchAll(FIGURE)) {
    const value = parseNumber(match[0])
    if (value === undefined) continue
    figures.push({ text: match[0].trim(), value, start: match.index, end: match.index + match[0].length })
    if (figures.length === MAX_ROWS) break
  }
  return figures
}

/** The longest list of adjacent numbers. Numbers scattered over sentences are not a series. */
function readListedNumbers(text: string): Table | undefined {
  const figures = findFigures(text)
  let longest: Figure[] = []
  let current: Figure[] = []
  for (const figure of figures) {
    const previous = current.at(-1)
    const isAdjacent =
      previous &&
      figure.start - previous.end <= 8 &&
      /^(?:[\s,;/|]|and)*$/i.test(text.slice(previous.end, figure.start))
    if (isAdjacent) current.push(figure)
    else current = [figure]
    if (current.length > longest.length) longest = current
  }
  if (longest.length < 3) return undefined
  return singleColumnTable(
    'numbers in the text',
    'value',
    longest.map(({ value }) => value),
    [],
    0,
  )
}

const singleColumnTable = (
  source: string,
  name: string,
  values: readonly number[],
  labels: readonly string[],
  skipped: number,
): Table => ({
  source,
  columns: [...(labels.length > 0 ? [{ name: 'label', values: [], labels }] : []), { name, values, labels: [] }],
  rows: values.length,
  skipped,
})

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const SCALES: Record<string, number> = { k: 1e3, m: 1e6, b: 1e9 }

/** Parses "1,234.5", "$12k", "(40)" or "7 %"; undefined when the cell is not a number. */
export function parseNumber(cell: unknown): number | undefined {
  if (typeof cell === 'number') return Number.isFinite(cell) ? cell : undefined
  if (typeof cell !== 'string' || cell.length > 40) return undefined
  const match = /^\(?\s*[$€£]?\s?([+-]?[$€£]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d{1,2})?)\s?([kmb%])?\s*\)?$/i.exec(
    cell.trim(),
  )
  if (!match) return undefined
  const value = Number(match[1]!.replace(/[,$€£]/g, '')) * (SCALES[match[2]?.toLowerCase() ?? ''] ?? 1)
  return Number.isFinite(value) ? (cell.trim().startsWith('(') ? -value : value) : undefined
}
