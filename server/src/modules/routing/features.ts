import { spendSteps } from '../../platform/step-budget.ts'
import { toStorableText } from '../../platform/storable-text.ts'
import { isCodeMark, type Segment, selectSegments, splitSegments } from './segments.ts'
import { stripPromptInjection } from './strip-prompt-injection.ts'

/**
 * Turns a task into sparse vectors of hashed features: one for each of its segments, and one for the whole text. It uses
 * integer arithmetic on UTF-16 units and no locale, so that the same task gives the same vectors on every machine. The
 * number of characters read closely is capped, which bounds the cost.
 */
export const HASH_BITS = 20
export const DIMENSIONS = 1 << HASH_BITS

/** Of a text longer than twice this, the beginning and the end are read. */
const MAX_HALF_CHARACTERS = 4000
/** A longer text is first reduced to the segments that may hold the request. */
const MAX_CHARACTERS = 3000
const MAX_SEGMENTS = 16
const MAX_CONDENSED_SEGMENTS = 40
const MAX_SEGMENT_TOKENS = 48
const MAX_CONTEXT_WORDS = 120
export const MAX_TOKENS = 320
export const MAX_VECTORS = MAX_SEGMENTS + 1
export const MAX_FEATURES = 9000
const MAX_GRAM_END = 14

/** The kind seeds the hash, so that the same text as a word and as a prefix gives different features. */
const KIND = {
  word: 1,
  pair: 2,
  first: 3,
  prefix: 4,
  shape: 5,
  skip: 6,
  gram: 7,
  head: 8,
  headPair: 9,
  last: 10,
  context: 11,
  second: 12,
  object: 13,
} as const

/** The weight of a feature of each kind before normalisation. */
const WEIGHT = {
  word: 6,
  pair: 4,
  first: 5,
  second: 4,
  prefix: 2,
  shape: 4,
  skip: 2,
  gram: 2,
  head: 5,
  headPair: 6,
  last: 4,
  context: 3,
  object: 5,
} as const

/**
 * The arrays are reused and overwritten by the next call, to avoid allocation on a hot path; extraction and its use are
 * synchronous. Copy what must outlive the next call.
 */
export type TaskFeatures = {
  /** Vector `v` has the features from `starts[v]` to `starts[v + 1]`. The last vector is that of the whole text. */
  vectors: number
  starts: Uint32Array
  /** Sum of the squared weights of each vector; its root is the length of the vector. */
  squares: Float64Array
  indices: Uint32Array
  weights: Uint8Array
  /** The index of the token a feature comes from; a negative number -1-n is the n-th shape. */
  origins: Int16Array
  tokens: readonly string[]
  shapes: readonly string[]
}

/** The features of the current vector, in a table small enough for the processor's cache: slot by slot the index and the vector it was seen in. */
const SEEN_SLOTS = 1 << 13
const seen = new Int32Array(SEEN_SLOTS * 2)
const MAX_VECTOR_FEATURES = SEEN_SLOTS / 2
const indices = new Uint32Array(MAX_FEATURES)
const weights = new Uint8Array(MAX_FEATURES)
const origins = new Int16Array(MAX_FEATURES)
const starts = new Uint32Array(MAX_VECTORS + 1)
const squares = new Float64Array(MAX_VECTORS)
let generation = 0
let count = 0
let vectors = 0

export function extractFeatures(task: string): TaskFeatures {
  spendSteps(Math.min(task.length, 2 * MAX_HALF_CHARACTERS))
  const text = stripPromptInjection(condense(task))
  const segments = selectSegments(text, splitSegments(text), MAX_SEGMENTS, MAX_CHARACTERS)
  const lowered = foldText(text)
  const tokens: string[] = []
  const shapes: string[] = []
  count = 0
  vectors = 0
  const firstTokens: number[] = []
  for (let i = 0; i < segments.length; i++) {
    firstTokens.push(tokens.length)
    beginVector()
    addSegment(text, lowered, segments, i, tokens, shapes)
    endVector()
  }
  beginVector()
  // A text without words has no shapes.
  if (tokens.length > 0) {
    for (const shape of detectShapes(text, segments, tokens, firstTokens)) addShape(shape, shapes)
    for (let i = 0; i < tokens.length && i < MAX_CONTEXT_WORDS; i++)
      addFeature(hashWord(stemWord(tokens[i]!), KIND.context), WEIGHT.context, i)
  }
  endVector()
  return { vectors, starts, squares, indices, weights, origins, tokens, shapes }
}

