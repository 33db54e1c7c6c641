import { spendSteps } from '../../platform/step-budget.ts'
import { cached } from './text-cache.ts'

/** What is read of a text. The checks that follow go through it a fixed number of times. */
export const MAX_READ = 24_000

/** A text that the checks read, taken apart once. Words are in lower case. */
export type ReadText = { raw: string; words: readonly string[]; lines: readonly string[] }

export function readText(text: string): ReadText {
  const raw = text.slice(0, MAX_READ)
  spendSteps(raw.length * 4)
  return new TextParts(raw)
}

/** The words of an offline lane's output are seldom asked for. */
class TextParts implements ReadText {
  readonly raw: string
  readonly lines: readonly string[]
  #words: readonly string[] | undefined

  constructor(raw: string) {
    this.raw = raw
    this.lines = raw
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)
  }

  get words(): readonly string[] {
    this.#words ??= wordsOf(this.raw)
    return this.#words
  }
}

const WORD = /[\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}\p{N}]+)*/gu

export const wordsOf = (text: string): string[] => text.toLowerCase().replaceAll('’', "'").match(WORD) ?? []

/** Fenced code, and the text without it. An opening fence that is never closed counts to the end of the text. */
export const splitFences = (text: string): Fences => cached('fences', text, findFences)

type Fences = { prose: string; blocks: readonly { language: string; code: string }[]; open: boolean }

function findFences(text: string): Fences {
  if (!text.includes('```')) return { prose: text, blocks: [], open: false }
  const blocks: { language: string; code: string }[] = []
  const prose: string[] = []
  let block: { language: string; code: string[] } | undefined
  for (const line of text.split('\n')) {
    const trimmed = line.trimStart()
    if (!trimmed.startsWith('```')) {
      ;(block ? block.code : prose).push(line)
    } else if (block) {
      blocks.push({ language: block.language, code: block.code.join('\n') })
      block = undefined
    } else if (trimmed.length > 3 && trimmed.endsWith('```') && trimmed.length > 6) {
      blocks.push({ language: '', code: trimmed.slice(3, -3) })
    } else {
      block = { language: trimmed.slice(3).trim().toLowerCase().split(/\s/, 1)[0] ?? '', code: [] }
    }
  }
  if (block) blocks.push({ language: block.language, code: block.code.join('\n') })
  return { prose: prose.join('\n'), blocks, open: block !== undefined }
}

const TERMINATORS = new Set('.!?。！？…؟।')
const CLOSERS = new Set('"\'”’»)]*_`“')

/** Sentences and lines, each at most once; a full stop inside a number or an abbreviation of one letter ends nothing. */
export const sentencesOf = (text: string): readonly string[] => cached('sentences', text, findSentences)

function findSentences(text: string): readonly string[] {
  spendSteps(text.length)
  const sentences: string[] = []
  let start = 0
  const cut = (end: number) => {
    const sentence = text.slice(start, end).trim()
    if (sentence) sentences.push(sentence)
    start = end
  }
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!
    if (character === '\n') cut(i + 1)
    else if (TERMINATORS.has(character)) {
      let end = i + 1
      while (end < text.length && (TERMINATORS.has(text[end]!) || CLOSERS.has(text[end]!))) end++
      const isWide = '。！？'.includes(character)
      const next = text[end]
      if (isWide || next === undefined || next === ' ' || next === '\n') {
        if (!isWide && character === '.' && isAbbreviation(text, i)) continue
        cut(end)
        i = end - 1
      } else if (end > i + 1) i = end - 1
    }
  }
  cut(text.length)
  return sentences
}

const ABBREVIATIONS = new Set([
  'mr',
  'mrs',
  'ms',
  'dr',
  'st',
  'vs',
  'etc',
  'e.g',
  'i.e',
  'no',
  'nr',
  'z.b',
  'bzw',
  'prof',
  'approx',
  'max',
  'min',
  'inc',
  'ca',
  'sr',
  'sra',
  'mme',
])

