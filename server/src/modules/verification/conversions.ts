import type { Answer } from './answer-numbers.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { readNumbers, type TextNumber } from './numbers.ts'
import type { ReadTask } from './task.ts'

/** Conversions of units, and of anything by a rate that the task gives. */
export const checkConversions = (task: ReadTask, answer: Answer): Finding =>
  task.code ? notApplicable : combine([checkUnits(task, answer), checkGivenRate(task, answer)])

const UNITS: readonly (readonly [name: string, word: RegExp, kind: string, size: number, ...otherSizes: number[]])[] = [
  ['km', /^(?:km|kilometern|kilomet(?:er|re)s?|kilómetros?|kilomètres?|chilometri)$/, 'length', 1000],
  ['m', /^(?:m|metern?|met(?:er|re)s?|metros?|mètres?|metri)$/, 'length', 1],
  ['cm', /^(?:cm|centimet(?:er|re)s?)$/, 'length', 0.01],
  ['mm', /^(?:mm|millimet(?:er|re)s?)$/, 'length', 0.001],
  ['mile', /^(?:mi|miles?|meilen?|millas?|miglia)$/, 'length', 1609.344],
  ['yard', /^(?:yd|yards?)$/, 'length', 0.9144],
  ['foot', /^(?:ft|foot|feet)$/, 'length', 0.3048],
  ['inch', /^(?:inch|inches|zoll|pulgadas?|pouces?)$/, 'length', 0.0254],
  ['kg', /^(?:kg|kilos?|kilograms?|kilogramm)$/, 'mass', 1],
  ['g', /^(?:g|grams?|gramm|gr|grammes?|gramos?)$/, 'mass', 0.001],
  ['lb', /^(?:lbs?|pounds?|pfund|libras?)$/, 'mass', 0.45359237],
  ['oz', /^(?:oz|ounces?|unzen?)$/, 'mass', 0.028349523],
  ['tonne', /^(?:t|tonnes?|tons?)$/, 'mass', 1000, 907.18474, 1016.0469],
  ['stone', /^stones?$/, 'mass', 6.35029318],
  ['l', /^(?:l|lit(?:er|re)s?|litros?)$/, 'volume', 1],
  ['ml', /^(?:ml|millilit(?:er|re)s?)$/, 'volume', 0.001],
  ['gallon', /^gallons?$/, 'volume', 3.785411784, 4.54609],
  ['pint', /^pints?$/, 'volume', 0.473176473, 0.56826125],
  ['floz', /^floz$/, 'volume', 0.0284130625, 0.0295735296],
  ['usfloz', /^usfloz$/, 'volume', 0.0295735296],
  ['cup', /^cups?$/, 'volume', 0.2365882365, 0.25],
  ['c', /^(?:c|°c|celsius)$/, 'temperature', 0],
  ['f', /^(?:f|°f|fahrenheit)$/, 'temperature', 0],
  ['kelvin', /^(?:k|kelvin)$/, 'temperature', 0],
  ['s', /^(?:s|sec|secs|seconds?|sekunden)$/, 'time', 1],
  ['min', /^(?:min|mins|minutes?|minuten)$/, 'time', 60],
  ['h', /^(?:h|hrs?|hours?|stunden?|heures?|horas?)$/, 'time', 3600],
  ['d', /^(?:d|days?|tage?n?)$/, 'time', 86_400],
  ['week', /^(?:weeks?|wochen?)$/, 'time', 604_800],
  ['m2', /^(?:m²|sqm|m2)$/, 'area', 1],
  ['sqft', /^(?:ft²|sqft|ft2)$/, 'area', 0.09290304],
  ['kb', /^(?:kb|kilobytes?)$/, 'data', 1e3, 1024],
  ['mb', /^(?:mb|megabytes?)$/, 'data', 1e6, 1024 ** 2],
  ['gb', /^(?:gb|gigabytes?)$/, 'data', 1e9, 1024 ** 3],
  ['tb', /^(?:tb|terabytes?)$/, 'data', 1e12, 1024 ** 4],
  ['kmh', /^(?:km\/h|kmh|kph)$/, 'speed', 1 / 3.6],
  ['mph', /^mph$/, 'speed', 0.44704],
  ['ms', /^m\/s$/, 'speed', 1],
  ['ha', /^(?:ha|hectares?|hektar)$/, 'area', 10_000],
  ['acre', /^acres?$/, 'area', 4046.8564224],
]
const findUnit = (word: string) => UNITS.find(([, pattern]) => pattern.test(word.toLowerCase()))

const UNIT = '°?[\\p{L}/]{1,14}[²2]?'
const CONVERSION = new RegExp(
  `(-?\\d[\\d.,]{0,14})\\s?(${UNIT})\\s(?:to|in|into|nach|en|em|equals?|=)\\s?(?:how many\\s)?(${UNIT})(?![\\p{L}])`,
  'giu',
)
const HOW_MANY = new RegExp(
  `\\bhow many (${UNIT}) (?:(?:are |is |make )?(?:there )?in|are|is|make|equals?) (?:a |an |one )?(\\d[\\d.,]{0,14})?\\s?(${UNIT})(?![\\p{L}])`,
  'giu',
)

