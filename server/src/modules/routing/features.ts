import { neutralise } from './neutralise.ts'

/**
 * Turns a task into a sparse vector of hashed features. Integer arithmetic on UTF-16 units and no locale, so that the
 * same task gives the same vector on every machine. The characters read are capped, so that the cost is too.
 */
export const HASH_BITS = 18
export const DIMENSIONS = 1 << HASH_BITS

const HEAD = 1200
const TAIL = 500
export const MAX_TOKENS = 160
const MAX_FEATURES = 1200
const GRAM = 5
const MAX_GRAMMED = 12

/** Kinds keep equal texts apart: the word "code" and the pair that hashes from it are different features. */
const KIND = { word: 1, pair: 2, first: 3, second: 19, prefix: 4, shape: 5, skip: 6, gram: 7 } as const

/** How much a feature of each kind weighs before normalisation. */
const WEIGHT = { word: 6, pair: 4, first: 5, second: 5, prefix: 2, shape: 4, skip: 2, gram: 1 } as const

/**
 * The arrays are scratch space that the next call overwrites: extraction and what follows it are synchronous, and a
 * decision every few microseconds should not leave a heap behind. Copy what must last.
 */
export type FeatureVector = {
  count: number
  indices: Uint32Array
  weights: Uint8Array
  /** Which token a feature comes from; a negative number -1-n is the n-th shape. */
  origins: Int16Array
  /** Sum of the squared weights; its root is the length of the vector. */
  squares: number
  tokens: readonly string[]
  shapes: readonly string[]
}

const seen = new Int32Array(DIMENSIONS)
const indices = new Uint32Array(MAX_FEATURES)
const weights = new Uint8Array(MAX_FEATURES)
const origins = new Int16Array(MAX_FEATURES)
let generation = 0
let count = 0
let squares = 0

export function extractFeatures(task: string): FeatureVector {
  const text = neutralise(edgesOf(task))
  const { outside, fences } = withoutFences(text)
  const tokens = tokensOf(outside.toLowerCase())
  const stems = tokens.map(stemOf)
  // Without a word there is no task to have a shape.
  const shapes = tokens.length > 0 ? shapesOf(text, fences, tokens) : []
  generation = (generation + 1) | 0
  count = 0
  squares = 0

  for (let at = 0; at < shapes.length; at++)
    add(hashRange(shapes[at]!, 0, shapes[at]!.length, KIND.shape), WEIGHT.shape, -1 - at)
  const start = firstContent(tokens)
  if (start < stems.length) add(hashWord(stems[start]!, KIND.first), WEIGHT.first, start)
  if (start + 1 < stems.length) add(hashWord(stems[start + 1]!, KIND.second), WEIGHT.second, start + 1)
  for (let at = 0; at < stems.length; at++) {
    const stem = stems[at]!
    add(hashWord(stem, KIND.word), WEIGHT.word, at)
    if (at > 0) add(joinHash(stems[at - 1]!, stem, KIND.pair), WEIGHT.pair, at)
    if (at > 1) add(joinHash(stems[at - 2]!, stem, KIND.skip), WEIGHT.skip, at)
    if (stem.length <= GRAM) continue
    add(hashRange(stem, 0, GRAM, KIND.prefix), WEIGHT.prefix, at)
    const end = Math.min(stem.length, MAX_GRAMMED)
    for (let from = 0; from + GRAM <= end; from++) add(hashRange(stem, from, from + GRAM, KIND.gram), WEIGHT.gram, at)
  }
  return { count, indices, weights, origins, squares, tokens, shapes }
}

/** What a feature stands for, as a reader would say it. */
export function labelOf(vector: FeatureVector, origin: number): string {
  if (origin < 0) return vector.shapes[-1 - origin]!
  const token = vector.tokens[origin]!
  return token === ANY_NUMBER ? 'numbers' : `“${token}”`
}

function add(hash: number, weight: number, origin: number): void {
  const index = (hash ^ (hash >>> 14)) & (DIMENSIONS - 1)
  if (seen[index] === generation || count === MAX_FEATURES) return
  seen[index] = generation
  indices[count] = index
  weights[count] = weight
  origins[count] = origin
  count++
  squares += weight * weight
}