/** What a vector is divided by. */
export const vectorLength = (sumOfSquares: number): number => Math.sqrt(Math.max(1, sumOfSquares))

/** The name of a feature's origin, as shown to callers. */
export function describeOrigin(features: TaskFeatures, origin: number): string {
  if (origin < 0) return features.shapes[-1 - origin]!
  // A long token is cut, possibly within a surrogate pair.
  const token = toStorableText(features.tokens[origin]!)
  return token === ANY_NUMBER ? 'numbers' : `“${token}”`
}

function condense(task: string): string {
  if (task.length <= MAX_CHARACTERS) return task
  const text =
    task.length <= 2 * MAX_HALF_CHARACTERS
      ? task
      : `${task.slice(0, MAX_HALF_CHARACTERS)}\n${task.slice(-MAX_HALF_CHARACTERS)}`
  return selectSegments(text, splitSegments(text), MAX_CONDENSED_SEGMENTS, MAX_CHARACTERS)
    .map(({ start, end }) => text.slice(start, end))
    .join('\n')
}

function beginVector(): void {
  generation = (generation + 1) | 0
  starts[vectors] = count
  squares[vectors] = 0
}

function endVector(): void {
  vectors++
  starts[vectors] = count
}

function addFeature(hash: number, weight: number, origin: number): void {
  const index = (hash ^ (hash >>> 12)) & (DIMENSIONS - 1)
  if (count === MAX_FEATURES || count - starts[vectors]! === MAX_VECTOR_FEATURES) return
  let slot = index & (SEEN_SLOTS - 1)
  while (seen[2 * slot + 1] === generation) {
    if (seen[2 * slot] === index) return
    slot = (slot + 1) & (SEEN_SLOTS - 1)
  }
  seen[2 * slot] = index
  seen[2 * slot + 1] = generation
  indices[count] = index
  weights[count] = weight
  origins[count] = origin
  count++
  squares[vectors]! += weight * weight
}

function addShape(name: string, shapes: string[]): void {
  let i = shapes.indexOf(name)
  if (i < 0) i = shapes.push(name) - 1
  addFeature(hashRange(name, 0, name.length, KIND.shape), WEIGHT.shape, -1 - i)
}

/** Words, pairs of words, parts of words, and what the sentence is built around: its first words and the object before a preposition. */
function addSegment(
  text: string,
  lowered: string,
  segments: readonly Segment[],
  position: number,
  tokens: string[],
  shapes: string[],
): void {
  const segment = segments[position]!
  const from = tokens.length
  tokenize(lowered, segment.start, segment.end, tokens, Math.min(MAX_TOKENS, from + MAX_SEGMENT_TOKENS))
  const to = tokens.length
  const stems: string[] = []
  for (let i = from; i < to; i++) stems.push(stemWord(tokens[i]!))
  for (const shape of detectSegmentShapes(text, segments, position, stems.length)) addShape(shape, shapes)
  if (stems.length === 0) return

  const start = findFirstContentToken(tokens, from, to) - from
  addFeature(hashWord(stems[start]!, KIND.first), WEIGHT.first, from + start)
  if (start + 1 < stems.length)
    addFeature(hashPair(stems[start]!, stems[start + 1]!, KIND.second), WEIGHT.second, from + start + 1)
  const last = stems.length - 1
  addFeature(hashWord(stems[last]!, KIND.last), WEIGHT.last, from + last)
  if (last > 0) addFeature(hashPair(stems[last - 1]!, stems[last]!, KIND.last), WEIGHT.last, from + last)

  const headEnd = findHeadEnd(tokens, from + start, to) - from
  for (let i = start; i < headEnd; i++) {
    addFeature(hashWord(stems[i]!, KIND.head), WEIGHT.head, from + i)
    if (i > start && i >= headEnd - 2)
      addFeature(hashPair(stems[start]!, stems[i]!, KIND.headPair), WEIGHT.headPair, from + i)
  }
  if (headEnd - 1 > start) addFeature(hashWord(stems[headEnd - 1]!, KIND.object), WEIGHT.object, from + headEnd - 1)

  for (let i = 0; i < stems.length; i++) {
    const stem = stems[i]!
    addFeature(hashWord(stem, KIND.word), WEIGHT.word, from + i)
    if (i > 0) addFeature(hashPair(stems[i - 1]!, stem, KIND.pair), WEIGHT.pair, from + i)
    if (i > 1) addFeature(hashPair(stems[i - 2]!, stem, KIND.skip), WEIGHT.skip, from + i)
    if (stem.length > 3) addGrams(stem, from + i)
  }
}

