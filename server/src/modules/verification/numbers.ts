import { spendSteps } from '../../platform/step-budget.ts'
import { cached } from './text-cache.ts'

/** A number as it stands in a text. "1,025" and "2.000" can be read in two ways, so there may be two values. */
export type TextNumber = {
  values: readonly number[]
  text: string
  start: number
  end: number
  decimals: number
  isPercent: boolean
  isWord: boolean
}

const DIGITS = /\d+(?:[.,'’\u00a0\u202f]\d+)*/g
const MAX_NUMBERS = 2_000

const TENS: Readonly<Record<string, number>> = {
  twenty: 20,
  thirty: 30,
  forty: 40,
  fifty: 50,
  sixty: 60,
  seventy: 70,
  eighty: 80,
  ninety: 90,
}

/** Small numbers as words, in the languages that tasks are most often written in. */
const NUMBER_WORDS = {
  zero: 0,
  one: 1,
  two: 2,
  three: 3,
  four: 4,
  five: 5,
  six: 6,
  seven: 7,
  eight: 8,
  nine: 9,
  ten: 10,
  eleven: 11,
  twelve: 12,
  thirteen: 13,
  fourteen: 14,
  fifteen: 15,
  sixteen: 16,
  seventeen: 17,
  eighteen: 18,
  nineteen: 19,
  hundred: 100,
  dozen: 12,
  ...TENS,
  null: 0,
  zwei: 2,
  drei: 3,
  vier: 4,
  fünf: 5,
  sechs: 6,
  sieben: 7,
  acht: 8,
  neun: 9,
  zehn: 10,
  elf: 11,
  zwölf: 12,
  zwanzig: 20,
  deux: 2,
  trois: 3,
  quatre: 4,
  cinq: 5,
  sept: 7,
  huit: 8,
  neuf: 9,
  dix: 10,
  onze: 11,
  douze: 12,
  quinze: 15,
  vingt: 20,
  dos: 2,
  tres: 3,
  cuatro: 4,
  cinco: 5,
  seis: 6,
  siete: 7,
  ocho: 8,
  nueve: 9,
  diez: 10,
  doce: 12,
  veinte: 20,
  due: 2,
  tre: 3,
  quattro: 4,
  cinque: 5,
  sei: 6,
  sette: 7,
  otto: 8,
  nove: 9,
  dieci: 10,
  dois: 2,
  duas: 2,
  três: 3,
  quatro: 4,
  sete: 7,
  oito: 8,
  dez: 10,
  twee: 2,
  drie: 3,
  vijf: 5,
  zes: 6,
  zeven: 7,
  negen: 9,
  tien: 10,
}

const NUMBER_OF_WORD: ReadonlyMap<string, number> = new Map(Object.entries(NUMBER_WORDS))

export const numberOfWord = (word: string): number | undefined => NUMBER_OF_WORD.get(word)

/** Whether a text has digits in two places. */
export const hasTwoFigures = (text: string): boolean => /\d\D+\d/.test(text)

/** Whether a text has two numbers and more, each with digits. */
export const hasTwoNumbers = (text: string): boolean => hasTwoFigures(text) && readNumbers(text).length >= 2

/** The numbers of a text in their order; with `words`, those that are written out too. */
export const readNumbers = (text: string, { words = false } = {}): readonly TextNumber[] =>
  words
    ? cached('numbers and words', text, (part) => findNumbers(part, true))
    : cached('numbers', text, (part) => findNumbers(part, false))

const PERCENT = '%|percent\\b|per cent\\b|Prozent\\b|por ciento\\b|pour cent\\b'
const PERCENT_AHEAD = new RegExp(`^\\s{0,2}(?:${PERCENT})`, 'i')
/** Whether any number of a text can be one of percent. */
export const NAMES_PERCENT = new RegExp(PERCENT, 'i')

function findNumbers(text: string, words: boolean): readonly TextNumber[] {
  spendSteps(text.length * 2)
  const numbers: TextNumber[] = []
  for (const { digits, start } of [...text.matchAll(DIGITS)].flatMap(separateFigures)) {
    if (numbers.length >= MAX_NUMBERS) break
    const end = start + digits.length
    const isNegative = /[-−–]/.test(text[start - 1] ?? '') && !/[\p{L}\p{N}.,)\]%]/u.test(text[start - 2] ?? ' ')
    const values = parseNumber(digits)
    if (values.length === 0) continue
    const scale = scaleAfter(text, end)
    numbers.push({
      values:
        scale === 1
          ? values.map((value) => (isNegative ? -value : value))
          : [...values.map((value) => value * scale), ...values],
      text: digits,
      start,
      end,
      decimals: scale === 1 ? decimalsOf(digits) : 0,
      isPercent: PERCENT_AHEAD.test(text.slice(end, end + 12)),
      isWord: false,
    })
  }
  if (words) numbers.push(...readNumberWords(text))
  return numbers.sort((a, b) => a.start - b.start)
}

/** "EC2,4120.50" and "4,8,15" are figures in a row, not one with marks for thousands. */
function separateFigures({ 0: digits, index }: RegExpExecArray): { digits: string; start: number }[] {
  const parts = digits.split(',')
  const isOne =
    parts.length === 1 ||
    (parts.length === 2 && !parts[1]!.includes('.') && !(parts[0]!.includes('.') && parts[1]!.length === 3)) ||
    parts.slice(1).every((part) => /^\d{3}(?:\.\d+)?$/.test(part))
  if (isOne) return [{ digits, start: index }]
  let start = index
  return parts.map((part) => {
    const figure = { digits: part, start }
    start += part.length + 1
    return figure
  })
}

