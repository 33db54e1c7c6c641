import { spendSteps } from '../../platform/step-budget.ts'
import { readNumbers, type TextNumber } from './numbers.ts'

/** A name of the task and the figures that stand with it, in their order. */
export type TaskRecord = { name: string; figures: readonly number[] }

const MAX_RECORDS = 40
const MAX_FIGURES = 8
const MAX_NAME = 40

/** Rows of a table, lines, clauses: "Ridge 8.5 km, Lake 12.0 km" and "Altus: premium 2,780, deductible 750". */
export function recordsOf(text: string): TaskRecord[] {
  spendSteps(text.length * 8)
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

const hasOneShape = (records: readonly TaskRecord[]) =>
  new Set(records.map(({ figures }) => figures.length)).size === 1 && records.length <= MAX_RECORDS

const firstValue = ({ values }: TextNumber) => values[0]!

/** Rows with the same marks between their cells; a name stands for each cell of letters. */
function rowsOf(text: string): TaskRecord[] {
  const lines = text.split('\n').slice(0, 200)
  for (const mark of ['|', ';', '\t', ',']) {
    const rows = lines
      .map((line) =>
        line
          .replace(/^\s*\||\|\s*$/g, '')
          .split(mark)
          .map((cell) => cell.trim()),
      )
      .filter((cells) => cells.length >= 2 && !cells.every((cell) => /^[:\s-]*$/.test(cell)))
    const width = rows.at(-1)?.length ?? 0
    const isTable = rows.length >= 3 && rows.every((cells) => cells.length === width)
    if (!isTable || (mark === ',' && lines.some((line) => line.includes(', ')))) continue
    const records = rows.slice(1).flatMap((cells): TaskRecord[] => {
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

/** The name is what stands in front of the first figure; with a colon in several parts, what stands in front of that. */
function readRecords(parts: readonly string[]): TaskRecord[] {
  const leads = parts.slice(0, 200).flatMap((part) => {
    const numbers = readNumbers(part)
      .filter(
        ({ start }) =>
          !/[\p{L}_]/u.test(part[start - 1] ?? ' ') || /\dh$/.test(part.slice(Math.max(0, start - 2), start)),
      )
      .slice(0, MAX_FIGURES)
    return numbers.length > 0 ? [{ lead: part.slice(0, numbers[0]!.start), figures: numbers.map(firstValue) }] : []
  })
  const isLabelled = leads.filter(({ lead }) => /\p{L}[^:]{0,40}:/u.test(lead)).length >= 2
  const records = leads.flatMap(({ lead, figures }): TaskRecord[] => {
    const labels = lead.split(/:\s?/).filter((piece) => /\p{L}/u.test(piece))
    const name = ((isLabelled ? labels[0] : labels.at(-1)) ?? '')
      .replace(/^[^\p{L}]+/u, '')
      .replace(/[^\p{L}\d]{1,20}$/u, '')
      .toLowerCase()
    return name && name.split(/\s+/).length <= 4 && name.length <= MAX_NAME ? [{ name, figures }] : []
  })
  // "Field North, field Mill": the word that all have is no part of the name.
  const first = `${records[0]?.name.split(' ', 1)[0]} `
  const isShared = records.length >= 2 && records.every(({ name }) => name.startsWith(first))
  return isShared ? records.map(({ name, figures }) => ({ name: name.slice(first.length), figures })) : records
}

/** A row of an answer: the one name in it and its figures. */
export type AnswerRow = { name: string; numbers: readonly TextNumber[] }

/** Rows of tables and lines of lists that name exactly one of the records; numbers of lists and ranks are no figures. */
export function answerRows(text: string, names: readonly string[]): AnswerRow[] {
  spendSteps(text.length * names.length)
  return text
    .split('\n')
    .slice(0, 200)
    .flatMap((line) => (line.includes('|') ? [line] : line.split(/[;,.]\s|\sand\s/)))
    .flatMap((line): AnswerRow[] => {
      const row = line.replace(/^\s*(?:[-*•]|\d{1,3}[.)])\s/, '').replaceAll('**', '')
      const lower = row.toLowerCase()
      const named = names.filter((name) => hasName(lower, name))
      const [longest] = [...named].sort((a, b) => b.length - a.length)
      if (!longest || named.some((name) => !longest.includes(name))) return []
      const at = lower.indexOf(longest)
      const rest = `${' '.repeat(at + longest.length)}${row.slice(at + longest.length)}`
      const numbers = readNumbers(rest)
      return numbers.length > 0 && row.length < 200 ? [{ name: longest, numbers }] : []
    })
}

/** Whether a name stands in a text as words of their own. */
export function hasName(text: string, name: string): boolean {
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + name.length))
    if (!/[\p{L}\d]/u.test(text[at - 1] ?? ' ') && !/[\p{L}\d]/u.test(text[at + name.length] ?? ' ')) return true
  return false
}
