import { type Answer, shows, sumOf } from './answer-numbers.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import {
  hasTwoNumbers,
  isRoughIn,
  NAMES_PERCENT,
  readNumbers,
  standsFor,
  type TextNumber,
  withoutGroups,
  withoutRounding,
} from './numbers.ts'
import { labelledValues } from './ordering.ts'
import type { ReadTask } from './task.ts'
import { clip } from './text.ts'

/** Changes, shares and rates in percent that the task asks for. */
export const checkPercentages = (task: ReadTask, answer: Answer): Finding =>
  // Each of them needs two figures of the task.
  hasTwoNumbers(task.full.raw)
    ? combine([
        checkChange(task, answer),
        checkShareOfList(task, answer),
        checkRates(task, answer),
        checkSplit(task, answer),
      ])
    : notApplicable

/** Most answers have none, which is seen without reading their numbers. */
const percentsOf = (answer: Answer): readonly TextNumber[] =>
  NAMES_PERCENT.test(answer.text) ? answer.numbers.filter(({ isPercent }) => isPercent) : []

const isRounded = (number: TextNumber, value: number) =>
  Math.abs(Math.abs(number.values[0]!) - Math.abs(value)) <= 0.5000001 * 10 ** -number.decimals

/** "from 80,000 to 92,000: growth in percent?" and "what share of 250 if 35 bought?" */
function checkChange(task: ReadTask, answer: Answer): Finding {
  if (task.full.words.length > 60) return notApplicable
  const percents = percentsOf(answer)
  if (percents.length === 0) return notApplicable
  const request = task.full.raw
  const change =
    /\bfrom\s[$€£]?\s?(\d[\d.,]{0,15}[km]?)\s?[^\s\d]{0,12}\sto\s[$€£]?\s?(\d[\d.,]{0,15}[km]?)|\bvon\s(\d[\d.,]{0,15})\s?\p{L}{0,12}\sauf\s(\d[\d.,]{0,15})/iu.exec(
      request,
    )
  const asksChange =
    /\bpercent|%|\bgrowth rate|\b(?:growth|change|increase|drop|decline|decrease|rise)\?|\bprozent|\bhow (?:big|much|large|strong)|\bby how|\bpourcent|\bporcentaje|\bpor ciento/i.test(
      request.replaceAll(/\d ?%/g, ' '),
    )
  // "From 4 % to 7 %" are points unless "relative" is said, and a summary tells of a change without asking for it.
  const isOfPercents = change !== null && /%/.test(request.slice(change.index, change.index + change[0].length + 2))
  if (change && asksChange && (!isOfPercents || /\brelativ/i.test(request)) && !task.is.summary) {
    const from = readNumbers(change[1] ?? change[3]!)[0]!.values
    const to = readNumbers(change[2] ?? change[4]!)[0]!.values
    const expected = from.flatMap((a) => to.map((b) => (100 * (b - a)) / a))
    const isRough = /\b(?:roughly|about|approx)/i.test(request)
    // "By a factor of 1.3".
    const isFactor = isOfPercents && from.some((a) => to.some((b) => shows(answer, b / a)))
    return isFactor ||
      expected.some((value) =>
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
      !/[A-Za-z]$|(?<!\b(?:last|this|previous|prior) )\b(?:weeks?|months?|days?|years?|quarter|q|kw|woche|page|room|level|no\.?) $/i.test(
        request.slice(Math.max(0, number.start - 18), number.start),
      ),
  )
  if (
    numbers.length === 2 &&
    /\b(?:in|what|which|how many) %|% ?\?|\b(?:share|percent(?:age)?|conversion|proportion|fraction|loss|shrinkage|rate|growth|grow|grew|increase|decrease|drop|decline|change|margin|churn|anteil|prozent|pourcentage|porcentaje|percentuale)\b/i.test(
      request,
    ) &&
    !/\b(?:interest|tax|vat|discount|off|tip|compound|per year|annual|roi)\b|%/i.test(
      request.replace(ASKED_PERCENT, ' '),
    )
  ) {
    const [a, b] = numbers.map(({ values }) => values[0]!) as [number, number]
    // "From -20k to +10k" has no share that says anything.
    if (/(?:^|[\s(])[-−]\s?[$€£]?\d/.test(request)) return notApplicable
    // What rises or falls does so against the figure of before, which stands first unless the text says otherwise.
    const isChange =
      CHANGE.test(request) && !/\b(?:last|previous\w{0,2}|before|earlier|ago|from|up on|share|of)\b/i.test(request)
    // "150 last year, 180 this year": the figure of before is the one that is called so.
    const [before, now] = [/\b(?:last|previous|prior)\b/i, /\b(?:this|now|current\w{0,2}|today)\b/i].map((word) =>
      request.search(word),
    ) as [number, number]
    const isDated = CHANGE.test(request) && before >= 0 && now >= 0
    const isPartOf = /\d (?:\p{L}{2,14} )?(?:out )?(?:of|von|sur|de|di|su) (?:the )?\d/iu.test(request)
    const isLoss =
      LOSS.test(request) &&
      !RISE.test(request) &&
      !/\b(?:share|rate|conversion|churn|margin|costs?|expenses|turnover)\b/i.test(request)
    const expected = expectedShares(a, b, {
      isPartOf,
      isLoss,
      base: isDated ? (before < now ? a : b) : isChange ? a : undefined,
    })
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

/** Every share or change in percent that two figures can be meant to have. */
function expectedShares(
  a: number,
  b: number,
  { isPartOf, isLoss, base }: { isPartOf: boolean; isLoss: boolean; base: number | undefined },
): number[] {
  const difference = b - a
  if (isPartOf) return [(100 * a) / b, (100 * difference) / b]
  // What is lost is a part of the larger of two figures, or it is one of them.
  if (isLoss) return [(100 * difference) / Math.max(a, b), (100 * Math.min(a, b)) / Math.max(a, b)]
  if (base !== undefined) return [(100 * difference) / base]
  return [a / b, b / a, difference / a, difference / b, a / (a + b), b / (a + b)].map((share) => 100 * share)
}

/** "Weight loss in %?" asks for a percentage; "4 %" is one. */
const ASKED_PERCENT = /(?<!\d ?)%/g
const CHANGE = /\b(?:rise|rose|grow|grew|growth|increase\w?|drop\w{0,4}|fall|fell|decrease\w?|decline\w?|change\w?)\b/i
const LOSS = /\b(?:loss|lost|losses|shrinkage|shrank|waste|wastage|drop|dropped|decrease|decline|reduction|fell)\b/i
const RISE = /\b(?:rise|rose|gain|gained|growth|grew|increase[sd]?)\b/i

const SHARE_ASKED =
  /\b(?:share|percentage|percent|proportion|anteil|prozent\w{0,4}|pourcentage|porcentaje|percentuale|quota|part)\b|%/i

/** "Travel 120, IT 310, training 70. What share is IT?", "the total and the share of March". */
function checkShareOfList(task: ReadTask, answer: Answer): Finding {
  const text = withoutGroups(withoutRounding(task.full.raw.slice(0, 800)))
  const percents = percentsOf(answer)
  if (percents.length === 0 || task.code) return notApplicable
  const pairs = labelledValues(text)
  const figures = readNumbers(text).filter(
    ({ text: digits, start }) => !/^(?:19|20)\d\d$/.test(digits) && !/\p{L}/u.test(text[start - 1] ?? ' '),
  )
  if (pairs.length < 3 || pairs.length !== figures.length) return notApplicable
  // The question names one of the things; the list has a figure behind each.
  const question = text
    .split(/(?<=[.?!:])\s|\n|\sand\s|\sund\s|,\s(?=what|which|how)/i)
    .find((part) => SHARE_ASKED.test(part) && !/\d/.test(part))
  const words = question?.toLowerCase().match(/\p{L}+/gu) ?? []
  const named = pairs.filter(({ label }) =>
    // "As a table" names no ward A.
    label.length === 1
      ? question?.split(/\P{L}+/u).includes(label.toUpperCase())
      : words.some((word) => word === label || (label.length >= 3 && word.startsWith(label))),
  )
  if (named.length !== 1 || /\b(?:each|every|per|change|growth|more|less|increase|than)\b/i.test(question ?? ''))
    return notApplicable
  const value = (100 * named[0]!.value) / sumOf(pairs.map((pair) => pair.value))
  return percents.some(
    (number) => isRounded(number, value) || (isRoughIn(answer.text, number) && standsFor(number, value, true)),
  )
    ? passed
    : failed('The share is not right.')
}

type Formula = { named: RegExp; compute(text: string): readonly number[] }

/** Calculations with one rate and one amount: what is asked for must be shown. */
const FORMULAS: readonly Formula[] = [
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
      /\b(?:gross|brutto|(?:including|incl\.?|with|plus|inkl\.?|zzgl\.?|mit|avec|con|add) (?:the )?(?:\d[\d.,]{0,5} ?% )?(?:vat|tax|sales tax|mwst|mehrwertsteuer|tva|iva|gst)|ttc)\b/i,
    compute: (text) => {
      const rate = /(\d[\d.,]{0,5})\s?%/.exec(text)
      const amount = readNumbers(text).find((number) => !number.isPercent && number.values[0]! > 0)
      // "17.5 % of 2,340, and 20 % VAT on that" has two rates.
      if ((text.match(/%/g)?.length ?? 0) > 1) return []
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
      // "3 more days" are no price.
      const amounts = readNumbers(text).filter(
        ({ isPercent, end }) =>
          !isPercent &&
          !/^ (?:more |working |business )?(?:days?|weeks?|hours?|months?|years?)\b/i.test(text.slice(end)),
      )
      if (rates.length !== 1 || amounts.length !== 1) return []
      const percent = readNumbers(rates[0]!)[0]!.values[0]!
      return [amounts[0]!.values[0]! * (1 - percent / 100), (amounts[0]!.values[0]! * percent) / 100]
    },
  },
]

/** "10,000 in parts of 50 % tools, 30 % training, 20 % reserve": each part that the answer names has its amount. */
function checkSplit(task: ReadTask, answer: Answer): Finding {
  const text = task.full.raw
  if (text.length > 500 || !text.includes('%')) return notApplicable
  const parts = [...text.matchAll(/(?<![\d.,])(\d{1,2}) ?% (?:for |to |on )?(\p{L}{3,20})/gu)].map(
    ([, share, name]) => ({
      share: Number(share) / 100,
      name: name!.toLowerCase(),
    }),
  )
  const totals = readNumbers(text).filter(({ isPercent, values }) => !isPercent && values[0]! >= 100)
  const isWhole = Math.abs(parts.reduce((sum, { share }) => sum + share, 0) - 1) < 1e-9
  if (parts.length < 2 || !isWhole || totals.length !== 1 || new Set(parts.map(({ name }) => name)).size < parts.length)
    return notApplicable
  for (const { share, name } of parts) {
    const lines = answer.text.split('\n').filter((line) =>
      line
        .toLowerCase()
        .replace(/^[^\p{L}]+/u, '')
        .startsWith(name),
    )
    const amounts = lines.length === 1 ? readNumbers(lines[0]!).filter(({ isPercent }) => !isPercent) : []
    const expected = totals[0]!.values.map((total) => total * share)
    if (amounts.length === 1 && !expected.some((value) => standsFor(amounts[0]!, value)))
      return failed(`The part for ${clip(name, 20)} is not its share.`)
  }
  return passed
}

/** One rate for each amount of a list: what is wanted of one is wanted of all, or of their sum. */
function checkRateOfList(text: string, answer: Answer): Finding {
  const rates = text.match(/\d[\d.,]{0,5}\s?%/g) ?? []
  const amounts = labelledValues(text).map(({ value }) => value)
  // "SPRING5" is a code.
  if (rates.length !== 1 || amounts.length < 2 || /\p{L}{3}\d/u.test(text)) return notApplicable
  if (readNumbers(text).filter(({ isPercent }) => !isPercent).length !== amounts.length) return notApplicable
  const share = readNumbers(rates[0]!)[0]!.values[0]! / 100
  const factors = RATE_FACTORS.find(([named]) => named.test(text))?.[1](share)
  if (!factors || !EACH.test(text)) return notApplicable
  const isShown = factors.some(
    (factor) => amounts.every((value) => shows(answer, value * factor)) || shows(answer, sumOf(amounts) * factor),
  )
  return isShown ? passed : failed('A result with the rate given is not right.')
}

const EACH =
  /\b(?:each|all|every|both|new prices?|prices? (?:after|with|now)|jeweils|alle|jede\w?|neue\w? preise?|chaque|tous|cada|ognuno)\b/i
const RATE_FACTORS: readonly (readonly [RegExp, (share: number) => number[]])[] = [
  [
    /\b(?:discount|off|rabatt|remise|descuento|sconto|reduced by|reduction|cheaper|less)\b/i,
    (share) => [1 - share, share],
  ],
  [/\b(?:without|excluding|excl\.?|ex) (?:vat|tax)|\bnett?o?\b.{0,20}\?/i, (share) => [1 / (1 + share), 1 + share]],
  [
    /\b(?:vat|tax|mwst|tva|iva|increase|raise|rise|surcharge|tip|markup|mark-up|plus|aufschlag|erhöh\w{0,4}|gross|brutto)\b/i,
    (share) => [1 + share, share, 1 / (1 + share)],
  ],
]

function checkRates(task: ReadTask, answer: Answer): Finding {
  const text = task.full.raw.replaceAll(/(?<=\d) ?(?:percent|per cent|prozent|pour cent|por ciento|procent)\b/gi, '%')
  if (
    task.code ||
    task.is.creative ||
    text.length > 500 ||
    !/^(?:analyst|default|strategist|support)/.test(task.agentId)
  )
    return notApplicable
  const ofList = checkRateOfList(text, answer)
  if (ofList.applies) return ofList
  for (const { named, compute } of FORMULAS) {
    if (!named.test(text)) continue
    const expected = compute(text).filter(Number.isFinite)
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
