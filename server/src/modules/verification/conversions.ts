import { type Answer, sumOf } from './answer-numbers.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { isRoughIn, readNumbers, withoutGroups, withoutRounding } from './numbers.ts'
import { findUnit, isInUnit, isSameAmount, plainUnits, type Quantity, quantitiesOf, type Unit } from './quantities.ts'
import { hasName } from './records.ts'
import type { ReadTask } from './task.ts'

/** Conversions of units, and of anything by a rate that the task gives. */
export const checkConversions = (task: ReadTask, answer: Answer): Finding =>
  task.code ? notApplicable : combine([checkUnits(task, answer), checkGivenRate(task, answer)])

const CONVERTS =
  /\b(?:convert\w{0,5}|conversions?|umrechn\w{0,4}|umwandeln|wandle|rechne\w?|umgerechnet|convertir|convierte|conversión|convertis\w{0,4}|converti|converta|converter|omrekenen|reken|express|change|turn|switch|restate)\b/i
/** The figures are not only converted. */
const COMPUTES =
  /\b(?:total|sum|altogether|in all|together|combined|per|each|every|difference|left|more|less|enough|fit|need|save|cost|costs|at|speed|pace|long|far|average|times|gesamt|zusammen|insgesamt|pro|je)\b/i
/** "The plot is 2.5 acres, how much is that in m²?" */
const THAT = /\b(?:is|are|was|ist|sind|est|es|è) (?:that|it|this|das|ce|eso)\b/i
const UNIT = '°?[\\p{L}/]{1,14}[²³23]?'
const TARGET = new RegExp(
  `(?:\\b(?:to|in|into|nach|en|em|auf|a|as|naar|how many|wie ?viele?|combien de|cuánt[oa]s|quant[ei])\\s|[=→]\\s?(?:how many\\s)?|->\\s?)(?:the |full |whole |decimal )?(${UNIT})(?![\\p{L}\\d²³])`,
  'giu',
)
const UNITS_NAMED = new RegExp(`\\b(${UNIT}) (?:to|into|in|nach|->|→) (${UNIT})(?![\\p{L}\\d²³])`, 'iu')

/** A unit beside a figure, between two units, or "how many minutes in a day": without one of them nothing is converted. */
const GIVES_UNIT = /\d[\s-]?[\p{L}°/]| (?:to|into|in|nach|->|→) |how many/iu

/** "How many minutes in a day?" */
const ONE_UNIT = /(?<=\bhow many \p{L}{1,14} (?:are |is |make )?(?:there )?(?:in)?) ?(?:an?|one) /giu

type Target = { unit: Unit; start: number; end: number; isCount: boolean }

const MAX_WORDS = 20
const MAX_WORDS_OF_LIST = 60

/** "convert 5 km to miles", "12 inches in cm?", "98.6F to C", "in metres: sofa 84 in, rug 96 in", several of them in one task. */
function checkUnits(task: ReadTask, answer: Answer): Finding {
  if (task.full.words.length > MAX_WORDS_OF_LIST || !GIVES_UNIT.test(task.full.raw)) return notApplicable
  const plain = plainUnits(withoutRounding(task.full.raw))
  const rates = ratesIn(plain)
  if (rates.map(readRate).some((rate) => rate && !isStandard(rate))) return notApplicable
  const text = (rates.length > 0 ? plain.replaceAll(RATE, ' ') : plain).replaceAll(ONE_UNIT, ' 1 ')
  const quantities = givenQuantities(text)
  if (quantities.length === 0) return notApplicable
  const targets = [...text.matchAll(TARGET)].flatMap((match): Target[] => {
    const unit = findUnit(match[1]!)
    const end = match.index + match[0].length
    return unit ? [{ unit, start: match.index, end, isCount: / (?:many|viele?|de) /i.test(` ${match[0]} `) }] : []
  })
  const isAsked = CONVERTS.test(text)
  const kinds = new Set(quantities.map(({ units }) => units[0]!.kind))
  const isList = kinds.size === 1 && (quantities.length > 1 || quantities[0]!.units.length > 1) && targets.length === 1
  const isThat = quantities.length === 1 && targets.length === 1 && THAT.test(text)
  const isFree = isAsked || ((isList || isThat) && !COMPUTES.test(text))
  if (!isFree && task.full.words.length > MAX_WORDS) return notApplicable
  const wanted = quantities.flatMap((quantity) => {
    const target = targetOf(quantity, targets, text, isFree)
    return target && (quantity.units.length > 1 || quantity.units[0]!.name !== target.unit.name)
      ? [{ quantity, unit: target.unit }]
      : []
  })
  const isOther = readNumbers(text).some(
    ({ start, values }) =>
      // "3 recipes: 325 F, 375 F and 425 F"
      values[0] !== quantities.length &&
      // The 2 of "m2".
      !/\p{L}/u.test(text[start - 1] ?? ' ') &&
      !quantities.some((quantity) => start >= quantity.start && start < quantity.end),
  )
  if (wanted.length === 0 || isOther) return notApplicable
  const shown = quantitiesOf(plainUnits(answer.text))
  const isShown = ({ quantity, unit }: { quantity: Quantity; unit: Unit }) =>
    answer.numbers.some((number) => isInUnit(number, quantity, unit, isRoughIn(answer.text, number))) ||
    shown.some(
      (other) =>
        other.units[0]!.kind === unit.kind && unitNames(other) !== unitNames(quantity) && isSameAmount(quantity, other),
    )
  return wanted.every(isShown) ? passed : failed('The conversion is not right.')
}

