import { type Answer, shows, sumOf } from './answer-numbers.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { readNumbers, standsFor } from './numbers.ts'
import { recordsOf } from './records.ts'
import type { ReadTask } from './task.ts'

/** Calculations whose rate, weights or rule the task gives. */
export const checkGivenRates = (task: ReadTask, answer: Answer): Finding =>
  task.code || task.is.creative
    ? notApplicable
    : combine([
        checkRate(task, answer),
        checkWeights(task, answer),
        checkOutliers(task, answer),
        checkCorrelation(task, answer),
      ])

const RATE = /\b1 ?(\p{L}{1,12})\s?(?:=|is|equals|≈|are|entspricht|sind)\s?(\d[\d.,]{0,12}) ?(\p{L}{1,12}|[€$£])/iu

/** "1 USD = 0.92 EUR. Convert 3,450 USD": each amount in one unit, times the rate, is in the answer. */
function checkRate(task: ReadTask, answer: Answer): Finding {
  const text = task.full.raw.slice(0, 3_000)
  const match = RATE.exec(text)
  const rate = match ? readNumbers(match[2]!)[0]?.values[0] : undefined
  if (!match || !rate || answer.numbers.length === 0) return notApplicable
  const rest = `${text.slice(0, match.index)}${' '.repeat(match[0].length)}${text.slice(match.index + match[0].length)}`
  const [from, to] = [match[1]!.toLowerCase(), match[3]!.toLowerCase()]
  const unitAfter = (end: number) => /^\s?(\p{L}{1,12}|[€$£])/u.exec(rest.slice(end, end + 14))?.[1]?.toLowerCase()
  const amounts = readNumbers(rest).map((number) => ({ value: number.values[0]!, unit: unitAfter(number.end) }))
  const expected = amounts.flatMap(({ value, unit }) =>
    unit === from ? [value * rate] : unit === to ? [value / rate] : [],
  )
  if (expected.length === 0 || expected.length > 30 || amounts.length !== expected.length) return notApplicable
  if (!/\b(?:convert|conversion|in|into|to|how (?:much|many)|umrechn\w{0,4}|rechne)\b/i.test(text)) return notApplicable
  const isShown = (value: number) =>
    shows(answer, value) ||
    answer.numbers.some(
      (number) => Math.abs(number.values[0]! - value) <= Math.max(0.5000001 * 10 ** -number.decimals, 0.0005 * value),
    )
  return expected.every(isShown) || (expected.length > 1 && shows(answer, sumOf(expected)))
    ? passed
    : failed('A conversion with the rate given is not right.')
}

/** "Weighted average": values and weights stand in pairs. */
function checkWeights(task: ReadTask, answer: Answer): Finding {
  if (
    !/\bweight(?:ed|s|ing|ings)?\b|\bgewichtet\w{0,3}\b|\bpondéré\w?\b|\bponderad[ao]\b/i.test(task.full.raw) ||
    !/\baverage|\bmean\b|\bscore|\bgrade|durchschnitt|moyenne|media|promedio|schnitt/i.test(task.full.raw)
  )
    return notApplicable
  const records = recordsOf(task.full.raw)
  if (records.length < 2 || records.some(({ figures }) => figures.length !== 2) || answer.numbers.length === 0)
    return notApplicable
  const weighted = (value: 0 | 1, weight: 0 | 1) =>
    sumOf(records.map(({ figures }) => figures[value]! * figures[weight]!)) /
    sumOf(records.map(({ figures }) => figures[weight]!))
  const [first, second] = [weighted(0, 1), weighted(1, 0)]
  return shows(answer, first) || shows(answer, second) ? passed : failed('The weighted average is not right.')
}

const seriesOf = (text: string): number[][] =>
  text
    .split(/[;\n:]|\.\s/)
    .map((part) => readNumbers(part).map(({ values }) => values[0]!))
    .filter(({ length }) => length >= 3)

/** A value far outside all others is named where outliers are asked for. */
function checkOutliers(task: ReadTask, answer: Answer): Finding {
  if (
    !/\boutliers?\b|\bausreißer\b|\bvaleurs? aberrantes?\b/i.test(task.request) ||
    /\bwithout|\bremov|\bexclud/i.test(task.request)
  )
    return notApplicable
  const [values, ...others] = seriesOf(task.full.raw)
  if (!values || others.length > 0 || values.length < 5) return notApplicable
  const middle = (list: readonly number[]) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)]!
  const median = middle(values)
  const spread = middle(values.map((value) => Math.abs(value - median)))
  const outliers = values.filter((value) => Math.abs(value - median) > 12 * Math.max(spread, Math.abs(median) * 0.005))
  if (outliers.length === 0) return notApplicable
  return outliers.every((value) => answer.numbers.some((number) => standsFor(number, value)))
    ? passed
    : failed('It leaves out a value far from all others.')
}

/** The sign of the correlation of two series that rise together, or against each other. */
function checkCorrelation(task: ReadTask, answer: Answer): Finding {
  if (!/\bcorrelat\w{1,5}\b|\bkorrelation\b/i.test(task.request)) return notApplicable
  const [a, b, ...others] = seriesOf(task.full.raw)
  if (!a || !b || others.length > 0 || a.length !== b.length) return notApplicable
  const [meanA, meanB] = [sumOf(a) / a.length, sumOf(b) / b.length]
  const covariance = sumOf(a.map((value, i) => (value - meanA) * (b[i]! - meanB)))
  const size = Math.sqrt(sumOf(a.map((value) => (value - meanA) ** 2)) * sumOf(b.map((value) => (value - meanB) ** 2)))
  if (size === 0 || Math.abs(covariance / size) < 0.5) return notApplicable
  const [saysPositive, saysNegative] = [
    /\bpositive?\b|\bpositiv/i.test(answer.text),
    /\bnegative?\b|\bnegativ/i.test(answer.text),
  ]
  if (saysPositive === saysNegative) return notApplicable
  return saysPositive === covariance > 0 ? passed : failed('The correlation has the other sign.')
}
