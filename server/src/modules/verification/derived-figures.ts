import { spendSteps } from '../../platform/step-budget.ts'
import { type Answer, sumOf } from './answer-numbers.ts'
import { datasetsOf } from './datasets.ts'
import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { isRoughIn, readNumbers, standsFor, type TextNumber } from './numbers.ts'
import type { ReadTask } from './task.ts'

/** What only a formula, a model of the future or knowledge of the world gives. */
const ADVANCED =
  /\b(?:forecast\w{0,3}|regression|correlat\w{1,5}|deviation|npv|irr|variance|percentile|quartile|confidence|probability|cagr|present value|mortgage|annuity|borrow|loans?|instal\w{1,5}|repay\w{0,5}|monthly payments?|compounding|trend|rank|estimate|assum\w{1,5}|typical\w{0,2}|inflation|exchange|significan\w{1,3}|p-value|index|weighted|moving|rolling|plan|options|ideas?|suggest|allocate|budget|split|generate|invent|template|example|draft a|bmi|calories|normali[sz]e|z-?scores?|growth rate per)\b/i
const COMPUTING =
  /\b(?:sum|total|average|mean|how (?:much|many|long|big|far|fast)|calculate|compute|percent(?:age)?|difference|profit|margin|revenue|cost|costs|price|pay|payback|break-?even|runway|save|savings|cheaper|refund|discount|vat|tax|gross|net|interest|compound\w{0,3}|rate|rates|per|share|ratio|change|growth|drop|increase|decrease|consumption|extra|balance|left|remaining|amount|owe|bill|tip|worth|return|roi|conversion|wie viele?|summe|durchschnitt|berechne|brutto|netto|mehrwertsteuer|rabatt|combien|moyenne|somme|tva|remise|cuánto|promedio|descuento|iva|quanto|media|sconto|合計|计算|多少|сколько|hoeveel|totaal|quanta|quantos?|cuántos?|cuántas?)\b|%/iu
const COMPARES =
  /\b(?:cheaper|how much|break-?even|payback|save|savings|total cost|costs? more|günstiger|hoeveel|combien|cuánto|quanto|wie viel)\b/i
/** Figures that no sum or product gives: an answer with a table of statistics has them beside what was asked. */
const STATISTIC =
  /\b(?:std|deviations?|variance|quartiles?|Q1|Q3|percentiles?|slope|regression|correlation|confidence)\b/i
const SMALL = 13
const MAX_BASE = 12
const MAX_CANDIDATES = 24
const MAX_SEEN = 40

/** Figures of the answer follow from those of the task by a few operations, or from figures that it computed before. */
export function checkDerived(task: ReadTask, answer: Answer): Finding {
  const text = [task.full.raw, ...task.context].join('\n')
  if (
    !(
      /^(?:analyst|default|support)/.test(task.agentId) ||
      (task.agentId.startsWith('strategist') && COMPARES.test(task.request))
    ) ||
    !(COMPUTING.test(task.request) || /合計|计算|多少/.test(task.request)) ||
    ADVANCED.test(text) ||
    STATISTIC.test(answer.text) ||
    task.code ||
    task.is.creative ||
    task.is.translation ||
    task.is.summary ||
    task.is.extraction
  )
    return notApplicable
  const taskNumbers = readNumbers(text, { words: true })
  const base = [...new Set(taskNumbers.flatMap(({ values }) => values.slice(0, 2)).map(Math.abs))].slice(
    0,
    MAX_BASE + 1,
  )
  if (taskNumbers.length < 2 || base.length < 2 || base.length > MAX_BASE) return notApplicable
  const isGiven = (number: TextNumber) =>
    taskNumbers.some(({ values }) => values.some((value) => standsFor(number, value))) || text.includes(number.text)
  const candidates = answer.numbers.filter(
    (number) =>
      !number.isWord &&
      (Math.abs(number.values[0]!) >= SMALL || number.decimals > 0) &&
      !/^(?:19|20)\d\d$/.test(number.text) &&
      !isRoughIn(answer.text, number) &&
      !/[A-Za-z]$/.test(answer.text.slice(Math.max(0, number.start - 1), number.start)) &&
      !/^[⁰¹²³⁴⁵⁶⁷⁸⁹]/.test(answer.text.slice(number.end, number.end + 1)) &&
      !isGiven(number),
  )
  if (candidates.length === 0 || candidates.length > MAX_CANDIDATES) return notApplicable
  const constants = [
    ...(/month|year|annual|monat|jahr|mois|año|mes/i.test(text) ? [12] : []),
    ...(/week/i.test(text) ? [52, 4, 7] : []),
    ...(/\bday/i.test(text) ? [7, 30, 365] : []),
    ...(/hour|minute|\bh\b|min\b|km\/h|mph/i.test(text) ? [60, 24] : []),
    ...(/kwh|kw\b|ml\b|gram|\bg\b|\bm\b|litre|cent|¢|mb\b|gb\b/i.test(text) ? [1_000, 100] : []),
    ...(/quarter/i.test(text) ? [4, 3] : []),
    ...(/dozen/i.test(text) ? [12] : []),
    1,
    2,
    100,
  ]
  // Of two figures alone nearly every number follows in two steps.
  const twice =
    taskNumbers.length <= 2
      ? productsOf(base, constants)
      : combineTwice(base, [...new Set([...base, ...constants])].slice(0, MAX_BASE + 4), taskNumbers)
  const derivedValues = [...new Set([...base, ...constants])]
  const computed: number[] = []
  const totals = datasetsOf(task).flatMap((values) => [sumOf(values), sumOf(values) / values.length])
  // What follows from small figures of the answer ("8 legs each") and from what was found to follow, in any order.
  for (const number of answer.numbers)
    if (Math.abs(number.values[0]!) < SMALL || isRoughIn(answer.text, number))
      derivedValues.push(Math.abs(number.values[0]!))
  const sharesOfTotals = totals.flatMap((total) => base.map((value) => (100 * value) / total))
  let open = candidates
  while (open.length > 0) {
    const once = combinations(derivedValues.slice(0, MAX_SEEN), derivedValues.slice(0, MAX_SEEN))
    const lists = [once, twice, totals, sharesOfTotals, windowSums(computed)]
    const isOpen = (number: TextNumber) =>
      !lists.some((values) => values.some((value) => standsFor(number, value) || isPercentOf(number, value)))
    const left = open.filter(isOpen)
    if (left.length === open.length) return doubt(failed(`${left[0]!.text} does not follow from the figures given.`))
    for (const number of open) if (!left.includes(number)) computed.push(Math.abs(number.values[0]!))
    derivedValues.push(...computed)
    open = left
  }
  return passed
}

