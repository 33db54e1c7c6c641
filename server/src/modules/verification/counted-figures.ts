import { type Answer, shows, sumOf } from './answer-numbers.ts'
import { evaluateCode } from './code-values.ts'
import { datasetsOf } from './datasets.ts'
import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { isRoughIn, readNumbers, standsFor, type TextNumber } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, wordsOf } from './text.ts'

/** "How many of these are above 50?", "count the negative values". */
export function checkCountOf(task: ReadTask, answer: Answer): Finding {
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
export function checkSpread(task: ReadTask, answer: Answer): Finding {
  const request = task.request
  if (
    !/\bhow much (?:more|less|higher|lower) than the (?:lowest|smallest|highest|largest|cheapest|best|worst)\b|\bdifference between (?:the )?(?:coldest|lowest|smallest|highest|largest|biggest|warmest|oldest|youngest|best|worst|cheapest|hottest|tallest|shortest)\b|\b(?:the )?range\b(?= of|:|\?)|\bspannweite\b/i.test(
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
  // "They range from 6 to 23" names both ends.
  const namesEnds = sets.some((values) => shows(answer, Math.min(...values)) && shows(answer, Math.max(...values)))
  return namesEnds || claims.some((number) => expected.some((value) => standsFor(number, value)))
    ? passed
    : doubt(failed('The difference is not right.'))
}

export function checkVariance(task: ReadTask, answer: Answer): Finding {
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

/** "What does `[i*i for i in range(5)]` give?", "x = 7 // 2 + 7 % 2". */
export function checkCodeValue(task: ReadTask, output: ReadText): Finding {
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
export function checkWordCount(task: ReadTask, output: ReadText): Finding {
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
