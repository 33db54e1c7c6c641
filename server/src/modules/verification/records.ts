import { spendSteps } from '../../platform/step-budget.ts'
import { readNumbers, type TextNumber, withoutGroups, withoutRounding } from './numbers.ts'

/** A name of the task and the figures that stand with it, in their order. */
export type TaskRecord = { name: string; figures: readonly number[] }

const MAX_RECORDS = 40
const MAX_FIGURES = 8
const MAX_NAME = 40

/** Rows of a table or of JSON, lines, clauses: "Ridge 8.5 km, Lake 12.0 km" and "Altus: premium 2,780, deductible 750". */
export function recordsOf(given: string): TaskRecord[] {
  spendSteps(given.length * 10)
  const json = jsonRowsOf(given)
  if (json.length >= 2)
    return json.flatMap((row) => {
      const figures = Object.values(row).filter((value) => typeof value === 'number')
      return figures.length > 0 ? [{ name: nameOfRow(row), figures: figures.slice(0, MAX_FIGURES) }] : []
    })
  const text = withoutGroups(withoutRounding(given)).replaceAll(HOURS, inHours)
  const lines = text.split('\n')
  const readings = [
    rowsOf(text),
    // The first line of several is the request.
    readRecords(lines.slice(1)),
    readRecords(lines),
    readRecords(text.split(/[;\n]|\.\s(?=\p{Lu})/u)),
    readRecords(text.split(/[;\n]|,\s|\.\s|\sand\s|\sund\s|\set\s|\sy\s/)),
  ]
  return readings.find((records, i) => records.length >= (i === 1 ? 3 : 2) && hasOneShape(records)) ?? []
}

/** "1:10 h", "2 h 45 min" and "2h45" are one figure, in hours. */
const HOURS =
  /(?<![\d:.,])(\d{1,2})(?::([0-5]\d) ?h(?:rs?|ours?)?\b| ?h(?:rs?|ours?)? ?([0-5]?\d)(?: ?m(?:in(?:utes|s)?)?)?\b)/gi
const inHours = (_: string, hours: string, minutes?: string, others?: string) =>
  `${(Number(hours) + Number(minutes ?? others) / 60).toFixed(8)} h`

export type JsonRow = Readonly<Record<string, string | number>>

