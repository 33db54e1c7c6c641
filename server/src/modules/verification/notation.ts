import { type Finding, failed, notApplicable, passed } from './finding.ts'
import { readNumbers } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, wordsOf } from './text.ts'

const ROMAN: readonly (readonly [string, number])[] = [
  ['M', 1000],
  ['CM', 900],
  ['D', 500],
  ['CD', 400],
  ['C', 100],
  ['XC', 90],
  ['L', 50],
  ['XL', 40],
  ['X', 10],
  ['IX', 9],
  ['V', 5],
  ['IV', 4],
  ['I', 1],
]

function toRoman(value: number): string {
  let rest = value
  let text = ''
  for (const [letters, worth] of ROMAN)
    while (rest >= worth) {
      text += letters
      rest -= worth
    }
  return text
}

const BASES: readonly (readonly [RegExp, number])[] = [
  [/\b(?:binary|binär\w{0,2}|binaire|binario|base 2)\b/i, 2],
  [/\b(?:hex(?! (?:bolts?|nuts?|keys?|screws?|heads?|wrench))|hexadecimal|hexadezimal|base 16)\b/i, 16],
  [/\b(?:octal|oktal|base 8)\b/i, 8],
]

const PREFIXES: typeof BASES = [
  [/\b0x[0-9a-f]{1,16}\b.{0,60}\bdecimal\b/i, 16],
  [/\b0b[01]{1,32}\b.{0,60}\bdecimal\b/i, 2],
]

/** Roman numerals and other bases, in both directions. */
export function checkNotation(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 300)
  const text = output.raw
  if (
    /\b(?:[Ww]hat|[Ww]hich|[Cc]onvert) (?:number|year|value)? ?(?:is|does|means?)? ?[MDCLXVI]{3,15}\b|\b[MDCLXVI]{3,15} (?:as a|in|to) (?:number|decimal|digits|arabic)\b/.test(
      request,
    ) ||
    /\broman (?:numerals?|numbers?)\b|\brömische\w?\b|\bchiffres romains\b|\bnúmeros romanos\b/i.test(request)
  ) {
    const letters = /\b[MDCLXVI]{2,15}\b/.exec(request)?.[0]
    const value = /\b\d{1,4}\b/.exec(request)?.[0]
    if (value && Number(value) < 4_000 && /\b[MDCLXVI]{1,15}\b/.test(text))
      return new RegExp(`\\b${toRoman(Number(value))}\\b`).test(text)
        ? passed
        : failed('The Roman numeral is not right.')
    if (letters && !value) {
      const [number] = readNumbers(text).filter(({ text: digits }) => !request.includes(digits))
      return !number || toRoman(number.values[0]!) === letters
        ? passed
        : failed('The Roman numeral means another number.')
    }
    return notApplicable
  }
  const bases = [...BASES, ...PREFIXES].filter(([pattern]) => pattern.test(request))
  const [target] = bases
  if (
    !target ||
    /\b(?:search|tree|file|code|function|script|format|explain|or)\b|\bwhat is (?:binary|hex)/i.test(request)
  )
    return notApplicable
  const written = text.toLowerCase().replace(/[\s_,]/g, '')
  const pairs = [...request.matchAll(NUMBER_TO_BASE)].map(([, digits, name]) => [digits!, name!] as const)
  if (pairs.length > 1 || bases.length > 1) {
    const values = pairs.map(([digits, name]) =>
      Number(digits).toString(BASES.find(([pattern]) => pattern.test(name))![1]),
    )
    return values.every((value) => written.includes(value)) ? passed : failed(WRONG_NOTATION)
  }
  const isFromBase = /\b(?:to|in|as|into) (?:a )?decimal\b|\bdecimal (?:value|number|equivalent|form)\b/i.test(request)
  const numbers =
    request.match(/\b(?:0[xb])?[0-9a-f]{1,16}\b/gi)?.filter((part) => /\d/.test(part) || /^0x/i.test(part)) ?? []
  const [first] = numbers.filter((part) => part !== '2' && part !== '16' && part !== '8')
  if (!first) return notApplicable
  const digits = first.replace(/^0[xb]/i, '')
  const expected = isFromBase ? String(Number.parseInt(digits, target[1])) : Number(digits).toString(target[1])
  if (expected === 'NaN') return notApplicable
  return written.includes(expected) ? passed : failed(WRONG_NOTATION)
}

const WRONG_NOTATION = 'The number is not right in the notation asked for.'
/** "255 in hex and 10 in binary" */
const NUMBER_TO_BASE = /\b(\d{1,12}) (?:in|to|as|into) (?:an? )?(binary|hex(?:adecimal)?|octal)\b/gi

const ONES =
  'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen'.split(
    ' ',
  )
const TENS = 'zero ten twenty thirty forty fifty sixty seventy eighty ninety'.split(' ')

function inWords(value: number): string {
  if (value < 20) return ONES[value]!
  if (value < 100) return `${TENS[Math.floor(value / 10)]}${value % 10 ? ` ${ONES[value % 10]}` : ''}`
  if (value < 1_000) return `${ONES[Math.floor(value / 100)]} hundred${value % 100 ? ` ${inWords(value % 100)}` : ''}`
  if (value < 1_000_000)
    return `${inWords(Math.floor(value / 1_000))} thousand${value % 1_000 ? ` ${inWords(value % 1_000)}` : ''}`
  return ''
}

/** "The amount in words: 2,316.75". */
export function checkInWords(task: ReadTask, output: ReadText): Finding {
  if (
    !/\bin words\b|\bspell(?:ed)? out\b|\bwritten out\b/i.test(task.request) ||
    /\b(?:words or|fewer|more) words\b/i.test(task.request)
  )
    return notApplicable
  const [number] = readNumbers(task.full.raw)
  const value = Math.floor(number?.values[0] ?? Number.NaN)
  const expected = value > 0 ? inWords(value) : ''
  if (
    !expected ||
    !/\b(?:hundred|thousand|ty|teen|one|two|three|four|five|six|seven|eight|nine|ten)\b/i.test(output.raw)
  )
    return notApplicable
  const written = ` ${wordsOf(output.raw.replaceAll('-', ' '))
    .filter((word) => word !== 'and')
    .join(' ')} `
  return written.includes(` ${expected} `) ? passed : failed('The number in words is another one.')
}
