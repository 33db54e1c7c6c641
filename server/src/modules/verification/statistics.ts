import { type Answer, readAnswer, shows, sumOf } from './answer-numbers.ts'
import { hasRightEquation, hasRightTable } from './claims.ts'
import { hasRate } from './conversions.ts'
import { datasetsOf } from './datasets.ts'
import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { standsFor, withoutRounding } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { readText } from './text.ts'

const deviationOf = (values: readonly number[], divisor: number) => {
  const mean = sumOf(values) / values.length
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / divisor)
}

const STATISTICS: readonly (readonly [string, RegExp, (values: readonly number[]) => number[]])[] = [
  [
    'sum',
    /\b(?:sum|total|add (?:up|these|them|the)|altogether|in total|in all|summe|gesamt\w{0,5}|addiere|somme|total\w?|suma|somma|totale|soma|totaal|som|toplam\w{0,3})\b/i,
    (values) => [sumOf(values)],
  ],
  [
    'mean',
    /\b(?:mean|average|avg|ortalama\w{0,3}|durchschnitt\w{0,5}|mittelwert|moyenne|media|promedio|média|gemiddelde)\b/i,
    (values) => [sumOf(values) / values.length],
  ],
  ['median', /\b(?:median|médiane|mediana|zentralwert|mediaan)\b/i, (values) => [medianOf(values)]],
  [
    'mode',
    /\bmode of\b|\b(?:mean|median|average)\b.{0,30}\bmode\b|\bmode\b.{0,30}\b(?:mean|median)\b|\bmodalwert\b/i,
    modesOf,
  ],
  ['smallest', /\b(?:smallest|lowest|minimum|min)\b/i, (values) => [Math.min(...values)]],
  ['largest', /\b(?:largest|biggest|highest|maximum|max)\b(?! \d)/i, (values) => [Math.max(...values)]],
  [
    'standard deviation',
    /\bstandard deviation\b|\bstandardabweichung\b|\bécart[- ]type\b/i,
    (values) => [deviationOf(values, values.length), deviationOf(values, values.length - 1)],
  ],
  [
    'variance',
    /\bvariance (?:of|:|for)|\bvarianz\b/i,
    (values) => [deviationOf(values, values.length) ** 2, deviationOf(values, values.length - 1) ** 2],
  ],
  [
    'range',
    /\brange (?:of|:)|\b(?:mean|median|average)\b.{0,30}\brange\b|\bspannweite\b/i,
    (values) => [Math.max(...values) - Math.min(...values)],
  ],
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
    // "52, 48 to 61" of five figures are the median and the range.
    const isList = length >= Math.max(3, Math.ceil(0.8 * data.length))
    if (isList) for (let i = start; i < start + length; i++) isRestated[i] = true
    if (isList) start += length - 1
  }
  return { text: answer.text, numbers: numbers.filter((_, index) => !isRestated[index]) }
}

/** Figures one after the other, each with a label of a few words at most. */
const LISTED =
  /\d\s?(?:%|[€$£]|\p{L}{1,12})?\s?(?:,|;|\/|\n|\s(?:and|und|et|y|e|en|plus)\s|\s{1,3})\s?(?:[-*•] )?(?:\p{L}[\p{L} .:'-]{0,24}[: ]{0,2})?[$€£]?-?\d[\d.,]{0,12}\s?(?:%|[€$£]|円|元|\p{L}{1,12})?\s?(?:,|;|\/|\n|、|\s(?:and|und|et|y|e|en|plus)\s|\s{1,3})\s?(?:[-*•] )?(?:\p{L}[\p{L} .:'-]{0,24}[: ]{0,2})?[$€£]?-?\d|\b(?:of|von|de|di) [$€£]?\d[\d.,]{0,12} (?:and|und|et|y|e) [$€£]?\d|\d(?: \p{L}{1,14})? (?:on|in|at|from|by|for) \p{L}{1,14},? (?:and )?[$€£]?\d[\d.,]{0,12}(?: \p{L}{1,14})? (?:on|in|at|from|by|for) \p{L}/iu

/** "Avg sales 210" is a figure given, not a question. */
const LABELLED =
  /\b(?:avg|average|mean|total|sum|max|min|median|toplam|insgesamt|totale|razem|celkem|totaal)\.? (?!(?:of|for|from|these|this|the|all|in|de|von|di|des)\b)(?:\p{L}{1,14} ){0,2}[:=]?\s?[$€£]?\d/giu

/** "(1,460 euro in total)" is one, too. */
const GIVEN_TOTAL = /\d[\d.,]{0,12}(?: \p{L}{1,10})? in (?:total|all)\b/giu

