import { spendSteps } from '../../platform/step-budget.ts'
import { toStorableText } from '../../platform/storable-text.ts'
import { stripPromptInjection } from './strip-prompt-injection.ts'

/**
 * Turns a task into a sparse vector of hashed features. It uses integer arithmetic on UTF-16 units and no locale, so that
 * the same task gives the same vector on every machine. The number of characters read is capped, which bounds the cost.
 */
export const HASH_BITS = 18
export const DIMENSIONS = 1 << HASH_BITS

const HEAD_CHARACTERS = 1200
const TAIL_CHARACTERS = 500
export const MAX_TOKENS = 160
const MAX_FEATURES = 1200
const GRAM_LENGTH = 5
const MAX_GRAM_END = 12

/** The kind seeds the hash, so that the same text as a word and as a prefix gives different features. */
const KIND = { word: 1, pair: 2, first: 3, second: 19, prefix: 4, shape: 5, skip: 6, gram: 7 } as const

/** The weight of a feature of each kind before normalisation. */
const WEIGHT = { word: 6, pair: 4, first: 5, second: 5, prefix: 2, shape: 4, skip: 2, gram: 1 } as const

/**
 * The arrays are reused and overwritten by the next call, to avoid allocation on a hot path; extraction and its use are
 * synchronous. Copy what must outlive the next call.
 */
export type FeatureVector = {
  count: number
  indices: Uint32Array
  weights: Uint8Array
  /** The index of the token a feature comes from; a negative number -1-n is the n-th shape. */
  origins: Int16Array
  /** Sum of the squared weights; its root is the length of the vector. */
  squares: number
  tokens: readonly string[]
  shapes: readonly string[]
}

const lastGeneration = new Int32Array(DIMENSIONS)
const indices = new Uint32Array(MAX_FEATURES)
const weights = new Uint8Array(MAX_FEATURES)
const origins = new Int16Array(MAX_FEATURES)
let generation = 0
let count = 0
let squares = 0

export function extractFeatures(task: string): FeatureVector {
  spendSteps(Math.min(task.length, HEAD_CHARACTERS + TAIL_CHARACTERS))
  const text = stripPromptInjection(keepHeadAndTail(task))
  const { outside, fences } = splitFences(text)
  const tokens = tokenize(outside.toLowerCase())
  const stems = tokens.map(stemWord)
  // A text without words has no shapes.
  const shapes = tokens.length > 0 ? detectShapes(text, fences, tokens) : []
  generation = (generation + 1) | 0
  count = 0
  squares = 0

  for (let i = 0; i < shapes.length; i++)
    addFeature(hashRange(shapes[i]!, 0, shapes[i]!.length, KIND.shape), WEIGHT.shape, -1 - i)
  const start = findFirstContentToken(tokens)
  if (start < stems.length) addFeature(hashWord(stems[start]!, KIND.first), WEIGHT.first, start)
  if (start + 1 < stems.length) addFeature(hashWord(stems[start + 1]!, KIND.second), WEIGHT.second, start + 1)
  for (let i = 0; i < stems.length; i++) {
    const stem = stems[i]!
    addFeature(hashWord(stem, KIND.word), WEIGHT.word, i)
    if (i > 0) addFeature(hashPair(stems[i - 1]!, stem, KIND.pair), WEIGHT.pair, i)
    if (i > 1) addFeature(hashPair(stems[i - 2]!, stem, KIND.skip), WEIGHT.skip, i)
    if (stem.length <= GRAM_LENGTH) continue
    addFeature(hashRange(stem, 0, GRAM_LENGTH, KIND.prefix), WEIGHT.prefix, i)
    const end = Math.min(stem.length, MAX_GRAM_END)
    for (let from = 0; from + GRAM_LENGTH <= end; from++)
      addFeature(hashRange(stem, from, from + GRAM_LENGTH, KIND.gram), WEIGHT.gram, i)
  }
  return { count, indices, weights, origins, squares, tokens, shapes }
}

/** The name of a feature's origin, as shown to callers. */
export function describeOrigin(vector: FeatureVector, origin: number): string {
  if (origin < 0) return vector.shapes[-1 - origin]!
  // A long token is cut, possibly within a surrogate pair.
  const token = toStorableText(vector.tokens[origin]!)
  return token === ANY_NUMBER ? 'numbers' : `“${token}”`
}

function addFeature(hash: number, weight: number, origin: number): void {
  const index = (hash ^ (hash >>> 14)) & (DIMENSIONS - 1)
  if (lastGeneration[index] === generation || count === MAX_FEATURES) return
  lastGeneration[index] = generation
  indices[count] = index
  weights[count] = weight
  origins[count] = origin
  count++
  squares += weight * weight
}

/** The request usually stands at the beginning or the end of a long task. Cuts at sentence ends, so that no half sentence is read. */
function keepHeadAndTail(task: string): string {
  if (task.length <= HEAD_CHARACTERS + TAIL_CHARACTERS) return task
  const head = task.slice(0, HEAD_CHARACTERS)
  const tail = task.slice(-TAIL_CHARACTERS)
  const end = Math.max(head.lastIndexOf('. '), head.lastIndexOf('\n'))
  const start = tail.search(/[.!?]\s|\n/)
  return `${end > HEAD_CHARACTERS / 2 ? head.slice(0, end + 1) : head}\n${start >= 0 && start < TAIL_CHARACTERS / 2 ? tail.slice(start + 1).trimStart() : tail}`
}