/** Parts of three and four letters survive a misspelling of the others, and other endings of the same word. */
function addGrams(stem: string, origin: number): void {
  const end = Math.min(stem.length, MAX_GRAM_END)
  addFeature(hashRange(stem, 0, 3, KIND.prefix), WEIGHT.prefix, origin)
  addFeature(hashRange(stem, 0, Math.min(5, end), KIND.prefix), WEIGHT.prefix, origin)
  for (let from = 0; from + 3 <= end; from++) {
    addFeature(hashRange(stem, from, from + 3, KIND.gram), WEIGHT.gram, origin)
    if (from + 4 <= end) addFeature(hashRange(stem, from, from + 4, KIND.gram), WEIGHT.gram, origin)
  }
}

/** Latin letters without their marks, because people leave the marks out. */
const FOLDED = new Map<string, string>()
for (let code = 0xc0; code < 0x1f00; code = code === 0x24f ? 0x1e00 : code + 1) {
  const letter = String.fromCharCode(code)
  const base = letter.normalize('NFD').charAt(0)
  if (base !== letter && base >= 'A' && base <= 'z') FOLDED.set(letter.toLowerCase(), base.toLowerCase())
}
FOLDED.set('ı', 'i').set('ł', 'l').set('đ', 'd').set('ø', 'o')

/** Lower case without marks. The length stays the same, so that positions of segments hold. */
function foldText(text: string): string {
  const lowered = text.toLowerCase()
  // A few letters have a longer lower case; then the positions would not hold.
  const base = lowered.length === text.length ? lowered : lowerLatin(text)
  let folded = ''
  let copiedTo = 0
  for (let i = 0; i < base.length; i++) {
    const code = base.charCodeAt(i)
    if (code < 0xc0 || code >= 0x1f00 || (code > 0x24f && code < 0x1e00)) continue
    const letter = FOLDED.get(base[i]!)
    if (letter === undefined) continue
    folded += base.slice(copiedTo, i) + letter
    copiedTo = i + 1
  }
  return copiedTo === 0 ? base : folded + base.slice(copiedTo)
}

function lowerLatin(text: string): string {
  let lowered = ''
  for (let i = 0; i < text.length; i++) {
    const letter = text[i]!.toLowerCase()
    lowered += letter.length === 1 ? letter : letter[0]
  }
  return lowered
}

