import { spendSteps } from '../../platform/step-budget.ts'
import { readNumbers, type TextNumber } from './numbers.ts'
import { cached } from './text-cache.ts'

/** A unit of measure; one word can stand for several sizes. */
export type Unit = { name: string; kind: string; sizes: readonly number[] }

const UNITS: readonly (readonly [name: string, words: RegExp, kind: string, ...sizes: number[]])[] = [
  ['km', /^(?:km|kilometern?|kilomet(?:er|re)s?|kilómetros?|kilomètres?|chilometri|quilómetros?)$/, 'length', 1000],
  ['m', /^(?:m|metern?|met(?:er|re)s?|metros?|mètres?|metri)$/, 'length', 1],
  ['cm', /^(?:cm|zentimetern?|centimet(?:er|re)s?|centímetros?|centimètres?|centimetri)$/, 'length', 0.01],
  ['mm', /^(?:mm|millimet(?:er|re)s?|millimetern)$/, 'length', 0.001],
  ['mile', /^(?:mi|miles?|meilen?|millas?|miglia|milhas?|mijl)$/, 'length', 1609.344],
  ['nauticalmile', /^(?:nauticalmiles?|seemeilen?|nmi)$/, 'length', 1852],
  ['yard', /^(?:yd|yds|yards?)$/, 'length', 0.9144],
  ['foot', /^(?:ft|foot|feet|fuß|pieds?|pies?)$/, 'length', 0.3048],
  ['inch', /^(?:inch|inches|zoll|pulgadas?|pouces?|pollici)$/, 'length', 0.0254],
  ['kg', /^(?:kg|kgs|kilos?|kilograms?|kilogramm|kilogrammes?|kilogramos?|chili)$/, 'mass', 1],
  ['g', /^(?:g|grams?|gramm|gr|grammes?|gramos?|grammi)$/, 'mass', 0.001],
  ['mg', /^(?:mg|milligrams?|milligramm)$/, 'mass', 0.000001],
  ['lb', /^(?:lbs?|pounds?|libras?|livres?)$/, 'mass', 0.45359237],
  ['pfund', /^(?:pfund)$/, 'mass', 0.5, 0.45359237],
  ['oz', /^(?:oz|ounces?|unzen?|onzas?|onces?)$/, 'mass', 0.028349523, 0.028],
  ['tonne', /^(?:t|tonnes?|tons?|tonnen|toneladas?)$/, 'mass', 1000, 907.18474, 1016.0469],
  ['stone', /^stones?$/, 'mass', 6.35029318],
  ['l', /^(?:l|lit(?:er|re)s?|litern|litros?|litri)$/, 'volume', 1],
  ['ml', /^(?:ml|millilit(?:er|re)s?|millilitern)$/, 'volume', 0.001],
  ['cl', /^(?:cl|centilit(?:er|re)s?)$/, 'volume', 0.01],
  ['gallon', /^(?:gal|gallons?|gallonen?)$/, 'volume', 3.785411784, 4.54609],
  ['pint', /^pints?$/, 'volume', 0.473176473, 0.56826125],
  ['quart', /^quarts?$/, 'volume', 0.946352946, 1.1365225],
  ['usgallon', /^usgallon$/, 'volume', 3.785411784],
  ['impgallon', /^impgallon$/, 'volume', 4.54609],
  ['uspint', /^uspint$/, 'volume', 0.473176473],
  ['imppint', /^imppint$/, 'volume', 0.56826125],
  ['usquart', /^usquart$/, 'volume', 0.946352946],
  ['impquart', /^impquart$/, 'volume', 1.1365225],
  ['floz', /^floz$/, 'volume', 0.0284130625, 0.0295735296],
  ['usfloz', /^usfloz$/, 'volume', 0.0295735296],
  ['cup', /^cups?$/, 'volume', 0.2365882365, 0.24, 0.25],
  ['tbsp', /^(?:tbsp|tablespoons?)$/, 'volume', 0.01478676, 0.015, 0.02],
  ['tsp', /^(?:tsp|teaspoons?)$/, 'volume', 0.00492892, 0.005],
  ['m3', /^(?:m³|m3|cbm)$/, 'volume', 1000],
  ['c', /^(?:c|°c|celsius)$/, 'temperature', 0],
  ['f', /^(?:f|°f|fahrenheit)$/, 'temperature', 0],
  ['kelvin', /^(?:k|kelvin)$/, 'temperature', 0],
  ['s', /^(?:s|sec|secs|seconds?|sekunden?|secondes?|segundos?|secondi)$/, 'time', 1],
  ['min', /^(?:min|mins|minutes?|minuten?|minutos?|minuti)$/, 'time', 60],
  ['h', /^(?:h|hrs?|hours?|stunden?|std|heures?|horas?|ore)$/, 'time', 3600],
  ['d', /^(?:d|days?|tage?n?|jours?|días?|giorni)$/, 'time', 86_400],
  ['week', /^(?:weeks?|wochen?|semaines?|semanas?)$/, 'time', 604_800],
  ['m2', /^(?:m²|sqm|m2|qm|quadratmetern?)$/, 'area', 1],
  ['sqft', /^(?:ft²|sqft|ft2)$/, 'area', 0.09290304],
  ['km2', /^(?:km²|sqkm|km2)$/, 'area', 1e6],
  ['ha', /^(?:ha|hectares?|hektar|hectáreas?)$/, 'area', 10_000],
  ['acre', /^acres?$/, 'area', 4046.8564224],
  ['kb', /^(?:kb|kilobytes?)$/, 'data', 1e3, 1024],
  ['mb', /^(?:mb|megabytes?)$/, 'data', 1e6, 1024 ** 2],
  ['gb', /^(?:gb|gigabytes?)$/, 'data', 1e9, 1024 ** 3],
  ['tb', /^(?:tb|terabytes?)$/, 'data', 1e12, 1024 ** 4],
  ['kmh', /^(?:km\/h|kmh|kph)$/, 'speed', 1 / 3.6],
  ['mph', /^mph$/, 'speed', 0.44704],
  ['ms', /^m\/s$/, 'speed', 1],
  ['knot', /^(?:knots?|kn|knoten)$/, 'speed', 0.514444],
]

