/**
 * Plain text tools of the offline lanes. Nothing here may depend on locale, time or chance: the same text gives the
 * same bytes on every machine, which is what lets a verifier run a lane again and compare hashes.
 * Every pattern is linear in its input, because the text comes from strangers.
 */

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
export function sentencesOf(text: string, limit = 400): Sentence[] {
  const found: Sentence[] = []
  for (const line of text.split(/\n+/)) {
    for (const piece of splitLine(line)) {
      const clean = piece.replace(/^[\s>*•\-–]+/, '').trim()
      if (clean.length < 2 || !/[\p{L}\p{N}]/u.test(clean)) continue
      found.push({ text: clean, index: found.length + 1 })
      if (found.length >= limit) return found
    }
  }
  return found
}

function splitLine(line: string): string[] {
  const pieces: string[] = []
  let start = 0
  for (let at = 0; at < line.length; at++) {
    const mark = line[at]!
    if ('。！？'.includes(mark)) {
      pieces.push(line.slice(start, at + 1))
      start = at + 1
      continue
    }
    if (mark !== '.' && mark !== '!' && mark !== '?') continue
    let end = at + 1
    while (end < line.length && '.!?"”’\')]'.includes(line[end]!)) end++
    if (end < line.length && line[end] !== ' ' && line[end] !== '\t') continue
    if (mark === '.' && end === at + 1 && endsInAbbreviation(line, at)) continue
    pieces.push(line.slice(start, end))
    start = end
    at = end - 1
  }
  pieces.push(line.slice(start))
  return pieces
}

function endsInAbbreviation(line: string, dot: number): boolean {
  let start = dot
  while (start > 0 && line[start - 1] !== ' ' && dot - start < 8) start--
  const word = line
    .slice(start, dot)
    .toLowerCase()
    .replace(/^[("']/, '')
  return ABBREVIATIONS.has(word) || /^[a-z]$/.test(word) || /^\d{1,2}$/.test(word)
}

/** Lower-case words. Hyphens and apostrophes inside a word stay in it. */
export const wordsOf = (text: string): string[] =>
  text.toLowerCase().match(/[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu) ?? []

export const contentWordsOf = (text: string): string[] =>
  wordsOf(text).filter((word) => word.length > 2 && !STOP_WORDS.has(word))

/** A cheap stem, so that "refunds" finds "refund". It only has to agree with itself. */
export function stem(word: string): string {
  let root = word
  for (const ending of ['ations', 'ation', 'ments', 'ment', 'ings', 'ing', 'ies', 'ed', 'es', 's', 'ly']) {
    if (root.length - ending.length >= 3 && root.endsWith(ending)) {
      root = root.slice(0, -ending.length)
      break
    }
  }
  return root.endsWith('y') ? `${root.slice(0, -1)}i` : root
}

/** Counts in order of frequency, then of first appearance. */
export function frequencies(words: readonly string[]): [string, number][] {
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts].sort((a, b) => b[1] - a[1])
}

/** FNV-1a over UTF-16 units. It picks among authored variants; it is no secret and no proof. */
export function textHash(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) {
    hash ^= text.charCodeAt(at)
    hash = Math.imul(hash, 0x01000193)
  }
  return hash >>> 0
}

/** A chooser that walks the variants in an order fixed by the seed, without repeating before it has to. */
export function chooser(seed: string) {
  let state = textHash(seed)
  return <T>(variants: readonly T[]): T => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return variants[(state >>> 8) % variants.length]!
  }
}

export function clip(text: string, limit: number): string {
  if (text.length <= limit) return text
  const cut = text.slice(0, limit - 1)
  const space = cut.lastIndexOf(' ')
  return `${(space > limit * 0.6 ? cut.slice(0, space) : cut).trimEnd()}…`
}

export const capitalise = (text: string) => (text ? text[0]!.toUpperCase() + text.slice(1) : text)

/** A number for reading: grouped thousands and at most four decimals, always with a point. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return 'n/a'
  const size = Math.abs(value)
  const decimals = Number.isInteger(value) ? 0 : size >= 1000 ? 2 : size >= 1 ? 3 : 4
  const [whole, fraction = ''] = size.toFixed(decimals).split('.') as [string, string?]
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',')
  const tail = fraction.replace(/0+$/, '')
  const text = tail ? `${grouped}.${tail}` : grouped
  return value < 0 && text !== '0' ? `-${text}` : text
}

export const formatPercent = (ratio: number) =>
  Number.isFinite(ratio) ? `${formatNumber(round(ratio * 100, 1))} %` : 'n/a'

export function round(value: number, decimals: number): number {
  return Number(value.toFixed(decimals))
}

/** "1 class", "2 classes". */
export const counted = (count: number, noun: string) =>
  `${count} ${count === 1 ? noun : noun.endsWith('s') ? `${noun}es` : `${noun}s`}`
