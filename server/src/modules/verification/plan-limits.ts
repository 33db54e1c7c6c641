import { datesOf, timesOf } from './calendar.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { readNumbers } from './numbers.ts'
import { hasName, recordsOf } from './records.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, sentencesOf } from './text.ts'

/** Limits that a plan or a choice has to keep: a deadline, an end of the day, a budget, a rule for each option. */
export const checkPlanLimits = (task: ReadTask, output: ReadText): Finding =>
  task.code || task.is.creative || task.is.translation || !/^(?:strategist|default|analyst|writer)/.test(task.agentId)
    ? notApplicable
    : combine([
        checkDeadline(task, output),
        checkEndTime(task, output),
        checkChoice(task, output),
        checkRelations(task, output),
      ])

const LATE =
  /\b(?:late|later than|miss\w{0,3}|after (?:the )?(?:deadline|date)|not (?:fit|enough|possible|feasible|make)|doesn't|does not|won't|cannot|can't|impossible|extend\w{0,3}|beyond|slip\w{0,4}|postpone\w{0,2}|follow-?up|review|retro\w{0,10}|afterwards|post-launch|nach dem|zu spät)\b/i

/** "Launch before 1 October": no date of the plan is later, unless the answer says that it does not fit. */
function checkDeadline(task: ReadTask, output: ReadText): Finding {
  const text = task.full.raw.slice(0, 2_000)
  const given = datesOf(text)
  const deadlines = given.filter(
    ({ start }) =>
      /\b(?:before|by|no later than|not later than|until|deadline(?: is)?|must (?:be (?:finished|done|live|ready|over)|end)(?: by| before| on)?)[: ](?:the \w{1,12} on )?$/i.test(
        text.slice(Math.max(0, start - 40), start),
      ) || /\bbefore the \w{1,12} on $/i.test(text.slice(Math.max(0, start - 40), start)),
  )
  if (
    deadlines.length !== 1 ||
    !/\b(?:plan|schedule|timeline|roadmap|phases?|lay out|dates|backwards?|milestones?)\b/i.test(text)
  )
    return notApplicable
  const [deadline] = deadlines
  const dayOf = ({ month, day }: { month: number; day: number }) => month * 31 + day
  // A deadline in January is after December.
  if (given.some((date) => dayOf(date) > dayOf(deadline!)) || LATE.test(output.raw)) return notApplicable
  const written = datesOf(output.raw)
  const isLate = written.some(
    (date) =>
      dayOf(date) > dayOf(deadline!) &&
      (date.year === undefined || deadline!.year === undefined || date.year >= deadline!.year),
  )
  return written.length === 0
    ? notApplicable
    : isLate
      ? failed('A date of the plan is after the deadline given.')
      : passed
}

/** "From 9:00 to 12:00": no time of the plan lies outside. */
function checkEndTime(task: ReadTask, output: ReadText): Finding {
  const text = task.full.raw.slice(0, 1_500)
  const range =
    /\bfrom (\d{1,2}[:.]\d{2}) (?:to|until|till) (\d{1,2}[:.]\d{2})\b|\b(\d{1,2}[:.]\d{2})\s?[-–]\s?(\d{1,2}[:.]\d{2})\b/.exec(
      text,
    )
  if (!range || !/\b(?:agenda|schedule|programme?|timetable|run sheet|must end)\b/i.test(text)) return notApplicable
  const [start, end] = timesOf(`${range[1] ?? range[3]} ${range[2] ?? range[4]}`) as [number, number]
  const given = timesOf(text)
  const written = timesOf(output.raw)
  if (written.length < 2 || end <= start || LATE.test(output.raw)) return notApplicable
  return written.some((time) => (time > end || time < start) && !given.includes(time))
    ? failed('A time of the plan lies outside the hours given.')
    : passed
}

const BOUND =
  /(?<![\p{L}\d])(\p{L}{3,20})\s(?:(?:of |is |has to be |must be )?(?:at most|max(?:imum)?|no more than|not more than|under|below|up to)|(at least|min(?:imum)?|over|above|more than))\s[$€£]?(\d[\d.,]{0,10}k?)/giu

/** The option that is recommended first keeps the rules that the task gives for each option, and several together the budget. */
function checkChoice(task: ReadTask, output: ReadText): Finding {
  const text = task.full.raw.slice(0, 3_000)
  const records = recordsOf(text)
  if (records.length < 2 || !/\b(?:pick|choose|recommend\w{0,6}|decide|select|which|combination)\b/i.test(text))
    return notApplicable
  const [first = '', second = ''] = sentencesOf(output.raw.replaceAll('**', '')).map((sentence) =>
    sentence.toLowerCase(),
  )
  const opening = records.some(({ name }) => hasName(first, name)) ? first : second
  if (
    /\b(?:not|n't|no|none|neither|nor|drop|exclude\w?|skip|against|instead|unlike|without|rather than|over)\b/.test(
      opening,
    )
  )
    return notApplicable
  const chosen = records.filter(({ name }) => hasName(opening, name))
  const budget = /\bbudget(?: of| is|:)? [$€£]?(\d[\d.,]{0,10}k?)/i.exec(text)?.[1]
  if (
    budget &&
    chosen.length >= 2 &&
    chosen.length < records.length &&
    records.every(({ figures }) => figures.length === 1)
  ) {
    const most = readNumbers(budget)[0]!.values[0]!
    return chosen.reduce((sum, { figures }) => sum + figures[0]!, 0) > most * 1.0001
      ? failed('What it chooses goes over the budget given.')
      : passed
  }
  if (chosen.length !== 1) return notApplicable
  const name = chosen[0]!.name
  const line = text
    .split('\n')
    .find((part) => part.toLowerCase().trimStart().startsWith(name))
    ?.toLowerCase()
  if (!line) return notApplicable
  for (const [, field, least, limit] of [...text.matchAll(BOUND)].slice(0, 10)) {
    const bound = readNumbers(limit!)[0]!.values[0]!
    const at = line.indexOf(field!.toLowerCase())
    const value =
      at < 0 ? undefined : readNumbers(line.slice(at + field!.length, at + field!.length + 16))[0]?.values[0]
    if (value !== undefined && (least ? value < bound : value > bound))
      return failed('What it recommends breaks a rule of the task.')
  }
  return passed
}

const RELATION =
  /(?<![\p{L}\d])(\p{Lu}[\p{L}-]{1,20}) (?:gets?|has|receives?|is to get) (twice|three times|half) (?:as (?:much|many)(?: \p{L}{1,12})? )?(?:as )?(?:the share of )?(\p{Lu}[\p{L}-]{1,20})/gu
const FACTORS: Readonly<Record<string, number>> = { twice: 2, 'three times': 3, half: 0.5 }

/** "Platform gets twice as much as Mobile". */
function checkRelations(task: ReadTask, output: ReadText): Finding {
  const figureOf = (name: string) => {
    const line = output.lines.find((part) => hasName(part.toLowerCase(), name.toLowerCase()))
    const numbers = line ? readNumbers(line.slice(line.toLowerCase().indexOf(name.toLowerCase()))) : []
    return numbers.length === 1 ? numbers[0]!.values[0] : undefined
  }
  for (const [, first, factor, second] of [...task.full.raw.slice(0, 2_000).matchAll(RELATION)].slice(0, 5)) {
    const [a, b] = [figureOf(first!), figureOf(second!)]
    if (a !== undefined && b !== undefined && Math.abs(a - b * FACTORS[factor!]!) > 0.02 * Math.max(a, 1))
      return failed('Two shares do not stand to each other as the task says.')
  }
  return notApplicable
}
