import { type Answer, shows } from './answer-numbers.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { numberOfWord } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { sentencesOf } from './text.ts'

/** Days, dates and times of day that follow from those of the task, and weekdays of dates that the answer names. */
export const checkCalendar = (task: ReadTask, answer: Answer): Finding =>
  task.is.creative || task.code
    ? notApplicable
    : combine([
        checkDayCount(task, answer),
        checkWeekdayShift(task, answer),
        checkWeekdayClaims(answer),
        checkDateShift(task, answer),
        checkTimeShift(task, answer),
        checkAge(task, answer),
      ])

const DAY = 86_400_000
const MONTHS: readonly string[] = [
  'january januar janvier enero gennaio janeiro januari jan',
  'february februar février febrero febbraio fevereiro februari feb',
  'march märz mars marzo março maart mar',
  'april avril abril aprile apr',
  'may mai mayo maggio maio mei maj',
  'june juni juin junio giugno junho jun',
  'july juli juillet julio luglio julho jul',
  'august août agosto augustus augusti aug',
  'september septembre septiembre settembre setembro sept sep',
  'october oktober octobre octubre ottobre outubro oct okt',
  'november novembre noviembre novembro nov',
  'december dezember décembre diciembre dicembre dezembro december dec dez',
]
export const MONTH_OF: ReadonlyMap<string, number> = new Map(
  MONTHS.flatMap((names, month) => names.split(' ').map((name) => [name, month] as const)),
)
const WEEKDAYS: readonly string[] = [
  'sunday sonntag dimanche domingo domenica zondag söndag',
  'monday montag lundi lunes lunedì maandag måndag',
  'tuesday dienstag mardi martes martedì dinsdag tisdag',
  'wednesday mittwoch mercredi miércoles mercoledì woensdag onsdag',
  'thursday donnerstag jeudi jueves giovedì donderdag torsdag',
  'friday freitag vendredi viernes venerdì vrijdag fredag',
  'saturday samstag samedi sábado sabato zaterdag lördag',
]
export const WEEKDAY_OF: ReadonlyMap<string, number> = new Map(
  WEEKDAYS.flatMap((names, day) => names.split(' ').map((name) => [name, day] as const)),
)

type CalendarDate = { day: number; month: number; year: number | undefined; start: number; end: number }

