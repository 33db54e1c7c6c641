import { sumOf } from './answer-numbers.ts'
import { type Finding, failed, notApplicable, passed } from './finding.ts'
import { isRoughIn, readNumbers, standsFor, type TextNumber } from './numbers.ts'
import { type AnswerRow, answerRows, recordsOf, type TaskRecord } from './records.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'

const CONSTANTS = [2, 4, 7, 10, 12, 24, 30, 52, 60, 100, 365, 1_000]
const MIN_ROWS = 3

/**
 * Figures of an answer in a column or a list, one for each name of the task. Where one calculation with the figures of a
 * name gives all of them but one, that one is wrong; where none does, nothing is said.
 */
export function checkNamedFigures(task: ReadTask, output: ReadText): Finding {
  if (task.code || task.is.creative || task.agentId.startsWith('coder')) return notApplicable
  const text = [task.full.raw, ...task.context].join('\n')
  const records = groupRecords(recordsOf(text))
  if (records.length < 2) return notApplicable
  const rows = answerRows(output.raw, [...new Set(records.map(({ name }) => name))])
  const width = rows[0]?.numbers.length ?? 0
  const names = new Set(rows.map(({ name }) => name))
  if (rows.length < 2 || names.size !== rows.length || rows.some(({ numbers }) => numbers.length !== width))
    return notApplicable
  const shared = sharedFigures(task, records)
  const percents = readNumbers(task.full.raw).flatMap(({ isPercent, values }) => (isPercent ? values.slice(0, 1) : []))
  const formulas = formulasOf(records, shared, percents)
  const steps = STEPWISE.test(task.full.raw) ? changesOf(records) : undefined
  const isStepWrong =
    steps &&
    rows.every(({ numbers }) => numbers.length === 1 && numbers[0]!.isPercent) &&
    rows.some(({ name, numbers }) => steps.has(name) && !isShownBy(numbers[0]!, steps.get(name)!))
  if (isStepWrong) return failed('The change from one figure to the next is not right.')
  let isExplained = false
  for (let column = 0; column < Math.min(width, 6); column++) {
    const wrong = findOutOfLine(rows, column, formulas)
    if (wrong === 'none') isExplained = true
    else if (wrong)
      return failed(`The figure of ${wrong.name.slice(0, 30)} does not follow as those of the other names do.`)
  }
  return isExplained ? passed : notApplicable
}

const STEPWISE =
  /\b(?:month|year|week|quarter|day)[- ](?:over|on|to)[- ](?:month|year|week|quarter|day)\b|\b(?:mom|yoy|qoq)\b/i

/** The change in percent of each name against the one before it, where each has one figure. */
const changesOf = (records: readonly NamedFigures[]): Map<string, number> =>
  new Map(
    records.flatMap(({ name, figures }, i) => {
      const before = records[i - 1]?.figures[0]
      return before && figures.length === 1 ? [[name, (100 * (figures[0]! - before)) / before] as const] : []
    }),
  )

type NamedFigures = { name: string; figures: readonly number[] }

/** The figures of names that stand in several rows are added up, column by column. */
function groupRecords(records: readonly TaskRecord[]): NamedFigures[] {
  const groups = new Map<string, number[][]>()
  for (const { name, figures } of records) groups.set(name, [...(groups.get(name) ?? []), [...figures]])
  return [...groups].map(([name, rows]) => ({
    name,
    figures: rows[0]!.map((_, column) => sumOf(rows.map((row) => row[column]!))),
  }))
}

/** Figures of the task that belong to no name: a rate, a price for all. */
const sharedFigures = (task: ReadTask, records: readonly NamedFigures[]): number[] => {
  const owned = new Set(records.flatMap(({ figures }) => figures))
  return [...new Set(readNumbers(task.full.raw).flatMap(({ values }) => values.slice(0, 1)))]
    .filter((value) => !owned.has(value) && value !== 0)
    .slice(0, 8)
}

/** One way to compute a figure for each name. */
type Formula = ReadonlyMap<string, number>

