import { spendSteps } from '../../../platform/step-budget.ts'
import { formatNumber, round, trimEndOf } from './text.ts'

/** A calculation that a task asks for in words or signs, and its result. */
export type Sum = { expression: string; result: number }

const MAX_TOKENS = 60
const MAX_CHARACTERS = 400
const NUMBER = String.raw`-?\d{1,15}(?:,\d{3})*(?:\.\d{1,10})?`

/** Reads "what is 17 * 23?", "15% of 240", "the sum of 3, 4 and 5", "7 plus 8". Undefined when the task asks for something else. */
export function readSum(task: string): Sum | undefined {
  const text = task.trim()
  if (text.length > MAX_CHARACTERS || !/\d/.test(text)) return undefined
  spendSteps(text.length)
  const taskText = text
    .toLowerCase()
    .replace(
      /^(?:please |can you |could you |hey,? |hi,? )*(?:what(?:'s| is| are)|how much is|calculate|compute|evaluate|solve|work out|add up|add|give me|tell me|find)?\s*(?:the (?:result|value|answer) of )?:?\s*/,
      '',
    )
  const request = trimEndOf(taskText, '?!.=', true).trim()
  return readPercentage(request) ?? readAggregate(request, text) ?? readExpression(request)
}

function readPercentage(request: string): Sum | undefined {
  const match = new RegExp(`^(${NUMBER}) ?(?:%|percent) of [$€£]?(${NUMBER})$`).exec(request)
  if (!match) return undefined
  const [share, whole] = [toNumber(match[1]!), toNumber(match[2]!)]
  return { expression: `${formatNumber(share)} % of ${formatNumber(whole)}`, result: (share * whole) / 100 }
}

const AGGREGATES: readonly { pattern: RegExp; name: string; compute: (values: readonly number[]) => number }[] = [
  { pattern: /^(?:the )?(?:sum|total)\b/, name: 'sum', compute: (values) => values.reduce((a, b) => a + b, 0) },
  {
    pattern: /^(?:the )?(?:average|mean)\b/,
    name: 'mean',
    compute: (values) => values.reduce((a, b) => a + b, 0) / values.length,
  },
  { pattern: /^(?:the )?median\b/, name: 'median', compute: medianOf },
  { pattern: /^(?:the )?product\b/, name: 'product', compute: (values) => values.reduce((a, b) => a * b, 1) },
  {
    pattern: /^(?:the )?(?:max(?:imum)?|largest|highest)\b/,
    name: 'largest',
    compute: (values) => Math.max(...values),
  },
  {
    pattern: /^(?:the )?(?:min(?:imum)?|smallest|lowest)\b/,
    name: 'smallest',
    compute: (values) => Math.min(...values),
  },
]

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Only numbers may follow the name: "the sum of our invoices for 3 months" is no list. */
function readAggregate(request: string, task: string): Sum | undefined {
  const isAddition = /^(?:please )?add(?: up)?\b/i.test(task)
  const aggregate = isAddition ? AGGREGATES[0] : AGGREGATES.find(({ pattern }) => pattern.test(request))
  if (!aggregate) return undefined
  const list = (isAddition ? request : request.replace(aggregate.pattern, ''))
    .replace(
      /^\s*(?:value|number)?\s*(?:of|for|from)?\s*(?:these|the following|all)?\s*(?:numbers|values)?\s*:?\s*/,
      '',
    )
    .replace(/\b(?:and|plus|to)\b|[&;+]/g, ',')
  const parts = list.split(/,\s+|,(?!\d{3}\b)|\s+/).filter(Boolean)
  if (
    parts.length < 2 ||
    parts.length > MAX_TOKENS ||
    !parts.every((part) => new RegExp(`^[$€£]?${NUMBER}$`).test(part))
  )
    return undefined
  const values = parts.map((part) => toNumber(part.replace(/[$€£]/, '')))
  return {
    expression: `The ${aggregate.name} of ${values.map(formatNumber).join(', ')}`,
    result: aggregate.compute(values),
  }
}

const toNumber = (text: string) => Number(text.replaceAll(',', ''))

const WORDS: readonly [RegExp, string][] = [
  [/\bmultiplied by\b|\btimes\b|×|(?<=\d)\s*x\s*(?=\d)/g, ' * '],
  [/\bdivided by\b|÷|\bover\b/g, ' / '],
  [/\bplus\b/g, ' + '],
  [/\bminus\b|−|–/g, ' - '],
  [/\bto the power of\b|\*\*/g, ' ^ '],
  [/\bsquared\b/g, ' ^ 2'],
]

function readExpression(request: string): Sum | undefined {
  const signs = WORDS.reduce((text, [pattern, sign]) => text.replace(pattern, sign), request)
  if (!/^[\d\s.,+\-*/^()]+$/.test(signs) || !/[+*/^]|\d\s*-\s*\(?\d/.test(signs)) return undefined
  // A date or a telephone number has the same signs and no space or bracket between them.
  if (/^\d{1,4}[-/]\d{1,2}[-/]\d{1,4}$/.test(signs.trim()) || /^[\d-]{7,}$/.test(signs.trim())) return undefined
  const tokens = signs.match(/\d{1,15}(?:,\d{3})*(?:\.\d{1,10})?|[-+*/^()]/g)?.slice(0, MAX_TOKENS + 1)
  if (!tokens || tokens.length > MAX_TOKENS || tokens.length < 3) return undefined
  const result = evaluate(tokens)
  return result === undefined || !Number.isFinite(result)
    ? undefined
    : {
        expression: tokens
          .join(' ')
          .replaceAll('*', '×')
          .replaceAll('/', '÷')
          .replaceAll('( ', '(')
          .replaceAll(' )', ')'),
        result,
      }
}

/** Recursive descent over at most `MAX_TOKENS` tokens; undefined when they are no expression. */
function evaluate(tokens: readonly string[]): number | undefined {
  let at = 0
  const sum = (): number => {
    let value = product()
    while (tokens[at] === '+' || tokens[at] === '-')
      value = tokens[at++] === '+' ? value + product() : value - product()
    return value
  }
  const product = (): number => {
    let value = power()
    while (tokens[at] === '*' || tokens[at] === '/') value = tokens[at++] === '*' ? value * power() : value / power()
    return value
  }
  const power = (): number => {
    const base = single()
    if (tokens[at] !== '^') return base
    at += 1
    return base ** power()
  }
  const single = (): number => {
    const token = tokens[at++]
    if (token === '-') return -single()
    if (token === '(') {
      const value = sum()
      return tokens[at++] === ')' ? value : Number.NaN
    }
    return token !== undefined && /^\d/.test(token) ? toNumber(token) : Number.NaN
  }
  const result = sum()
  return at === tokens.length && !Number.isNaN(result) ? result : undefined
}

/** The result in words, with its rounding where it was rounded. */
export function describeSum({ expression, result }: Sum): { answer: string; rounding: string } {
  const rounded = round(result, 6)
  const isExact = Math.abs(rounded - result) < 1e-12
  const text = formatNumber(Number.isInteger(rounded) ? rounded : round(result, 4))
  const isShownExactly = isExact && Math.abs(Number(text.replaceAll(',', '')) - result) < 1e-9
  const isSentence = expression.startsWith('The ')
  return {
    answer: `${expression} ${isSentence ? 'is' : '='} ${text}.`,
    rounding: isShownExactly ? 'Exact, not rounded.' : `Rounded; with six decimals it is ${rounded}.`,
  }
}
