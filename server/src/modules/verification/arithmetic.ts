import { parseNumber } from './numbers.ts'

type Token = { kind: 'number'; value: number; start: number } | { kind: 'sign'; sign: string; start: number }

const OPERATORS: Readonly<Record<string, string>> = {
  '+': '+',
  '-': '-',
  '−': '-',
  '–': '-',
  '*': '*',
  '×': '*',
  x: '*',
  X: '*',
  '·': '*',
  '/': '/',
  '÷': '/',
  ':': '/',
  '^': '^',
}
const MAX_TOKENS = 60

/**
 * The arithmetic at the start or at the end of a text: numbers, signs and brackets with at least one operation.
 * Undefined when there is none, when something else stands between, or when a number can be read in two ways.
 */
export function parseExpression(text: string, from: 'start' | 'end'): { value: number; text: string } | undefined {
  const tokens = tokenize(text)
  const run = from === 'end' ? lastRun(tokens) : firstRun(tokens)
  for (let skip = 0; skip < Math.min(run.length, 8); skip++) {
    const part = from === 'end' ? run.slice(skip) : run.slice(0, run.length - skip)
    // "40 buyers × (54 − 31) = 920": what stands in front of the sign is a part of it.
    const dropped = from === 'end' ? run[skip - 1]?.token : undefined
    if (dropped?.kind === 'sign' && /^[*/^]$/.test(dropped.sign)) return undefined
    const value = evaluate(part.map(({ token }) => token))
    if (value !== undefined && Number.isFinite(value)) {
      const first = part[0]!.token.start
      const last = part.at(-1)!
      return { value, text: text.slice(first, last.end) }
    }
  }
  return undefined
}

type Piece = { token: Token; end: number } | { token: undefined; end: number }

function tokenize(text: string): Piece[] {
  const pieces: Piece[] = []
  for (const match of text.matchAll(
    /(\d+(?:[.,'\u00a0\u202f]\d+)*)(%?)|([-+*×·/÷^−–()])|((?<=\d\s?)[xX](?=\s?\d)|(?<=\d):(?=\d)|(?<=\d\s):(?=\s\d))|[$€£\s]+|[^\s]/gu,
  )) {
    const start = match.index
    const end = start + match[0].length
    if (match[1] !== undefined) {
      const value = parseNumber(match[1])[0]
      if (value === undefined) pieces.push({ token: undefined, end })
      else pieces.push({ token: { kind: 'number', value: match[2] ? value / 100 : value, start }, end })
    } else if (match[3] ?? match[4])
      pieces.push({ token: { kind: 'sign', sign: OPERATORS[match[0]] ?? match[0], start }, end })
    else if (!/^[$€£\s]+$/.test(match[0])) pieces.push({ token: undefined, end })
  }
  return pieces
}

type Usable = Extract<Piece, { token: Token }>

const lastRun = (pieces: readonly Piece[]): Usable[] => {
  const run: Usable[] = []
  for (let i = pieces.length - 1; i >= 0 && pieces[i]!.token && run.length < MAX_TOKENS; i--)
    run.unshift(pieces[i] as Usable)
  return run
}

const firstRun = (pieces: readonly Piece[]): Usable[] => {
  const run: Usable[] = []
  for (const piece of pieces) {
    if (!piece.token || run.length >= MAX_TOKENS) break
    run.push(piece as Usable)
  }
  return run
}

/** Reads by precedence; undefined unless every token is used and there is an operation. */
function evaluate(tokens: readonly Token[]): number | undefined {
  let at = 0
  let operations = 0
  const sign = (...signs: string[]) => {
    const token = tokens[at]
    return token?.kind === 'sign' && signs.includes(token.sign) ? token.sign : undefined
  }
  const primary = (): number | undefined => {
    const token = tokens[at]
    if (!token) return undefined
    at++
    if (token.kind === 'number') return token.value
    if (token.sign === '-') {
      const value = primary()
      return value === undefined ? undefined : -value
    }
    if (token.sign !== '(') return undefined
    const value = sum()
    if (!sign(')')) return undefined
    at++
    return value
  }
  const power = (): number | undefined => {
    const value = primary()
    if (value === undefined || !sign('^')) return value
    at++
    operations++
    const exponent = primary()
    return exponent === undefined ? undefined : value ** exponent
  }
  const product = (): number | undefined => {
    let value = power()
    for (let operator = sign('*', '/'); operator && value !== undefined; operator = sign('*', '/')) {
      at++
      operations++
      const next = power()
      value = next === undefined ? undefined : operator === '*' ? value * next : value / next
    }
    return value
  }
  const sum = (): number | undefined => {
    let value = product()
    for (let operator = sign('+', '-'); operator && value !== undefined; operator = sign('+', '-')) {
      at++
      operations++
      const next = product()
      value = next === undefined ? undefined : operator === '+' ? value + next : value - next
    }
    return value
  }
  const value = sum()
  return at === tokens.length && operations > 0 ? value : undefined
}