function isAbbreviation(text: string, dot: number): boolean {
  let start = dot
  while (start > 0 && dot - start < 8 && /[\p{L}.]/u.test(text[start - 1]!)) start--
  const word = text.slice(start, dot).toLowerCase()
  // "14. Mai": a day of the month.
  if (word === '')
    return (
      /(?:^|\s)\d{1,2}$/.test(text.slice(Math.max(0, dot - 3), dot)) &&
      /^ (?:\p{Ll}|Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)/u.test(text.slice(dot + 1, dot + 6))
    )
  // "isn't." and "25 °C." end a sentence: the last letter is no initial.
  if (word.length === 1 && /['’°]/.test(text[start - 1] ?? '')) return false
  return word.length === 1 || ABBREVIATIONS.has(word)
}

/** Letters and digits only, for comparing what two texts say whatever their marks. */
export const plainText = (text: string) => cached('plain', text, (part) => wordsOf(part).join(' '))

/** Knuth, Morris and Pratt's search. `includes` compares again and again where a text repeats itself. */
export function containsText(text: string, part: string): boolean {
  spendSteps(text.length + part.length)
  const prefixLengths = new Uint16Array(part.length)
  for (let i = 1, matched = 0; i < part.length; i++) {
    while (matched > 0 && part[i] !== part[matched]) matched = prefixLengths[matched - 1]!
    if (part[i] === part[matched]) matched++
    prefixLengths[i] = matched
  }
  for (let i = 0, matched = 0; i < text.length; i++) {
    while (matched > 0 && text[i] !== part[matched]) matched = prefixLengths[matched - 1]!
    if (text[i] === part[matched]) matched++
    if (matched === part.length) return true
  }
  return part === ''
}

/** For a detail: short, so that a refused output cannot be read out of its checks. */
export const clip = (text: string, length = 40) => (text.length > length ? `${text.slice(0, length - 1)}…` : text)

const QUOTES: Readonly<Record<string, string>> = {
  '"': '"',
  '“': '”',
  '„': '“”"',
  '«': '»',
  '»': '«',
  '「': '」',
  '『': '』',
}

const OPENING_QUOTE = new RegExp(`[${Object.keys(QUOTES).join('')}]`)

/** Passages between quotation marks, with their places. A passage ends at the first mark that closes it, within its paragraph. */
export function quotedPassages(text: string, maxLength = 4_000): { text: string; start: number; end: number }[] {
  spendSteps(text.length)
  const passages: { text: string; start: number; end: number }[] = []
  if (!OPENING_QUOTE.test(text)) return passages
  for (let i = 0; i < text.length; i++) {
    const closers = QUOTES[text[i]!]
    if (!closers) continue
    // An inch mark and the end of a quotation open nothing.
    if (text[i] === '"' && /[\p{L}\p{N}]/u.test(text[i - 1] ?? ' ')) continue
    let end = i + 1
    const limit = Math.min(text.length, i + maxLength)
    while (end < limit && !closers.includes(text[end]!) && !(text[end] === '\n' && text[end + 1] === '\n')) end++
    if (end >= limit || text[end] === '\n') continue
    passages.push({ text: text.slice(i + 1, end), start: i, end: end + 1 })
    i = end
  }
  return passages
}

/** The parts between two marks, without nesting, each at most `maxLength` long. */
export function partsBetween(text: string, open: string, close: string, maxLength = 600): string[] {
  spendSteps(text.length)
  const parts: string[] = []
  for (let start = text.indexOf(open); start >= 0 && parts.length < 50; ) {
    const end = text.indexOf(close, start + open.length)
    if (end < 0) break
    if (end - start <= maxLength) parts.push(text.slice(start, end + close.length))
    start = text.indexOf(open, end + close.length)
  }
  return parts
}

/** A text without white space and marks of emphasis at its end. */
export function trimMarks(text: string): string {
  let end = text.length
  while (end > 0 && ' \t\n\r*_`'.includes(text[end - 1]!)) end--
  return text.slice(0, end)
}

/** Code without what follows one of the marks in each line. */
export const cutLinesAt = (code: string, ...marks: string[]): string =>
  code
    .split('\n')
    .map((line) => {
      const ends = marks.map((mark) => line.indexOf(mark)).filter((at) => at >= 0)
      return ends.length > 0 ? line.slice(0, Math.min(...ends)) : line
    })
    .join('\n')
