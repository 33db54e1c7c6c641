import { spendSteps } from '../../platform/step-budget.ts'
import { parseExpression } from './arithmetic.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { isRoughIn, readNumbers, standsFor, type TextNumber } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { partsBetween, type ReadText, sentencesOf, splitFences } from './text.ts'

/** What the answer itself claims to have computed: its equations and the totals of its tables. What it quotes it does not claim. */
export const checkClaims = (task: ReadTask, output: ReadText): Finding =>
  combine([checkEquations(task, readAnswer(output)), checkTables(output)])

/** What the task asks to compute, computed again: the answer has to have the result. */
export const checkResult = (task: ReadTask, output: ReadText): Finding => {
  const answer = readAnswer(output)
  return combine([
    checkExpression(task, answer),
    checkConversion(task, answer),
    checkDays(task, answer),
    checkChange(task, answer),
    checkStatistics(task, answer),
    checkExtremes(task, output),
    checkSplit(task, output),
    checkDerived(task, answer),
    checkTextOperation(task, output),
    checkSmallQuestions(task, output),
  ])
}

type Answer = { text: string; numbers: readonly TextNumber[] }

const readAnswer = (output: ReadText): Answer => {
  const text = splitFences(output.raw).prose.trim() ? output.raw.replaceAll('**', '') : output.raw
  return { text, numbers: readNumbers(text, { words: true }) }
}

const shows = ({ text, numbers }: Answer, value: number, isRough = false) =>
  numbers.some((number) => standsFor(number, value, isRough || isRoughIn(text, number)))

/** "24 × 250 = 6,000": both sides are numbers and signs only. */
function checkEquations(task: ReadTask, { text }: Answer): Finding {
  let isChecked = false
  let quoted: ReadonlySet<string> | undefined
  for (const equation of readEquations(text)) {
    const { sign, left, right, claimed } = equation
    quoted ??= new Set(
      [task.full.raw, ...task.context].flatMap((taskValues) => readEquations(taskValues).map(keyOfEquation)),
    )
    if (quoted.has(keyOfEquation(equation))) continue
    if (/^\s{0,2}[%\s]{0,2}[+*/×÷^−]/.test(right.slice(claimed.end, claimed.end + 4))) {
      // "1/2 + 1/3 = 5/6": both sides are calculations.
      const other = parseExpression(right.split(/[=≈\n]/, 1)[0]!, 'start')
      if (other && Math.abs(other.value - left.value) > 0.01 * Math.abs(left.value))
        return failed(`${left.text.trim()} is not ${other.text.trim()}.`)
      continue
    }
    if (/^\s?[-–]\s?\d/.test(right.slice(claimed.end))) continue
    isChecked = true
    const isRough = sign === '≈' || isRoughIn(right, claimed)
    const values = claimed.isPercent ? [left.value * 100, left.value] : [left.value]
    const isRounded = values.some(
      (value) =>
        standsFor(claimed, value, isRough) ||
        Math.abs(Math.abs(claimed.values[0]!) - Math.abs(value)) <=
          0.5000001 * 10 ** -claimed.decimals * (Number.isInteger(value) && claimed.decimals === 0 ? 0.02 : 1),
    )
    if (!isRounded) return failed(`${left.text.trim()} is not ${claimed.text}.`)
  }
  return isChecked ? passed : notApplicable
}

type Equation = { sign: string; left: { value: number; text: string }; right: string; claimed: TextNumber }

function readEquations(text: string): Equation[] {
  return [...text.matchAll(/[=≈]/g)].flatMap((match) => {
    const left = parseExpression(text.slice(Math.max(0, match.index - 80), match.index), 'end')
    const right = text.slice(match.index + 1, match.index + 40)
    const [claimed] = readNumbers(right)
    if (!left || !claimed || !/^[\s$€£*~]{0,4}[-−]?[\s$€£]{0,2}$/.test(right.slice(0, claimed.start))) return []
    return { sign: match[0], left, right, claimed }
  })
}

const keyOfEquation = ({ left, claimed }: Equation) => `${left.text.replace(/\s/g, '')}=${claimed.text}`

