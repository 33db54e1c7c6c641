import { type Answer, readAnswer, shows, sumOf } from './answer-numbers.ts'
import { evaluateCode } from './code-values.ts'
import { datasetsOf } from './datasets.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { isRoughIn, readNumbers, standsFor, type TextNumber } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, wordsOf } from './text.ts'

/** Questions about numbers whose answer can be computed from the task alone. */
export function checkNumberQuestions(task: ReadTask, output: ReadText): Finding {
  const answer = readAnswer(output)
  return combine([
    checkNotation(task, output),
    checkPrime(task, output),
    checkSeries(task, answer),
    checkNext(task, answer),
    checkTrend(task, output),
    checkCountOf(task, answer),
    checkSpread(task, answer),
    checkVariance(task, answer),
    checkFormulas(task, answer),
    checkPerHundred(task, answer),
    checkParts(task, answer),
    checkBudget(task, output),
    checkCodeValue(task, output),
    checkWordCount(task, output),
    checkSomeOf(task, answer),
    checkDifference(task, answer),
    checkInWords(task, output),
  ])
}

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
  [/\b(?:hex|hexadecimal|hexadezimal|base 16)\b/i, 16],
  [/\b(?:octal|oktal|base 8)\b/i, 8],
]

/** Roman numerals and other bases, in both directions. */
function checkNotation(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 300)
  const text = output.raw
  if (/\broman (?:numerals?|numbers?)\b|\brömische\w?\b|\bchiffres romains\b|\bnúmeros romanos\b/i.test(request)) {
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
  const target = BASES.find(([pattern]) => pattern.test(request))
  if (!target || /\b(?:search|tree|file|code|function|script|format|explain|what is)\b/i.test(request))
    return notApplicable
  const isFromBase = /\bto decimal\b|\bin decimal\b|\bas decimal\b/i.test(request)
  const numbers =
    request.match(/\b(?:0[xb])?[0-9a-f]{1,16}\b/gi)?.filter((part) => /\d/.test(part) || /^0x/i.test(part)) ?? []
  const [first] = numbers.filter((part) => part !== '2' && part !== '16' && part !== '8')
  if (!first) return notApplicable
  const digits = first.replace(/^0[xb]/i, '')
  const expected = isFromBase ? String(Number.parseInt(digits, target[1])) : Number(digits).toString(target[1])
  if (expected === 'NaN') return notApplicable
  const written = text.toLowerCase().replace(/[\s_,]/g, '')
  return written.includes(expected) ? passed : failed('The number is not right in the notation asked for.')
}

const isPrime = (value: number) => {
  for (let i = 2; i * i <= value; i++) if (value % i === 0) return false
  return value >= 2
}

const SAYS_YES =
  /^\W*(?:yes|true|correct|indeed|ja|oui|sí|si|sim|да)\b|\b(?:is|are) (?:a |indeed |also )?(?:prime|divisible|even|odd)\b/iu