/** "convert 5 km to miles", "12 inches in cm?", "98.6F to C", several of them in one task. */
function checkUnits(task: ReadTask, answer: Answer): Finding {
  if (task.full.words.length > 20) return notApplicable
  const request = task.request.replaceAll(/\b(us )?(?:fluid ounces?|fl\.? ?oz)\b/gi, (_, us) =>
    us ? 'usfloz' : 'floz',
  )
  const wanted = [
    ...[...request.matchAll(CONVERSION)].map(([, amount, from, to]) => valuesOf(amount!, from!, to!)),
    ...[...request.matchAll(HOW_MANY)].map(([, to, amount = '1', from]) => valuesOf(amount, from!, to!)),
  ].filter((values) => values.length > 0)
  const figures = readNumbers(task.request)
  if (wanted.length === 0 || figures.length > wanted.length) return notApplicable
  return wanted.every((values) => values.some((value) => answer.numbers.some((number) => isNear(number, value))))
    ? passed
    : failed('The conversion is not right.')
}

/** An amount in another unit, one value for each meaning that the units can have; none where they do not belong together. */
export function valuesOf(amountText: string, fromText: string, toText: string): number[] {
  const [from, to] = [findUnit(fromText), findUnit(toText)]
  if (!from || !to || from[2] !== to[2] || from[0] === to[0]) return []
  const amount = readNumbers(amountText)[0]?.values[0] ?? 0
  const signed = amountText.startsWith('-') ? -Math.abs(amount) : amount
  if (from[2] === 'temperature') return [toTemperature(signed, from[0], to[0])]
  const [, , , ...fromSizes] = from
  const [, , , ...toSizes] = to
  return fromSizes.flatMap((size) => toSizes.map((other) => (signed * size) / other))
}

/** Rounded to the digits shown, or by a factor of the unit that is itself rounded. */
export const isNear = (number: TextNumber, value: number) =>
  number.values.some(
    (written) =>
      Math.abs(Math.abs(written) - Math.abs(value)) <=
      Math.max(0.5000001 * 10 ** -number.decimals * (Math.abs(value) < 20 ? 0.2 : 1), Math.abs(value) * 0.012),
  )

function toTemperature(value: number, from: string, to: string): number {
  const celsius = from === 'c' ? value : from === 'f' ? ((value - 32) * 5) / 9 : value - 273.15
  return to === 'c' ? celsius : to === 'f' ? (celsius * 9) / 5 + 32 : celsius + 273.15
}

const RATE =
  /(?<![\d.,])1 ?(\p{L}{1,12})\s?(?:=|is|equals|≈|are|entspricht|sind)\s?(\d[\d.,]{0,12}) ?(\p{L}{1,12}|[€$£])/iu
const ROUNDING =
  /\bround\w{0,3} to (?:the )?(?:nearest |next |full )?\d{1,4}\b|\bnearest \d{1,4}\b|\d (?:decimals?|decimal places|nachkommastellen)\b/gi

/** "1 USD = 0.92 EUR. Convert 3,450 USD": each amount in one unit, times the rate, is in the answer. */
function checkGivenRate(task: ReadTask, answer: Answer): Finding {
  const text = task.full.raw.slice(0, 1_000).replaceAll(ROUNDING, (part) => ' '.repeat(part.length))
  const match = RATE.exec(text)
  const rate = match ? readNumbers(match[2]!)[0]?.values[0] : undefined
  if (!match || !rate || answer.numbers.length === 0) return notApplicable
  const rest = `${text.slice(0, match.index)}${' '.repeat(match[0].length)}${text.slice(match.index + match[0].length)}`
  const unit = (word: string) => word.toLowerCase().replace(/s$/, '')
  const [from, to] = [unit(match[1]!), unit(match[3]!)]
  const unitAfter = (end: number) => unit(/^\s?(\p{L}{1,12}|[€$£])/u.exec(rest.slice(end, end + 14))?.[1] ?? '')
  const amounts = readNumbers(rest).map((number) => ({ value: number.values[0]!, unit: unitAfter(number.end) }))
  const expected = amounts.flatMap(({ value, unit: own }) =>
    own === from ? [value * rate] : own === to ? [value / rate] : [],
  )
  if (expected.length !== 1 || amounts.length !== 1) return notApplicable
  if (!/\b(?:convert|conversion|in|into|to|how (?:much|many)|umrechn\w{0,4}|rechne)\b/i.test(text)) return notApplicable
  const nearest = Number(/\bnearest (\d{1,4})\b/i.exec(task.full.raw)?.[1] ?? 0)
  const [value] = expected as [number]
  return answer.numbers.some(
    (number) =>
      Math.abs(number.values[0]! - value) <= Math.max(0.5000001 * 10 ** -number.decimals, 0.001 * value, nearest / 2),
  )
    ? passed
    : failed('A conversion with the rate given is not right.')
}
