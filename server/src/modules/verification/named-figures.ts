import { sumOf } from './answer-numbers.ts'
import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { hasTwoNumbers, isRoughIn, readNumbers, standsFor, type TextNumber } from './numbers.ts'
import { type AnswerRow, answerRows, recordsOf, type TaskRecord } from './records.ts'
import { seriesOf } from './series.ts'
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
  if (!hasTwoNumbers(text)) return notApplicable
  const ofRecords = checkRecords(task, output, text)
  const finding = ofRecords.applies ? ofRecords : checkSeries(output, text)
  return BY_CASE.test(text) ? doubt(finding) : finding
}

/** "Bill the higher of the two": names may follow by different calculations. */
const BY_CASE =
  /\bwhichever\b|\bthe (?:higher|greater|larger|bigger|lower|smaller|lesser)\b(?! (?:the|is|are))|\bat least [$€£]?\d|\bcapped?\b|\bup to [$€£]?\d/i

/** Words after which not all of the figures count. */
const OF_SOME =
  /\b(?:without|except|exclud\w{1,4}|ignor\w{1,3}|only|cancel\w{1,5}|skip\w{0,4}|duplicates?|refund\w{0,4}|void\w{0,2}|returned|unless|if|where|after|before|since|until|above|below|more than|less than|ohne|außer|nur|sauf|sin|senza|net|minus|less)\b/i

/** Sums, means and the like of names that have any number of figures: all but one are right. */
function checkSeries(output: ReadText, text: string): Finding {
  if (OF_SOME.test(text)) return notApplicable
  for (const series of seriesOf(text)) {
    const rows = rowsOfNames(output, series)
    const formulas = AGGREGATES.map((compute) => new Map(series.map(({ name, figures }) => [name, compute(figures)])))
    for (let column = 0; column < Math.min(rows[0]?.cells.length ?? 0, 6); column++) {
      const figures = rows.flatMap(({ name, cells: { [column]: number } }) => (number ? [{ name, number }] : []))
      const wrong = findOutOfLine(figures, formulas)
      if (wrong && wrong !== 'none') return failed(outOfLine(wrong))
    }
  }
  return notApplicable
}

const AGGREGATES: readonly ((figures: readonly number[]) => number)[] = [
  sumOf,
  (figures) => sumOf(figures) / figures.length,
  (figures) => Math.max(...figures),
  (figures) => Math.min(...figures),
  (figures) => Math.max(...figures) - Math.min(...figures),
  (figures) => figures.at(-1)!,
  (figures) => figures[0]!,
]

const outOfLine = (name: string) => `The figure of ${name.slice(0, 30)} does not follow as those of the other names do.`

/** The rows of an answer that name one record each, all of one width; none where some names stand in two rows. */
function rowsOfNames(output: ReadText, records: readonly NamedFigures[]): AnswerRow[] {
  const rows = answerRows(output.raw, [...new Set(records.map(({ name }) => name))])
  const width = Math.max(0, ...rows.map(({ cells }) => cells.length))
  const names = new Set(rows.map(({ name }) => name))
  return rows.length < 2 || names.size !== rows.length || rows.some(({ cells }) => cells.length !== width) ? [] : rows
}

