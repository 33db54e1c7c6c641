import { MONTH_OF, WEEKDAY_OF } from './calendar.ts'
import { combine, doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { readNumbers, standsFor, type TextNumber } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { clip, type ReadText, sentencesOf } from './text.ts'

/** Facts of the text given that an answer repeats: addresses, opening hours, ages, labelled figures, and what a translation keeps. */
export const checkSourceFacts = (task: ReadTask, output: ReadText, source: string): Finding =>
  combine([
    checkAddresses(task, output, source),
    checkHours(task, output, source),
    checkAge(task, output),
    checkLabels(task, output),
    checkTranslatedFacts(task, output),
    checkPhoneNumbers(task, output, source),
  ])

const ADDRESS =
  /\b(?:https?:\/\/)?(?:\d{1,3}(?:\.\d{1,3}){3}|(?:[a-z\d-]{1,40}\.){1,4}(?:com|org|net|example|io|de|fr|es|it|nl|eu|uk|co|app|dev|test|local|shop|info))\b|\b[\w.+-]{1,40}@[\w.-]{1,60}\.[a-z]{2,8}\b/gi

/** Another web address, number of a machine or mail address than the one that was given. */
function checkAddresses(task: ReadTask, output: ReadText, source: string): Finding {
  if (task.agentId.startsWith('coder')) return notApplicable
  const bare = (address: string) =>
    address
      .toLowerCase()
      .replace(/^https?:\/\//, '')
      .replace(/^www\./, '')
  const given = new Set([...source.matchAll(ADDRESS)].slice(0, 40).map(([address]) => bare(address)))
  const written = [...output.raw.matchAll(ADDRESS)].slice(0, 40).map(([address]) => bare(address))
  if (given.size === 0 || written.length === 0) return notApplicable
  const kindOf = (address: string) => (address.includes('@') ? 'mail' : /^\d/.test(address) ? 'machine' : 'web')
  const strange = written.find(
    (address) =>
      !given.has(address) &&
      [...given].some(
        (other) =>
          kindOf(other) === kindOf(address) &&
          !written.includes(other) &&
          !other.includes(address) &&
          !address.includes(other),
      ),
  )
  return strange ? failed(`${clip(strange, 30)} is another address than the one given.`) : passed
}

/** A telephone number that nobody gave. */
function checkPhoneNumbers(task: ReadTask, output: ReadText, source: string): Finding {
  if (!/^(?:support|writer)/.test(task.agentId) || task.is.template || task.is.creative) return notApplicable
  const digits = source.replace(/\D/g, '')
  const numbers =
    output.raw.match(/(?<![\w.,-])(?:\+\d{1,3}[ -]?)?\(?\d{2,5}\)?[ /-]\d{3,4}[ -]?\d{3,6}(?![\w-])/g) ?? []
  return numbers.some((number) => !digits.includes(number.replace(/\D/g, '')))
    ? failed('It gives a telephone number that is not in the task.')
    : notApplicable
}

const DAYS: readonly RegExp[] = [
  /^(?:sun?|sunday|so|sonntag|dim|dom)/i,
  /^(?:mon?|monday|mo|montag|lun)/i,
  /^(?:tue?|tuesday|di|dienstag|mar)/i,
  /^(?:wed?|wednesday|mi|mittwoch|mer|mié)/i,
  /^(?:thu?|thursday|do|donnerstag|jeu|jue|gio)/i,
  /^(?:fri?|friday|fr|freitag|ven|vie)/i,
  /^(?:sat?|saturday|sa|samstag|sam|sáb|sab)/i,
]
const DAY_NAME =
  '(?:mon|tues?|wed|thu|thur|thurs|fri|sat|sun|mo|di|mi|do|fr|sa|so)(?:day|sday|nesday|rsday|urday|ntag|enstag|ttwoch|nnerstag|eitag|mstag|nntag)?s?'
const HOURS = new RegExp(
  `\\b(${DAY_NAME})\\.?(?:\\s?(?:-|–|to|bis)\\s?(${DAY_NAME})\\.?)?[:,]?\\s?(?:from |von )?(\\d{1,2})(?:[:.](\\d{2}))?\\s?(?:am|h|uhr)?\\s?(?:-|–|to|bis)\\s?(\\d{1,2})(?:[:.](\\d{2}))?`,
  'gi',
)

/** The hours of each weekday, from "Mon–Fri 9–18, Sat 10–14". */
function hoursOf(text: string): Map<number, string> {
  const hours = new Map<number, string>()
  for (const [, first, last, from, fromMinutes = '00', to, toMinutes = '00'] of [...text.matchAll(HOURS)].slice(
    0,
    20,
  )) {
    const start = DAYS.findIndex((day) => day.test(first!))
    const end = last ? DAYS.findIndex((day) => day.test(last)) : start
    if (start < 0 || end < 0) continue
    for (let day = start, steps = 0; steps < 7; day = (day + 1) % 7, steps++) {
      hours.set(day, `${Number(from)}:${fromMinutes}-${Number(to)}:${toMinutes}`)
      if (day === end) break
    }
  }
  return hours
}

const RANGE =
  /\b(\d{1,2})(?:[:.](\d{2}))?\s?(?:am|h|uhr|a\.m\.)?\s?(?:-|–|to|until|bis|and|à|a)\s?(\d{1,2})(?:[:.](\d{2}))?/i

/** A sentence about one weekday gives other hours than the source gives that day. */
function checkHours(task: ReadTask, output: ReadText, source: string): Finding {
  const given = hoursOf(source.slice(0, 6_000))
  if (given.size === 0 || task.is.creative) return notApplicable
  for (const sentence of sentencesOf(output.raw).slice(0, 60)) {
    const days = new Set(
      (sentence.toLowerCase().match(/\p{L}{6,11}/gu) ?? []).flatMap(
        (word) => WEEKDAY_OF.get(word) ?? WEEKDAY_OF.get(word.replace(/s$/, '')) ?? [],
      ),
    )
    const range = RANGE.exec(sentence)
    const [hours, ...others] = new Set([...days].map((day) => given.get(day)))
    if (!range || !hours || others.length > 0) continue
    const [, from, fromMinutes = '00', to, toMinutes = '00'] = range
    const twelve = (hour: number) => (hour > 12 ? hour - 12 : hour)
    const [start, end] = hours.split('-').map((time) => time.split(':')) as [string[], string[]]
    const isSame =
      twelve(Number(from)) === twelve(Number(start[0])) &&
      twelve(Number(to)) === twelve(Number(end[0])) &&
      fromMinutes === start[1] &&
      toMinutes === end[1]
    if (!isSame && !/\b(?:not|n't|except|nicht|instead|later|earlier)\b/i.test(sentence))
      return failed('The hours of a day are not those of the text given.')
  }
  return passed
}

/** "Who turns 75" and then "seventy years": a birthday with another age. */
function checkAge(task: ReadTask, output: ReadText): Finding {
  const age = Number(
    /\b(?:turns|turning|wird|fête ses|cumple) (\d{1,3})\b|\b(\d{1,3})(?:th|st|nd|rd) birthday\b/i
      .exec(task.full.raw)
      ?.slice(1)
      .find(Boolean) ?? Number.NaN,
  )
  if (!Number.isFinite(age)) return notApplicable
  const text = output.raw.replace(/\b(\d{1,3})(?:st|nd|rd|th)\b/g, '$1 years')
  const numbers = readNumbers(text, { words: true }).filter(({ values }) => values[0]! >= 10 && values[0]! <= 120)
  if (numbers.length === 0 || numbers.some(({ values }) => values.includes(age))) return notApplicable
  const isAge = numbers.some(
    ({ end, values }) =>
      /^\s?(?:years?|today|candles|and (?:counting|still))\b/i.test(text.slice(end, end + 14)) &&
      Math.abs(values[0]! - age) <= 30,
  )
  return isAge ? failed('The age is not the one given.') : notApplicable
}

/** "Heating and power 90" and then "190 for heating and power": the one figure of a label is replaced. */
export function checkLabels(task: ReadTask, output: ReadText): Finding {
  if (task.is.translation || task.is.creative) return notApplicable
  const labels = [
    ...task.full.raw
      .slice(0, 4_000)
      .matchAll(
        /(?<![\p{L}\d])(\p{L}{3,20}(?: (?:and |of )?\p{L}{3,20}){0,2})[:=]? [$€£]?(\d[\d.,]{0,10}\d|\d{2,9})(?=[,;.\n)]|$| )/gu,
      ),
  ].slice(0, 40)
  const taskNumbers = readNumbers(task.full.raw, { words: true }).filter(
    ({ start }) => !/[\p{L}_]/u.test(task.full.raw[start - 1] ?? ' '),
  )
  const written = readNumbers(output.raw, { words: true })
  for (const [, label, digits] of labels) {
    const value = readNumbers(digits!)[0]?.values[0]
    if (value === undefined || value < 10 || written.some((number) => standsFor(number, value))) continue
    const text = output.raw.toLowerCase()
    const name = label!.toLowerCase()
    const at = text.indexOf(name)
    if (
      at < 0 ||
      !/[^\p{L}]/u.test(text[at - 1] ?? ' ') ||
      labels.filter(([, other]) => other!.toLowerCase() === name).length > 1
    )
      continue
    const before = /(\d[\d.,]{0,12}) (?:for|on|in) (?:the )?$/.exec(text.slice(Math.max(0, at - 24), at))?.[1]
    const after = /^["'`]?\s?(?:of|is|:|=|at|costs?|was)?\s?[$€£]?(\d[\d.,]{0,12})/.exec(
      text.slice(at + name.length, at + name.length + 24),
    )?.[1]
    const number = readNumbers(before ?? after ?? '')[0]
    // A rate or a share beside a label is another kind of figure.
    if (!number || String(Math.trunc(number.values[0]!)).length < String(Math.trunc(value)).length - 1) continue
    if (taskNumbers.some((other) => other.values.some((given) => standsFor(number, given)))) continue
    const isTimes = taskNumbers.some((other) =>
      other.values.some((given) =>
        [
          value * given,
          value + given,
          value - given,
          given - value,
          value / given,
          (value * given) / 100,
          value * (1 + given / 100),
          value * (1 - given / 100),
          value * 12,
          value / 12,
        ].some((result) => standsFor(number, result)),
      ),
    )
    if (!isTimes) return doubt(failed(`${clip(number.text, 20)} stands where the task has ${clip(digits!, 20)}.`))
  }
  return notApplicable
}

/** Numbers, weekdays and months of a text are in its translation. */
function checkTranslatedFacts(task: ReadTask, output: ReadText): Finding {
  if (!task.is.translation || !task.material.trim() || task.agentId.startsWith('coder')) return notApplicable
  const namesIn = (text: string, names: ReadonlyMap<string, number>) =>
    new Set(
      (text.toLowerCase().match(/\p{L}{4,12}/gu) ?? []).flatMap((word) =>
        word === 'mars' || word === 'may' || word === 'march' || word === 'mayo' || word === 'mar'
          ? []
          : (names.get(word) ?? []),
      ),
    )
  for (const names of [WEEKDAY_OF, MONTH_OF]) {
    const [given, written] = [namesIn(task.material, names), namesIn(output.raw, names)]
    if (given.size > 0 && written.size > 0 && [...written].every((name) => !given.has(name)))
      return failed('A day or a month of the text is another one in the translation.')
  }
  const given = readNumbers(task.material)
  // "1 250,50" has a space where other languages have a comma.
  const written = readNumbers(output.raw.replaceAll(/(?<=\d)[ \u00a0\u202f](?=\d{3}(?!\d))/g, ''), { words: true })
  const isSame = (a: TextNumber, b: TextNumber) =>
    a.values.some((value) => standsFor(b, value) || standsFor(b, value + 12) || standsFor(b, value - 12))
  const missing = given.filter((number) => !written.some((other) => isSame(number, other)))
  const strange = written.filter((number) => !number.isWord && !given.some((other) => isSame(other, number)))
  return missing.length > 0 && strange.length > 0
    ? failed('A number of the text is another one in the translation.')
    : passed
}