export function findUnit(word: string): Unit | undefined {
  const lower = word.toLowerCase()
  const found = UNITS.find(([, words]) => words.test(lower))
  return found && { name: found[0], kind: found[2], sizes: found.slice(3) as number[] }
}

const AREA: Readonly<Record<string, string>> = { m: 'sqm', f: 'sqft', k: 'sqkm' }

/** The text with units of several words as one, "in" as inch where it follows a figure, and hours with minutes in full. */
export const plainUnits = (text: string): string =>
  text
    .replaceAll(/(?<=\b(?:m|km|cm|mm|ft))\^(?=[23]\b)/gi, '')
    .replaceAll(/\b(us )?(?:fluid ounces?|fl\.? ?oz)\b/gi, (_, us) => (us ? 'usfloz' : 'floz'))
    .replaceAll(/\bnautical (miles?)\b/gi, 'nautical$1')
    .replaceAll(
      /\b(us|imperial|uk)[ -](gallon|pint|quart)s?\b/gi,
      (_, of, unit) => `${/^us/i.test(of) ? 'us' : 'imp'}${unit}`,
    )
    .replaceAll(/\b(?:metric|us|imperial|short|long) (?=(?:tons?|tonnes?|cups?)\b)/gi, '')
    .replaceAll(
      /\bsq(?:uare)?\.? ?(?:kilomet(?:er|re)s?|met(?:er|re)s?|m|feet|foot|ft|km)\b/gi,
      (words) => AREA[words.replace(/^sq(?:uare)?\.? ?/i, '')[0]!.toLowerCase()]!,
    )
    .replaceAll(/\b(?:degrees?|grad|degrés|grados) (?=(?:c|f|celsius|fahrenheit)\b)/gi, '')
    .replaceAll(/(?<=\d ?)in(?=\s?[,;.()\n=≈?]|\s?$|\s(?:to|in|into|and|und|=)\s)/gi, 'inch')
    .replaceAll(/(?<![\d:])(\d{1,3}):([0-5]\d) ?h(?!\p{L})/giu, '$1 h $2 min')
    .replaceAll(/(?<=\d ?h) ?([0-5]?\d)(?: ?m)?(?![\p{L}\d:.,]| ?\p{L})/giu, ' $1 min')