const SAYS_NO =
  /^\W*(?:no|false|nein|non|não|нет|nope)\b|\b(?:is|are)(?: not|n't) (?:a )?(?:prime|divisible|even|odd|an? )\b/iu

/** "Is 91 prime?", "is 51 divisible by 3?", "is 7 even?" */
function checkPrime(task: ReadTask, output: ReadText): Finding {
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
function checkSeries(task: ReadTask, { numbers }: Answer): Finding {
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

const longestOf = (task: ReadTask): number[] =>
  datasetsOf(task).reduce<number[]>((best, values) => (values.length > best.length ? values : best), [])

/** "500, 470, 440, 410: what comes next?" where all steps, or all quotients, are the same. */
function checkNext(task: ReadTask, answer: Answer): Finding {
  if (
    !/\b(?:next|continues?|goes on|following (?:number|value|term)|linear (?:trend|forecast)|extrapolat\w{1,4}|nächste\w?|suivant\w?|siguiente|successiv\w)\b/i.test(
      task.request,
    )
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
function checkTrend(task: ReadTask, output: ReadText): Finding {
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

/** "How many of these are above 50?", "count the negative values". */
function checkCountOf(task: ReadTask, answer: Answer): Finding {
  const request = task.full.raw.slice(0, 1_000)
  if (!/\b(?:how many|count|number of|wie viele|combien|cuánt[oa]s|quant[ie])\b/i.test(request)) return notApplicable
  const bound =
    /\b(?:(above|over|greater than|more than|higher than|exceeding|below|under|less than|lower than|fewer than|smaller than|at least|at most|über|unter)|(>=|<=|>|<|≥|≤)) ?[$€£]?(-?\d[\d.,]{0,9})/i.exec(
      request.replace(/are (?=[<>])/, ''),
    ) ?? /(?:(above)|(>=|<=|>|<|≥|≤)) ?[$€£]?(-?\d[\d.,]{0,9})/i.exec(request)
  const sign =
    /\b(negative|positive|even|odd) (?:values?|numbers?|ones|integers?|entries)\b|\bare (negative|positive|even|odd)\b/i.exec(
      request,
    )
  if (!bound && !sign) return notApplicable
  const limit = bound ? readNumbers(bound[3]!)[0]!.values[0]! * (bound[3]!.startsWith('-') ? -1 : 1) : 0
  const data = datasetsOf(task)
    .map((values) => {
      const at = bound ? values.indexOf(limit) : -1
      return at === 0 || (at > 0 && at === values.length - 1 && request.lastIndexOf(bound![3]!) > request.length / 2)
        ? values.filter((_, i) => i !== at)
        : values
    })
    .filter(({ length }) => length >= 3)
  if (data.length === 0) return notApplicable
  const word = (bound?.[1] ?? bound?.[2] ?? '').toLowerCase()
  const kind = (sign?.[1] ?? sign?.[2] ?? '').toLowerCase()
  const isCounted = (value: number) =>
    kind
      ? kind === 'negative'
        ? value < 0
        : kind === 'positive'
          ? value > 0
          : (Math.abs(value) % 2 === 0) === (kind === 'even')
      : /^(?:above|over|greater|more|higher|exceeding|>$|über)/.test(word)
        ? value > limit
        : /^(?:at least|>=|≥)/.test(word)
          ? value >= limit
          : /^(?:at most|<=|≤)/.test(word)
            ? value <= limit
            : value < limit
  const counts = new Set(data.map((values) => values.filter(isCounted).length))
  if (answer.numbers.length === 0) return notApplicable
  if (counts.has(0) && /\b(?:none|no|zero|keine)\b/i.test(answer.text)) return passed
  // The first number that is neither the limit nor one of the figures is the count.
  const isRepeated = ({ values }: TextNumber) => values.includes(limit) && bound !== null
  const claims = answer.numbers.filter((number) => !isRepeated(number))
  return claims.length === 0 || claims.some(({ values }) => values.some((value) => counts.has(value)))
    ? claims.length > 0 &&
      !data[0]!.includes(claims[0]!.values[0]!) &&
      !counts.has(claims[0]!.values[0]!) &&
      claims[0]!.values[0]! <= data[0]!.length
      ? failed('The count is not right.')
      : passed
    : failed('The count is not right.')
}

/** "Difference between the coldest and the warmest", "the range of". */
function checkSpread(task: ReadTask, answer: Answer): Finding {
  const request = task.request
  if (
    !/\bdifference between (?:the )?(?:coldest|lowest|smallest|highest|largest|biggest|warmest|oldest|youngest|best|worst|cheapest|hottest|tallest|shortest)\b|\b(?:the )?range\b(?= of|:|\?)|\bspannweite\b/i.test(
      request,
    )
  )
    return notApplicable
  const sets = datasetsOf(task).filter(({ length }) => length >= 3)
  if (sets.length === 0 || answer.numbers.length === 0) return notApplicable
  const signed = [...task.full.raw.matchAll(/(?<![\d\p{L}])[-−]?\d{1,12}(?:\.\d{1,6})?/gu)].map(([text]) =>
    Number(text.replace('−', '-')),
  )
  const expected = [...sets, signed].map((values) => Math.max(...values) - Math.min(...values))
  const claims = answer.numbers.filter(
    ({ values: [value] }) => !signed.some((given) => Math.abs(given) === Math.abs(value!)),
  )
  if (claims.length === 0) return notApplicable
  return claims.some((number) => expected.some((value) => standsFor(number, value)))
    ? passed
    : failed('The difference is not right.')
}

function checkVariance(task: ReadTask, answer: Answer): Finding {
  if (!/\bvariance\b|\bvarianz\b|\bvarianza\b/i.test(task.request) || /\banalysis of\b|\bbudget\b/i.test(task.request))
    return notApplicable
  const sets = datasetsOf(task).filter(({ length }) => length >= 3)
  if (sets.length === 0 || answer.numbers.length === 0) return notApplicable
  const isSample = /\bsample\b|\bstichprobe/i.test(task.request)
  const isPopulation = /\bpopulation\b|\bgrundgesamtheit/i.test(task.request)
  const expected = sets.flatMap((values) => {
    const mean = sumOf(values) / values.length
    const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
    return [...(isPopulation ? [] : [squares / (values.length - 1)]), ...(isSample ? [] : [squares / values.length])]
  })
  return expected.some((value) => shows(answer, value)) ? passed : failed('The variance is not right.')
}

const valueAfter = (text: string, pattern: RegExp): number | undefined => {
  const match = pattern.exec(text)
  return match ? readNumbers(match[1]!)[0]?.values[0] : undefined
}
const AMOUNT = '[:= ]{0,3}(?:of |is |are |was |at |with |about )?[$€£]?\\s?(\\d[\\d.,]{0,14}\\s?[km]?)'
const after = (words: string) =>
  new RegExp(`\\b(?:${words})(?: costs?| price| a month| per (?:month|unit))?${AMOUNT}`, 'i')

type Formula = { named: RegExp; compute(text: string): readonly (number | undefined)[] }

/** Formulas of trade: what is asked for must be shown. */
const FORMULAS: readonly Formula[] = [
  {
    named: /\bbreak-?even\b/i,
    compute: (text) => {
      const fixed = valueAfter(text, after('fixed'))
      const price = valueAfter(text, after('price|sell(?:ing)?(?: at| for)?|sold (?:at|for)|revenue'))
      const variable = valueAfter(text, after('variable|unit cost|cost per unit|costs? (?:each|per piece)'))
      return [
        fixed !== undefined && price !== undefined && variable !== undefined ? fixed / (price - variable) : undefined,
      ]
    },
  },
  {
    named: /\brunway\b/i,
    compute: (text) => {
      const cash = valueAfter(text, after('cash|bank|savings|balance|have'))
      const burn = valueAfter(text, after('burn(?:ing)?|spend(?:ing)?|expenses'))
      return [cash !== undefined && burn ? cash / burn : undefined]
    },
  },
  {
    named: /\bcompound\w{0,3}\b|\bzinseszins\w{0,2}\b|\bintérêts composés\b|\binterés compuesto\b/i,
    compute: (text) => {
      const rate = /(\d[\d.,]{0,5})\s?%/.exec(text)
      const years =
        /\b(?:for|after|over|nach|in|für|pendant|durante)?\s?(\d{1,2}) (?:years?|jahren?|ans|années|años|anni)\b/i.exec(
          text,
        )
      const amount = readNumbers(text).find(
        (number) => !number.isPercent && number.values[0]! >= 50 && !/^(?:19|20)\d\d$/.test(number.text),
      )
      if (!rate || !years || !amount || /\bmonthly|quarterly|daily\b/i.test(text)) return []
      const percent = readNumbers(rate[1]!)[0]!.values[0]!
      return [amount.values[0]! * (1 + percent / 100) ** Number(years[1])]
    },
  },
  {
    named:
      /\b(?:gross|brutto|including (?:vat|tax)|incl\. (?:vat|tax)|with (?:vat|tax)|plus (?:vat|tax)|ttc|con iva)\b/i,
    compute: (text) => {
      const rate = /(\d[\d.,]{0,5})\s?%/.exec(text)
      const amount = readNumbers(text).find((number) => !number.isPercent && number.values[0]! > 0)
      if (!rate || !amount || /\bgross (?:margin|profit)\b|\bfrom gross\b/i.test(text)) return []
      if (readNumbers(text).filter(({ isPercent }) => !isPercent).length !== 1) return []
      const percent = readNumbers(rate[1]!)[0]!.values[0]!
      return /\b(?:net|netto|ht|neto)\s?\?|\bnet of\b/i.test(text)
        ? [amount.values[0]! / (1 + percent / 100)]
        : [amount.values[0]! * (1 + percent / 100), amount.values[0]! / (1 + percent / 100)]
    },
  },
  {
    named: /\b(?:discount|% off|rabatt|remise|descuento|sconto|desconto|reduced by)\b|% off/i,
    compute: (text) => {
      const rates = text.match(/\d[\d.,]{0,5}\s?%/g) ?? []
      const amounts = readNumbers(text).filter((number) => !number.isPercent)
      if (rates.length !== 1 || amounts.length !== 1) return []
      const percent = readNumbers(rates[0]!)[0]!.values[0]!
      return [amounts[0]!.values[0]! * (1 - percent / 100), (amounts[0]!.values[0]! * percent) / 100]
    },
  },
  {
    named: /\b(?:gross )?margin\b|\bmarge\b|\bmargen\b/i,
    compute: (text) => {
      const revenue = valueAfter(text, after('revenues?|sales|price|umsatz|sold for|turnover'))
      const cost = valueAfter(text, after('cogs|costs?|kosten|cost of goods|expenses'))
      if (revenue === undefined || cost === undefined || readNumbers(text).length !== 2) return []
      return [(100 * (revenue - cost)) / revenue, revenue - cost]
    },
  },
  {
    named: /\broi\b|\breturn on investment\b/i,
    compute: (text) => {
      const invested = valueAfter(text, after('invest(?:ed|ment)?|cost|spent'))
      const returned = valueAfter(text, after('returned|got back|return|gained|revenue|back'))
      if (!invested || returned === undefined || readNumbers(text).length !== 2) return []
      return [(100 * (returned - invested)) / invested, (100 * returned) / invested]
    },
  },
]

function checkFormulas(task: ReadTask, answer: Answer): Finding {
  const text = task.full.raw
  if (
    task.code ||
    task.is.creative ||
    text.length > 500 ||
    !/^(?:analyst|default|strategist|support)/.test(task.agentId)
  )
    return notApplicable
  for (const { named, compute } of FORMULAS) {
    if (!named.test(text)) continue
    const expected = compute(text).filter((value): value is number => value !== undefined && Number.isFinite(value))
    if (expected.length === 0) continue
    const isShown = expected.some(
      (value) =>
        shows(answer, value) ||
        answer.numbers.some(
          (number) =>
            number.isPercent &&
            Math.abs(Math.abs(number.values[0]!) - Math.abs(value)) <= 0.5000001 * 10 ** -number.decimals,
        ),
    )
    if (answer.numbers.length > 0 && !isShown) return failed('The result is not the one of the figures given.')
  }
  return notApplicable
}

/** "41.2 l for 640 km and 38.8 l for 610 km: consumption per 100 km?" */
function checkPerHundred(task: ReadTask, answer: Answer): Finding {
  const text = task.full.raw.slice(0, 600)
  if (!/\bper 100 ?km\b|\/ ?100 ?km\b|\bauf 100 ?km\b/i.test(text)) return notApplicable
  const pairs = [
    ...text.matchAll(/(\d{1,6}(?:[.,]\d{1,4})?)\s?(?:l|litres?|liters?|kwh)\b.{0,20}?(\d[\d.,]{0,8})\s?km/gi),
  ]
  if (pairs.length === 0 || answer.numbers.length === 0) return notApplicable
  const number = (part: string) => readNumbers(part)[0]!.values[0]!
  const used = sumOf(pairs.map((pair) => number(pair[1]!)))
  const driven = sumOf(pairs.map((pair) => number(pair[2]!)))
  return shows(answer, (100 * used) / driven) ? passed : failed('The consumption is not right.')
}

/** "Split 187.40: A pays half, B and C share the rest": the parts of the answer add up to the whole. */
function checkParts(task: ReadTask, answer: Answer): Finding {
  if (!/\b(?:split|divide|share)\b/i.test(task.request) || !/^(?:analyst|default|support)/.test(task.agentId))
    return notApplicable
  if (!/\b(?:bill|rest|equally|evenly|among|between)\b/i.test(task.request) || task.code) return notApplicable
  const amounts = readNumbers(task.full.raw).filter(({ isPercent }) => !isPercent)
  const whole = Math.max(...amounts.map(({ values }) => values[0]!), 0)
  const parts = answer.numbers.filter(({ isWord, isPercent, values }) => !isWord && !isPercent && values[0] !== whole)
  if (whole < 10 || parts.length < 2 || parts.length > 8 || answer.text.length > 200) return notApplicable
  if (!/^[^\n]{0,160}$/.test(answer.text.trim()) || /[=×*/]/.test(answer.text)) return notApplicable
  const sum = sumOf(parts.map(({ values }) => values[0]!))
  const isEach = /\beach\b|\bper person\b/i.test(answer.text)
  return isEach || Math.abs(sum - whole) < 0.05 * Math.max(1, parts.length)
    ? passed
    : failed('The parts do not add up to the whole.')
}

/** "At most 3,000, with amounts": no option and no sum of a list goes over it. */
function checkBudget(task: ReadTask, output: ReadText): Finding {
  const limit =
    /\b(?:at most|no more than|max(?:imum)?(?: of)?|under|below|within|up to|budget(?: is| of|:)?|not (?:exceed|more than)|spend) ?(?:a budget of )?[$€£]?\s?(\d[\d.,]{2,9}k?)/i.exec(
      task.full.raw.slice(0, 600),
    )
  if (!limit || !/\b(?:budget|spend|cost|amounts?|price|marketing|mix|within)\b/i.test(task.full.raw))
    return notApplicable
  if (
    /\bwords?\b|\bcharacters?\b|\bpeople\b|\bminutes?\b|\bkm\b/i.test(
      task.full.raw.slice(limit.index, limit.index + limit[0].length + 12),
    )
  )
    return notApplicable
  const most = readNumbers(limit[1]!)[0]?.values[0] ?? 0
  if (most < 100) return notApplicable
  const items = output.lines
    .filter(
      (line) =>
        /^(?:[-*•]|\d{1,2}[.)]|option|phase)\s?/i.test(line) && !/\btotal|sum|remaining|left|reserve\b/i.test(line),
    )
    .map((line) =>
      readNumbers(line.replace(/^(?:[-*•]|\d{1,2}[.)])\s/, '')).filter(
        ({ isPercent, values, text }) => !isPercent && values[0]! >= 20 && !/^(?:19|20)\d\d$/.test(text),
      ),
    )
  const single = items.filter(({ length }) => length === 1).map(([number]) => number!.values[0]!)
  if (single.some((value) => value > most * 1.001)) return failed('It goes over the limit that the task gives.')
  const isMix =
    /\b(?:mix|split|allocate|plan|amounts)\b/i.test(task.request) &&
    !/\b(?:options?|alternatives|each)\b/i.test(task.request)
  return isMix && single.length >= 2 && single.length === items.length && sumOf(single) > most * 1.001
    ? failed('Its amounts go over the limit that the task gives.')
    : single.length > 0
      ? passed
      : notApplicable
}

/** "What does `[i*i for i in range(5)]` give?", "x = 7 // 2 + 7 % 2". */
function checkCodeValue(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 400)
  if (!/\b(?:what|value|prints?|give|gives|return|returns|output|result|evaluate|yield)\b/i.test(request))
    return notApplicable
  if (/\b(?:write|fix|why|explain how|refactor)\b/i.test(request)) return notApplicable
  const expected = evaluateCode(request)
  if (expected === undefined) return notApplicable
  const text = output.raw.replace(/[\s`]/g, '')
  if (expected.startsWith('['))
    return text.includes(expected.replace(/\s/g, '')) || !/\[/.test(text)
      ? passed
      : failed('The code gives another value.')
  const value = Number(expected)
  return readNumbers(output.raw, { words: true }).some(
    (number) => number.values.includes(value) || isRoughIn(output.raw, number),
  )
    ? passed
    : failed('The code gives another value.')
}

/** "How many words are in: …", "how many times does the letter e occur in …", vowels. */
function checkWordCount(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 600)
  const quoted =
    /["“„«'‘]([^"”“»'’]{2,400})["”“»'’]/.exec(request)?.[1] ??
    (request.includes(':') ? request.slice(request.indexOf(':') + 1).trim() : '')
  if (!quoted || !/\bhow many|\bcount\b|\bnumber of\b|\bwie (?:viele|oft)\b|\bcombien\b/i.test(request))
    return notApplicable
  const unquotedRequest = request.replace(quoted, ' ')
  const letter =
    /\b(?:letter|buchstabe|lettre|letra|character)s? ["'“‘]?(\p{L})["'”’]?(?=\s|$|\?)|["'“‘](\p{L})["'”’]s?\b/iu.exec(
      unquotedRequest,
    )
  const expected = /\b(?:many|of|the|viele|de) (?:words|wörter|mots)\b/i.test(unquotedRequest)
    ? wordsOf(quoted).length
    : letter
      ? [...quoted.toLowerCase()].filter((character) => character === (letter[1] ?? letter[2])!.toLowerCase()).length
      : /\bvowels\b/i.test(unquotedRequest)
        ? (quoted.match(/[aeiou]/gi) ?? []).length
        : undefined
  if (expected === undefined) return notApplicable
  const numbers = readNumbers(output.raw.replace(quoted, ' '), { words: true })
  const times = /\bonce\b/i.test(output.raw) ? 1 : /\btwice\b/i.test(output.raw) ? 2 : undefined
  if (numbers.length === 0 && times === undefined) return notApplicable
  return times === expected || numbers.some(({ values }) => values.includes(expected))
    ? passed
    : failed('The count is not right.')
}

/** "Returns 2 of 3 chairs at 45 each": the amount for the two. */
function checkSomeOf(task: ReadTask, answer: Answer): Finding {
  const text = task.full.raw.slice(0, 600)
  const match =
    /\b(\d{1,3}|two|three|four|five) of (?:the |their |her |his )?(\d{1,3}|two|three|four|five|six) [\p{L} ]{2,30}? (?:at|for|à|@) [$€£]?(\d[\d.,]{0,8})(?: (?:each|apiece|per \p{L}{1,12}))/iu.exec(
      text,
    )
  if (!match || !/\b(?:refund|get back|return\w{0,3}|amount|pay|cost|owe)\b/i.test(text) || answer.numbers.length === 0)
    return notApplicable
  const part = readNumbers(match[1]!, { words: true })[0]?.values[0] ?? Number.NaN
  const price = readNumbers(match[3]!)[0]?.values[0] ?? Number.NaN
  return shows(answer, part * price) ? passed : failed('The amount is not the one that follows.')
}

const ASKS_DIFFERENCE =
  /\b(?:how (?:big|large|much) (?:was|is) the (?:drop|fall|rise|increase|decrease|difference|gap|change)|by how much|what(?:'s| is) the (?:difference|extra|gap)|how much (?:more|less|cheaper|extra)|consumption|extra per|um wie viel|de combien|en cuánto|di quanto|hoeveel (?:meer|minder))\b/i

/** Two figures, and how far they are apart. */
function checkDifference(task: ReadTask, answer: Answer): Finding {
  const text = task.full.raw.slice(0, 500)
  if (!ASKS_DIFFERENCE.test(text) || task.code || task.is.creative) return notApplicable
  const numbers = readNumbers(text).filter(
    ({ isPercent, text: digits }) => !isPercent && !/^(?:19|20)\d\d$/.test(digits),
  )
  if (numbers.length !== 2 || numbers[0]!.values[0] === numbers[1]!.values[0]) return notApplicable
  const differences = numbers[0]!.values.flatMap((a) => numbers[1]!.values.map((b) => Math.abs(a - b)))
  const claims = answer.numbers.filter(
    ({ values, isPercent }) =>
      !isPercent && !numbers.some((number) => number.values.some((value) => values.includes(value))),
  )
  if (claims.length === 0) return notApplicable
  return claims.some((number) =>
    differences.some(
      (value) => standsFor(number, value, isRoughIn(answer.text, number)) || standsFor(number, value * 12),
    ),
  )
    ? passed
    : failed('The difference is not right.')
}

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
function checkInWords(task: ReadTask, output: ReadText): Finding {
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