function formulasOf(
  records: readonly NamedFigures[],
  shared: readonly number[],
  percents: readonly number[],
): Formula[] {
  const width = records[0]!.figures.length
  const formulas: Formula[] = []
  const add = (compute: (figures: readonly number[]) => number) =>
    formulas.push(new Map(records.map(({ name, figures }) => [name, compute(figures)])))
  const totals = records[0]!.figures.map((_, column) => sumOf(records.map(({ figures }) => figures[column]!)))
  for (let i = 0; i < width; i++) {
    add((f) => f[i]!)
    add((f) => (100 * f[i]!) / totals[i]!)
    for (const x of [...shared, ...CONSTANTS]) {
      add((f) => f[i]! * x)
      add((f) => f[i]! / x)
      add((f) => x / f[i]!)
    }
    for (const x of shared) {
      add((f) => f[i]! + x)
      add((f) => Math.abs(f[i]! - x))
      add((f) => (f[i]! * x) / 100)
      add((f) => f[i]! * (1 - x / 100))
      add((f) => f[i]! * (1 + x / 100))
      add((f) => (f[i]! / totals[i]!) * x)
      add((f) => (100 * (f[i]! - x)) / x)
    }
    for (let j = 0; j < width; j++) {
      if (i === j) continue
      add((f) => f[i]! + f[j]!)
      add((f) => Math.abs(f[i]! - f[j]!))
      add((f) => f[i]! * f[j]!)
      add((f) => f[i]! / f[j]!)
      add((f) => (100 * f[i]!) / f[j]!)
      add((f) => (100 * (f[i]! - f[j]!)) / f[j]!)
      add((f) => f[i]! + f[j]! / 60)
      add((f) => f[i]! * 60 + f[j]!)
      add((f) => (f[i]! * f[j]!) / 100)
      add((f) => f[i]! * (1 - f[j]! / 100))
    }
  }
  const weights = percents.length === width && Math.abs(sumOf(percents) - 100) < 0.01 ? percents : undefined
  if (weights) add((f) => sumOf(f.map((value, i) => (value * weights[i]!) / 100)))
  if (width > 2) {
    add(sumOf)
    add((f) => sumOf(f) / f.length)
    add((f) => Math.max(...f) - Math.min(...f))
    add((f) => Math.max(...f))
    add((f) => Math.min(...f))
  }
  return formulas
}

/** Of a column the one row that no formula explains, where one formula explains all the others; 'none' where one explains all. */
function findOutOfLine(
  rows: readonly AnswerRow[],
  column: number,
  formulas: readonly Formula[],
): AnswerRow | 'none' | undefined {
  const fits = ({ name, numbers }: AnswerRow, formula: Formula) => {
    const value = formula.get(name)
    return value !== undefined && Number.isFinite(value) && isShownBy(numbers[column]!, value)
  }
  let wrong: AnswerRow | undefined
  for (const formula of formulas) {
    const misses = rows.filter((row) => !fits(row, formula))
    if (misses.length === 0) return 'none'
    // Ranks and small counts fit a formula by chance.
    const isPrecise = rows.every(
      ({ numbers }) => numbers[column]!.decimals > 0 || Math.abs(numbers[column]!.values[0]!) >= 10,
    )
    // Two small whole figures fit one of so many formulas by chance too.
    const isEnough = rows.length > MIN_ROWS || rows.some(({ numbers }) => isLong(numbers[column]!))
    if (misses.length === 1 && isPrecise && isEnough && rows.length >= MIN_ROWS) wrong ??= misses[0]
    // Each figure is there, with another name.
    const isSwapped =
      misses.length === 2 &&
      fits({ ...misses[0]!, name: misses[1]!.name }, formula) &&
      fits({ ...misses[1]!, name: misses[0]!.name }, formula)
    if (isSwapped && isPrecise) wrong ??= misses[0]
  }
  return wrong
}

const isLong = ({ decimals, isPercent, values: [value] }: TextNumber) =>
  isPercent || decimals > 0 || Math.abs(value!) >= 100

const isShownBy = (number: TextNumber, value: number) =>
  standsFor(number, value, isRoughIn(number.text, number)) ||
  Math.abs(Math.abs(number.values[0]!) - Math.abs(value)) <= 0.5000001 * 10 ** -number.decimals
