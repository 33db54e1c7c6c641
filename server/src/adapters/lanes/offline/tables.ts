import type { Brief } from './brief.ts'

/** Named columns read out of a task. A numeric column has a number for every row; others are labels. */
export type Table = { source: string; columns: readonly Column[]; rows: number; skipped: number }
export type Column = {
  name: string
  values: readonly number[]
  labels: readonly string[]
  /** Which row each value stands in, when some rows have none. */
  rows?: readonly number[]
}

const MAX_ROWS = 2000
const MAX_COLUMNS = 24

/** The best reading of the numbers in a task: JSON first, then a delimited table, then labelled and bare numbers. */
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
    readBare(brief.task)
  )
}

function readJson(text: string): Table | undefined {
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
    if (value.length > 0 && value.every(isRecord)) return fromRecords(value.slice(0, MAX_ROWS))
    const numbers = value.flatMap((item) => toNumber(item) ?? [])
    return numbers.length >= 2
      ? oneColumn('JSON array', 'value', numbers, [], value.length - numbers.length)
      : undefined
  }
  if (!isRecord(value)) return undefined
  const nested = Object.entries(value).filter(([, item]) => Array.isArray(item)) as [string, unknown[]][]
  const records = nested.find(([, items]) => items.length > 0 && items.every(isRecord))
  if (records) return fromRecords((records[1] as Record<string, unknown>[]).slice(0, MAX_ROWS))
  const series = nested
    .map(([name, items]) => ({
      name,
      values: items.slice(0, MAX_ROWS).flatMap((item) => toNumber(item) ?? []),
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
  return oneColumn(
    'JSON object',
    'value',
    pairs.map((pair) => pair[1]),
    pairs.map((pair) => pair[0]),
    0,
  )
}

function fromRecords(records: readonly Record<string, unknown>[]): Table | undefined {
  const names = [...new Set(records.slice(0, 50).flatMap((record) => Object.keys(record)))].slice(0, MAX_COLUMNS)
  return fromCells(
    'JSON records',
    names,
    records.map((record) => names.map((name) => cellText(record[name]))),
  )
}

const cellText = (value: unknown) =>
  value === null || value === undefined ? '' : typeof value === 'object' ? '' : String(value)

/** A delimited table is a run of lines that all split into the same number of cells, at least two of them. */
function readDelimited(text: string): Table | undefined {
  const lines = text.split('\n').slice(0, MAX_ROWS + 200)
  for (const delimiter of [',', '\t', ';', '|']) {
    const run = longestRun(lines, delimiter)
    if (run.length < 3) continue
    const [head, ...body] = run as [string[], ...string[][]]
    const headed = head.every((cell) => toNumber(cell) === undefined)
    const names = headed ? head : head.map((_, at) => `column ${at + 1}`)
    const table = fromCells(delimiter === '|' ? 'table' : 'delimited text', names, headed ? body : run)
    if (table) return table
  }
  return undefined
}

function longestRun(lines: readonly string[], delimiter: string): string[][] {
  let best: string[][] = []
  let current: string[][] = []
  for (const line of [...lines, '']) {
    const cells = splitCells(line, delimiter)
    if (delimiter === '|' && cells.every((cell) => /^[:\s-]*$/.test(cell)) && cells.length > 1) continue
    const fits =
      cells.length >= 2 && cells.length <= MAX_COLUMNS && (current.length === 0 || current[0]!.length === cells.length)
    if (fits) {
      current.push(cells)
    } else {
      if (current.length > best.length) best = current
      current = cells.length >= 2 && cells.length <= MAX_COLUMNS ? [cells] : []
    }
  }
  return best
}

function splitCells(line: string, delimiter: string): string[] {
  const body = delimiter === '|' ? line.trim().replace(/^\|/, '').replace(/\|$/, '') : line
  if (!body.includes('"')) return body.split(delimiter).map((cell) => cell.trim())
  const cells: string[] = []
  let cell = ''
  let quoted = false
  for (const mark of body) {
    if (mark === '"') quoted = !quoted
    else if (mark === delimiter && !quoted) {
      cells.push(cell.trim())
      cell = ''
    } else cell += mark
  }
  return [...cells, cell.trim()]
}

/** A column counts as numeric when four fifths of its filled cells are numbers; the rest are reported as skipped. */
function fromCells(source: string, names: readonly string[], rows: readonly (readonly string[])[]): Table | undefined {
  let skipped = 0
  const columns = names.map((name, at) => {
    const cells = rows.map((row) => row[at] ?? '')
    const filled = cells.filter((cell) => cell !== '')
    const numbers = cells.flatMap((cell, row) => {
      const value = toNumber(cell)
      return value === undefined ? [] : [{ value, row }]
    })
    const numeric = numbers.length >= 2 && numbers.length >= filled.length * 0.8
    if (!numeric) return { name: name || `column ${at + 1}`, values: [], labels: cells }
    skipped += cells.length - numbers.length
    return {
      name: name || `column ${at + 1}`,
      values: numbers.map(({ value }) => value),
      labels: [],
      ...(numbers.length < cells.length && { rows: numbers.map(({ row }) => row) }),
    }
  })
  return columns.some((column) => column.values.length > 0)
    ? { source, columns, rows: rows.length, skipped }
    : undefined
}

/** "Jan 120, Feb 131", "north: 40; south: 38", one pair a line: a word, then its number. */
function readPairs(text: string): Table | undefined {
  const labels: string[] = []
  const values: number[] = []
  for (const raw of text.slice(0, 32_000).split(/[,;\n]+(?!\d{3}\b)/)) {
    // One space between words and a short piece: the pattern below may then look back as often as it likes.
    const piece = raw.slice(0, 120).replace(/\s+/g, ' ').trim()
    const pair =
      /^\s*(?:[-*•]\s*|and\s+)?([\p{L}][\p{L}\p{N} '&/._-]{0,40}?)\s*(?:[:=]|is|was|are|were|at|\s)\s*([$€£]?-?\d[\d,]*(?:\.\d+)?\s?(?:%|[kKmMbB](?!\p{L}))?)(?:\s?(?:mm|cm|km|kg|g|lbs?|ms|s|sec|min|hours?|days?|mb|gb|pcs|units?|usd|eur|gbp))?\s*[.!]?\s*$/iu.exec(
        piece,
      )
    const number = pair ? toNumber(pair[2]!) : undefined
    if (number === undefined) continue
    labels.push(pair![1]!.trim())
    values.push(number)
    if (values.length >= MAX_ROWS) break
  }
  return values.length >= 3 ? oneColumn('labelled numbers', 'value', values, labels, 0) : undefined
}

/** "spend 10, 20, 30; revenue 14, 22, 35": several named rows of equally many numbers. */
function readSeries(text: string): Table | undefined {
  const columns = text
    .slice(0, 32_000)
    .split(/[;\n]/, 10 * MAX_COLUMNS)
    .flatMap((raw) => {
      const piece = raw.slice(0, 4000).replace(/\s+/g, ' ').trim()
      const first = piece.search(/\d/)
      const name = piece
        .slice(0, Math.max(0, first))
        .replace(/[-:=$€£( ]+$/, '')
        .replace(/^.*[:,.] /, '')
        .trim()
      const cells = piece
        .slice(Math.max(0, first - 1))
        .replace(/[.)]+$/, '')
        .split(/, | and |,(?!\d{3}\b)| /)
      const values = cells.filter(Boolean).map((cell) => toNumber(cell))
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

/** Every number that stands in a text, where it stands. */
export function figuresIn(text: string): Figure[] {
  const found: Figure[] = []
  for (const match of text.slice(0, 32_000).matchAll(FIGURE)) {
    const value = toNumber(match[0])
    if (value === undefined) continue
    found.push({ text: match[0].trim(), value, start: match.index, end: match.index + match[0].length })
    if (found.length === MAX_ROWS) break
  }
  return found
}

/** Numbers listed one after the other are a series; numbers strewn over sentences are not, whatever their mean. */
function readBare(text: string): Table | undefined {
  const figures = figuresIn(text)
  let best: Figure[] = []
  let current: Figure[] = []
  for (const figure of figures) {
    const last = current.at(-1)
    const listed =
      last && figure.start - last.end <= 8 && /^(?:[\s,;/|]|and)*$/i.test(text.slice(last.end, figure.start))
    if (listed) current.push(figure)
    else current = [figure]
    if (current.length > best.length) best = current
  }
  if (best.length < 3) return undefined
  return oneColumn(
    'numbers in the text',
    'value',
    best.map(({ value }) => value),
    [],
    0,
  )
}

const oneColumn = (
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

/** "1,234.5", "$12k", "(40)", "7 %": the number it stands for, or undefined. */
export function toNumber(cell: unknown): number | undefined {
  if (typeof cell === 'number') return Number.isFinite(cell) ? cell : undefined
  if (typeof cell !== 'string' || cell.length > 40) return undefined
  const found = /^\(?\s*[$€£]?\s?([+-]?[$€£]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d{1,2})?)\s?([kmb%])?\s*\)?$/i.exec(
    cell.trim(),
  )
  if (!found) return undefined
  const value = Number(found[1]!.replace(/[,$€£]/g, '')) * (SCALES[found[2]?.toLowerCase() ?? ''] ?? 1)
  return Number.isFinite(value) ? (cell.trim().startsWith('(') ? -value : value) : undefined
}