/** "30 × 24 × 60": a figure given times two constants. */
const productsOf = (base: readonly number[], constants: readonly number[]) =>
  base.flatMap((a) => constants.flatMap((b) => constants.map((c) => a * b * c)))

/** Sums of figures that were computed one after the other, as in the column of a table. */
function windowSums(values: readonly number[]): number[] {
  const sums: number[] = []
  for (let start = 0; start < values.length; start++) {
    let sum = 0
    for (let end = start; end < values.length; end++) {
      sum += values[end]!
      sums.push(sum)
    }
  }
  return sums
}

const isPercentOf = (number: TextNumber, value: number) =>
  number.isPercent &&
  [value, value * 100].some(
    (percent) => Math.abs(Math.abs(number.values[0]!) - Math.abs(percent)) <= 0.5000001 * 10 ** -number.decimals,
  )

/** Sums, differences, products, quotients, percentages and powers of growth of two figures. */
function combinations(left: readonly number[], right: readonly number[]): number[] {
  spendSteps(left.length * right.length * 12)
  const values: number[] = []
  for (const a of left)
    for (const b of right) {
      values.push(a + b, Math.abs(a - b), a * b, (a * b) / 100, a * (1 + b / 100), a * (1 - b / 100))
      if (b !== 0) values.push(a / b, (100 * a) / b, (100 * (a - b)) / b)
      if (b !== 0 && b < 100) values.push(a / (1 + b / 100), a / (1 - b / 100))
      if (Number.isInteger(b) && b >= 2 && b <= 60 && a > 0 && a < 100)
        values.push((1 + a / 100) ** b, (1 - a / 100) ** b)
    }
  return values
}

/** Two operations one after the other, sums of products, and the sum and the mean of all. */
function combineTwice(
  base: readonly number[],
  others: readonly number[],
  taskNumbers: readonly TextNumber[],
): number[] {
  const once = [...new Set(combinations(base, others).map((value) => Math.round(value * 1e6) / 1e6))]
  const all = taskNumbers.map(({ values }) => values[0]!)
  const figures = taskNumbers.filter(({ isWord }) => !isWord).map(({ values }) => values[0]!)
  const products: number[] = []
  for (let i = 0; i + 1 < figures.length; i += 2) products.push(figures[i]! * figures[i + 1]!)
  spendSteps(once.length * others.length * 8)
  const twice = [...once, sumOf(all), sumOf(all) / Math.max(1, all.length), sumOf(products), sumOf(all.slice(1))]
  for (const a of once)
    for (const b of others) {
      twice.push(a + b, a - b, b - a, a * b, (a * b) / 100, a * (1 + b / 100), a * (1 - b / 100))
      if (b !== 0) twice.push(a / b, (100 * a) / b, (100 * (a - b)) / b)
      if (a !== 0) twice.push(b / a, (100 * b) / a)
    }
  const pairs = products.length <= 8 ? products : []
  for (const a of pairs) for (const b of pairs) twice.push(a + b, Math.abs(a - b))
  return twice
}