export type Quantity = {
  units: readonly Unit[]
  number: TextNumber
  /** In the unit of its kind, or in °C; several where a unit has several sizes. */
  bases: readonly number[]
  start: number
  end: number
}

const UNIT = '°?[\\p{L}/]{1,14}[²³23]?'
const QUANTITY = new RegExp(
  `(?<![\\p{L}\\d.,/:]|\\d[-–])([-−]?\\d[\\d.,]{0,14}(?<=\\d))[\\s-]?(${UNIT})(?![\\p{L}\\d²³])`,
  'giu',
)

/** What of a smaller unit can follow a larger one: 3 h 45 min, 5 ft 10 in. */
const SMALLER: Readonly<Record<string, readonly [unit: string, below: number]>> = {
  d: ['h', 24],
  h: ['min', 60],
  min: ['s', 60],
  foot: ['inch', 12],
  lb: ['oz', 16],
  stone: ['lb', 14],
}

/** The figures with a unit in a text that went through `plainUnits`. */
export const quantitiesOf = (text: string): readonly Quantity[] => cached('quantities', text, findQuantities)

function findQuantities(text: string): readonly Quantity[] {
  spendSteps(text.length * 2)
  const quantities: Quantity[] = []
  for (const match of [...text.matchAll(QUANTITY)].slice(0, 100)) {
    const unit = findUnit(match[2]!)
    const [number] = readNumbers(match[1]!)
    if (!unit || !number) continue
    const amount = /^[-−]/.test(match[1]!) ? -Math.abs(number.values[0]!) : number.values[0]!
    const { index: start } = match
    const end = start + match[0].length
    const bases = unit.kind === 'temperature' ? [toCelsius(amount, unit.name)] : unit.sizes.map((size) => amount * size)
    const before = quantities.at(-1)
    const [smaller, below] = SMALLER[before?.units.at(-1)?.name ?? ''] ?? []
    if (
      before &&
      smaller === unit.name &&
      amount < below! &&
      /^,?\s?(?:(?:and|und|et|y|e|en)\s)?$/i.test(text.slice(before.end, start))
    )
      quantities[quantities.length - 1] = {
        units: [...before.units, unit],
        number,
        bases: [before.bases[0]! + bases[0]!],
        start: before.start,
        end,
      }
    else quantities.push({ units: [unit], number, bases, start, end })
  }
  return quantities
}

const toCelsius = (value: number, unit: string) =>
  unit === 'c' ? value : unit === 'f' ? ((value - 32) * 5) / 9 : value - 273.15

/** An amount of the unit of its kind, in another unit. */
const inUnit = (bases: readonly number[], { name, kind, sizes }: Unit): number[] =>
  kind === 'temperature'
    ? bases.map((celsius) => (name === 'c' ? celsius : name === 'f' ? (celsius * 9) / 5 + 32 : celsius + 273.15))
    : bases.flatMap((base) => sizes.map((size) => base / size))

/** Rounded to the digits shown, or by a factor of the unit that is itself rounded. */
const isNear = (number: TextNumber, value: number, kind: string, isRough: boolean) =>
  number.values.some(
    (written) =>
      Math.abs(Math.abs(written) - Math.abs(value)) <=
      Math.max(
        0.5000001 * 10 ** -number.decimals * (Math.abs(value) < 20 && number.decimals === 0 ? 0.2 : 1),
        Math.abs(value) * (isRough ? 0.03 : kind === 'time' ? 0 : 0.006),
      ),
  )

/** Whether a written figure is the quantity in a unit. */
export const isInUnit = (number: TextNumber, { bases }: Quantity, unit: Unit, isRough = false): boolean =>
  inUnit(bases, unit).some((value) => isNear(number, value, unit.kind, isRough))

/** Whether two quantities are the same amount, whatever their units. */
export const isSameAmount = (a: Quantity, b: Quantity): boolean => {
  const last = b.units.at(-1)!
  if (b.units.length === 1) return isInUnit(b.number, a, last)
  const tolerance = Math.max(0.51 * last.sizes[0]!, last.kind === 'time' ? 0 : Math.abs(b.bases[0]!) * 0.012)
  return a.bases.some((base) => Math.abs(base - b.bases[0]!) <= tolerance)
}