/** "120 kg at 2.40 and 80 kg at 3.10": the figures are not of one kind. */
const WEIGHTED =
  /\d[^.;\n]{0,30}\b(?:at|@|each|per|zu|je|à|a)\s[$€£]?\d|\bat [$€£]?\d[\d.,]{0,9} ?(?:[$€£]|\p{L}{3,5})? ?(?:\/|per\b|an? )/iu

/** "Total drop" is a difference, and hours with minutes are not added as they stand. */
const OTHER_TOTAL =
  /\b(?:total|overall) (?:\p{L}{1,12} )?(?:drop|decline|fall|decrease|increase|growth|gain|loss|rise|change|difference|reduction|saving)s?\b|\d ?h(?:rs?|ours?)? ?\d|\d:[0-5]\d|\d\/\d+[^\n]{1,40}\d\/\d/iu

/** "The average of the wet days" is one of some of the figures. */
const OF_SOME =
  /\b(?:mean|average|avg|sum|total|median) (?:of|for|over|on) (?:the |all |our )?(?!(?:last|all|following|above|below|given|these|those|five|six|seven|four|three|two|ten) )\p{L}{3,14} (?:days|weeks|months|ones|people|items|rows|entries|teams|shops|products|values|nights|orders|customers)\b/iu

/** "Of those who worked", "of the ones that sold": which of them is not read. */
const OF_THOSE =
  /\b(?:those|the ones|people|everyone|staff|members|players|days|items|shops) (?:who|that|which|with|without)\b/i
/** "Setter A: 14 routes, avg rating 4.1. Setter B: 6 routes, avg rating 4.6": the mean of means is another one. */
const GIVES_MEANS =
  /\b(?:avg|average|mean|ø)\b[^.,;:\n\d]{0,20}[ :=]\d[^\n]{0,200}?\b(?:avg|average|mean|ø)\b[^.,;:\n\d]{0,20}[ :=]\d/i

/** Words of a question that do not say which of the figures are meant. */
const PLAIN_WORDS = new Set(
  (
    'a all also an and are as average avg both calculate calc can column columns compute could csv data decimal decimals deviation do find ' +
    'following from get give given have here highest how i in is it its just largest list lowest many max maximum me mean median min ' +
    'minimum mode much nearest number numbers of one only our please pls plus points quick range return round rounded row rows show smallest ' +
    'standard sum sums table tell thanks the their them these this to together altogether total totals two up us value values variance we ' +
    'week month year day what whats whole you your below above add answer result and then too place places figures figure line end ' +
    'der die das den dem des und von aus ist wie viel folgenden folgende le la les du de et est quelle quel suivantes suivants sur el los ' +
    'las y es il i e di dei delle nedir ve my s'
  ).split(' '),
)
const MAX_LABELS = 3

/** Words that make another question of it: some of the figures, or another calculation with them. */
const NARROWS =
  /\b(?:who|that|which|where|when|with|without|per|pro|par|by|over|for|if|than|each|every|overall|new|net|after|before|between|convert|those)\b/i

