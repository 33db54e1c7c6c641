import { type Finding, failed, notApplicable, passed } from './finding.ts'
import { readNumbers, standsFor, type TextNumber } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { clip, type ReadText, splitFences } from './text.ts'

const sortDigits = (text: string) => [...text].sort().join('')
const digitsOf = ({ text }: TextNumber) => text.replace(/\D/g, '')

/** "394" where the text given has "349": the same digits in another order, and the right ones nowhere. */
export function checkSwappedDigits(task: ReadTask, output: ReadText, source: string): Finding {
  if (task.is.creative || !/\d\D?\d\D?\d/.test(source)) return notApplicable
  const given = readNumbers(source).filter((number) => digitsOf(number).length >= 3)
  if (given.length === 0) return notApplicable
  const written = readNumbers(output.raw)
  const others = written.filter((number) => digitsOf(number).length >= 3 && !source.includes(number.text)).slice(0, 60)
  if (others.length === 0) return passed
  const all = readNumbers(source, { words: true })
  const swapped = others.find(
    (number) =>
      given.some(
        (other) =>
          digitsOf(other).length === digitsOf(number).length &&
          other.decimals === number.decimals &&
          sortDigits(digitsOf(other)) === sortDigits(digitsOf(number)) &&
          !written.some((known) => known.values.some((value) => other.values.includes(value))),
      ) && !isDerived(number, [...all, ...written.filter((other) => other !== number)]),
  )
  return swapped ? failed(`${clip(swapped.text, 20)} has the digits of the text given in another order.`) : passed
}

const CLOCK = /(?<![\d:.])([01]?\d|2[0-3]):([0-5]\d)(?![\d:])/g
const HALF_DAY = /(?<![\d:.])(1[0-2]|[1-9])(?:\.([0-5]\d))? ?[ap]\.?m\b/gi
const HOUR = /(?<![\d:.])([01]?\d|2[0-3])(?: Uhr|(?<=\bà \d{1,2}) ?h)(?![\d\p{L}])/gu
/** Words of a task whose times are moved or compared. */
const MOVES_TIMES =
  /\b(?:hours?|minutes?|mins?|later|earlier|before|after|between|convert|zone|utc|gmt|c?est|[ep]st|duration|how long|delay\w{0,3}|late|moved?|postpone\w?|instead|stunden?|minuten|später|früher|vor|nach)\b/i

/** "Collect by 16:00" where the only time given is 18:00. */
export function checkOnlyTime(task: ReadTask, output: ReadText): Finding {
  const timesIn = (text: string) => [
    ...new Set(
      [...text.matchAll(CLOCK), ...text.matchAll(HALF_DAY), ...text.matchAll(HOUR)].map(
        ([, hour, minute = '00']) => `${Number(hour) % 12}:${minute}`,
      ),
    ),
  ]
  const taskTimes = timesIn([task.full.raw, ...task.context].join('\n'))
  if (!/^(?:writer|support)/.test(task.agentId) || taskTimes.length !== 1 || MOVES_TIMES.test(task.full.raw))
    return notApplicable
  const answerTimes = timesIn(output.raw)
  return answerTimes.length === 1 && answerTimes[0] !== taskTimes[0] ? failed('Its time is not the one given.') : passed
}

/** A sum, a difference or a product of two other figures. */
const isDerived = (number: TextNumber, given: readonly TextNumber[]) => {
  const values = given.slice(0, 40).flatMap(({ values: [value] }) => value!)
  return values.some((a) => values.some((b) => [a + b, a - b, a * b].some((value) => standsFor(number, value))))
}

const UNITS: readonly (readonly [string, RegExp])[] = [
  ['day', /^[\s-]?(?:(?:working|business|calendar) )?(?:days?|tagen?|tage|werktagen?|jours?|días?|giorni|dagen)\b/i],
  ['week', /^[\s-]?(?:weeks?|wochen?|semaines?|semanas?|settiman[ae])\b/i],
  ['month', /^[\s-]?(?:months?|monaten?|monate|mois|mes(?:es)?|mesi)\b/i],
  ['year', /^[\s-]?(?:years?|jahren?|jahre|ans|años?|anni)\b/i],
  ['hour', /^[\s-]?(?:hours?|stunden?|heures?|horas?|ore)\b/i],
  ['minute', /^[\s-]?(?:minutes?|mins?|minuten?|minutos?|minuti)\b/i],
  ['%', /^\s?(?:%|percent\b|prozent\b)/i],
]

type Measure = { unit: string; number: TextNumber }

/** "-30 %" in a list is "30 % off" in a sentence. */
const isSame = ({ number }: Measure, value: number) => number.values.some((own) => Math.abs(own) === Math.abs(value))

const measuresOf = (text: string): Measure[] =>
  readNumbers(text, { words: true }).flatMap((number) => {
    const unit = UNITS.find(([, pattern]) => pattern.test(text.slice(number.end, number.end + 20)))?.[0]
    return unit ? [{ unit, number }] : []
  })

/** The text gives one span of time or one percentage, and the answer gives another one instead of it. */
export function checkOnlyFigure(task: ReadTask, output: ReadText, source: string): Finding {
  if (!/^(?:writer|support)/.test(task.agentId) || task.is.creative || task.code) return notApplicable
  // "It came yesterday" and seven days leave six.
  if (
    /\b(?:yesterday|today|ago|since|last (?:week|month|monday|tuesday|wednesday|thursday|friday)|gestern|heute|vor \w{1,10} tagen|hier|aujourd'hui|ayer|hoy|ieri|oggi)\b/i.test(
      source,
    )
  )
    return notApplicable
  const given = measuresOf(source)
  if (given.length === 0) return notApplicable
  const { prose } = splitFences(output.raw)
  const written = measuresOf(prose)
  const all = readNumbers(source, { words: true })
  const numbers = readNumbers(prose, { words: true })
  for (const unit of new Set(written.map((measure) => measure.unit))) {
    const [own, ...others] = given.filter((measure) => measure.unit === unit)
    const [claimed, ...claims] = written.filter((measure) => measure.unit === unit)
    if (!own || others.length > 0 || !claimed || claims.length > 0) continue
    const isKept = numbers.some(({ values }) => values.some((value) => isSame(own, value)))
    const isElsewhere = all.some(({ values }) => values.some((value) => isSame(claimed, value)))
    if (!isKept && !isElsewhere && !isDerived(claimed.number, all))
      return failed(`${clip(claimed.number.text, 20)} stands where the text given has ${clip(own.number.text, 20)}.`)
  }
  return passed
}