function checkRecords(task: ReadTask, output: ReadText, text: string): Finding {
  const all = recordsOf(text)
  const records = groupRecords(all)
  if (records.length < 2 || (records.length < all.length && OF_SOME.test(text))) return notApplicable
  // "Rent 600, rent of the garage 50": what belongs together is not read.
  if (new Set(records.map(({ name }) => name.split(' ', 1)[0])).size < records.length) return notApplicable
  const rows = rowsOfNames(output, records)
  if (rows.length === 0) return notApplicable
  const width = rows[0]!.cells.length
  const names = new Set(rows.map(({ name }) => name))
  const named = records.filter(({ name }) => names.has(name))
  const shared = sharedFigures(task, named)
  const percents = readNumbers(task.full.raw).flatMap(({ isPercent, values }) => (isPercent ? values.slice(0, 1) : []))
  const formulas = [
    ...formulasOf(records, shared, percents),
    // "A pool of 540, split by hours": the pool is no name.
    ...(named.length < records.length ? formulasOf(named, shared, percents) : []),
    ...stepsOf(records),
  ]
  const steps = STEPWISE.test(task.full.raw) ? stepsOf(records)[0] : undefined
  let isExplained = false
  for (let column = 0; column < Math.min(width, 6); column++) {
    const figures = rows.flatMap(({ name, cells: { [column]: number } }) => (number ? [{ name, number }] : []))
    const wrong = findOutOfLine(figures, formulas)
    const isChange = steps && wrong !== 'none' && figures.every(({ number }) => number.isPercent)
    if (isChange && figures.some(({ name, number }) => steps.has(name) && !isShownBy(number, steps.get(name)!)))
      return failed('The change from one figure to the next is not right.')
    if (wrong === 'none') isExplained = true
    else if (wrong) return failed(outOfLine(wrong))
  }
  if (isExplained && names.size === records.length && isTotalWrong(task, output, rows))
    return failed('The total is not the sum of the figures of the names.')
  return isExplained ? passed : notApplicable
}