/** Letters and digits, and everything above ASCII that is not punctuation; "c++" and "c#" keep their signs. */
export function tokenize(text: string, from: number, to: number, tokens: string[], maxTokens: number): void {
  let start = -1
  for (let i = from; i <= to && tokens.length < maxTokens; i++) {
    const code = i < to ? text.charCodeAt(i) : 32
    const size = unspacedSize(code)
    if (size > 0) {
      if (start >= 0) tokens.push(text.slice(start, i))
      if (tokens.length < maxTokens) tokens.push(text.slice(i, Math.min(to, i + size)))
      start = -1
    } else if (isWordCode(code)) {
      if (start < 0) start = i
    } else if (start >= 0) {
      tokens.push(readToken(text, start, i, code))
      start = -1
    }
  }
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
  (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || (code > 0xbf && !isPunctuation(code))

const isPunctuation = (code: number) =>
  code === 0xd7 ||
  code === 0xf7 ||
  code === 0x60c ||
  code === 0x61b ||
  code === 0x61f ||
  code === 0x964 ||
  (code >= 0x2000 && code <= 0x2bff) ||
  (code >= 0x3000 && code <= 0x303f) ||
  (code >= 0xff00 && code <= 0xff0f) ||
  (code >= 0xff1a && code <= 0xff20)

/** Scripts without spaces are read in overlapping parts: two signs of Chinese and Japanese, three of Thai, Lao, Khmer and Burmese. */
const unspacedSize = (code: number) =>
  code >= 0x3040 && code <= 0x9fff
    ? 2
    : (code >= 0x0e00 && code <= 0x0eff) || (code >= 0x1000 && code <= 0x109f) || (code >= 0x1780 && code <= 0x17ff)
      ? 3
      : 0

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
  'please can could would you kindly hi hello hey i we need want to me us my help a an the some give tell pls plz id like just so ok okay and then now task instruction'.split(
    ' ',
  ),
)

function findFirstContentToken(tokens: readonly string[], from: number, to: number): number {
  let i = from
  while (i < to - 1 && i < from + 8 && OPENERS.has(tokens[i]!)) i++
  return i
}

/** Words after which the object of the sentence has been named and its subject matter begins. */
const OBJECT_ENDS = new Set(
  'about on for of to with from that which who in into regarding concerning explaining describing where when why how whether if because so but as by at against between and or using uber fur von zu an mit uber wegen dass im sobre para de del con que acerca por pour sur des du aux avec dans qui su per di che della con over voor van aan met om na o dla z ze w do про о об для с из по که در برای عن إلى من في على'.split(
    ' ',
  ),
)
const MAX_HEAD_TOKENS = 9

function findHeadEnd(tokens: readonly string[], from: number, to: number): number {
  const limit = Math.min(to, from + MAX_HEAD_TOKENS)
  for (let i = from + 1; i < limit; i++) if (OBJECT_ENDS.has(tokens[i]!)) return i
  return limit
}

const QUESTION_OPENERS = new Set('what who when where why how which is are does do did was were has have'.split(' '))
const REPORT_OPENERS = new Set('my our the your i we'.split(' '))
const QUESTION_MARKS = new Set([63, 0x61f, 0xff1f])

/** Where a segment stands and what it looks like. The names are shown to callers. */
function detectSegmentShapes(text: string, segments: readonly Segment[], position: number, length: number): string[] {
  const segment = segments[position]!
  const shapes: string[] = []
  if (segments.length === 1) shapes.push('a single sentence')
  else if (position === 0) shapes.push('the first sentence')
  else if (position === segments.length - 1) shapes.push('the last sentence')
  else shapes.push('a sentence between others')
  const last = text.charCodeAt(segment.end - 1)
  if (segment.kind === 'code') shapes.push('a part in code')
  else if (segment.kind === 'data') shapes.push('rows of data')
  else if (QUESTION_MARKS.has(last)) shapes.push('a question')
  else if (last === 58) shapes.push('a colon at the end')
  else if (last === 33) shapes.push('an exclamation')
  if (segment.isQuoted) shapes.push('a quotation')
  if (segment.followsColon) shapes.push('text after a colon')
  shapes.push(
    length <= 2 ? 'one or two words' : length <= 6 ? 'a few words' : length <= 20 ? 'a sentence' : 'a long sentence',
  )
  return shapes
}

/** Properties of the whole text: code, tables, numbers, questions. The names are shown to callers. */
function detectShapes(
  text: string,
  segments: readonly Segment[],
  tokens: readonly string[],
  firstTokens: readonly number[],
): string[] {
  const shapes: string[] = []
  let codeMarks = 0
  let hasMoneySign = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (isCodeMark(code)) codeMarks++
    else if (code === 37 || code === 36 || code === 8364 || code === 163) hasMoneySign = true
  }
  const numbers = tokens.reduce((sum, token) => sum + (token === ANY_NUMBER ? 1 : 0), 0)
  if (segments.some(({ kind }) => kind === 'code')) shapes.push('code in the text')
  if (segments.some(({ kind }) => kind === 'data')) shapes.push('data in the text')
  if (codeMarks >= 5) shapes.push(codeMarks >= 12 ? 'many code marks' : 'some code marks')
  if (numbers > 0) shapes.push(numbers >= 8 ? 'many numbers' : numbers >= 3 ? 'several numbers' : 'a number')
  if (hasMoneySign && numbers > 0) shapes.push('percentages or money')
  if (QUESTION_OPENERS.has(tokens[0]!)) shapes.push('opens as a question')
  if (REPORT_OPENERS.has(tokens[0]!)) shapes.push('opens as a report')
  if (segments.length > 0 && QUESTION_MARKS.has(text.charCodeAt(segments.at(-1)!.end - 1)))
    shapes.push('ends in a question')
  shapes.push(
    firstTokens.length <= 1
      ? 'one sentence'
      : firstTokens.length <= 3
        ? 'a few sentences'
        : firstTokens.length <= 8
          ? 'several sentences'
          : 'a long text',
  )
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