/** The task itself is a calculation: "13*12?", "what's 7 times 6", "15 % of 80". */
function checkExpression(task: ReadTask, answer: Answer): Finding {
  if (task.code || task.full.words.length > 30) return notApplicable
  const text = task.request
    .toLowerCase()
    .replace(/\b(?:times|multiplied by|mal|fois|por|per)\b/g, '*')
    .replace(/\bplus\b|\bund\b(?= ?\d)/g, '+')
    .replace(/\b(?:minus|moins|menos|meno)\b/g, '-')
    .replace(/\b(?:divided by|geteilt durch|divisé par|dividido (?:por|entre)|diviso)\b/g, '/')
    .replace(/(\d)\s?(?:squared)\b/g, '$1^2')
    .replace(/\bto the power of\b/g, '^')
  const share =
    /(\d[\d.,]{0,12})\s?(?:%|percent|per cent|prozent|pour cent|por ciento)\s(?:of|von|de|di)\s[$€£]?\s?(\d[\d.,]{0,15})/.exec(
      text,
    )
  const root = /\b(?:square root of|wurzel (?:aus|von)|racine carrée de|raíz cuadrada de)\s(\d[\d.,]{0,12})/.exec(text)
  const difference = /\bdifference between [$€£]?(\d[\d.,]{0,12}) and [$€£]?(\d[\d.,]{0,12})/.exec(text)
  const product = /\bproduct of (\d[\d.,]{0,12}) and (\d[\d.,]{0,12})/.exec(text)
  let value: number | undefined
  if (share) value = (readNumbers(share[1]!)[0]!.values[0]! / 100) * readNumbers(share[2]!)[0]!.values[0]!
  else if (difference)
    value = Math.abs(readNumbers(difference[1]!)[0]!.values[0]! - readNumbers(difference[2]!)[0]!.values[0]!)
  else if (product) value = readNumbers(product[1]!)[0]!.values[0]! * readNumbers(product[2]!)[0]!.values[0]!
  else if (root) value = Math.sqrt(readNumbers(root[1]!)[0]!.values[0]!)
  else {
    const found = /[\d(][\d\s.,()+*/×÷x^−-]{2,80}/.exec(text)
    const expression = found ? parseExpression(found[0], 'start') : undefined
    // A range ("40-60"), a date or a telephone number is no calculation.
    const isCalculation =
      expression &&
      (/[*×÷^+]|\s[-−/]\s|\d\/\d/.test(expression.text) || /^\s*\d+\s?-\s?\d+\s*[=?]?\s*$/.test(text)) &&
      !/\d\s?\/\s?[\d.,]+\s?\/|\d{1,2}\/\d{1,2}\/\d{2,4}|\d{4}-\d{2}|\d\s?[-–]\s?\d+\s?(?:words|day|week|month|hour|minute|people|euro|%)|24\/7/.test(
        text,
      )
    if (
      isCalculation &&
      /what|how much|calculate|compute|=|\?|result|solve|rechne|berechne|wie viel|combien|calcul|cuánto|calcola|quanto|wieviel|ist|is|evaluate|hoeveel/.test(
        `${text}${/^[\s\d.,()+*/×÷x^−=?-]+$/.test(text) ? '?' : ''}`,
      )
    )
      value = expression.value
  }
  if (value === undefined || !Number.isFinite(value)) return notApplicable
  // "144 divided by 12 is 14" shows 12 as well: then the last number of the first sentence with one is the result.
  const operands = readNumbers(task.request, { words: true }).flatMap(({ values }) => values)
  if (operands.includes(value)) {
    const sentence = sentencesOf(answer.text).find((part) => readNumbers(part, { words: true }).length > 0) ?? ''
    const last = readNumbers(sentence, { words: true }).at(-1)
    return last && (standsFor(last, value) || sentencesOf(answer.text).length > 1)
      ? passed
      : failed('The result is not the one that the calculation gives.')
  }
  return shows(answer, value, /\b(?:about|roughly|approx|estimate)/.test(text)) ||
    (Math.abs(value) < 1 && shows(answer, value * 100))
    ? passed
    : failed('The result is not the one that the calculation gives.')
}

const UNITS: readonly (readonly [string, RegExp, string, number])[] = [
  ['km', /^(?:km|kilomet(?:er|re)s?|kilómetros?|kilomètres?|chilometri)$/, 'length', 1000],
  ['m', /^(?:m|met(?:er|re)s?|metros?|mètres?|metri)$/, 'length', 1],
  ['cm', /^(?:cm|centimet(?:er|re)s?)$/, 'length', 0.01],
  ['mm', /^(?:mm|millimet(?:er|re)s?)$/, 'length', 0.001],
  ['mile', /^(?:mi|miles?|meilen?|millas?|miglia)$/, 'length', 1609.344],
  ['yard', /^(?:yd|yards?)$/, 'length', 0.9144],
  ['foot', /^(?:ft|foot|feet)$/, 'length', 0.3048],
  ['inch', /^(?:inch|inches|zoll|pulgadas?|pouces?)$/, 'length', 0.0254],
  ['kg', /^(?:kg|kilos?|kilograms?|kilogramm)$/, 'mass', 1],
  ['g', /^(?:g|grams?|gramm)$/, 'mass', 0.001],
  ['lb', /^(?:lbs?|pounds?|pfund|libras?)$/, 'mass', 0.45359237],
  ['oz', /^(?:oz|ounces?|unzen?)$/, 'mass', 0.028349523],
  ['tonne', /^(?:t|tonnes?|tons?)$/, 'mass', 1000],
  ['stone', /^stones?$/, 'mass', 6.35029318],
  ['l', /^(?:l|lit(?:er|re)s?|litros?)$/, 'volume', 1],
  ['ml', /^(?:ml|millilit(?:er|re)s?)$/, 'volume', 0.001],
  ['gallon', /^gallons?$/, 'volume', 3.785411784],
  ['pint', /^pints?$/, 'volume', 0.473176473],
  ['cup', /^cups?$/, 'volume', 0.2365882365],
  ['c', /^(?:c|°c|celsius)$/, 'temperature', 0],
  ['f', /^(?:f|°f|fahrenheit)$/, 'temperature', 0],
  ['kelvin', /^(?:k|kelvin)$/, 'temperature', 0],
  ['s', /^(?:s|sec|secs|seconds?|sekunden)$/, 'time', 1],
  ['min', /^(?:min|mins|minutes?|minuten)$/, 'time', 60],
  ['h', /^(?:h|hrs?|hours?|stunden?)$/, 'time', 3600],
  ['d', /^(?:d|days?|tage?n?)$/, 'time', 86_400],
  ['week', /^(?:weeks?|wochen?)$/, 'time', 604_800],
  ['kb', /^(?:kb|kilobytes?)$/, 'data', 1e3],
  ['mb', /^(?:mb|megabytes?)$/, 'data', 1e6],
  ['gb', /^(?:gb|gigabytes?)$/, 'data', 1e9],
  ['tb', /^(?:tb|terabytes?)$/, 'data', 1e12],
  ['kmh', /^(?:km\/h|kmh|kph)$/, 'speed', 1 / 3.6],
  ['mph', /^mph$/, 'speed', 0.44704],
  ['ms', /^m\/s$/, 'speed', 1],
  ['ha', /^(?:ha|hectares?|hektar)$/, 'area', 10_000],
  ['acre', /^acres?$/, 'area', 4046.8564224],
]
const findUnit = (word: string) => UNITS.find(([, pattern]) => pattern.test(word.toLowerCase()))

/** "convert 5 km to miles", "12 inches in cm?", "98.6F to C". */
function checkConversion(task: ReadTask, answer: Answer): Finding {
  if (task.full.words.length > 12) return notApplicable
  const match =
    /(-?\d[\d.,]{0,14})\s?(°?[a-z/]{1,12}|meilen|zoll|pfund)\s(?:to|in|into|nach|en|em|equals?|=)\s?(?:how many\s)?(°?[a-z/]{1,12})\b/i.exec(
      task.request,
    )
  const many = match
    ? undefined
    : /\bhow many ([a-z]{1,12}) (?:are |is |make )?(?:there )?in (?:a |an |one )?(\d[\d.,]{0,14})?\s?([a-z]{1,12})\b/i.exec(
        task.request,
      )
  const [amountText, fromText, toText] = match
    ? [match[1], match[2], match[3]]
    : [many?.[2] ?? '1', many?.[3], many?.[1]]
  const from = findUnit(fromText ?? '')
  const to = findUnit(toText ?? '')
  if (!from || !to || from[2] !== to[2] || from[0] === to[0]) return notApplicable
  const amount = readNumbers(amountText!)[0]?.values[0] ?? 0
  const signed = amountText!.startsWith('-') ? -Math.abs(amount) : amount
  const value = from[2] === 'temperature' ? toTemperature(signed, from[0], to[0]) : (signed * from[3]) / to[3]
  const isNear = (number: TextNumber) =>
    number.values.some(
      (written) =>
        Math.abs(Math.abs(written) - Math.abs(value)) <=
        Math.max(0.5000001 * 10 ** -number.decimals * (Math.abs(value) < 20 ? 0.2 : 1), Math.abs(value) * 0.012),
    )
  return answer.numbers.some(isNear) ? passed : failed('The conversion is not right.')
}

function toTemperature(value: number, from: string, to: string): number {
  const celsius = from === 'c' ? value : from === 'f' ? ((value - 32) * 5) / 9 : value - 273.15
  return to === 'c' ? celsius : to === 'f' ? (celsius * 9) / 5 + 32 : celsius + 273.15
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const MONTH_NAME = '(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}'
const DATE = new RegExp(
  `\\b(\\d{1,2})(?:st|nd|rd|th)? (?:of )?(${MONTH_NAME})\\b(?:,? (\\d{4}))?|\\b(${MONTH_NAME}) (\\d{1,2})(?:st|nd|rd|th)?\\b(?:,? (\\d{4}))?`,
  'gi',
)
const monthOf = (word: string) => MONTHS.indexOf(word.slice(0, 3).toLowerCase())

/** "How many days from 3 March to 17 March?" */
function checkDays(task: ReadTask, answer: Answer): Finding {
  if (!/\bhow many days\b|\bdays (?:are there )?(?:from|between)\b/i.test(task.request)) return notApplicable
  const dates = [...task.request.matchAll(DATE)]
    .map(([, day, month, year, monthFirst, dayAfter, yearAfter]) => ({
      day: Number(day ?? dayAfter),
      month: monthOf(month ?? monthFirst!),
      year: Number(year ?? yearAfter ?? 0),
    }))
    .filter(({ month, day }) => month >= 0 && day >= 1 && day <= 31)
  if (dates.length !== 2) return notApplicable
  const [first, second] = dates as [(typeof dates)[0], (typeof dates)[0]]
  const years =
    first.year || second.year
      ? [[first.year || second.year, second.year || first.year]]
      : [
          [2023, 2023],
          [2024, 2024],
          [2023, 2024],
          [2024, 2025],
        ]
  const differences = years
    .map(([a, b]) =>
      Math.round((Date.UTC(b!, second.month, second.day) - Date.UTC(a!, first.month, first.day)) / 86_400_000),
    )
    .filter((days) => days >= 0 && days < 4_000)
  const isInclusive = /\binclu/i.test(`${task.request} ${answer.text}`)
  return differences.some((days) => shows(answer, days) || (isInclusive && shows(answer, days + 1)))
    ? passed
    : failed('The number of days is not right.')
}

/** "from 80,000 to 92,000: growth in percent?" and "what share of 250 if 35 bought?" */
function checkChange(task: ReadTask, answer: Answer): Finding {
  if (task.full.words.length > 60) return notApplicable
  const percents = answer.numbers.filter((number) => number.isPercent)
  if (percents.length === 0) return notApplicable
  const request = task.full.raw
  const change =
    /\bfrom\s[$€£]?\s?(\d[\d.,]{0,15}[km]?)\s?[^\s\d]{0,12}\sto\s[$€£]?\s?(\d[\d.,]{0,15}[km]?)|\bvon\s(\d[\d.,]{0,15})\s?\p{L}{0,12}\sauf\s(\d[\d.,]{0,15})/iu.exec(
      request,
    )
  const asksChange =
    /\bpercent|%|\bgrowth rate|\b(?:growth|change|increase|drop|decline|decrease|rise)\?|\bprozent|\bhow (?:big|much|large|strong)|\bby how|\bpourcent|\bporcentaje|\bpor ciento/i.test(
      request,
    )
  if (change && asksChange) {
    const from = readNumbers(change[1] ?? change[3]!)[0]!.values
    const to = readNumbers(change[2] ?? change[4]!)[0]!.values
    const expected = from.flatMap((a) => to.map((b) => (100 * (b - a)) / a))
    const isRough = /\b(?:roughly|about|approx)/i.test(request)
    return expected.some((value) =>
      percents.some(
        (number) =>
          standsFor(number, value, isRough || isRoughIn(answer.text, number)) ||
          Math.abs(Math.abs(number.values[0]!) - Math.abs(value)) <= 0.5000001 * 10 ** -number.decimals,
      ),
    )
      ? passed
      : failed('The change in percent is not right.')
  }
  const numbers = readNumbers(request).filter(
    (number) =>
      !number.isPercent &&
      !/^(?:19|20)\d\d$/.test(number.text) &&
      !/[A-Za-z]$/.test(request.slice(Math.max(0, number.start - 1), number.start)),
  )
  if (
    numbers.length === 2 &&
    /\b(?:share|percent(?:age)?|conversion|proportion|fraction|what %|rate|growth|grow|grew|increase|decrease|drop|decline|change|margin|churn|anteil|prozent|pourcentage|porcentaje|percentuale)\b/i.test(
      request,
    ) &&
    !/\b(?:interest|tax|vat|discount|off|tip|compound|per year|annual|roi)\b|%/i.test(request)
  ) {
    const [a, b] = numbers.map(({ values }) => values[0]!) as [number, number]
    const expected = [
      (100 * a) / b,
      (100 * b) / a,
      (100 * (a - b)) / a,
      (100 * (a - b)) / b,
      (100 * a) / (a + b),
      (100 * b) / (a + b),
    ]
    return expected.some((value) =>
      percents.some(
        (number) =>
          Math.abs(Math.abs(number.values[0]!) - Math.abs(value)) <= 0.5000001 * 10 ** -number.decimals ||
          (isRoughIn(answer.text, number) && Math.abs(number.values[0]! - value) <= 0.06 * Math.abs(value)),
      ),
    )
      ? passed
      : failed('The share is not right.')
  }
  return notApplicable
}

const deviationOf = (values: readonly number[], divisor: number) => {
  const mean = sumOf(values) / values.length
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / divisor)
}

const STATISTICS: readonly (readonly [string, RegExp, (values: readonly number[]) => number[]])[] = [
  [
    'sum',
    /\b(?:sum|total|add (?:up|these|them|the)|altogether|in total|summe|gesamt\w{0,5}|addiere|somme|total\w?|suma|somma|totale|soma|totaal|som)\b/i,
    (values) => [sumOf(values)],
  ],
  [
    'mean',
    /\b(?:mean|average|avg|durchschnitt|mittelwert|moyenne|media|promedio|média|gemiddelde)\b/i,
    (values) => [sumOf(values) / values.length],
  ],
  ['median', /\b(?:median|médiane|mediana|zentralwert|mediaan)\b/i, (values) => [medianOf(values)]],
  ['mode', /\bmode of\b/i, modesOf],
  ['smallest', /\b(?:smallest|lowest|minimum|min)\b/i, (values) => [Math.min(...values)]],
  ['largest', /\b(?:largest|biggest|highest|maximum|max)\b(?! \d)/i, (values) => [Math.max(...values)]],
  [
    'standard deviation',
    /\bstandard deviation\b|\bstandardabweichung\b|\bécart[- ]type\b/i,
    (values) => [deviationOf(values, values.length), deviationOf(values, values.length - 1)],
  ],
  ['range', /\brange (?:of|:)|\bspannweite\b/i, (values) => [Math.max(...values) - Math.min(...values)]],
]

const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)
const medianOf = (values: readonly number[]) => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