const unitNames = ({ units }: Quantity) => units.map(({ name }) => name).join()

/** The quantities of a task; "inches to cm: 12, 15, 20" names the unit once for all figures. */
function givenQuantities(text: string): readonly Quantity[] {
  const quantities = quantitiesOf(text)
  const named = quantities.length === 0 ? UNITS_NAMED.exec(text) : null
  const unit = named ? findUnit(named[1]!) : undefined
  if (!named || !unit || unit.kind !== findUnit(named[2]!)?.kind) return quantities
  return readNumbers(text).flatMap((number) =>
    quantitiesOf(`${text.slice(number.start, number.end)} ${named[1]}`).map((quantity) => ({
      ...quantity,
      start: number.start,
      end: number.end,
    })),
  )
}

/** The unit that follows the quantity, or else the one named before it; where nothing says "convert", it stands next to it. */
function targetOf(
  { units, start, end }: Quantity,
  targets: readonly Target[],
  text: string,
  isFree: boolean,
): Target | undefined {
  const ofKind = targets.filter(({ unit }) => unit.kind === units[0]!.kind)
  const after = ofKind.find((target) => target.start >= end)
  const before = ofKind.filter((target) => target.end <= start).at(-1)
  if (isFree) return after ?? before
  if (after && /^ ?=? ?$/.test(text.slice(end, after.start))) return after
  const gap = before?.isCount ? text.slice(before.end, start) : undefined
  return gap !== undefined &&
    /^\s?(?:(?:are |is |make |do |does |hat |haben |sind )?(?:there )?(?:in |are |is |equals? |hat |haben |sind )?(?:an? |one )?)$/i.test(
      gap,
    )
    ? before
    : undefined
}

const CURRENCIES: Readonly<Record<string, string>> = {
  $: 'usd',
  dollar: 'usd',
  '€': 'eur',
  euro: 'eur',
  '£': 'gbp',
  pound: 'gbp',
  franken: 'chf',
  franc: 'chf',
}
const CURRENCY = '[$€£]|\\p{L}{1,12}'
const RATE = new RegExp(
  `(?<![\\d.,])(?:1|one|ein) ?(${CURRENCY})\\s?(?:=|is|equals|≈|are|entspricht|sind)\\s?([$€£]?)(\\d[\\d.,]{0,12}(?<=\\d)) ?(${CURRENCY})?|([$€£]1) ?(?:=|is|equals|≈)\\s?([$€£]?)(\\d[\\d.,]{0,12}(?<=\\d)) ?(${CURRENCY})?|(?<![\\d.,])(\\d[\\d.,]{0,12}(?<=\\d)) ?([$€£]|usd|eur|gbp|chf|dollars?|euros?) (?:per|pro|to the|je) ([$€£]|usd|eur|gbp|chf|dollar|euro|pound)\\b`,
  'giu',
)

const currencyOf = (word: string) => {
  const singular = word.toLowerCase().replace(/(?<=\p{L}{2})s$/u, '')
  return CURRENCIES[singular] ?? singular
}

/** What stands between the two sides of a rate. */
const RATE_SIGN = /[=≈]|is|equals|are|entspricht|sind|per|pro|to the|je/iu

const ratesIn = (text: string): RegExpExecArray[] =>
  /\d/.test(text) && RATE_SIGN.test(text) ? [...text.matchAll(RATE)] : []

/** Whether a task gives a rate to convert with. */
export const hasRate = (text: string): boolean => ratesIn(text).length > 0

type Rate = { from: string; to: string; value: number }