const TOTAL_FIGURE =
  /(?:^|[\n,;.(] ?|\band )(?:[-*•|] ?)?(?:the |in |grand |overall )?(?:total|sum|altogether|together|summe|gesamt|insgesamt|zusammen)\b[^\d\n,;.]{0,24}(\d[\d.,]{0,14})(?!\d| ?%)/giu

/** The task wants a total, and the one of the answer is the sum of no column. */
function isTotalWrong(task: ReadTask, output: ReadText, rows: readonly AnswerRow[]): boolean {
  const [claim, ...others] = [...output.raw.replaceAll('**', '').matchAll(TOTAL_FIGURE)]
  const [total] = claim ? readNumbers(claim[1]!) : []
  if (
    !total ||
    others.length > 0 ||
    RATIO.test(task.full.raw) ||
    !/\b(?:totals?|sum|altogether|together|summe|gesamt\w{0,5}|insgesamt|zusammen)\b/i.test(task.full.raw)
  )
    return false
  return rows[0]!.cells.every((_, column) => {
    const figures = rows.map(({ cells }) => cells[column])
    if (figures.some((figure) => figure?.isPercent)) return false
    const sum = sumOf(figures.map((figure) => figure?.values[0] ?? Number.NaN))
    // Each part may be rounded.
    const slack = 0.5 * 10 ** -Math.min(...figures.map((figure) => figure?.decimals ?? 0)) * rows.length
    return !(Math.abs(total.values[0]! - sum) <= slack)
  })
}

const STEPWISE =
  /\b(?:month|year|week|quarter|day)[- ](?:over|on|to|by)[- ](?:month|year|week|quarter|day)\b|\b(?:mom|yoy|qoq)\b|\b(?:previous|prior|preceding) (?:month|year|week|quarter|day|one|row)\b|\bvor(?:monat|jahr|quartal|woche)\w{0,2}\b/i

/** The change of each name against the one before it, in percent and as a difference, where each has one figure. */
function stepsOf(records: readonly NamedFigures[]): Formula[] {
  if (records.some(({ figures }) => figures.length !== 1)) return []
  const pairs = records
    .slice(1)
    .map(({ name, figures }, i) => ({ name, to: figures[0]!, from: records[i]!.figures[0]! }))
  return [
    new Map(pairs.map(({ name, from, to }) => [name, (100 * (to - from)) / from])),
    new Map(pairs.map(({ name, from, to }) => [name, to - from])),
  ]
}

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

/** Ratios of names do not add up to the one of all. */
const RATIO =
  /\b(?:roas|roi|ctr|cpc|cpa|rate|ratio|per (?!person|employee|head|worker|household|name|customer|item)|margin|average|avg|mean|share|speed|density|pro|je|por|par)\b|%/i

/** Formulas that can explain a column and not accuse a figure in it. */
const weak = new WeakSet<Formula>()

function formulasOf(
  records: readonly NamedFigures[],
  shared: readonly number[],
  percents: readonly number[],
): Formula[] {
  const width = records[0]!.figures.length
  const formulas: Formula[] = []
  const add = (compute: (figures: readonly number[]) => number, isWeak = false) => {
    const formula = new Map(records.map(({ name, figures }) => [name, compute(figures)]))
    formulas.push(formula)
    if (isWeak) weak.add(formula)
  }
  const totals = records[0]!.figures.map((_, column) => sumOf(records.map(({ figures }) => figures[column]!)))
  for (let i = 0; i < width; i++) {
    add((f) => f[i]!)
    add((f) => (100 * f[i]!) / totals[i]!)
    for (const x of [...shared, ...CONSTANTS]) {
      // Where a name has several figures, one of them and a number of ours fit by chance.
      const isWeak = width > 2 && !shared.includes(x)
      add((f) => f[i]! * x, isWeak)
      add((f) => f[i]! / x, isWeak)
      add((f) => x / f[i]!, isWeak)
    }
    for (const x of shared) {
      add((f) => f[i]! + x)
      add((f) => Math.abs(f[i]! - x))
      add((f) => (f[i]! * x) / 100)
      add((f) => f[i]! * (1 - x / 100))
      add((f) => f[i]! * (1 + x / 100))
      add((f) => (f[i]! / totals[i]!) * x)
      add((f) => (100 * (f[i]! - x)) / x)
      add((f) => 100 * (1 - f[i]! / x))
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
  if (width === 3) {
    add((f) => f[0]! * f[1]! * f[2]!)
    for (let k = 0; k < 3; k++) {
      add((f) => (f[0]! * f[1]! * f[2]!) / f[k]! ** 2)
      add((f) => (sumOf(f) - f[k]!) / f[k]!, true)
      add((f) => f[k]! ** 2 / (f[0]! * f[1]! * f[2]!), true)
    }
  }
  if (width > 2) {
    add(sumOf)
    add((f) => sumOf(f) / f.length)
    add((f) => Math.max(...f) - Math.min(...f))
    add((f) => Math.max(...f))
    add((f) => Math.min(...f))
  }
  return formulas
}

type ColumnFigure = { name: string; number: TextNumber }

/** Of a column the one name whose figure no formula explains, where one formula explains all the others; 'none' where one explains all. */
function findOutOfLine(column: readonly ColumnFigure[], formulas: readonly Formula[]): string | undefined {
  let wrong: string | undefined
  for (const formula of formulas) {
    // The first of several has nothing before it that it could have changed from.
    const figures = column.filter(({ name }) => formula.has(name))
    const fits = ({ name, number }: ColumnFigure) => {
      const value = formula.get(name)!
      return Number.isFinite(value) && isShownBy(number, value)
    }
    if (figures.length < 2 || figures.length < column.length - 1) continue
    const misses = figures.filter((figure) => !fits(figure))
    if (misses.length === 0) return 'none'
    if (weak.has(formula)) continue
    // Ranks and small counts fit a formula by chance.
    const isPrecise = figures.every(({ number }) => number.decimals > 0 || Math.abs(number.values[0]!) >= 10)
    // Two small whole figures fit one of so many formulas by chance too.
    const isEnough = figures.length > MIN_ROWS || figures.some(({ number }) => isLong(number))
    if (misses.length === 1 && isPrecise && isEnough && figures.length >= MIN_ROWS) wrong ??= misses[0]!.name
    // Each figure is there, with another name.
    const isSwapped =
      misses.length === 2 &&
      fits({ ...misses[0]!, name: misses[1]!.name }) &&
      fits({ ...misses[1]!, name: misses[0]!.name })
    if (isSwapped && isPrecise) wrong ??= misses[0]!.name
  }
  return wrong
}

const isLong = ({ decimals, isPercent, values: [value] }: TextNumber) =>
  isPercent || decimals > 0 || Math.abs(value!) >= 100

const isShownBy = (number: TextNumber, value: number) =>
  standsFor(number, value, isRoughIn(number.text, number)) ||
  Math.abs(Math.abs(number.values[0]!) - Math.abs(value)) <= 0.5000001 * 10 ** -number.decimals
