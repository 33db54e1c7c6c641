import { type Answer, cellNumber, readAnswer, shows, sumOf, TOTAL, tablesOf } from './answer-numbers.ts'
import { parseExpression } from './arithmetic.ts'
import { checkCalendar } from './calendar.ts'
import { datasetsOf } from './datasets.ts'
import { checkDerived } from './derived-figures.ts'
import { combine, doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { checkGivenRates } from './given-rates.ts'
import { checkListOperations, checkOccurrences } from './list-operations.ts'
import { checkNamedFigures } from './named-figures.ts'
import { checkNumberQuestions } from './number-questions.ts'
import { isRoughIn, readNumbers, standsFor, type TextNumber } from './numbers.ts'
import { checkExtremes, checkOrder, checkRatioOrder, checkShownOrder } from './ordering.ts'
import { checkPlanLimits } from './plan-limits.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, sentencesOf } from './text.ts'
import { checkTextQuestions } from './text-questions.ts'

/** What the task asks to compute, computed again: the answer has to have the result. */
export const checkResult = (task: ReadTask, output: ReadText): Finding => {
  const answer = readAnswer(output)
  return combine([
    checkExpression(task, answer),
    checkConversion(task, answer),
    checkCalendar(task, answer),
    checkChange(task, answer),
    hasWeights(task) ? doubt(checkStatistics(task, answer)) : checkStatistics(task, answer),
    doubt(checkExtremes(task, output)),
    checkOrder(task, output),
    checkShownOrder(task, output),
    doubt(checkRatioOrder(task, output)),
    doubt(checkSplit(task, output)),
    doubt(checkNamedFigures(task, output)),
    doubt(checkGivenRates(task, answer)),
    doubt(checkPlanLimits(task, output)),
    checkDerived(task, answer),
    checkTextQuestions(task, output),
    doubt(checkListOperations(task, output)),
    doubt(checkOccurrences(task, output)),
    checkNumberQuestions(task, output),
  ])
}

/** "120 kg at 2.40 and 80 kg at 3.10": the figures are not of one kind. */
const hasWeights = ({ full }: ReadTask) => /\d[^.;\n]{0,30}\b(?:at|@|each|per|zu|je|à|a)\s[$€£]?\d/i.test(full.raw)

const MAX_PLAIN_WORDS = 14

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
    const match = /[\d(][\d\s.,()+*/×÷x^−-]{2,80}/.exec(text)
    const expression = match ? parseExpression(match[0], 'start') : undefined
    // A range ("40-60"), a date or a telephone number is no calculation.
    const isCalculation =
      expression &&
      (/[*×÷^+]|\s[-−/]\s|\d\/\d/.test(expression.text) || /^\s*\d+\s?-\s?\d+\s*[=?]?\s*$/.test(text)) &&
      !/\d\s?\/\s?[\d.,]+\s?\/|\d{1,2}\/\d{1,2}\/\d{2,4}|\d{4}-\d{2}|\d\s?[-–]\s?\d+\s?(?:words|day|week|month|hour|minute|people|euro|%)|24\/7/.test(
        text,
      )
    if (
      isCalculation &&
      /what|how much|calculate|compute|=|\?|result|solve|rechne|berechne|wie viel|combien|calcul|cuánto|calcola|quanto|wieviel|ist|is|evaluate|hoeveel|tel op|totaal|suma|somma|addiere/.test(
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
  // A calculation in a longer story may be only a part of it, or none.
  const isPlain = task.full.words.length <= MAX_PLAIN_WORDS ? (fault: Finding) => fault : doubt
  return shows(answer, value, /\b(?:about|roughly|approx|estimate)/.test(text)) ||
    (Math.abs(value) < 1 && shows(answer, value * 100))
    ? passed
    : isPlain(failed('The result is not the one that the calculation gives.'))
}

const UNITS: readonly (readonly [string, RegExp, string, number])[] = [
  ['km', /^(?:km|kilometern|kilomet(?:er|re)s?|kilómetros?|kilomètres?|chilometri)$/, 'length', 1000],
  ['m', /^(?:m|metern?|met(?:er|re)s?|metros?|mètres?|metri)$/, 'length', 1],
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
  if (task.full.words.length > 12 || readNumbers(task.request).length > 1) return notApplicable
  const match =
    /(-?\d[\d.,]{0,14})\s?(°?[a-z/]{1,12}|meilen|zoll|pfund)\s(?:to|in|into|nach|en|em|equals?|=)\s?(?:how many\s)?(°?[a-z/]{1,12})\b/i.exec(
      task.request,
    )
  const many = match
    ? undefined
    : /\bhow many ([a-z]{1,12}) (?:(?:are |is |make )?(?:there )?in|are|is|make|equals?) (?:a |an |one )?(\d[\d.,]{0,14})?\s?([a-z]{1,12})\b/i.exec(
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
      !/[A-Za-z]$|\b(?:weeks?|months?|days?|years?|quarter|q|kw|woche|page|room|level|no\.?) $/i.test(
        request.slice(Math.max(0, number.start - 9), number.start),
      ),
  )
  if (
    numbers.length === 2 &&
    /\b(?:share|percent(?:age)?|conversion|proportion|fraction|what %|rate|growth|grow|grew|increase|decrease|drop|decline|change|margin|churn|anteil|prozent|pourcentage|porcentaje|percentuale)\b/i.test(
      request,
    ) &&
    !/\b(?:interest|tax|vat|discount|off|tip|compound|per year|annual|roi)\b|%/i.test(request)
  ) {
    const [a, b] = numbers.map(({ values }) => values[0]!) as [number, number]
    // What rises or falls does so against the figure of before, which stands first unless the text says otherwise.
    const isChange =
      /\b(?:rise|rose|grow|grew|growth|increase\w?|drop\w{0,4}|fall|fell|decrease\w?|decline\w?|change\w?)\b/i.test(
        request,
      ) && !/\b(?:last|previous\w{0,2}|before|earlier|ago|from|up on|share|of)\b/i.test(request)
    const expected = isChange
      ? [(100 * (b - a)) / a]
      : [
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
    /\b(?:sum|total|add (?:up|these|them|the)|altogether|in total|in all|summe|gesamt\w{0,5}|addiere|somme|total\w?|suma|somma|totale|soma|totaal|som)\b/i,
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

/** Figures one after the other, each with a label of a few words at most. */
const LISTED =
  /\d\s?(?:%|[€$£]|\p{L}{1,12})?\s?(?:,|;|\/|\n|\s(?:and|und|et|y|e|en|plus)\s|\s{1,3})\s?(?:\p{L}[\p{L} .:'-]{0,24}[: ]{0,2})?[$€£]?-?\d[\d.,]{0,12}\s?(?:%|[€$£]|円|元|\p{L}{1,12})?\s?(?:,|;|\/|\n|、|\s(?:and|und|et|y|e|en|plus)\s|\s{1,3})\s?(?:\p{L}[\p{L} .:'-]{0,24}[: ]{0,2})?[$€£]?-?\d|\b(?:of|von|de|di) [$€£]?\d[\d.,]{0,12} (?:and|und|et|y|e) [$€£]?\d/iu

function checkStatistics(task: ReadTask, answer: Answer): Finding {
  const statistics = STATISTICS.filter(
    ([, pattern]) =>
      pattern.test(task.request) || (pattern === STATISTICS[0]![1] && /\bgive the total\b/i.test(task.full.raw)),
  )
  if (
    statistics.length === 0 ||
    task.code ||
    /\b(?:moving|rolling|weighted|cumulative|running|by (?:region|month|category|week|quarter|product)|per (?:month|week|day|region|category|year)|each|trimmed|geometric|gleitend\w{0,3}|gewichtet\w{0,3}|above|below|greater|more than|less than|top \d|excluding|without|except|only the|discount|tax|vat|interest|roas|roi|ctr|cpc|cpa|ratios?|margin|per \d+|\d+ (?:\w{1,12} )?of [$€£]?\d+)\b/i.test(
      task.request,
    ) ||
    task.is.creative ||
    /\bwhat (?:does|do|did|would)\b.{0,200}\bmean\b/i.test(task.request)
  )
    return notApplicable
  if (!LISTED.test(task.full.raw)) return notApplicable
  const datasets = datasetsOf(task).filter((values) => values.length >= 2)
  if (
    datasets.length === 0 ||
    answer.numbers.length === 0 ||
    (Math.max(...datasets.map((values) => values.length)) < 3 && task.full.words.length > 40)
  )
    return notApplicable
  const claims = withoutRestated(answer, datasets)
  if (claims.numbers.length === 0) return notApplicable
  for (const [name, , compute] of statistics) {
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
    if (
      name === 'sum' &&
      !/^(?:analyst|default)/.test(task.agentId) &&
      !/\b(?:sum|add)\b|\bhow many .{1,40}\b(?:in all|in total|altogether|together)\b|\b(?:give|state|include|with|name) (?:me )?(?:the|a) total\b/i.test(
        task.full.raw,
      )
    )
      continue
    const expected = datasets.flatMap(compute)
    if (!expected.some((value) => shows(claims, value)))
      return failed(`The ${name} is not the one of the figures given.`)
  }
  return passed
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