/** The flat objects of the first array of JSON in a text. */
export function jsonRowsOf(text: string): JsonRow[] {
  const start = text.search(/\[\s{0,8}\{\s{0,8}"/)
  const end = start < 0 ? -1 : text.indexOf(']', start)
  if (end < 0) return []
  try {
    const rows: unknown = JSON.parse(text.slice(start, end + 1))
    const isRow = (row: unknown): row is JsonRow =>
      typeof row === 'object' &&
      row !== null &&
      Object.values(row).every((value) => typeof value === 'number' || typeof value === 'string') &&
      Object.values(row).some((value) => typeof value === 'string')
    return Array.isArray(rows) && rows.length <= MAX_RECORDS && rows.every(isRow) ? rows : []
  } catch {
    return []
  }
}

/** Lines of cells under a header, read as rows of JSON are. */
export function headedRowsOf(text: string): JsonRow[] {
  const lines = text.split('\n').slice(0, 200)
  for (const mark of ['|', '\t', ';', ',']) {
    const cells = lines
      .filter((line) => line.includes(mark) && !/^[|:\s-]+$/.test(line))
      .map((line) =>
        line
          .replace(/^\s*\||\|\s*$/g, '')
          .split(mark)
          .map((cell) => cell.trim()),
      )
    const width = cells.at(-1)?.length ?? 0
    const [header, ...rows] = cells.filter((row) => row.length === width)
    if (!header || width < 2 || rows.length < 3 || header.some((cell) => !/^\p{L}[^\d]{0,30}$/u.test(cell))) continue
    const isFigure = (cell: string) => /^[$€£]?-?\d[\d.,]{0,14}\s?[%€$£]?$/.test(cell)
    return rows.map((row) =>
      Object.fromEntries(row.map((cell, i) => [header[i]!, isFigure(cell) ? readNumbers(cell)[0]!.values[0]! : cell])),
    )
  }
  return []
}

/** The first text of a row names it. */
export const nameOfRow = (row: JsonRow): string =>
  String(Object.values(row).find((value) => typeof value === 'string') ?? '').toLowerCase()

const hasOneShape = (records: readonly TaskRecord[]) =>
  new Set(records.map(({ figures }) => figures.length)).size === 1 && records.length <= MAX_RECORDS

const firstValue = ({ values }: TextNumber) => values[0]!

/** Rows with the same marks between their cells; a name stands for each cell of letters. */
function rowsOf(text: string): TaskRecord[] {
  const lines = text.split('\n').slice(0, 200)
  for (const mark of ['|', ';', '\t', ',']) {
    const rows = (mark === ',' ? longestRun(lines, (line) => /,(?! )/.test(line) && !line.includes(', ')) : lines)
      .map((line) =>
        line
          .replace(/^\s*\||\|\s*$/g, '')
          .split(mark)
          .map((cell) => cell.trim()),
      )
      .filter((cells) => cells.length >= 2 && !cells.every((cell) => /^[:\s-]*$/.test(cell)))
    const width = rows.at(-1)?.length ?? 0
    const isTable = rows.length >= 3 && rows.every((cells) => cells.length === width)
    if (!isTable) continue
    const hasHeader = !rows[0]!.some((cell) => /^[$€£]?\s?-?\d[\d.,]*\s?[%€$£]?$/.test(cell))
    const records = rows.slice(hasHeader ? 1 : 0).flatMap((cells): TaskRecord[] => {
      const figures = cells.flatMap((cell) =>
        /^[$€£]?\s?-?\d[\d.,]*\s?[%€$£]?$/.test(cell) ? readNumbers(cell).slice(0, 1) : [],
      )
      const name = cells.find((cell) => /^\p{L}/u.test(cell) && cell.length <= MAX_NAME)
      return name && figures.length > 0 ? [{ name: name.toLowerCase(), figures: figures.map(firstValue) }] : []
    })
    if (records.length >= 2) return records
  }
  return []
}

/** The most lines one after the other that fit: rows below a request. */
function longestRun(lines: readonly string[], fits: (line: string) => boolean): readonly string[] {
  let longest: readonly string[] = []
  for (let start = 0, at = 0; at <= lines.length; at++) {
    if (at < lines.length && fits(lines[at]!)) continue
    if (at - start > longest.length) longest = lines.slice(start, at)
    start = at + 1
  }
  return longest
}

/** "Fuel per 100 km: Vito 54 l": a figure of the request is none of the name. */
const afterRequest = (part: string) =>
  /^[^:]{0,80}\d[^:]{0,40}: ?(?=\p{L}[^:]{0,60}\d)/u.exec(part)?.[0].length ? part.slice(part.indexOf(':') + 1) : part

/** "2021: 1,200" */
const YEAR_LEAD = /^\P{L}{0,4}\b((?:19|20)\d\d)\b(?!-|\.\d)/u
/** "12 mugs 54.00", "8 bowls at 60.00" */
const COUNT_LEAD =
  /^(?:[^:]{0,80}:)?[\s-]{0,3}\d{1,5}(?: ?x)? (\p{L}{3,20}(?: \p{L}{3,20})?)(?: ?[:=(@–-]| at| for| zu| à| je)? ?[$€£]?\d/iu

/** The name is what stands in front of the first figure; with a colon in several parts, what stands in front of that. */
function readRecords(given: readonly string[]): TaskRecord[] {
  const parts = given.map(afterRequest)
  const first = parts.filter((part) => /\d/.test(part)).slice(0, 200)
  const years = first.flatMap((part): TaskRecord[] => {
    const year = YEAR_LEAD.exec(part)?.[1]
    const figures = year
      ? readNumbers(part.slice(part.indexOf(year) + 4))
          .slice(0, MAX_FIGURES)
          .map(firstValue)
      : []
    return year && figures.length > 0 ? [{ name: year, figures }] : []
  })
  if (years.length >= 2 && years.length >= first.length - 1) return years
  const counted = first.flatMap((part): TaskRecord[] => {
    const [, name] = COUNT_LEAD.exec(part) ?? []
    return name ? [{ name: name.toLowerCase(), figures: readNumbers(part).slice(0, MAX_FIGURES).map(firstValue) }] : []
  })
  if (counted.length >= 2 && counted.length >= first.length - 1 && counted.every(({ figures }) => figures.length > 1))
    return counted
  const found = parts.slice(0, 200).flatMap((part) => {
    const numbers = readNumbers(part)
      .filter(
        ({ start }) =>
          !/[\p{L}_]/u.test(part[start - 1] ?? ' ') || /\dh$/.test(part.slice(Math.max(0, start - 2), start)),
      )
      .slice(0, MAX_FIGURES)
    const isRate = numbers.every(({ isPercent }) => isPercent)
    return numbers.length > 0
      ? [{ lead: part.slice(0, numbers[0]!.start), figures: numbers.map(firstValue), isRate }]
      : []
  })
  // "Tip 18% each: Nova 45.00, Opal 62.50": the rate belongs to all.
  const leads = found.filter(({ isRate }) => !isRate || found.every((lead) => lead.isRate))
  const isLabelled = leads.filter(({ lead }) => /\p{L}[^:]{0,40}:/u.test(lead)).length >= 2
  const records = leads.flatMap(({ lead, figures }): TaskRecord[] => {
    const labels = lead.split(/:\s?/).filter((piece) => /\p{L}/u.test(piece))
    const name = ((isLabelled ? labels[0] : labels.at(-1)) ?? '')
      .replace(/^[^\p{L}]+/u, '')
      .replace(/[^\p{L}\d]{1,20}$/u, '')
      .toLowerCase()
    return name && name.split(/\s+/).length <= 4 && name.length <= MAX_NAME ? [{ name, figures }] : []
  })
  return withoutShared(withoutShared(records, 'start'), 'end')
}

/** "Field North, field Mill", "Nori price, Tofu price": the word that all have is no part of the name. */
function withoutShared(records: readonly TaskRecord[], side: 'start' | 'end'): TaskRecord[] {
  const words = records.map(({ name }) => name.split(' '))
  const wordOf = (own: readonly string[]) => (own.length > 1 ? own.at(side === 'start' ? 0 : -1) : undefined)
  const shared = wordOf(words[0] ?? [])
  // One of the names may stand without it.
  const isShared = shared && words.filter((own) => wordOf(own) === shared).length >= Math.max(2, words.length - 1)
  return records.map(({ name, figures }, i) => ({
    name:
      isShared && wordOf(words[i]!) === shared
        ? words[i]!.slice(side === 'start' ? 1 : 0, side === 'end' ? -1 : undefined).join(' ')
        : name,
    figures,
  }))
}

/** A row of an answer: the one name in it and its figures; in a table by column, where a cell may have none. */
export type AnswerRow = { name: string; numbers: readonly TextNumber[]; cells: readonly (TextNumber | undefined)[] }

/** Rows of tables, lines of lists or clauses that name exactly one of the records; numbers of lists and ranks are no figures. */
export function answerRows(text: string, names: readonly string[]): AnswerRow[] {
  spendSteps(text.length * names.length)
  const lines = text.split('\n').slice(0, 200)
  const readings = [
    lines.filter((line) => line.includes('|')),
    lines.filter((line) => /^\s*(?:[-*•]|\d{1,3}[.)])\s/.test(line)),
    lines.flatMap((line) => (line.includes('|') ? [line] : line.split(/[;,.]\s|\sand\s|\sund\s/))),
  ].map((parts) => parts.flatMap((part) => readRow(part, names)))
  const isWhole = (rows: readonly AnswerRow[]) =>
    rows.length >= Math.max(2, names.length - 1) && new Set(rows.map(({ name }) => name)).size === rows.length
  return readings.find(isWhole) ?? readings.at(-1)!
}

/** "l/100 km", "per 1,000" */
const PER_FIGURE = /(?:(?<=\p{L}) ?\/|\b(?:per|je|pro|por|pour)\b) ?\d[\d.,]{0,8}/giu

function readRow(line: string, names: readonly string[]): AnswerRow[] {
  const row = line.replace(/^\s*(?:[-*•]|\d{1,3}[.)])\s/, '').replaceAll('**', '')
  const lower = row.toLowerCase()
  const named = names.filter((name) => hasName(lower, name))
  const [longest] = [...named].sort((a, b) => b.length - a.length)
  if (!longest || row.length >= 200 || named.some((name) => !longest.includes(name))) return []
  const rest = row.slice(lower.indexOf(longest) + longest.length).replaceAll(PER_FIGURE, ' ')
  const numbers = readNumbers(rest)
  const cells = row.includes('|')
    ? rest
        .split('|')
        .slice(1)
        .map((cell) => {
          const [number, ...others] = readNumbers(cell)
          return others.length === 0 ? number : undefined
        })
    : numbers
  return numbers.length > 0 ? [{ name: longest, numbers, cells }] : []
}

/** Whether a name stands in a text as words of their own. */
export function hasName(text: string, name: string): boolean {
  if (name === '') return false
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + name.length))
    if (!/[\p{L}\d]/u.test(text[at - 1] ?? ' ') && !/[\p{L}\d]/u.test(text[at + name.length] ?? ' ')) return true
  return false
}
