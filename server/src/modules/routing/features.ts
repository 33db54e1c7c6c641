import { neutralise } from './neutralise.ts'

/**
 * Turns a task into a sparse vector of hashed features. Integer arithmetic on UTF-16 units and no locale, so that the
 * same task gives the same vector on every machine. The characters read are capped, so that the cost is too.
 */
export const HASH_BITS = 18
export const DIMENSIONS = 1 << HASH_BITS

const HEAD = 1000
const TAIL = 400
const MAX_TOKENS = 160
const MAX_FEATURES = 1200

/** Kinds keep equal texts apart: the word "code" and the bigram that hashes from it are different features. */
const KIND = { word: 1, pair: 2, first: 3, prefix: 4, shape: 5, skip: 6, gram: 7 } as const

/** How much a feature of each kind weighs before normalisation. */
const WEIGHT = { word: 6, pair: 4, first: 5, prefix: 2, shape: 4, skip: 2, gram: 1 } as const

export type Feature = { index: number; weight: number; label: string }

export type FeatureVector = {
  count: number
  indices: Uint32Array
  weights: Uint8Array
  /** Sum of the squared weights; its root is the length of the vector. */
  squares: number
  /** What feature `at` stands for, as a reader would say it. Worked out only for the few that are shown. */
  label(at: number): string
}

/** Scratch space, reused by every call: extraction is synchronous, so no two calls are ever inside at once. */
const seen = new Int32Array(DIMENSIONS)
let generation = 0

export function extractFeatures(task: string): FeatureVector {
  const text = neutralise(task.length > HEAD + TAIL ? `${task.slice(0, HEAD)}\n${task.slice(-TAIL)}` : task)
  const { outside, fences } = withoutFences(text)
  const tokens = tokensOf(outside.toLowerCase())
  const stems = tokens.map(stemOf)
  const indices = new Uint32Array(MAX_FEATURES)
  const weights = new Uint8Array(MAX_FEATURES)
  const origins = new Int16Array(MAX_FEATURES)
  const shapes = shapesOf(text, outside, fences, tokens)
  let count = 0
  let squares = 0
  generation = (generation + 1) | 0

  const add = (hash: number, weight: number, origin: number) => {
    const index = (hash ^ (hash >>> 14)) & (DIMENSIONS - 1)
    if (seen[index] === generation || count === MAX_FEATURES) return
    seen[index] = generation
    indices[count] = index
    weights[count] = weight
    origins[count] = origin
    count++
    squares += weight * weight
  }

  for (const [at, shape] of shapes.entries()) add(hashText(shape, KIND.shape), WEIGHT.shape, -1 - at)
  const start = firstContent(tokens)
  for (let at = start; at < Math.min(start + 2, stems.length); at++)
    add(hashText(stems[at]!, KIND.first + 16 * (at - start)), WEIGHT.first, at)
  for (let at = 0; at < stems.length; at++) {
    const stem = stems[at]!
    add(hashText(stem, KIND.word), WEIGHT.word, at)
    if (at > 0) add(joinHash(stems[at - 1]!, stem, KIND.pair), WEIGHT.pair, at)
    if (at > 1) add(joinHash(stems[at - 2]!, stem, KIND.skip), WEIGHT.skip, at)
    if (stem.length > 5) add(hashText(stem.slice(0, 5), KIND.prefix), WEIGHT.prefix, at)
    for (let from = 0; stem.length > 5 && from + 5 <= Math.min(stem.length, 12); from++)
      add(hashText(stem.slice(from, from + 5), KIND.gram), WEIGHT.gram, at)
  }
  return {
    count,
    indices,
    weights,
    squares,
    label: (at) => (origins[at]! < 0 ? shapes[-1 - origins[at]!]! : `“${tokens[origins[at]!]}”`),
  }
}

function withoutFences(text: string): { outside: string; fences: string[] } {
  if (!text.includes('```')) return { outside: text, fences: [] }
  const parts = text.split('```')
  return { outside: parts.filter((_, at) => at % 2 === 0).join('\n'), fences: parts.filter((_, at) => at % 2 === 1) }
}

/** ASCII letters and digits, and everything above ASCII that is not punctuation; "c++" and "c#" keep their signs. */
export function tokensOf(text: string): string[] {
  const tokens: string[] = []
  let start = -1
  for (let at = 0; at <= text.length && tokens.length < MAX_TOKENS; at++) {
    const code = at < text.length ? text.charCodeAt(at) : 32
    if (isWordCode(code)) {
      if (isIdeograph(code)) {
        if (start >= 0) tokens.push(text.slice(start, at))
        tokens.push(text.slice(at, at + 2))
        start = -1
      } else if (start < 0) start = at
      continue
    }
    if (start < 0) continue
    // c++, c#: the signs belong to the word.
    const signs = code === 35 || (code === 43 && text.charCodeAt(at + 1) === 43)
    tokens.push(
      signs && at - start <= 2
        ? `${text.slice(start, at)}${code === 35 ? '#' : '++'}`
        : text.slice(start, Math.min(at, start + 24)),
    )
    start = -1
  }
  return tokens.map((token) => (isNumber(token) ? '0' : token))
}

