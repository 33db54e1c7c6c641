/**
 * Text functions of the offline lanes. Nothing here may depend on locale, time or randomness: the same text gives the
 * same result on every machine, so that a verifier can run a lane again and compare hashes.
 * Every pattern runs in linear time, because the input is untrusted.
 */
import { spendSteps } from '../../../platform/step-budget.ts'

const ABBREVIATIONS = new Set(
  'mr mrs ms dr prof sr jr st vs etc e.g i.e eg ie fig no inc ltd co corp approx est dept u.s u.k a.m p.m al cf'.split(
    ' ',
  ),
)

export const STOP_WORDS = new Set(
  (
    'a about above after again against all also am an and any are as at be because been before being below between ' +
    'both but by can could did do does doing down during each even few for from further get had has have having he ' +
    'her here hers him his how i if in into is it its itself just let like may me might more most much must my no ' +
    'nor not now of off on once one only or other our out over own per please same she should so some such than ' +
    'that the their them then there these they this those through to too under until up us very was we were what ' +
    'when where which while who whom why will with within without would you your yours'
  ).split(' '),
)

export type Sentence = { text: string; index: number }

/** Sentences in order. A line break that starts a bullet or follows a blank line ends a sentence too. */
export function splitSentences(text: string, limit = 400): Sentence[] {
  spendSteps(text.length)
  const sentences: Sentence[] = []
  for (const line of text.split(/\n+/)) {
    for (const piece of splitLine(line)) {
      const sentence = piece.replace(/^[\s>*•\-–]+/, '').trim()
      if (sentence.length < 2 || !/[\p{L}\p{N}]/u.test(sentence)) continue
      sentences.push({ text: sentence, index: sentences.length + 1 })
      if (sentences.length >= limit) return sentences
    }
  }
  return sentences
}

function splitLine(line: string): string[] {
  const pieces: string[] = []
  let start = 0
  for (let i = 0; i < line.length; i++) {
    const character = line[i]!
    if ('。！？'.includes(character)) {
      pieces.push(line.slice(start, i + 1))
      start = i + 1
      continue
    }
    if (character !== '.' && character !== '!' && character !== '?') continue
    let end = i + 1
    while (end < line.length && '.!?"”’\')]'.includes(line[end]!)) end++
    const endsSentence = end === line.length || line[end] === ' ' || line[end] === '\t'
    if (endsSentence && !(character === '.' && end === i + 1 && endsInAbbreviation(line, i))) {
      pieces.push(line.slice(start, end))
      start = end
    }
    // The signs just passed end no sentence either, so they are not read again.
    i = end - 1
  }
  pieces.push(line.slice(start))
  return pieces
}

function endsInAbbreviation(line: string, dotIndex: number): boolean {
  let start = dotIndex
  while (start > 0 && line[start - 1] !== ' ' && dotIndex - start < 8) start--
  const word = line
    .slice(start, dotIndex)
    .toLowerCase()
    .replace(/^[("']/, '')
  return ABBREVIATIONS.has(word) || /^[a-z]$/.test(word) || /^\d{1,2}$/.test(word)
}

/** Removes these characters, and white space with `andSpace`, from the end. A pattern like `[.!]+$` would start again at every sign. */
export function trimEndOf(text: string, characters: string, andSpace = false): string {
  let end = text.length
  while (end > 0 && (characters.includes(text[end - 1]!) || (andSpace && isSpace(text[end - 1]!)))) end--
  return text.slice(0, end)
}

const isSpace = (character: string) => character.trim() === ''

/** The line, from 1, and the column of any offset in a text: the text is read once, not for every offset. */
export function createPositions(text: string): (offset: number) => { line: number; column: number } {
  spendSteps(text.length)
  const lineStarts = [0]
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', end + 1)) lineStarts.push(end + 1)
  return (offset) => {
    let first = 0
    let last = lineStarts.length - 1
    while (first < last) {
      const middle = (first + last + 1) >> 1
      if (lineStarts[middle]! <= offset) first = middle
      else last = middle - 1
    }
    return { line: first + 1, column: offset - lineStarts[first]! + 1 }
  }
}

/** Lower-case words, including inner hyphens and apostrophes. */
export function splitWords(text: string): string[] {
  spendSteps(text.length)
  return text.toLowerCase().match(/[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu) ?? []
}

export const extractContentWords = (text: string): string[] =>
  splitWords(text).filter((word) => word.length > 2 && !STOP_WORDS.has(word))

/** A simple stemmer, so that "refunds" matches "refund". Stems are only compared with each other. */
export function stem(word: string): string {
  let root = word
  for (const ending of ['ations', 'ation', 'ments', 'ment', 'ings', 'ing', 'ies', 'ed', 'es', 's', 'ly']) {
    if (root.length - ending.length >= 3 && root.endsWith(ending)) {
      root = root.slice(0, -ending.length)
      break
    }
  }
  if (root.endsWith('e') && root.length > 3) root = root.slice(0, -1)
  return root.endsWith('y') ? `${root.slice(0, -1)}i` : root
}

/** Word counts, most frequent first, then in order of first appearance. */
export function countFrequencies(words: readonly string[]): [string, number][] {
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts].sort((a, b) => b[1] - a[1])
}

/** FNV-1a over UTF-16 units. Only used to pick among variants; not a cryptographic hash. */
export function textHash(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) {
    hash ^= text.charCodeAt(i)
    hash = Math.imul(hash, 0x01000193)
  }
  return hash >>> 0
}

/** Picks variants pseudo-randomly, in a sequence determined by the seed. */
export function createPicker(seed: string) {
  let state = textHash(seed)
  return <T>(variants: readonly T[]): T => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return variants[(state >>> 8) % variants.length]!
  }
}

export function clip(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text
  const shortened = text.slice(0, maxLength - 1)
  const space = shortened.lastIndexOf(' ')
  return `${(space > maxLength * 0.6 ? shortened.slice(0, space) : shortened).trimEnd()}…`
}

export const capitalise = (text: string) => (text ? text[0]!.toUpperCase() + text.slice(1) : text)

/** A readable number: grouped thousands and at most four decimals, always with a point. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return 'n/a'
  const size = Math.abs(value)
  const decimals = Number.isInteger(value) ? 0 : size >= 1000 ? 2 : size >= 1 ? 3 : 4
  const [whole, fraction = ''] = size.toFixed(decimals).split('.') as [string, string?]
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',')
  const decimalsText = fraction.replace(/0+$/, '')
  const text = decimalsText ? `${grouped}.${decimalsText}` : grouped
  return value < 0 && text !== '0' ? `-${text}` : text
}

export const formatPercent = (ratio: number) =>
  Number.isFinite(ratio) ? `${formatNumber(round(ratio * 100, 1))} %` : 'n/a'

export function round(value: number, decimals: number): number {
  return Number(value.toFixed(decimals))
}

/** "1 class", "2 classes". */
export const formatCount = (count: number, noun: string) =>
  `${count} ${count === 1 ? noun : noun.endsWith('s') ? `${noun}es` : `${noun}s`}`