function readNumberWords(text: string): TextNumber[] {
  const numbers: TextNumber[] = []
  for (const match of text.matchAll(/\p{L}+(?:-\p{L}+)?/gu)) {
    if (numbers.length >= MAX_NUMBERS) break
    const [first, second] = match[0].toLowerCase().split('-') as [string, string | undefined]
    const tens = TENS[first]
    const unit = second === undefined ? undefined : numberOfWord(second)
    const value = second !== undefined && tens !== undefined && unit !== undefined ? tens + unit : numberOfWord(first)
    if (value === undefined) continue
    numbers.push({
      values: [value],
      text: match[0],
      start: match.index,
      end: match.index + match[0].length,
      decimals: 0,
      isPercent: /^\s{0,2}(?:%|percent\b|per cent\b)/i.test(
        text.slice(match.index + match[0].length, match.index + match[0].length + 12),
      ),
      isWord: true,
    })
  }
  return numbers
}

const scaleAfter = (text: string, end: number): number => {
  const word = /^\s?(million|billion|thousand|mio|millionen|millones|millions|milliarden|bn|k|m)\b/i
    .exec(text.slice(end, end + 12))?.[1]
    ?.toLowerCase()
  if (!word) return 1
  if (word === 'k' || word === 'thousand') return 1_000
  if (word === 'billion' || word === 'bn' || word === 'milliarden') return 1e9
  return word === 'm' && text[end] === ' ' ? 1 : 1e6
}

/** Every way to read the digits; none for a version or a date like 2.4.1. */
export function parseNumber(text: string): number[] {
  const plain = text.replace(/['’\u00a0\u202f]/g, '')
  const groups = plain.split(/[.,]/)
  if (groups.length === 1) return [Number(plain)]
  const isGrouped = groups.slice(1).every((group) => group.length === 3) && groups[0]!.length <= 3
  const hasBoth = plain.includes('.') && plain.includes(',')
  if (hasBoth) {
    const decimalMark = plain.lastIndexOf('.') > plain.lastIndexOf(',') ? '.' : ','
    const value = Number(plain.replaceAll(decimalMark === '.' ? ',' : '.', '').replace(decimalMark, '.'))
    return Number.isFinite(value) ? [value] : []
  }
  if (groups.length > 2) return isGrouped ? [Number(groups.join(''))] : []
  const decimal = Number(`${groups[0]}.${groups[1]}`)
  if (!isGrouped || groups[0] === '0') return [decimal]
  const thousands = Number(groups.join(''))
  return plain.includes(',') ? [thousands, decimal] : [decimal, thousands]
}

const decimalsOf = (text: string) => {
  const groups = text.split(/[.,]/)
  const last = groups.at(-1)!
  // "0.350" and "1234.567" are no thousands.
  if (groups.length === 2 && (groups[0] === '0' || groups[0]!.length > 3)) return last.length
  return groups.length === 2 && last.length !== 3
    ? last.length
    : groups.length > 2 && last.length !== 3
      ? last.length
      : 0
}

/** Whether a written number can stand for a value: equal, or rounded to the digits that are shown; `isRough` allows whole tens and hundreds too. */
export function standsFor(written: TextNumber, value: number, isRough = false): boolean {
  return written.values.some((candidate) => {
    const difference = Math.abs(Math.abs(candidate) - Math.abs(value))
    if (difference <= 1e-9 * Math.max(1, Math.abs(value))) return true
    const isFraction = !Number.isInteger(value)
    // The other way to read "2,300" is 2.3 with three digits shown.
    const decimals = Number.isInteger(candidate) || written.decimals > 0 ? written.decimals : 3
    if ((isFraction || decimals > 0) && difference <= 0.5000001 * 10 ** -decimals) return true
    return isRough && difference <= 0.06 * Math.abs(value)
  })
}

const ROUGHLY =
  /(?:about|roughly|around|approximately|approx\.?|nearly|almost|some|circa|ca\.?|etwa|rund|ungefähr|knapp|environ|aproximadamente|unos|unas|cerca de|circa|ongeveer|over|more than|[~≈])\s?[$€£]?$/i

/** Whether the text says that the number is rounded. */
export const isRoughIn = (text: string, { start }: TextNumber) =>
  ROUGHLY.test(text.slice(Math.max(0, start - 20), start))

const ROUNDING =
  /\bround\w{0,3} (?:to|auf) (?:the )?(?:nearest |next |full |whole )?(?:\d{1,4}\b)?|\bnearest \d{1,4}\b|\b(?:\d|one|two|three|no|zero) ?(?:-|\b)(?:decimals?|decimal places?|digits?|d\.?p\.?|dec|nachkommastellen?|dezimal(?:stellen?|en)?|décimales?|decimales|decimali|casas decimais)\b/gi

/** "1.240, 980": where figures without a point are as long, a point before three digits groups thousands. */
export const withoutGroups = (text: string): string =>
  /(?<![\d.,])\d{1,3}\.\d{3}(?![\d.,]*\d)/.test(text) &&
  /(?<![\d.,])\d{3,}(?![\d.,]*\d)|\d,\d{1,2}(?!\d)/.test(text.replaceAll(/\b(?:19|20)\d\d\b/g, ' ')) &&
  !/\d\.\d{1,2}(?!\d)|\d\.\d{4}|\d,\d{3}/.test(text)
    ? text.replaceAll(/(?<=\d)\.(?=\d{3}(?!\d))/g, '')
    : text

/** The text without the figures that say how to round. */
export const withoutRounding = (text: string): string => text.replaceAll(ROUNDING, (part) => ' '.repeat(part.length))