/** What people ask for stands at the edges of a long task. Cut at sentence ends, so that no half sentence is read. */
function edgesOf(task: string): string {
  if (task.length <= HEAD + TAIL) return task
  const head = task.slice(0, HEAD)
  const tail = task.slice(-TAIL)
  const end = Math.max(head.lastIndexOf('. '), head.lastIndexOf('\n'))
  const start = tail.search(/[.!?]\s|\n/)
  return `${end > HEAD / 2 ? head.slice(0, end + 1) : head}\n${start >= 0 && start < TAIL / 2 ? tail.slice(start + 1).trimStart() : tail}`
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
    if (isIdeograph(code)) {
      if (start >= 0) tokens.push(text.slice(start, at))
      tokens.push(text.slice(at, at + 2))
      start = -1
    } else if (isWordCode(code)) {
      if (start < 0) start = at
    } else if (start >= 0) {
      tokens.push(tokenOf(text, start, at, code))
      start = -1
    }
  }
  return tokens
}

/** Every number is the same token: which number it is says little about whose work it is. */
const ANY_NUMBER = '0'

function tokenOf(text: string, start: number, end: number, next: number): string {
  const first = text.charCodeAt(start)
  if (first >= 48 && first <= 57) return ANY_NUMBER
  if (end - start <= 2 && next === 35) return `${text.slice(start, end)}#`
  if (end - start <= 2 && next === 43 && text.charCodeAt(end + 1) === 43) return `${text.slice(start, end)}++`
  return text.slice(start, Math.min(end, start + 24))
}

const isWordCode = (code: number) =>
  (code >= 97 && code <= 122) ||
  (code >= 48 && code <= 57) ||
  (code > 0xbf && !(code >= 0x2000 && code <= 0x206f) && !(code >= 0x3000 && code <= 0x303f))

const isIdeograph = (code: number) => code >= 0x3040 && code <= 0x9fff

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

const QUESTION_OPENERS = new Set('what who when where why how which is are does do did was were has have'.split(' '))
const REPORT_OPENERS = new Set('my our the your i we'.split(' '))
/** { } ( ) ; = < > \ and / : the marks that code has more of than prose. */
const CODE_MARKS = new Set([123, 125, 40, 41, 59, 61, 60, 62, 92])

/** What the task looks like from afar: code, tables, numbers, questions, length. The names are shown to callers. */
function shapesOf(text: string, fences: readonly string[], tokens: readonly string[]): string[] {
  const shapes: string[] = []
  let marks = 0
  let exclaims = false
  let money = false
  let commas = 0
  let lines = 0
  let last = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (CODE_MARKS.has(code)) marks++
    else if (code === 33) exclaims = true
    else if (code === 37 || code === 36 || code === 8364 || code === 163) money = true
    else if (code === 44) commas++
    else if (code === 10) lines++
    if (code > 32) last = code
  }
  const numbers = tokens.reduce((sum, token) => sum + (token === '0' ? 1 : 0), 0)
  if (fences.length > 0) shapes.push('a code fence')
  const language = fences.length > 0 ? /^[a-z+#]{1,12}/i.exec(fences[0]!)?.[0] : undefined
  if (language) shapes.push(`a ${language.toLowerCase()} fence`)
  if (marks >= 5) shapes.push(marks >= 12 ? 'many code marks' : 'some code marks')
  if (numbers > 0) shapes.push(numbers >= 8 ? 'many numbers' : numbers >= 3 ? 'several numbers' : 'a number')
  if (money && numbers > 0) shapes.push('percentages or money')
  if (lines >= 2 && commas >= 4 && /\n[^\n,]{1,60},[^\n,]{1,60},?[^\n]{0,200}\n[^\n,]{1,60},/.test(text))
    shapes.push('comma-separated rows')
  if (numbers >= 3 && /\d[,;/ ]{1,3}\d[\d.]{0,12}[,;/ ]{1,3}\d/.test(text)) shapes.push('a run of numbers')
  if (last === 63) shapes.push('ends in a question')
  if (QUESTION_OPENERS.has(tokens[0]!)) shapes.push('opens as a question')
  if (REPORT_OPENERS.has(tokens[0]!)) shapes.push('opens as a report')
  if (exclaims) shapes.push('an exclamation')
  return shapes
}

const SEEDS = Array.from({ length: 32 }, (_, kind) => (0x811c9dc5 ^ Math.imul(kind, 0x9e3779b1)) | 0)

/** FNV-1a over a range of a text, seeded by kind. */
function hashRange(text: string, from: number, to: number, kind: number): number {
  let hash = SEEDS[kind]!
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash
}

const hashWord = (word: string, kind: number) => hashRange(word, 0, word.length, kind)

function joinHash(left: string, right: string, kind: number): number {
  let hash = Math.imul(hashRange(left, 0, left.length, kind) ^ 0x20, 0x01000193)
  for (let at = 0; at < right.length; at++) hash = Math.imul(hash ^ right.charCodeAt(at), 0x01000193)
  return hash
}
