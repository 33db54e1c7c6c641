import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { ASCENDING, DESCENDING } from './ordering.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, splitFences } from './text.ts'

const codeOf = (output: ReadText) => {
  const { blocks } = splitFences(output.raw)
  return blocks.length > 0 ? blocks.map((block) => block.code).join('\n') : output.raw
}

/** What the task asks of code by name: the number and the order of rows, a schedule. */
export const checkCodeRequest = (task: ReadTask, output: ReadText): Finding =>
  combine([checkRows(task, output), checkCron(task, output)])

const NUMBERS = 'two three four five six seven eight nine ten eleven twelve'.split(' ')
const numberOf = (text: string) => {
  const at = NUMBERS.indexOf(text.toLowerCase())
  return at >= 0 ? at + 2 : Number(text)
}

const ROWS =
  /\b(\d{1,3}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve) (?:\w{2,12} )?(?:\w{2,12}est|most|least|latest|rows|results|records)\b|\b(?:top|first|last|bottom) (\d{1,3}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b(?!-| (?:days?|weeks?|months?|years?|hours?|minutes?|quarters?|percent|letters|characters|digits|columns)| ?%)/i
const LIMIT =
  /\blimit\s{1,4}(?:\d{1,6}\s?,\s?)?(\d{1,6})\b|\btop\s?\(?\s?(\d{1,6})\)?|\bfetch\s{1,4}(?:first|next)\s{1,4}(\d{1,6})/gi

const MOST = /\b(?:highest|largest|biggest|greatest|most|latest|newest|longest|heaviest|priciest)\b/i
const LEAST = /\b(?:lowest|smallest|fewest|least|cheapest|earliest|shortest|lightest)\b/i

/** The number of rows that a query returns, and the end that it takes them from. */
function checkRows(task: ReadTask, output: ReadText): Finding {
  const isQuery = /sql\b|\bquery\b|\btables?\b|\bselect\b|\bschema\b|\b[a-z_]\w{1,40}\([a-z_]\w{0,40}, ?[a-z_]\w/i
  if (!isQuery.test(task.full.raw)) return notApplicable
  const request = splitFences(task.full.raw).prose
  const code = codeOf(output).replace(/\s+/g, ' ')
  if (!/\bselect\b/i.test(code)) return notApplicable
  const wanted = ROWS.exec(request)
  const limits = [...code.matchAll(LIMIT)]
  if (wanted && limits.length === 1) {
    const [, limit, top, fetched] = limits[0]!
    if (Number(limit ?? top ?? fetched) !== numberOf(wanted[1] ?? wanted[2]!))
      return failed('The query returns another number of rows than was asked for.')
  }
  // Not the order of a window or of an aggregate.
  const outer = code.replaceAll(/\([^()]{0,200}\)/g, (part) => (/\bselect\b/i.test(part) ? part : '()'))
  const orders = [...outer.matchAll(/\border by ([^;)]{1,120})/gi)]
  if (orders.length !== 1) return wanted && limits.length === 1 ? passed : notApplicable
  // Of several keys the first one decides.
  const key = orders[0]![1]!.replace(/\b(?:limit|fetch|offset)\b.{0,60}$/i, '').split(',')[0]!
  const isLimited = limits.length > 0
  const isMost = (isLimited ? MOST : DESCENDING).test(request)
  const isLeast = (isLimited ? LEAST : ASCENDING).test(request)
  // "The top 3 fastest" have the smallest times.
  const isTop = isLimited && /\btop\b/i.test(request) && !/\b\w{2,12}est\b|\bbest\b|\bworst\b/i.test(request)
  if (
    (isMost || isTop) === isLeast ||
    /\b(?:speed|case)\b|(?:\b|_)(?:age|ages|rank|position|since|ago)(?:\b|_)|^-/i.test(key)
  )
    return notApplicable
  // The longest stay began first: a span is read only in a column of spans.
  if (
    /\b(?:longest|shortest|kürzeste|längste)/i.test(request) &&
    !/dur|len|second|minute|hour|days|span|elapsed|\btime\b|_time\b|\s-\s/i.test(key)
  )
    return notApplicable
  return /\bdesc\b/i.test(key) === !isLeast ? passed : failed('The query takes the rows from the other end.')
}

const DAYS: readonly RegExp[] = [
  /sunday|sonntag|dimanche|domingo|domenica/,
  /monday|montag|lundi|lunes|lunedì/,
  /tuesday|dienstag|mardi|martes|martedì/,
  /wednesday|mittwoch|mercredi|miércoles|mercoledì/,
  /thursday|donnerstag|jeudi|jueves|giovedì/,
  /friday|freitag|vendredi|viernes|venerdì/,
  /saturday|samstag|samedi|sábado|sabato/,
]
const DAY_NAMES = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

const HOURS = 'one two three four five six seven eight nine ten eleven twelve'.split(' ')

/** "6:30", "10 pm", "6 Uhr", "quarter past four in the morning", "midnight", as minutes of the day. */
function timeIn(text: string): number | undefined {
  const at = (hours: number, minutes: number, half: string | undefined) => {
    const isLate = half !== undefined && /^p|evening|afternoon|night|abends|nachmittags/.test(half)
    return ((isLate && hours < 12 ? hours + 12 : half && !isLate && hours === 12 ? 0 : hours) * 60 + minutes) % 1440
  }
  const half =
    '(?:\\s?(am|pm|a\\.m\\.|p\\.m\\.)|\\s?(?:o.clock )?(?:in the|at) (morning|afternoon|evening|night)|\\s?uhr (morgens|abends|nachmittags))?'
  const clock = new RegExp(`\\b(\\d{1,2})[:h.](\\d{2})(?!\\d)${half}`).exec(text)
  if (clock) return at(Number(clock[1]), Number(clock[2]), clock[3] ?? clock[4] ?? clock[5])
  const spoken = new RegExp(`\\b(quarter|half|ten|twenty|five) (past|to) (${HOURS.join('|')})\\b${half}`).exec(text)
  if (spoken) {
    const minutes = { quarter: 15, half: 30, ten: 10, twenty: 20, five: 5 }[spoken[1]!]!
    const hour = HOURS.indexOf(spoken[3]!) + 1
    const daytime = spoken[4] ?? spoken[5] ?? spoken[6]
    if (daytime === undefined) return undefined
    const full = at(hour, 0, daytime)
    return spoken[2] === 'past' ? full + minutes : (full + 1440 - minutes) % 1440
  }
  const whole =
    /\b(\d{1,2})\s?(am|pm|a\.m\.|p\.m\.)(?![a-z])|\b(\d{1,2}) (?:o.clock )?(?:in the|at) (morning|afternoon|evening|night)\b|\b(?:um|à|a las|alle) (\d{1,2}) ?(?:uhr|h\b|heures)/.exec(
      text,
    )
  if (whole) return at(Number(whole[1] ?? whole[3] ?? whole[5]), 0, whole[2] ?? whole[4])
  return /\b(?:midnight|mitternacht|minuit|medianoche)\b/.test(text)
    ? 0
    : /\b(?:noon|mittags|midi)\b/.test(text)
      ? 720
      : undefined
}

const FIELD =
  '(?:[\\d*][\\d*,/-]{0,20}|(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z,-]{0,30})'
const SCHEDULE = new RegExp(`(?:^|[\`"'\\s:])([\\d*][\\d*,/-]{0,20}(?: {1,4}${FIELD}){4,5})(?=[\\s\`"'.,)]|$)`, 'im')
const SHORT_SCHEDULE = new RegExp(
  `^[\`\\s]{0,8}[\\d*][\\d*,/-]{0,20}(?: {1,4}${FIELD}){2,3}(?=[\`\\s]|$)(?! {1,4}[\\d*])`,
  'im',
)

/** A line of cron has five fields, and its hour, minute and day are those of the task. */
function checkCron(task: ReadTask, output: ReadText): Finding {
  const request = task.request.toLowerCase()
  if (
    !/\bcron(?:tab|jobs?)?\b/.test(request) ||
    /\b(?:explain|what does|what do|mean|means|why|debug|fix|wrong|utc|gmt|time ?zone|cet|cest|aws|spring|quartz|seconds)\b/.test(
      request,
    )
  )
    return notApplicable
  const code = codeOf(output)
  const line = SCHEDULE.exec(code)?.[1] ?? SCHEDULE.exec(output.raw)?.[1]
  if (!line)
    return SHORT_SCHEDULE.test(code) && !/@\w{4,9}/.test(code)
      ? failed('A line of cron has five fields.')
      : notApplicable
  const fields = line.split(/ +/)
  if (fields.length !== 5) return notApplicable
  return failureOf(request, fields as [string, string, string, string, string])
}

function failureOf(
  request: string,
  [minute, hour, day, , weekday]: readonly [string, string, string, string, string],
): Finding {
  const wrong = (what: string) => failed(`The ${what} of the schedule is not the one asked for.`)
  const isNumber = (field: string) => /^\d+$/.test(field)
  const time = timeIn(request)
  const [minutes, hours] = [/\bevery (\d{1,2}) minutes\b/, /\bevery (\d{1,2}|two|three|four|six) hours\b/].map(
    (every) => every.exec(request)?.[1],
  )
  if (minutes) {
    if (
      minute !== `*/${minutes}` &&
      !(minutes === '60' && isNumber(minute)) &&
      !minute.includes(',') &&
      !minute.includes(`/${minutes}`)
    )
      return wrong('minute')
  } else if (hours) {
    if (!isNumber(minute)) return wrong('minute')
    if (!hour.endsWith(`/${numberOf(hours)}`) && !hour.includes(',')) return wrong('hour')
  } else if (/\bevery hour\b|\bhourly\b/.test(request)) {
    if (!isNumber(minute)) return wrong('minute')
  } else if (time !== undefined) {
    if (hour === '*' || (isNumber(hour) && Number(hour) !== Math.floor(time / 60))) return wrong('hour')
    if (minute === '*' || (isNumber(minute) && Number(minute) !== time % 60)) return wrong('minute')
  }
  const named = DAYS.flatMap((pattern, index) => (pattern.test(request) ? [index] : []))
  const isDay = (field: string, index: number) =>
    field === String(index) || (index === 0 && field === '7') || field.toLowerCase().startsWith(DAY_NAMES[index]!)
  if (/\bweekdays?\b|\bworking days?\b|\bwerktags?\b/.test(request)) {
    if (!/^(?:1-5|mon-fri|1,2,3,4,5)$/i.test(weekday) && weekday !== '1-6') return wrong('weekday')
  } else if (
    named.length === 1 &&
    !/\b(?:first|second|third|fourth|last) \w{3,9}day\b/.test(request) &&
    !/[,-]/.test(weekday) &&
    !isDay(weekday, named[0]!)
  )
    return wrong('weekday')
  const ordinal =
    /\b(?:on )?the (first|\d{1,2}(?:st|nd|rd|th)) (?:day )?(?:of|in) (?:each|every|the|a) month\b|\bmonthly on the (first|\d{1,2}(?:st|nd|rd|th))\b|\b(?:on )?(?:the )?(\d{1,2}(?:st|nd|rd|th)) of (?:each|every) month\b|\bfirst of (?:each|every|the) month\b/.exec(
      request,
    )
  if (ordinal) {
    const wanted =
      (ordinal[1] ?? ordinal[2] ?? ordinal[3] ?? 'first') === 'first'
        ? 1
        : Number.parseInt(ordinal[1] ?? ordinal[2] ?? ordinal[3]!, 10)
    if (named.length === 0 && day !== String(wanted)) return wrong('day')
  }
  return passed
}