const CLAUSE_END = /[.?!;:\n,(){}[\]"|]|\d+|\s[-–—+]+\s|->/
/** "Sum the litres for the week and give me the daily average" */
const CLAUSE_END_OR_AND = new RegExp(`${CLAUSE_END.source}|\\sand\\s`)

/**
 * Whether the question is the bare word for the statistic with at most a few words for what the figures are: one more
 * clause ("of the days we poured", "per station") may mean some of the figures only, or another calculation.
 */
const isPlain = (text: string, pattern: RegExp) =>
  text
    .split(pattern === STATISTICS[0]![1] ? CLAUSE_END : CLAUSE_END_OR_AND)
    .filter((clause) => pattern.test(clause) && !NARROWS.test(clause))
    .some(
      (clause) =>
        new Set(
          (clause.toLowerCase().match(/\p{L}+/gu) ?? []).filter(
            (word) => !PLAIN_WORDS.has(word) && !pattern.test(word),
          ),
        ).size <= MAX_LABELS,
    )

const CHOOSES =
  /\b(?:pick|choose|select|prioriti[sz]e|decide|recommend|which (?:ones|of)|wähle?|auswähl\w{0,3}|choisi\w{0,4}|elige|escoge|scegli)\b/i

/** "Nord 8.7, Sued 7.7, West 8.0, total 24.4": the answer adds up figures of its own. */
const addsUp = ({ numbers }: Answer) =>
  numbers.some((number, end) => {
    let sum = 0
    for (let start = end - 1; start >= 0 && start > end - 40; start--) {
      sum += numbers[start]!.values[0]!
      if (end - start >= 2 && standsFor(number, sum)) return true
    }
    return false
  })

/** The one line that begins with the name of a statistic and has a figure for it: "Median rent: 720". */
function labelledLine(text: string, pattern: RegExp): Answer | undefined {
  const lines = text
    .split('\n')
    .filter((line) => pattern.test(/^\W{0,6}(?:\p{L}+ ){0,3}\p{L}+ ?[:=](?=.{0,10}\d)/u.exec(line)?.[0] ?? ''))
  const line = lines.length === 1 ? readAnswer(readText(lines[0]!)) : undefined
  return line?.numbers.length === 1 ? line : undefined
}

export function checkStatistics(task: ReadTask, answer: Answer): Finding {
  const isJsonTask = /^\s{0,8}[{[]/.test(task.full.raw)
  const request = withoutRounding(isJsonTask ? task.full.raw : task.request)
    .replaceAll(LABELLED, ' ')
    .replaceAll(GIVEN_TOTAL, ' ')
  const statistics = STATISTICS.filter(
    ([, pattern]) =>
      pattern.test(request) || (pattern === STATISTICS[0]![1] && /\bgive the total\b/i.test(task.full.raw)),
  )
  if (
    statistics.length === 0 ||
    (task.code && !isJsonTask) ||
    WEIGHTED.test(task.full.raw) ||
    hasRate(task.full.raw) ||
    OF_SOME.test(task.full.raw) ||
    OF_THOSE.test(task.full.raw) ||
    GIVES_MEANS.test(task.full.raw) ||
    /\b(?:moving|rolling|weighted|cumulative|running|by (?:region|month|category|week|quarter|product)|(?:average|mean|total|sum)[^.\n]{0,20} per (?!(?:month|day|week|year|quarter|night)\b)[a-z]{2,14}|new (?:total|sum|average|mean)|if [^.?!\n]{1,40} (?:rises?|falls?|drops?|increases?|decreases?|goes|doubles?)|each|trimmed|geometric|gleitend\w{0,3}|gewichtet\w{0,3}|above|below|greater|more than|less than|top \d|excluding|without|except|only the|half|double|twice|discount|tax|vat|interest|roas|roi|ctr|cpc|cpa|ratios?|margin|per \d+|actually|over the \w{1,12} (?:we|that|where|when|with)|\d+ (?:\w{1,12} )?of [$€£]?\d+)\b/i.test(
      task.request,
    ) ||
    OTHER_TOTAL.test(task.full.raw) ||
    (isJsonTask && /\bothers?\b|\bper \p{L}/iu.test(task.full.raw)) ||
    task.is.creative ||
    /\bwhat (?:does|do|did|would)\b.{0,200}\bmean\b|\b(?:don['’]t|do not|not) (?:just |simply )?(?:average|add|sum)\b/i.test(
      task.request,
    )
  )
    return notApplicable
  if (!isJsonTask && !LISTED.test(task.full.raw)) return notApplicable
  const datasets = datasetsOf(task).filter((values) => values.length >= 2)
  if (
    datasets.length === 0 ||
    answer.numbers.length === 0 ||
    (Math.max(...datasets.map((values) => values.length)) < 3 && task.full.words.length > 40)
  )
    return notApplicable
  const claims = withoutRestated(answer, datasets)
  if (claims.numbers.length === 0) return notApplicable
  const showsWork = addsUp(claims) || hasRightEquation(answer) || hasRightTable(readText(answer.text))
  let first: Finding = passed
  for (const [name, pattern, compute] of statistics) {
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
    // "18 % GST on 2,340 and the total"
    if (name === 'sum' && /\d ?%/.test(task.full.raw)) continue
    if (
      name === 'sum' &&
      !/^(?:analyst|default)/.test(task.agentId) &&
      !/\b(?:sum|add)\b|\bhow many .{1,40}\b(?:in all|in total|altogether|together)\b|\b(?:give|state|include|with|name) (?:me )?(?:the|a) total\b|[.?!] total\b[^.\d]{0,60}\?/i.test(
        task.full.raw,
      )
    )
      continue
    const expected = datasets.flatMap(compute)
    const line = labelledLine(answer.text, pattern)
    const isContradicted = line !== undefined && !expected.some((value) => shows(line, value))
    if (!isContradicted && expected.some((value) => shows(claims, value))) continue
    const fault = failed(`The ${name} is not the one of the figures given.`)
    // "Pick from these and show the sum" is the sum of what was picked.
    const isOfAll = !CHOOSES.test(task.full.raw)
    if (isPlain(request, pattern) && isOfAll && (isContradicted || !showsWork)) return fault
    first = doubt(fault)
  }
  return first
}
