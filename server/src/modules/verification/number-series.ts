import { type Answer, shows } from './answer-numbers.ts'
import { datasetsOf } from './datasets.ts'
import { type Finding, failed, notApplicable, passed } from './finding.ts'
import { readNumbers } from './numbers.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'

const isPrime = (value: number) => {
  for (let i = 2; i * i <= value; i++) if (value % i === 0) return false
  return value >= 2
}

const SAYS_YES =
  /^\W*(?:yes|true|correct|indeed|ja|oui|sí|si|sim|да)\b|\b(?:is|are) (?:a |indeed |also )?(?:prime|divisible|even|odd)\b/iu
const SAYS_NO =
  /^\W*(?:no|false|nein|non|não|нет|nope)\b|\b(?:is|are)(?: not|n't) (?:a )?(?:prime|divisible|even|odd|an? )\b/iu

/** "Is 91 prime?", "is 51 divisible by 3?", "is 7 even?" */
export function checkPrime(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 300)
  const prime = /\bis (\d{1,7}) (?:a )?prime\b/i.exec(request)
  const divisible = /\bis (\d{1,9}) (?:evenly )?divisible by (\d{1,6})\b/i.exec(request)
  const parity = /\bis (\d{1,9}) (?:an? )?(even|odd)\b/i.exec(request)
  const leap = /\b(?:is|was) (\d{4}) a leap year\b/i.exec(request)
  if (!prime && !divisible && !parity && !leap) return notApplicable
  const year = Number(leap?.[1])
  const isTrue = prime
    ? isPrime(Number(prime[1]))
    : divisible
      ? Number(divisible[1]) % Number(divisible[2]) === 0
      : parity
        ? (Number(parity[1]) % 2 === 0) === (parity[2]!.toLowerCase() === 'even')
        : (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  const opening = /^\W*(yes|no|true|false|ja|nein|oui|non|sí|si)\b/i.exec(output.raw)?.[1]?.toLowerCase()
  const saysNo = opening ? /^(?:no|false|nein|non)$/.test(opening) : SAYS_NO.test(output.raw)
  const saysYes = !saysNo && SAYS_YES.test(output.raw)
  if (saysNo === saysYes) return notApplicable
  return saysYes === isTrue ? passed : failed('The answer is the wrong one of yes and no.')
}

const SERIES: readonly (readonly [RegExp, (index: number) => number])[] = [
  [/\bsquare numbers\b|\bperfect squares\b|\bsquares\b/i, (i) => (i + 1) ** 2],
  [/\bcube numbers\b|\bperfect cubes\b|\bcubes\b/i, (i) => (i + 1) ** 3],
  [/\beven numbers\b/i, (i) => 2 * (i + 1)],
  [/\bodd numbers\b/i, (i) => 2 * i + 1],
  [/\btriangular numbers\b/i, (i) => ((i + 1) * (i + 2)) / 2],
  [/\bprimes?\b(?: numbers)?/i, (i) => PRIMES[i]!],
  [/\bfibonacci\b/i, (i) => FIBONACCI[i]!],
  [/\bpowers of (?:2|two)\b/i, (i) => 2 ** (i + 1)],
]
const PRIMES = Array.from({ length: 600 }, (_, i) => i).filter(isPrime)
const FIBONACCI = [1, 1]
while (FIBONACCI.length < 40) FIBONACCI.push(FIBONACCI.at(-1)! + FIBONACCI.at(-2)!)

/** "The first 8 square numbers", "multiples of 7". */
export function checkSeries(task: ReadTask, { numbers }: Answer): Finding {
  const request = task.request.slice(0, 300)
  const head = /\bfirst (\d{1,2}|\p{L}{3,6}) /iu.exec(request)
  const count = head ? (readNumbers(head[1]!, { words: true })[0]?.values[0] ?? 0) : 0
  const multiples = /\bmultiples of (\d{1,3})\b/i.exec(request)
  const series = SERIES.find(([pattern]) => pattern.test(request))?.[1]
  const termOf = multiples ? (i: number) => Number(multiples[1]) * (i + 1) : series
  if (!termOf || count < 3 || count > 40 || task.code || task.agentId.startsWith('coder')) return notApplicable
  const written = numbers.flatMap(({ values: [value], isWord }) => (isWord ? [] : [value!]))
  if (written.length < 3) return notApplicable
  for (const shift of [0, -1, 1]) {
    const expected = Array.from({ length: count }, (_, i) =>
      i + shift < 0 ? (/fibonacci/i.test(request) ? 0 : 0) : termOf(i + shift),
    )
    let at = 0
    for (const value of written) if (value === expected[at]) at++
    if (at === count) return passed
  }
  return failed('A number of the series is not right.')
}

/** The longest list of figures; years that label them are left out. */
const longestOf = (task: ReadTask): number[] => {
  const isYear = (value: number) => Number.isInteger(value) && value >= 1900 && value < 2100
  const sets = datasetsOf(task).map((values) =>
    values.every(isYear) ? values : values.filter((value) => !isYear(value)),
  )
  return sets.reduce<number[]>((best, values) => (values.length > best.length ? values : best), [])
}

/** "500, 470, 440, 410: what comes next?" where all steps, or all quotients, are the same. */
export function checkNext(task: ReadTask, answer: Answer): Finding {
  if (
    !/\b(?:next|continues?|goes on|following (?:number|value|term)|linear (?:trend|forecast)|extrapolat\w{1,4}|nächste\w?|suivant\w?|siguiente|successiv\w)\b/i.test(
      task.request,
    ) ||
    // A forecast by the mean does not go on with the steps.
    /\b(?:average|mean|moving|rolling|durchschnitt)\b/i.test(task.request)
  )
    return notApplicable
  for (const values of datasetsOf(task)) {
    if (values.length < 3 || values.length > 30) continue
    const step = values[1]! - values[0]!
    const factor = values[1]! / values[0]!
    const isLinear = values.every((value, i) => i === 0 || Math.abs(value - values[i - 1]! - step) < 1e-9)
    const isGeometric = values.every((value, i) => i === 0 || Math.abs(value / values[i - 1]! - factor) < 1e-9)
    if (!isLinear && !isGeometric) continue
    const next = isLinear ? values.at(-1)! + step : values.at(-1)! * factor
    return answer.numbers.length === 0 || shows(answer, next)
      ? passed
      : failed('The next value is not the one that follows.')
  }
  return notApplicable
}

const RISING = /\b(?:rising|increas\w{1,4}|growing|upward|going up|steigend|steigt|en hausse|creciente|subiendo)\b/i
const FALLING =
  /\b(?:falling|decreas\w{1,4}|declin\w{1,4}|shrinking|downward|going down|fallend|sinkend|fällt|en baisse|decreciente|bajando)\b/i

/** A series that only rises is not called falling. */
export function checkTrend(task: ReadTask, output: ReadText): Finding {
  if (!/\b(?:rising|falling|trend|up or down|increasing|decreasing|steig\w{1,4}|fall\w{1,3})\b/i.test(task.request))
    return notApplicable
  const values = longestOf(task)
  if (values.length < 3) return notApplicable
  const rises = values.every((value, i) => i === 0 || value > values[i - 1]!)
  const falls = values.every((value, i) => i === 0 || value < values[i - 1]!)
  if (rises === falls) return notApplicable
  const opening = output.raw.slice(0, 200)
  const [saysRising, saysFalling] = [RISING.test(opening), FALLING.test(opening)]
  if (saysRising === saysFalling) return notApplicable
  return saysRising === rises ? passed : failed('The series goes the other way.')
}