function readRate(match: RegExpMatchArray): Rate | undefined {
  const [, unit, mark, digits, other, markOne, mark2, digits2, other2, perDigits, perUnit, perOne] = match
  const from = unit ?? markOne?.[0] ?? perOne
  const to = [mark, other, mark2, other2, perUnit].find(Boolean)
  const value = readNumbers((digits ?? digits2 ?? perDigits)!)[0]?.values[0]
  return from && to && value ? { from: currencyOf(from), to: currencyOf(to), value } : undefined
}

/** "1 in = 2.54 cm": the size that the units have anyway. */
function isStandard({ from, to, value }: Rate): boolean {
  const [one] = quantitiesOf(plainUnits(`1 ${from === 'in' ? 'inch' : from}`))
  const [other] = quantitiesOf(plainUnits(`${value} ${to === 'in' ? 'inch' : to}`))
  return (
    one !== undefined && other !== undefined && one.units[0]!.kind === other.units[0]!.kind && isSameAmount(one, other)
  )
}

/** "1 USD = 0.92 EUR. Convert 3,450 USD": each amount in one unit, times the rate, is in the answer. */
function checkGivenRate(task: ReadTask, answer: Answer): Finding {
  const blank = (part: string) => ' '.repeat(part.length)
  const text = withoutGroups(withoutRounding(task.full.raw.slice(0, 1_000)))
  const rates = ratesIn(text)
  const rate = rates.length === 1 ? readRate(rates[0]!) : undefined
  if (!rate || answer.numbers.length === 0) return notApplicable
  const rest = text.replaceAll(RATE, blank)
  const namesOther = [rate.from, rate.to].some((name) => hasName(rest.toLowerCase(), name))
  if (
    !namesOther &&
    !/\b(?:convert\w{0,5}|conversion|in|into|to|how (?:much|many)|umrechn\w{0,4}|rechne|en)\b/i.test(rest)
  )
    return notApplicable
  const amounts = amountsOf(rest)
  const units = new Set(amounts.map(({ unit }) => unit))
  const [unit] = units
  if (units.size !== 1 || (unit !== rate.from && unit !== rate.to) || rate.from === rate.to) return notApplicable
  // "1 in = 2.54 cm" where metres are wanted is only a hint.
  const other = findUnit(unit === rate.from ? rate.to : rate.from)?.name
  if (isStandard(rate) && ![...rest.matchAll(TARGET)].some(([, word]) => findUnit(word!)?.name === other))
    return notApplicable
  const expected = amounts.map(({ value }) => (unit === rate.from ? value * rate.value : value / rate.value))
  const nearest = Number(/\bnearest (\d{1,4})\b/i.exec(task.full.raw)?.[1] ?? 0)
  const isShown = (value: number) =>
    answer.numbers.some(
      (number) =>
        Math.abs(number.values[0]! - value) <=
        Math.max(0.5000001 * 10 ** -number.decimals, amounts.length > 1 ? 0 : 0.001 * value, nearest / 2),
    )
  const isAll = expected.every(isShown)
  const isTotalAsked = amounts.length > 1 && TOTAL_ASKED.test(rest)
  // Parts that are rounded add up to a little more or less.
  const isTotal = isTotalAsked && [-0.01, 0, 0.01].some((slack) => isShown(sumOf(expected) + slack))
  return isTotalAsked
    ? isTotal
      ? passed
      : failed('The total with the rate given is not right.')
    : isAll
      ? passed
      : failed('A conversion with the rate given is not right.')
}

const TOTAL_ASKED =
  /\b(?:total|sum|altogether|in all|together|insgesamt|gesamt\w{0,5}|summe|zusammen|somme|suma|totale)\b/i

/** Figures with the currency or unit that stands before or after them, or after the list that they are in. */
function amountsOf(text: string): { value: number; unit: string }[] {
  const numbers = readNumbers(text)
  const own = numbers.map(({ start, end }) => {
    const before = /[$€£]\s?$/.exec(text.slice(Math.max(0, start - 2), start))?.[0].trim()
    const after = /^\s?([$€£]|\p{L}{1,12})/u.exec(text.slice(end, end + 14))?.[1]
    return before ?? after ?? ''
  })
  const units = numbers.map((_, i) => {
    for (let next = i; next < numbers.length; next++) {
      const gap = next > i ? text.slice(numbers[next - 1]!.end, numbers[next]!.start) : ''
      if (next > i && !/^\s?(?:[,;/]|and|und|et|y|e)?\s?(?:and|und|et|y|e)?\s?$/.test(gap)) return currencyOf(own[i]!)
      if (own[next] && !/^(?:and|und|et|y|e|or)$/i.test(own[next]!)) return currencyOf(own[next]!)
    }
    return ''
  })
  return numbers.map(({ values: [value] }, i) => ({ value: value!, unit: units[i]! }))
}
