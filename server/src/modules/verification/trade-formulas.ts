import { type Answer, shows, sumOf } from './answer-numbers.ts'
import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { isRoughIn, readNumbers, standsFor } from './numbers.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'

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
    named: /\bbreak[- ]?even\b/i,
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

export function checkFormulas(task: ReadTask, answer: Answer): Finding {
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
export function checkPerHundred(task: ReadTask, answer: Answer): Finding {
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
export function checkParts(task: ReadTask, answer: Answer): Finding {
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
export function checkBudget(task: ReadTask, output: ReadText): Finding {
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

/** "Returns 2 of 3 chairs at 45 each": the amount for the two. */
export function checkSomeOf(task: ReadTask, answer: Answer): Finding {
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
export function checkDifference(task: ReadTask, answer: Answer): Finding {
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
    : doubt(failed('The difference is not right.'))
}