function splitFences(text: string): { outside: string; fences: string[] } {
  if (!text.includes('```')) return { outside: text, fences: [] }
  const parts = text.split('```')
  return { outside: parts.filter((_, i) => i % 2 === 0).join('\n'), fences: parts.filter((_, i) => i % 2 === 1) }
}

/** ASCII letters and digits, and everything above ASCII that is not punctuation; "c++" and "c#" keep their signs. */
export function tokenize(text: string): string[] {
  const tokens: string[] = []
  let start = -1
  for (let i = 0; i <= text.length && tokens.length < MAX_TOKENS; i++) {
    const code = i < text.length ? text.charCodeAt(i) : 32
    if (isIdeograph(code)) {
      if (start >= 0) tokens.push(text.slice(start, i))
      tokens.push(text.slice(i, i + 2))
      start = -1
    } else if (isWordCode(code)) {
      if (start < 0) start = i
    } else if (start >= 0) {
      tokens.push(readToken(text, start, i, code))
      start = -1
    }
  }
  return tokens
}

/** Every number becomes the same token, because its value says little about the lane. */
const ANY_NUMBER = '0'

function readToken(text: string, start: number, end: number, nextCode: number): string {
  const first = text.charCodeAt(start)
  if (first >= 48 && first <= 57) return ANY_NUMBER
  if (end - start <= 2 && nextCode === 35) return `${text.slice(start, end)}#`
  if (end - start <= 2 && nextCode === 43 && text.charCodeAt(end + 1) === 43) return `${text.slice(start, end)}++`
  return text.slice(start, Math.min(end, start + 24))
}

const isWordCode = (code: number) =>
  (code >= 97 && code <= 122) ||
  (code >= 48 && code <= 57) ||
  (code > 0xbf && !(code >= 0x2000 && code <= 0x206f) && !(code >= 0x3000 && code <= 0x303f))

const isIdeograph = (code: number) => code >= 0x3040 && code <= 0x9fff

/** Removes inflectional endings and spells -ise as -ize, so that "prioritising" and "prioritize" give the same stem. */
export function stemWord(word: string): string {
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

function findFirstContentToken(tokens: readonly string[]): number {
  let i = 0
  while (i < tokens.length - 1 && i < 8 && OPENERS.has(tokens[i]!)) i++
  return i
}

const QUESTION_OPENERS = new Set('what who when where why how which is are does do did was were has have'.split(' '))
const REPORT_OPENERS = new Set('my our the your i we'.split(' '))
/** { } ( ) ; = < > \ : characters that are more frequent in code than in prose. */
const CODE_MARKS = new Set([123, 125, 40, 41, 59, 61, 60, 62, 92])

/** Properties of the whole text: code, tables, numbers, questions. The names are shown to callers. */
function detectShapes(text: string, fences: readonly string[], tokens: readonly string[]): string[] {
  const shapes: string[] = []
  let codeMarks = 0
  let hasExclamation = false
  let hasMoneySign = false
  let commas = 0
  let lines = 0
  let lastCode = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (CODE_MARKS.has(code)) codeMarks++
    else if (code === 33) hasExclamation = true
    else if (code === 37 || code === 36 || code === 8364 || code === 163) hasMoneySign = true
    else if (code === 44) commas++
    else if (code === 10) lines++
    if (code > 32) lastCode = code
  }
  const numbers = tokens.reduce((sum, token) => sum + (token === '0' ? 1 : 0), 0)
  if (fences.length > 0) shapes.push('a code fence')
  const language = fences.length > 0 ? /^[a-z+#]{1,12}/i.exec(fences[0]!)?.[0] : undefined
  if (language) shapes.push(`a ${language.toLowerCase()} fence`)
  if (codeMarks >= 5) shapes.push(codeMarks >= 12 ? 'many code marks' : 'some code marks')
  if (numbers > 0) shapes.push(numbers >= 8 ? 'many numbers' : numbers >= 3 ? 'several numbers' : 'a number')
  if (hasMoneySign && numbers > 0) shapes.push('percentages or money')
  if (lines >= 2 && commas >= 4 && /\n[^\n,]{1,60},[^\n,]{1,60},?[^\n]{0,200}\n[^\n,]{1,60},/.test(text))
    shapes.push('comma-separated rows')
  if (numbers >= 3 && /\d[,;/ ]{1,3}\d[\d.]{0,12}[,;/ ]{1,3}\d/.test(text)) shapes.push('a run of numbers')
  if (lastCode === 63) shapes.push('ends in a question')
  if (QUESTION_OPENERS.has(tokens[0]!)) shapes.push('opens as a question')
  if (REPORT_OPENERS.has(tokens[0]!)) shapes.push('opens as a report')
  if (hasExclamation) shapes.push('an exclamation')
  return shapes
}

const SEEDS = Array.from({ length: 32 }, (_, kind) => (0x811c9dc5 ^ Math.imul(kind, 0x9e3779b1)) | 0)

/** FNV-1a over a range of a text, seeded by the feature kind. */
function hashRange(text: string, from: number, to: number, kind: number): number {
  let hash = SEEDS[kind]!
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}

const hashWord = (word: string, kind: number) => hashRange(word, 0, word.length, kind)

function hashPair(left: string, right: string, kind: number): number {
  let hash = Math.imul(hashRange(left, 0, left.length, kind) ^ 0x20, 0x01000193)
  for (let i = 0; i < right.length; i++) hash = Math.imul(hash ^ right.charCodeAt(i), 0x01000193)
  return hash
}