function modesOf(values: readonly number[]): number[] {
  const counts = new Map<number, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  const most = Math.max(...counts.values())
  return [...counts].filter(([, count]) => count === most).map(([value]) => value)
}

/** The figures a task gives, read in several ways: as a list, by columns, by what follows a colon, as quantity times price. */
export function datasetsOf(task: ReadTask): number[][] {
  const text = task.full.raw
  spendSteps(text.length * 6)
  const firstValue = (number: TextNumber) => number.values[0]!
  const clean = (part: string) =>
    readNumbers(part).filter((number) => {
      const before = part.slice(Math.max(0, number.start - 3), number.start)
      const after = part.slice(number.end, number.end + 16)
      // "Q1", "H2", "2 decimals" and "top 3" are no data.
      return (
        !/[A-Za-z_]$/.test(before) &&
        !/^\s?(?:decimals?|decimal places|biggest|largest|smallest|highest|lowest|nachkommastellen|d[eé]cimal\w{0,3})/i.test(
          after,
        )
      )
    })
  const sets: number[][] = []
  const push = (values: number[]) => {
    if (values.length >= 2 && values.length <= 400) sets.push(values)
  }
  const all = clean(text)
  push(all.map(firstValue))
  push(all.filter((number) => !number.isPercent && !/^(?:19|20)\d\d$/.test(number.text)).map(firstValue))
  push(all.map((number) => number.values.at(-1)!))
  const colon = text.search(/[::]/)
  if (colon > 0) push(clean(text.slice(colon + 1)).map(firstValue))
  for (const sentence of sentencesOf(text).slice(0, 20)) push(clean(sentence).map(firstValue))
  const [bracket] = partsBetween(text, '[', ']', 4_000)
  if (bracket) push(clean(bracket).map(firstValue))
  const runs = text.split(/[\p{L}:()[\]{}"']/u).filter((part) => /\d/.test(part))
  for (const run of runs.slice(0, 20)) push((run.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number))
  const rows = text
    .split('\n')
    .map((line) => line.split(/[,;\t|]/))
    .filter((cells) => cells.length >= 2)
  const width = Math.max(0, ...rows.slice(0, 500).map((cells) => cells.length))
  for (let column = 0; column < Math.min(width, 12); column++)
    push(
      rows
        .map((cells) => Number((cells[column] ?? '').trim().replace(/^[$€£]/, '') || Number.NaN))
        .filter(Number.isFinite),
    )
  const priced = [
    ...text.matchAll(
      /(\d[\d.,]{0,9})\s?(?:x|×|\*|\p{L}{1,20}(?: \p{L}{1,20})?)?\s?(?:at|@|à|for|zu je|je|a|x|×|\*)\s?[$€£]?\s?(\d[\d.,]{0,9})/giu,
    ),
  ].slice(0, 100)
  if (priced.length >= 1)
    push([...priced.map((match) => readNumbers(match[1]!)[0]!.values[0]! * readNumbers(match[2]!)[0]!.values[0]!), 0])
  return sets
}

/** The answer without the figures of the task that it repeats in their order, among which the result could hide. */
function withoutRestated(answer: Answer, datasets: readonly (readonly number[])[]): Answer {
  const data = datasets[0]!
  const { numbers } = answer
  const isRestated = numbers.map(() => false)
  for (let start = 0; start < numbers.length; start++) {
    const from = data.findIndex((value) => numbers[start]!.values.includes(value))
    if (from < 0) continue
    let length = 0
    while (
      start + length < numbers.length &&
      from + length < data.length &&
      numbers[start + length]!.values.includes(data[from + length]!)
    )
      length++
    if (length >= 3) for (let i = start; i < start + length; i++) isRestated[i] = true
    if (length >= 3) start += length - 1
  }
  return { text: answer.text, numbers: numbers.filter((_, index) => !isRestated[index]) }
}

function checkStatistics(task: ReadTask, answer: Answer): Finding {
  const wanted = STATISTICS.filter(([, pattern]) => pattern.test(task.request))
  if (
    wanted.length === 0 ||
    task.code ||
    /\b(?:moving|rolling|weighted|cumulative|running|by (?:region|month|category|week|quarter|product)|per (?:month|week|day|region|category|year)|each|trimmed|geometric|gleitend\w{0,3}|gewichtet\w{0,3}|above|below|greater|more than|less than|top \d|excluding|without|except|only the|discount|tax|vat|interest)\b/i.test(
      task.request,
    ) ||
    task.is.creative ||
    /\bwhat (?:does|do|did|would)\b.{0,200}\bmean\b/i.test(task.request)
  )
    return notApplicable
  const datasets = datasetsOf(task).filter((values) => values.length >= 2)
  if (
    datasets.length === 0 ||
    answer.numbers.length === 0 ||
    (Math.max(...datasets.map((values) => values.length)) < 3 && task.full.words.length > 40)
  )
    return notApplicable
  const claims = withoutRestated(answer, datasets)
  if (claims.numbers.length === 0) return notApplicable
  for (const [name, , compute] of wanted) {
    // "max 8 words" and "the largest customers" ask for no statistic.
    if (
      (name === 'smallest' || name === 'largest') &&
      (!task.agentId.startsWith('analyst') ||
        task.full.words.length > 30 ||
        /\bwhich\b|\b(?:words|outlier\w?|change|drop|increase)\b/i.test(task.request))
    )
      continue
    if (
      name === 'mean' &&
      datasets.every((values) => values.length < 3) &&
      /\b(?:speed|rate|price|cost|order value)\b/i.test(task.request)
    )
      continue
    if (name === 'sum' && !/^(?:analyst|default)/.test(task.agentId) && !/\b(?:sum|add)\b/i.test(task.request)) continue
    const expected = datasets.flatMap(compute)
    if (!expected.some((value) => shows(claims, value)))
      return failed(`The ${name} is not the one of the figures given.`)
  }
  return passed
}

/** "Which month is highest? Jan 40, Feb 55": the label of the largest figure has to be named. */
function checkExtremes(task: ReadTask, output: ReadText): Finding {
  const request = task.request
  const wantsMax = /\bwhich\b.{0,60}\b(?:highest|largest|biggest|most|greatest|best-selling|maximum)\b/i.test(request)
  const wantsMin = /\bwhich\b.{0,60}\b(?:lowest|smallest|least|fewest|cheapest|minimum)\b/i.test(request)
  if (wantsMax === wantsMin || task.full.words.length > 120) return notApplicable
  const pairs = [
    ...task.full.raw.matchAll(
      /([\p{L}][\p{L}\d .-]{0,30}?)\s?[:=]?\s?[$€£]?(\d[\d.,]{0,14})(?=\s?[,;.\n)]|\s?$|\s?%|\s?[km]\b)/gu,
    ),
  ].map((match) => ({
    label: match[1]!.trim().split(/\s/).at(-1)!.toLowerCase(),
    value: readNumbers(match[2]!)[0]?.values[0] ?? Number.NaN,
  }))
  if (pairs.length < 3 || pairs.some(({ value }) => Number.isNaN(value))) return notApplicable
  const target = pairs.reduce((best, pair) =>
    (wantsMax ? pair.value > best.value : pair.value < best.value) ? pair : best,
  )
  const text = output.raw.toLowerCase()
  return text.includes(target.label) ? passed : failed('It does not name the figure that is asked for.')
}

const TOTAL = /^\W*(?:grand )?(?:totals?|sum|all|overall|gesamt|summe|insgesamt|somme|suma|totale|soma|totaal)\W*$/i
const isRow = (line: string) => line.includes('|')

type Table = { header: string[]; rows: string[][] }

function tablesOf(output: ReadText): Table[] {
  const tables: Table[] = []
  let rows: string[][] = []
  const close = () => {
    if (rows.length >= 2) tables.push({ header: rows[0]!, rows: rows.slice(1) })
    rows = []
  }
  for (const line of output.lines) {
    if (!isRow(line)) close()
    else if (!/^[\s|:-]+$/.test(line))
      rows.push(
        line
          .replace(/^\||\|$/g, '')
          .split('|')
          .map((cell) => cell.replaceAll('*', '').trim())
          .slice(0, 30),
      )
  }
  close()
  return tables.slice(0, 10)
}

const cellNumber = (cell: string | undefined): TextNumber | undefined => {
  const numbers = readNumbers(cell ?? '')
  return numbers.length === 1 && !/[\p{L}]{3}/u.test((cell ?? '').replace(/\b(?:usd|eur|gbp|chf)\b/gi, ''))
    ? numbers[0]
    : undefined
}

/** The rows and columns that a table calls its total add up. */
function checkTables(output: ReadText): Finding {
  let isChecked = false
  for (const { header, rows } of tablesOf(output)) {
    const totalRow = rows.length >= 3 && TOTAL.test(rows.at(-1)![0] ?? '') ? rows.at(-1)! : undefined
    const body = totalRow ? rows.slice(0, -1) : rows
    for (let column = 1; totalRow && column < header.length; column++) {
      const total = cellNumber(totalRow[column])
      const cells = body.map((row) => cellNumber(row[column]))
      if (
        !total ||
        cells.some((cell) => cell === undefined) ||
        /%|rate|price|average|avg|mean|share|per |margin|growth|preis|anteil|mittel/i.test(header[column]!) ||
        total.isPercent
      )
        continue
      isChecked = true
      if (
        !standsFor(total, sumOf(cells.map((cell) => cell!.values[0]!))) &&
        !standsFor(total, sumOf(cells.map((cell) => cell!.values.at(-1)!)))
      )
        return failed('A total in the table is not the sum of its column.')
    }
    const totalColumn = header.findIndex(
      (name, index) =>
        index > 1 &&
        index === header.length - 1 &&
        /^(?:row )?(?:totals?|sum|subtotal|amount|gesamt|summe|betrag|total|montant)$/i.test(name),
    )
    if (totalColumn < 0) continue
    for (const row of body) {
      const total = cellNumber(row[totalColumn])
      const cells = row
        .slice(1, totalColumn)
        .map(cellNumber)
        .flatMap((cell) => (cell ? [cell.values[0]!] : []))
      if (!total || cells.length < 2) continue
      isChecked = true
      const product = cells.reduce((result, value) => result * value, 1)
      if (!standsFor(total, sumOf(cells)) && !standsFor(total, product))
        return failed('A total in the table is not the sum of its row.')
    }
  }
  return isChecked ? passed : notApplicable
}

/** "Split 10,000 over four channels": the parts add up to the whole. */
function checkSplit(task: ReadTask, output: ReadText): Finding {
  if (
    !/\b(?:split|allocate|divide|distribute|apportion|verteil\w{0,3}|aufteil\w{0,3}|teile|répart\w{0,4}|reparte|distribuye|ripartisci|divida)\b.{0,40}\d|\badds? up\b|\bsums? (?:up )?to \d/i.test(
      task.request,
    ) ||
    task.code
  )
    return notApplicable
  const whole = Math.max(
    0,
    ...readNumbers(task.request).flatMap(({ values, isPercent }) => (isPercent ? [] : [values[0]!])),
  )
  if (whole < 10) return notApplicable
  const candidates: number[] = []
  for (const { header, rows } of tablesOf(output))
    for (let column = 1; column < header.length; column++) {
      const body = TOTAL.test(rows.at(-1)?.[0] ?? '') ? rows.slice(0, -1) : rows
      const cells = body.map((row) => cellNumber(row[column]))
      if (body.length >= 2 && cells.every((cell) => cell && !cell.isPercent))
        candidates.push(sumOf(cells.map((cell) => cell!.values[0]!)))
    }
  const items = output.lines.filter(
    (line) =>
      /^(?:[-*•]|\d{1,2}[.)])\s/.test(line) &&
      !TOTAL.test(line.replace(/^[-*•\d.)\s]+/, '').split(/[:\s]/, 1)[0] ?? ''),
  )
  const amounts = items.map((line) =>
    readNumbers(line.replace(/^(?:[-*•]|\d{1,2}[.)])\s/, '')).filter((number) => !number.isPercent),
  )
  if (items.length >= 2 && amounts.every((numbers) => numbers.length === 1))
    candidates.push(sumOf(amounts.map(([number]) => number!.values[0]!)))
  if (candidates.length === 0) return notApplicable
  return candidates.some((sum) => Math.abs(sum - whole) < 0.5 || Math.abs(sum - 100) < 0.5)
    ? passed
    : failed('The parts do not add up to the whole.')
}