const isWordCode = (code: number) =>
  (code >= 97 && code <= 122) ||
  (code >= 48 && code <= 57) ||
  (code > 0xbf && !(code >= 0x2000 && code <= 0x206f) && !(code >= 0x3000 && code <= 0x303f))

const isIdeograph = (code: number) => code >= 0x3040 && code <= 0x9fff

const isNumber = (token: string) => {
  const code = token.charCodeAt(0)
  return code >= 48 && code <= 57
}

/** Cuts the endings that only inflect, and spells -ise as -ize: "prioritising" and "prioritize" are one word here. */
export function stemOf(word: string): string {
  let stem = word
  if (stem.length > 3 && stem.endsWith('s') && !stem.endsWith('ss') && !stem.endsWith('us') && !stem.endsWith('is'))
    stem = stem.slice(0, -1)
  if (stem.length > 5 && stem.endsWith('ing')) stem = stem.slice(0, -3)
  else if (stem.length > 4 && stem.endsWith('ed')) stem = stem.slice(0, -2)
  if (stem.length > 4 && stem.endsWith('e')) stem = stem.slice(0, -1)
  if (stem.length > 5 && (stem.endsWith('is') || stem.endsWith('ys'))) stem = `${stem.slice(0, -1)}z`
  return stem
}

const OPENERS = new Set(
  'please can could would you kindly hi hello hey i we need want to me us my help a an the some give tell'.split(' '),
)

function firstContent(tokens: readonly string[]): number {
  let at = 0
  while (at < tokens.length - 1 && at < 8 && OPENERS.has(tokens[at]!)) at++
  return at
}

const CODE_MARKS = /[{}();=<>\\]|=>|\/\//g

/** What the task looks like from afar: code, tables, numbers, questions, length. The names are shown to callers. */
function shapesOf(text: string, outside: string, fences: readonly string[], tokens: readonly string[]): string[] {
  const shapes: string[] = []
  if (fences.length > 0) shapes.push('a code fence')
  const language = fences.length > 0 ? /^[a-z+#]{1,12}/i.exec(fences[0]!)?.[0] : undefined
  if (language) shapes.push(`a ${language.toLowerCase()} fence`)
  const marks = (text.match(CODE_MARKS) ?? []).length
  if (marks >= 12) shapes.push('many code marks')
  else if (marks >= 5) shapes.push('some code marks')
  const numbers = tokens.reduce((sum, token) => sum + (token === '0' ? 1 : 0), 0)
  if (numbers >= 8) shapes.push('many numbers')
  else if (numbers >= 3) shapes.push('several numbers')
  else if (numbers >= 1) shapes.push('a number')
  else shapes.push('no numbers')
  if (/%|[$€£]\s?\d/.test(text)) shapes.push('percentages or money')
  if (/^[^\n,]+,[^\n,]+,[^\n]*\n[^\n,]+,[^\n,]+,/m.test(text)) shapes.push('comma-separated rows')
  if (/\d[,; ]+\d[\d.]*[,; ]+\d/.test(text)) shapes.push('a run of numbers')
  if (outside.trimEnd().endsWith('?')) shapes.push('ends in a question')
  if (/^\s*(?:what|who|when|where|why|how|which|is|are|does|do|did|was|were|has|have)\b/i.test(text))
    shapes.push('opens as a question')
  if (/^\s*(?:my|our|the|your|i|we)\b/i.test(text)) shapes.push('opens as a report')
  if (text.includes('!')) shapes.push('an exclamation')
  if (/:\s*\n|:\s+["“]/.test(text)) shapes.push('introduces material')
  shapes.push(
    tokens.length <= 6
      ? 'very short'
      : tokens.length <= 16
        ? 'short'
        : tokens.length <= 45
          ? 'of middle length'
          : 'long',
  )
  return shapes
}

/** FNV-1a, seeded by kind. */
function hashText(text: string, kind: number): number {
  let hash = (0x811c9dc5 ^ Math.imul(kind, 0x9e3779b1)) >>> 0
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 0
}

function joinHash(left: string, right: string, kind: number): number {
  let hash = Math.imul(hashText(left, kind) ^ 0x20, 0x01000193)
  for (let at = 0; at < right.length; at++) hash = Math.imul(hash ^ right.charCodeAt(at), 0x01000193)
  return hash >>> 0
}