const DAY_FIRST = /\b(\d{1,2})(?:st|nd|rd|th|\.|er|º)?\s(?:of |de |d')?(\p{L}{3,10})\.?(?:,? (?:de )?(\d{4}))?/giu
const MONTH_FIRST = /\b(\p{L}{3,10})\s(\d{1,2})(?:st|nd|rd|th)?\b(?!:)(?:,? (\d{4}))?/giu
const DOTTED = /\b(\d{1,2})\.(0?[1-9]|1[0-2])\.(\d{4})?(?!\d)/g
const ISO = /\b(\d{4})-(\d{2})-(\d{2})\b/g

/** The dates of a text that name a day and a month. */
export function datesOf(text: string): CalendarDate[] {
  if (!/\d/.test(text)) return []
  const dates: CalendarDate[] = []
  const push = (day: string, month: number | undefined, year: string | undefined, match: RegExpExecArray) => {
    const start = match.index
    const isSeen = dates.some((date) => start < date.end && start + match[0].length > date.start)
    if (month === undefined || Number(day) < 1 || Number(day) > 31 || isSeen || dates.length >= 60) return
    dates.push({ day: Number(day), month, year: year ? Number(year) : undefined, start, end: start + match[0].length })
  }
  for (const match of text.matchAll(DOTTED)) push(match[1]!, Number(match[2]) - 1, match[3], match)
  for (const match of text.matchAll(ISO)) push(match[3]!, Number(match[2]) - 1, match[1], match)
  for (const match of text.matchAll(DAY_FIRST)) push(match[1]!, MONTH_OF.get(match[2]!.toLowerCase()), match[3], match)
  for (const match of text.matchAll(MONTH_FIRST))
    push(match[2]!, MONTH_OF.get(match[1]!.toLowerCase()), match[3], match)
  return dates.sort((a, b) => a.start - b.start)
}

/** Without a year a date is tried in a leap year and in another one. */
const yearsOf = (...dates: readonly CalendarDate[]) => {
  const year = dates.find((date) => date.year !== undefined)?.year
  return year === undefined ? [2023, 2024] : [year]
}

const countOf = (word: string) =>
  /^\d/.test(word) ? Number(word) : word === 'a' || word === 'an' ? 1 : numberOfWord(word.toLowerCase())

/** School days and shifts are not every day. */
const KIND_OF_DAY =
  /\b(?:work(?:ing)?|business|week)days?\b|\b(?!(?:many|calendar|full|whole|the|of|are|in|und|viele) )\p{L}{2,14} (?:days|nights) (?:are there |is it )?(?:from|between|in)\b|\bmon\w{0,3} ?(?:-|–|to) ?fri/iu

/** "How many days from 3 March to 17 March?" */
function checkDayCount(task: ReadTask, answer: Answer): Finding {
  if (
    !/\bhow many (?:days|nights|weeks)\b|\bwie viele (?:tage|wochen)\b|\bcombien de jours\b|\bcuántos días\b|\bdays (?:are there )?(?:from|between)\b/i.test(
      task.request,
    )
  )
    return notApplicable
  const named = datesOf(task.request)
  const isSameDay = (a: CalendarDate, b: CalendarDate) => a.day === b.day && a.month === b.month
  const dates = named.filter((date, index) => named.findIndex((other) => isSameDay(date, other)) === index)
  if (dates.length !== 2 || KIND_OF_DAY.test(task.request)) return notApplicable
  const [first, second] = dates as [CalendarDate, CalendarDate]
  // "until 25 December if today is 3 November"
  const orders = [
    [first, second] as const,
    ...(/\b(?:today|now|heute)\b/i.test(task.request) ? [[second, first] as const] : []),
  ]
  const differences = orders.flatMap(([from, to]) =>
    yearsOf(from, to).flatMap((year) =>
      [year, year + 1].map((end) =>
        Math.round(
          (Date.UTC(to.year ?? end, to.month, to.day) - Date.UTC(from.year ?? year, from.month, from.day)) / DAY,
        ),
      ),
    ),
  )
  const isInclusive = /\binclu|\bmit(?:zähl|gezähl)|\beinschlie|\bcompris|\bboth days\b|\bcount(?:ing)? both\b/i.test(
    `${task.request} ${answer.text}`,
  )
  const isWeeks = /\bhow many weeks\b/i.test(task.request)
  return differences.some(
    (days) =>
      days >= 0 &&
      (shows(answer, days) || (isInclusive && shows(answer, days + 1)) || (isWeeks && shows(answer, days / 7, true))),
  )
    ? passed
    : failed('The number of days is not right.')
}

const weekdaysIn = (text: string) =>
  (text.toLowerCase().match(/\p{L}{5,11}/gu) ?? []).flatMap((word) => WEEKDAY_OF.get(word) ?? [])

/** "If today is Monday, which weekday is it in 17 days?", "the day after Tuesday". */
function checkWeekdayShift(task: ReadTask, answer: Answer): Finding {
  const request = task.full.raw.slice(0, 400)
  const [from, ...others] = weekdaysIn(request)
  if (from === undefined || others.length > 0) return notApplicable
  if (
    !/\b(?:what|which) (?:week ?)?day\b|\bwhat day\b|\bwelcher (?:wochen)?tag\b|\bquel jour\b|\bqué día\b/i.test(
      request,
    )
  )
    return notApplicable
  const amount =
    /\b(\d{1,4}(?=(?:st|nd|rd|th)?\s)|an?|one|two|three|four|five|six|seven|eight|nine|ten)(?:st|nd|rd|th)? (days?|weeks?|tagen?)\b/i.exec(
      request,
    )
  const single = /\bthe day (after|before)\b|\bcomes (after|before)\b|\b(after|before) \p{L}{2,8}day\b/iu.exec(request)
  if (!amount && !single) return notApplicable
  const count = amount ? countOf(amount[1]!)! * (/week/i.test(amount[2]!) ? 7 : 1) : 1
  const isBack = /\b(?:before|ago|earlier|was it|vor)\b/i.test(request)
  const day = (((from + (isBack ? -count : count)) % 7) + 7) % 7
  const named = weekdaysIn(answer.text)
  return named.length === 0 || named.includes(day) ? passed : failed('It names another weekday.')
}

const YEAR = /\b(?:1[89]|2[012])\d\d\b/

/** "17 May 2024, a Friday": the weekday of a full date. */
function checkWeekdayClaims({ text }: Answer): Finding {
  if (!YEAR.test(text)) return notApplicable
  for (const { day, month, year, start, end } of datesOf(text)) {
    if (year === undefined || year < 1800 || year > 2200) continue
    const before = /(\p{L}{5,11}),? ?(?:the |den |le )?$/u.exec(text.slice(Math.max(0, start - 18), start))?.[1]
    const after = /^(?:,| is| was| falls on| fell on| \()? ?(?:an? )?(\p{L}{5,11})/u.exec(
      text.slice(end, end + 24),
    )?.[1]
    // "90 days after 1 March is a Thursday" says nothing of that day.
    const isStart = /\b(?:after|from|before|since|nach|vor|après|después del?|dopo)\s(?:the )?$/i.test(
      text.slice(Math.max(0, start - 12), start),
    )
    const claimed = (isStart ? [before] : [before, after]).flatMap(
      (word) => WEEKDAY_OF.get((word ?? '').toLowerCase()) ?? [],
    )[0]
    if (claimed !== undefined && new Date(Date.UTC(year, month, day)).getUTCDay() !== claimed)
      return failed('A date does not fall on the weekday named.')
  }
  return notApplicable
}

const COUNT = '\\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|zwei|drei|vier|deux|trois|dos|tres'
const OFFSET = new RegExp(
  `(?<![/\\d.,-])\\b(${COUNT})[ -](?:calendar )?(days?|weeks?|months?|years?|tagen?|wochen?|monaten?|jours?|semaines?|mois|días?|semanas?|meses)\\b`,
  'gi',
)
const ASKS_DATE =
  /\b(?:what|which) (?:date|day)\b|\bthe date\b|\bwhen\b|\b(?:last|latest|final) (?:day|date)\b|\bdue\b|\bdeadline\b|\bexpir\w{1,4}\b|\buntil when\b|\bend date\b|\bwelche[rs]? (?:tag|datum)\b|\bwann\b|\bquand\b|\bquelle date\b|\bcuándo\b|\bqué (?:día|fecha)\b/i

/** "35 days after 10 March 2025?" and nothing else. */
const BARE_SHIFT =
  /^\W{0,3}(?:what(?:['’]?s| is) )?(?:\d{1,4}|\p{L}{3,9}) (?:days?|weeks?|months?|years?) (?:after|before|from) [^.?!\n]{3,30}\W{0,3}$/iu

/** "What date is two weeks after 3 May?", "dated 28 May, payable within 30 days, last day to pay?": one date, one span, one result. */
function checkDateShift(task: ReadTask, answer: Answer): Finding {
  const following = followingDates(task)
  if (!following) return notApplicable
  const { base, expected } = following
  const written = datesOf(answer.text).filter((date) => date.day !== base.day || date.month !== base.month)
  if (written.length === 0) return notApplicable
  return written.some(({ month, day }) => expected.has(`${month}-${day}`))
    ? passed
    : failed('The date is not the one that follows.')
}

/** The one date of a task that asks for another, and the dates that the one span of the task leads to. */
export function followingDates(task: ReadTask): { base: CalendarDate; expected: ReadonlySet<string> } | undefined {
  const text = task.full.raw.slice(0, 600)
  if (task.full.words.length > 40 || !(ASKS_DATE.test(text) || BARE_SHIFT.test(text))) return undefined
  if (
    /\b(?:work(?:ing)?|business|bank(?:ing)?|week)[- ]?days?\b|\bwerktag\w{0,2}|\bouvr\w{1,4}|\bhábiles\b|\bend of\b|\beom\b|\bevery\b|\bweekends?\b|\bholidays?\b/i.test(
      text,
    )
  )
    return undefined
  const bases = datesOf(text)
  const offsets = [...text.matchAll(OFFSET)]
  const [base] = bases
  const [offset] = offsets
  if (!base || !offset || bases.length > 1 || offsets.length > 1) return undefined
  const isBack = /\b(?:before|ago|earlier|prior|vor|avant|antes)\b/i.test(text)
  const count = countOf(offset[1]!)! * (isBack ? -1 : 1)
  const unit = offset[2]!
  // "Within 30 days": the first day may be counted or not. "30 days after" has one reading.
  const isPlain = /^ (?:after|before)\b/i.test(text.slice(offset.index + offset[0].length))
  const slacks = isPlain ? [0] : [-1, 0, 1]
  const expected = new Set(
    yearsOf(base).flatMap((year) =>
      slacks.map((slack) => {
        const date = new Date(
          /^(?:mo|mes)/i.test(unit)
            ? Date.UTC(year, base.month + count, base.day + slack)
            : /^(?:y)/i.test(unit)
              ? Date.UTC(year + count, base.month, base.day + slack)
              : Date.UTC(year, base.month, base.day + count * (/^(?:w|sem)/i.test(unit) ? 7 : 1) + slack),
        )
        return `${date.getUTCMonth()}-${date.getUTCDate()}`
      }),
    ),
  )
  return { base, expected }
}

const ZONE = /\b(?:UTC|GMT)\b(?:\s?([+−-])\s?(\d{1,2})(?::?(\d{2}))?)?/gi
const CLOCK = /\b(\d{1,2})[:.h](\d{2})\b(?:\s?([ap])\.?m)?|\b(\d{1,2})\s?([ap])\.?m\b/gi

export function timesOf(text: string): number[] {
  if (!/\d/.test(text)) return []
  return [...text.matchAll(CLOCK)].slice(0, 40).flatMap(([, hour, minute = '0', half, shortHour, shortHalf]) => {
    const h = Number(hour ?? shortHour)
    const mark = (half ?? shortHalf)?.toLowerCase()
    if (h > 24 || Number(minute) > 59) return []
    const base = (mark === 'p' && h < 12 ? h + 12 : mark === 'a' && h === 12 ? 0 : h) * 60 + Number(minute)
    return [base % 1440]
  })
}

/** Hours and minutes: "2 h 25 min", "90 minutes", "1.5 hours", "3 hours and 10 minutes". */
function durationsOf(text: string): number[] {
  return [
    ...text.matchAll(
      /(?<![:\d])(\d{1,3}(?:\.\d{1,2})?)\s?(?:h|hrs?|hours?|stunden?|heures?|horas?|ore)\b(?:(?: and| und| et| y|,)?\s?(\d{1,2})(?:\s?(?:m|min|mins|minutes?|minuten|minutos?))?\b(?![:.]\d))?|(?<![:\d])(\d{1,4})[\s-]?(?:m|min|mins|minutes?|minuten|minutos?)\b/gi,
    ),
  ]
    .slice(0, 12)
    .map(([, hours, minutes, alone]) => (alone ? Number(alone) : Number(hours) * 60 + Number(minutes ?? 0)))
}

const SPEAKS_OF_TIME =
  /\b(?:arriv\w{1,4}|takes?|lasts?|end|ends|finish\w{0,4}|until|when|what time|ready|done|start|leave|depart|ankunft|dauert|arrivée|llega|llegada|arrivo|how long|how many (?:hours|minutes)|duration|wie lange?|cuánt[oa]s (?:minutos|horas)|combien de (?:minutes|temps)|wie viele (?:minuten|stunden)|quant[ie] (?:minuti|ore))\b/i

/** "Leaves 13:50 and takes 2 h 25 min", "22:30 in UTC+9, what time in UTC+2?", "from 9:15 to 17:45, how long?" */
function checkTimeShift(task: ReadTask, answer: Answer): Finding {
  const text = task.full.raw.slice(0, 600)
  const times = timesOf(text.replaceAll(ZONE, ' '))
  if (times.length !== 1 && times.length !== 2) return notApplicable
  // UTC alone is the zone of zero hours.
  const zones = [...text.matchAll(ZONE)].map(
    ([, sign, hours = '0', minutes = '0']) => (sign === '+' ? 1 : -1) * (Number(hours) * 60 + Number(minutes)),
  )
  const written = timesOf(answer.text.replaceAll(ZONE, ' ')).filter((time) => !times.includes(time))
  if (times.length === 1 && zones.length >= 2 && zones.length <= 6) {
    const expected = zones.slice(1).map((zone) => (times[0]! + zone - zones[0]! + 2880) % 1440)
    if (written.length < expected.length) return notApplicable
    const isOfDay = [...times, ...written].some((time) => time >= 780)
    return expected.every((time) =>
      written.some((other) => other === time || (!isOfDay && (other + 720) % 1440 === time)),
    )
      ? passed
      : failed('The time is not the one that follows.')
  }
  if (!SPEAKS_OF_TIME.test(text)) return notApplicable
  const durations = durationsOf(text)
  // "Three tasks of 45 min each": how often is not read.
  if (durations.length > 0 && /\b(?:each|every|jeweils|je|chacune?|cada|ogni|elk)\b/i.test(text)) return notApplicable
  // Notes and stories tell of times without asking for one.
  const questions = sentencesOf(text).filter((sentence) => sentence.endsWith('?'))
  const isAsked =
    questions.length > 0 ? questions.some((part) => SPEAKS_OF_TIME.test(part)) : task.full.words.length <= 30
  if (isAsked && times.length === 1 && durations.length > 0 && durations.length <= 5 && written.length > 0) {
    const reachable = new Set<number>([times[0]!])
    for (const duration of durations)
      for (const time of [...reachable])
        for (const sign of [1, -1]) reachable.add((time + sign * duration + 14_400) % 1440)
    const isReached = (time: number) => reachable.has(time) || reachable.has((time + 720) % 1440)
    return written.some(isReached) ? passed : failed('The time is not the one that follows.')
  }
  if (
    times.length === 2 &&
    durations.length === 0 &&
    /\bhow (?:long|many (?:hours|minutes))\b|\bduration\b|\bwie lange?\b|\bcuánt[oa]s (?:minutos|horas)\b|\bcombien de (?:minutes|temps)\b|\bwie viele (?:minuten|stunden)\b|\bquant[ie] (?:minuti|ore)\b/i.test(
      text,
    )
  ) {
    const minutes = (times[1]! - times[0]! + 1440) % 1440
    const claims = durationsOf(answer.text)
    if (claims.length === 0) return notApplicable
    return claims.some(
      (claim) => claim % 1440 === minutes || claim === 1440 - minutes || Math.abs(claim - (minutes - 720)) < 1,
    )
      ? passed
      : failed('The time between is not right.')
  }
  return notApplicable
}

/** "Born in 1984, it is 2024: her age". */
function checkAge(task: ReadTask, answer: Answer): Finding {
  const text = task.full.raw.slice(0, 600)
  const isSpan =
    /\bhow (?:many years|long)\b/i.test(task.request) && /\b(?:from|between) \d{4} (?:until|till|to|and)\b/i.test(text)
  if (!isSpan && !/\b(?:born|founded|since|opened|established|geboren|gegründet|né|née|nacid[oa])\b/i.test(text))
    return notApplicable
  if (
    !isSpan &&
    !/\bhow old\b|\bhow many years\b|\b(?:age|anniversary)\b|\bwie alt\b|\bquel âge\b|\bcuántos años\b/i.test(text)
  )
    return notApplicable
  const years = [...new Set(text.match(/\b(?:1[5-9]|20)\d\d\b/g) ?? [])].map(Number)
  if (years.length !== 2) return notApplicable
  const age = Math.abs(years[0]! - years[1]!)
  const written = answer.numbers.filter(
    ({ values: [value], text: digits }) => value! >= 10 && value! < 200 && !text.includes(digits),
  )
  if (written.length === 0) return notApplicable
  return written.some(({ values }) => values.includes(age) || values.includes(age - 1))
    ? passed
    : failed('The number of years is not right.')
}