/** Sorting, reversing and counting letters. */
function checkTextOperation(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw
  if (request.length > 400 || task.code) return notApplicable
  const list = /\b(sort\w{0,3}|order|alphabeti[sz]e|arrange|rank)\b[^:]{0,60}:\s?(.{3,300})/i.exec(request)
  if (list) {
    const items = list[2]!
      .split(/[,;\n]/)
      .map((item) => item.trim().replace(/[.?!]$/, ''))
      .filter(Boolean)
    const isNumeric = items.every((item) => /^-?\d+(?:\.\d+)?$/.test(item))
    if (items.length < 3 || (!isNumeric && !/alphabet/i.test(request))) return notApplicable
    const sorted = isNumeric
      ? [...items].sort((a, b) => Number(a) - Number(b))
      : [...items].sort((a, b) => a.toLowerCase().localeCompare(b.toLowerCase(), 'en'))
    if (/\b(?:descending|reverse|largest first|high(?:est)? to low|z to a|z-a|biggest first)\b/i.test(request))
      sorted.reverse()
    const text = output.raw.toLowerCase()
    let at = -1
    for (const item of sorted) {
      const next = isNumeric ? findWhole(text, item, at + 1) : text.indexOf(item.toLowerCase(), at + 1)
      if (next < 0) return failed('It is not in the order asked for.')
      at = next
    }
    return passed
  }
  const letters =
    /\bhow many (?:letters|characters) (?:are |does )?(?:there )?(?:in )?(?:the word )?["'“]?(\p{L}{2,40})["'”]?\s?(?:have)?/iu.exec(
      request,
    )
  if (letters && !/^(?:are|does|in|the|word)$/i.test(letters[1]!))
    return readNumbers(output.raw, { words: true }).some((number) => number.values.includes(letters[1]!.length))
      ? passed
      : failed('The number of letters is not right.')
  const occurrences =
    /\bhow many (?:letters? )?["'“]?(\p{L})["'”]?(?:['’]?s)? (?:are |does )?(?:there )?(?:in )(?:the word )?["'“]?(\p{L}{3,40})/iu.exec(
      request,
    )
  if (occurrences) {
    const count = [...occurrences[2]!.toLowerCase()].filter((letter) => letter === occurrences[1]!.toLowerCase()).length
    return readNumbers(output.raw, { words: true }).some((number) => number.values.includes(count)) ||
      (count === 1 && /\bonce\b/i.test(output.raw))
      ? passed
      : failed('The number of letters is not right.')
  }
  const reversed =
    /\b(?:reverse|spell|write)\b[^"'“:]{0,40}["'“: ]\s?["'“]?(\p{L}{3,30})["'”]?\s?(?:backwards|in reverse|rückwärts)?[.?!]?$/iu.exec(
      request.trim(),
    )
  if (reversed && /\b(?:reverse|backwards|rückwärts)\b/i.test(request)) {
    const expected = [...reversed[1]!.toLowerCase()].reverse().join('')
    return output.raw.toLowerCase().replace(/[\s-]/g, '').includes(expected)
      ? passed
      : failed('It is not the word in reverse.')
  }
  return notApplicable
}

const WEEKDAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']
const DAY_WORDS: Readonly<Record<string, number>> = { a: 1, one: 1, two: 2, three: 3, four: 4, five: 5, six: 6 }

/** Weekdays counted on, the larger of two numbers, running sums, the length of a word in code, letters and capitals. */
function checkSmallQuestions(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 400)
  const answer = output.raw.toLowerCase()
  const shift =
    /\b(?:(a|one|two|three|four|five|six|\d{1,3}) days? |the day )?(after|before|from) (monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b/i.exec(
      request,
    )
  if (shift && /\b(?:what|which) (?:week)?day\b/i.test(request)) {
    const count = shift[1] ? (DAY_WORDS[shift[1].toLowerCase()] ?? Number(shift[1])) : 1
    const from = WEEKDAYS.indexOf(shift[3]!.toLowerCase())
    const day = WEEKDAYS[(((from + (shift[2]!.toLowerCase() === 'before' ? -count : count)) % 7) + 7) % 7]!
    return WEEKDAYS.some((name) => answer.includes(name)) && !answer.includes(day)
      ? failed('It names another weekday.')
      : passed
  }
  const pair =
    /\bwhich (?:number )?is (bigger|larger|greater|higher|more|smaller|less|lower)\b[^\d]{0,20}(\d[\d.,/]{0,12}\d|\d)\s?(?:or|and|,)\s?(\d[\d.,/]{0,12}\d|\d)/i.exec(
      request,
    )
  if (pair) {
    const [a, b] = [readNumbers(pair[2]!)[0], readNumbers(pair[3]!)[0]]
    const [first] = readNumbers(output.raw)
    if (!a || !b || !first) return notApplicable
    const [x, y] = [a.values[0]!, b.values[0]!]
    const expected = /smaller|less|lower/i.test(pair[1]!) ? Math.min(x, y) : Math.max(x, y)
    return first.values.includes(expected) ? passed : failed('It names the wrong one of the two numbers.')
  }
  if (/\b(?:cumulative|running) (?:sum|total)/i.test(request)) {
    const [data] = datasetsOf(task)
    if (!data || data.length < 3) return notApplicable
    let sum = 0
    const sums = data.map((value) => (sum += value))
    const numbers = readNumbers(output.raw)
    return sums.every((value) => numbers.some((number) => standsFor(number, value)))
      ? passed
      : failed('A running sum is not right.')
  }
  const length = /\blen\(["']([^"']{0,80})["']\)|["']([^"']{0,80})["']\.length\b/.exec(request)
  if (length)
    return readNumbers(output.raw, { words: true }).some(({ values }) =>
      values.includes((length[1] ?? length[2])!.length),
    )
      ? passed
      : failed('The length is not right.')
  const spelled = /^\W*(?:how do you )?spell (?:the word )?["'“]?(\p{L}{3,40})["'”]?\W*$/iu.exec(request.trim())
  if (spelled)
    return answer.replace(/[^\p{L}]/gu, '').includes(spelled[1]!.toLowerCase())
      ? passed
      : failed('It is spelled otherwise.')
  const raised =
    /^\W*(uppercase|capitali[sz]e all|lowercase) (?:this|the following)?(?: text| sentence| word)?s?: ?(.{1,200})$/i.exec(
      request.trim(),
    )
  if (raised) {
    const text = raised[2]!.replace(/^["“]|["”]$/g, '')
    return output.raw.includes(/^lower/i.test(raised[1]!) ? text.toLowerCase() : text.toUpperCase())
      ? passed
      : failed('The letters are not as asked for.')
  }
  return notApplicable
}

function findWhole(text: string, item: string, from: number): number {
  for (let at = text.indexOf(item, from); at >= 0; at = text.indexOf(item, at + 1))
    if (!/[\d.]/.test(text[at - 1] ?? ' ') && !/\d/.test(text[at + item.length] ?? ' ')) return at
  return -1
}

/** Totals that an analyst computes from quantities and prices. */
const ANALYSED = /\b(?:revenue|total|profit|cost)\b/i
const QUANTITATIVE =
  /\b(?:cheaper|break-?even|payback|how much|total cost|cost over|costs? more|save|savings|more expensive|profit|margin|revenue per|wie viel|günstiger|combien|cuánto|quanto)\b/i
const ADVANCED =
  /\b(?:forecast\w{0,3}|regression|correlation|deviation|compound|interest|npv|irr|variance|percentile|quartile|confidence|probability|cagr|present value|mortgage|annuity|estimate|assum\w{1,5}|typical\w{0,2}|tax|inflation|exchange|usd|eur in)\b/i
const MAX_BASE = 14

/** Figures of three digits and more follow from the figures given by at most three operations. */
function checkDerived(task: ReadTask, answer: Answer): Finding {
  const text = task.full.raw
  const isAnalysed =
    task.agentId.startsWith('analyst') &&
    ANALYSED.test(task.request) &&
    /\b(?:at|for|each|à|je)\b.{0,4}\d|[×x*] ?\d/i.test(task.request) &&
    task.full.words.length <= 40
  if (
    !(QUANTITATIVE.test(task.request) || isAnalysed) ||
    ADVANCED.test(text) ||
    task.code ||
    !/^(?:analyst|strategist|default)/.test(task.agentId)
  )
    return notApplicable
  const numbers = readNumbers(text, { words: true })
  const taskValues = numbers.map(({ values }) => values[0]!)
  if (taskValues.length < 3 || taskValues.length > MAX_BASE - 4) return notApplicable
  const base = new Set([
    ...taskValues,
    ...(/month|year/i.test(text) ? [12] : []),
    ...(/\btwo years|2 years/i.test(text) ? [24] : []),
    ...(/\bweek/i.test(text) ? [52, 4] : []),
    ...(/\bday/i.test(text) ? [7, 30, 365] : []),
  ])
  const candidates = answer.numbers.filter(
    (number) =>
      !number.isWord &&
      !number.isPercent &&
      Math.abs(number.values[0]!) >= 100 &&
      !isRoughIn(answer.text, number) &&
      !numbers.some(({ values }) => values.some((value) => number.values.includes(value))),
  )
  if (candidates.length === 0 || candidates.length > 20) return notApplicable
  const { totals, differences } = derive([...base].slice(0, MAX_BASE))
  const isDifference = ({ start, end }: TextNumber) =>
    /\b(?:sav\w{1,4}|difference|gap|extra|net|profit|loss|gain|by|ersparnis|unterschied)\b/i.test(
      answer.text.slice(Math.max(0, start - 25), start),
    ) || /^\s?(?:\w{1,8}\s)?(?:more|less|cheaper|ahead|net)\b/i.test(answer.text.slice(end, end + 20))
  const underived = candidates.find((number) => {
    const written = { ...number, values: number.values.slice(0, 1) }
    return (
      !totals.some((value) => standsFor(written, value)) &&
      !(isDifference(number) && differences.some((value) => standsFor(written, value)))
    )
  })
  return underived ? failed(`${underived.text} does not follow from the figures given.`) : passed
}

/** Rate times time, plus or minus what comes once; fixed costs by the margin; and differences of two such totals. */
function derive(base: readonly number[]): { totals: number[]; differences: number[] } {
  const totals = new Set<number>(base)
  spendSteps(base.length ** 3 * 8)
  for (const a of base)
    for (const b of base) {
      totals
        .add(a + b)
        .add(Math.abs(a - b))
        .add(a * b)
      if (b) totals.add(a / b)
      for (const c of base) {
        totals
          .add(a * b + c)
          .add(Math.abs(a * b - c))
          .add((a + b) * c)
          .add(Math.abs(a - b) * c)
          .add(a + b + c)
          .add(a * b * c)
        if (a !== b) totals.add(c / Math.abs(a - b))
        if (c)
          totals
            .add((a * b) / c)
            .add((a + b) / c)
            .add(Math.abs(a - b) / c)
      }
    }
  const sums = [...totals].filter((value) => value >= 100).slice(0, 400)
  spendSteps(sums.length ** 2)
  return { totals: [...totals], differences: sums.flatMap((a) => sums.map((b) => Math.abs(a - b))) }
}
