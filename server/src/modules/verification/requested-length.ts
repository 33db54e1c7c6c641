import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { numberOfWord } from './numbers.ts'
import { readRequest, requestsJson } from './requested-form.ts'
import { requestedCounts } from './requested-size.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, wordsOf } from './text.ts'

type Bounds = { min: number; max: number; unit: 'words' | 'characters'; isRough: boolean; text: string }

/** What stands in front of a number of words, by what it makes of the number. */
const MOST =
  "within|at most|not exceed(?:ing)?|n't exceed|max|maximum|limit|limited to|limit is|up to|fits? (?:in|into|within)|keep (?:it|this|them|that) (?:to|at)|cap(?:ped)? (?:it )?at|höchstens|maximal|unter|weniger als|nicht mehr als|nicht länger als|au plus|au maximum|maximum de|moins de|pas plus de|sans dépasser|ne dépasse pas|menos de|no más de|como máximo|como máximo de|máximo|máximo de|hasta|meno di|non più di|massimo|al massimo|entro|no máximo|até|maximaal|hooguit|minder dan|niet meer dan|najwyżej|maksymalnie|do"
const LEAST = 'at least|min|minimum|mindestens|au moins|al menos|mínimo|almeno|minimo|pelo menos|minstens'
/** "Under", "no longer than", "don't use more than": with a negation it is the other bound. */
const COMPARED =
  /(?:^|[^\p{L}])(?:(more than|longer than|greater than|over|above|beyond)|less than|fewer than|shorter than|under|below) $/u
const NEGATION = /(?:(?:^|[^\p{L}])(?:no|not|never|nothing|without|cannot)|n't)(?: [\p{L}']{1,12}){0,3}$/u
const EXACTLY = 'exactly|precisely|genau|exactement|exactamente|esattamente|exatamente|precies'
const ROUGHLY =
  'about|around|roughly|approximately|approx|circa|ca|etwa|rund|ungefähr|environ|unas?|aproximadamente|ongeveer|in|of'
const before = (bound: string) => new RegExp(`(?:^|[^\\p{L}])(?:${bound})[.:]?(?: (?:of|a|de|di|von))?\\s$`, 'u')
const BEFORE = {
  exactly: before(EXACTLY),
  least: before(LEAST),
  most: before(MOST),
  roughly: before(ROUGHLY),
} as const
type Bound = keyof typeof BEFORE

const AFTER: Readonly<Record<Exclude<Bound, 'roughly'>, RegExp>> = {
  most: /^[ ,(]{0,3}(?:max\b|maximum|at (?:the )?(?:very )?most|or less|or fewer|or under|tops\b|limit|no more\b|not more\b|and no more|oder weniger|ou moins|o menos|o meno|höchstens|maximal|como máximo|au maximum|al massimo|no máximo)/,
  least: /^[ ,(]{0,3}(?:min\b|minimum|at least|or more|and more|mindestens|oder mehr|au moins|al menos|almeno)/,
  exactly: /^[ ,(]{0,3}(?:exactly|precisely|genau|exactement)/,
}

const UNITS =
  'words?|wörtern?|worte?n?|mots|palabras|parole|palavras|woorden|słów|characters?|chars?|zeichen|caractères|caracteres|caratteri|tekens|znaków'
const SMALL = 'one|two|three|four|five|six|seven|eight|nine'
const NUMBER = `\\d{1,5}|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[- ](?:${SMALL}))?|(?:(?:a|${SMALL}) )?hundred|${SMALL}|ten|eleven|twelve|fifteen`
const COUNTED = new RegExp(`(?<![\\p{L}\\d.,-])(${NUMBER})[ -](${UNITS})(?![\\p{L}])`, 'gu')
const RANGE = new RegExp(
  `(\\d{1,5}|${SMALL}|ten|twelve|fifteen|twenty|thirty) ?(?:-|–|to|and|und|et|y|bis|à|a|or) ?(${NUMBER})[ -](${UNITS})(?![\\p{L}])`,
  'gu',
)
/** "Word limit: 25", "character count 40-50". */
const LABELLED =
  /\b(word|character|char) (limit|count|maximum|max)(?: is| of| should be| must be|:)? (\d{1,5})(?: ?(?:-|–|to) ?(\d{1,5}))?(?! ?(?:words?|char))/g

function numberIn(text: string): number {
  if (/^\d/.test(text)) return Number(text)
  const [first = '', second = ''] = text.split(/[- ]/)
  if (second === 'hundred') return (first === 'a' ? 1 : (numberOfWord(first) ?? Number.NaN)) * 100
  return (numberOfWord(first) ?? Number.NaN) + (second ? (numberOfWord(second) ?? Number.NaN) : 0)
}

function boundCompared(ahead: string): 'most' | 'least' | undefined {
  const match = COMPARED.exec(ahead)
  if (!match) return undefined
  return (match[1] !== undefined) === NEGATION.test(ahead.slice(0, match.index)) ? 'most' : 'least'
}

/** Every length that a request states. A number without "at most" or "exactly" is a rough one, and counts where no other is stated. */
export function requestedLengths(request: string): Bounds[] {
  const bounds: Bounds[] = []
  const push = (bound: Bound, low: number, high: number, unit: string, text: string) =>
    bounds.push({
      min: bound === 'most' ? 0 : bound === 'roughly' ? low * 0.6 : low,
      max: bound === 'least' ? Number.POSITIVE_INFINITY : bound === 'roughly' ? high * 1.5 : high,
      unit: /^(?:char|zeich|cara|tek|znak)/.test(unit) ? 'characters' : 'words',
      isRough: bound === 'roughly',
      text,
    })
  const text = request
    .toLowerCase()
    .replaceAll('’', "'")
    .replaceAll(/<=? ?|≤ ?/g, ' at most ')
    .replaceAll(RANGE, (raw, low: string, high: string, unit: string) => {
      if (numberIn(low) < numberIn(high)) push('exactly', numberIn(low), numberIn(high), unit, raw)
      return numberIn(low) < numberIn(high) ? ' ' : raw
    })
    .replaceAll(LABELLED, (raw, unit: string, kind: string, low: string, high?: string) => {
      push(high ? 'exactly' : kind === 'count' ? 'roughly' : 'most', Number(low), Number(high ?? low), unit, raw)
      return ' '
    })
  const rough: [number, string, string][] = []
  for (const match of text.matchAll(COUNTED)) {
    const [raw, number, unit] = match as unknown as [string, string, string]
    const value = numberIn(number)
    if (!(value > 0)) continue
    // "Quote at most 6 words from each"
    if (
      /\b(?:quot\w{1,3}|cit\w{1,3}|zitier\w{0,3})\b[^.;:\n]{0,24}$/.test(
        text.slice(Math.max(0, match.index - 40), match.index),
      )
    )
      continue
    // "Explain it and show a 10-word sample"
    if (/^ (?:sample|example|excerpt|quotation|extract)/.test(text.slice(match.index + raw.length))) continue
    // "In one word, and one reason"
    if (
      value === 1 &&
      /^(?:,? ?(?:and|plus|\+|with|then)| (?:of|for|per|each|from))(?!\p{L})/u.test(
        text.slice(match.index + raw.length),
      )
    )
      continue
    const ahead = text.slice(Math.max(0, match.index - 30), match.index)
    const behind = text.slice(match.index + raw.length, match.index + raw.length + 24)
    const bound =
      boundCompared(ahead) ??
      (['exactly', 'least', 'most'] as const).find((kind) => BEFORE[kind].test(ahead)) ??
      (['exactly', 'least', 'most'] as const).find((kind) => AFTER[kind].test(behind)) ??
      (BEFORE.roughly.test(ahead) ? 'roughly' : undefined)
    if (bound) push(bound, value, value, unit, raw)
    else if (/^\d{2}/.test(number)) rough.push([value, unit, raw])
  }
  if (bounds.length === 0) for (const [value, unit, raw] of rough.slice(0, 1)) push('roughly', value, value, unit, raw)
  if (
    bounds.length === 0 &&
    /\b(?:one|a single|in one|1) word\b|\bone-word\b|\beinem wort\b|\bun (?:seul )?mot\b(?! (?:de|d'|pour|à|aux?)\b)|\buna (?:sola )?palabra\b/.test(
      text,
    ) &&
    // "One word and the reason".
    !/\bword(?: answer)?(?:\s?\+|,? (?:and|plus|with|then|followed|of|for|per|each))/.test(text)
  )
    push('exactly', 1, 2, 'words', 'one word')
  return bounds
}

/** The fewest words that somebody could count: a hyphen joins two, and a line with the subject is no part of the text. */
function countWords(text: string): number {
  const body = text
    // "(9 words, so you have room for more)" is a remark.
    .replace(/\(\d{1,4} (?:words|wörter|mots|palabras|parole)\b[^()\n]{0,120}\)\s{0,4}$/i, '')
    .replace(/^\s{0,4}\**(?:subject|betreff|objet|asunto|oggetto|titel|title)\b[^\n]{0,200}\n/i, '')
  return body.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
}

/** A text whose parts or whose later text have the length that is stated. */
const OF_PLAN = /\b(?:outline|plan|structure|gliederung)\b/i
const OF_PARTS = /\b(?:titles?|headlines?|ideas?)\b/i

const PAID_BY_WORD =
  /\b(?:words?|wörter|mots|palabras|parole|characters?|zeichen) (?:at|@|zu(?: je)?|à|a) (?:[$€£] ?)?\d[\d.,]{0,8} ?(?:[$€£]|eur|usd|cents?)?/i

export function checkLength(task: ReadTask, output: ReadText): Finding {
  // "2,140 words at 0.11 €" are to be paid and not to be written.
  if (PAID_BY_WORD.test(task.full.raw)) return notApplicable
  if (task.agentId.startsWith('coder') && !/\b(?:commit|subject|changelog)\b/i.test(task.request)) return notApplicable
  const lengths = requestedLengths(task.request)
  const [first] = lengths
  if (!first || (first.isRough && (OF_PLAN.test(task.request) || OF_PARTS.test(task.request)))) return notApplicable
  // "Subject of at most 6 words, body under 80 words": together they have at most 86.
  const { unit } = lengths.find((length) => length.unit === 'words') ?? first
  const same = lengths.filter((length) => length.unit === unit)
  const min = Math.max(...same.map((length) => length.min))
  const limits = new Set(same.map((length) => length.max).filter(Number.isFinite))
  const sum = [...limits].reduce((total, limit) => total + limit, 0)
  const max = sum === 0 || sum < min ? Number.POSITIVE_INFINITY : sum
  if (EACH.test(task.request)) return checkEachLength(output, first)
  if (unit === 'words' && /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Thai}/u.test(output.raw)) return notApplicable
  // The subject of a commit is its first line.
  const text = task.agentId.startsWith('coder')
    ? (output.lines.find((line) => !line.startsWith('```')) ?? '')
    : output.raw
  const sizeOf = (part: string) => (unit === 'words' ? countWords(part) : part.trim().length)
  const size = sizeOf(text)
  // "3 variants, max 3 words", "{"why": at most 12 words}": the limit is that of a part.
  if (
    size > max &&
    (requestsJson(readRequest(task)) ||
      /^\s{0,8}[{[]\s?["{]/.test(output.raw) ||
      (OF_PARTS.test(task.request) && output.lines.length > 1) ||
      arePartsWithin(task, output, (line) => sizeOf(line) <= max))
  )
    return notApplicable
  if (size > max) return failed(`At most ${Math.round(max)} ${unit} were asked for and there are ${size}.`)
  if (size < min - (min === max ? 0 : Math.max(1, min * 0.05)) && !OF_PARTS.test(task.request))
    return failed(`At least ${Math.round(min)} ${unit} were asked for and there are ${size}.`)
  return passed
}

/** Several things were asked for, and each line of the answer keeps to the limit. */
const arePartsWithin = (task: ReadTask, output: ReadText, isWithin: (line: string) => boolean) =>
  output.lines.length > 1 &&
  requestedCounts(task).some(({ unit: kind, count }) => count > 1 && (kind === 'items' || kind === 'lines')) &&
  output.lines.every((line) => isWithin(line.replace(ITEM_MARK, '').trim()))

const EACH =
  /\b(?:words?|characters?|chars?)(?: or (?:less|fewer))?,? (?:max(?:imum|\.)? |at most |tops )?(?:each|apiece|per \p{L}{3,12}|an? (?:cell|row|line|bullet|item|point|entry|field|slide|answer)|every one)\b|\beach(?: \w{1,12}){0,3} (?:under|below|at most|max\.?|maximum|no (?:more|longer) than|not (?:more|longer) than|up to|within|exactly|of)\b/iu

/** "Three variants of at most 40 characters each": no item is longer, without its number and a heading in bold. */
function checkEachLength(output: ReadText, { min, max, unit, isRough }: Bounds): Finding {
  const items = output.lines.filter((line) => ITEM_MARK.test(line))
  if (items.length < 2) return notApplicable
  const sizes = items.map((line) => {
    const text = line
      .replace(ITEM_MARK, '')
      .replace(/^\*\*[^*]{1,60}\*\*:?\s?/, '')
      .replaceAll(/["“”*]/g, '')
      .trim()
    return unit === 'words' ? countWords(text) : text.length
  })
  const [shortest, longest] = [Math.min(...sizes), Math.max(...sizes)]
  if (longest > max) return failed(`At most ${Math.round(max)} ${unit} each were asked for and one has ${longest}.`)
  return shortest < min && !isRough
    ? failed(`At least ${Math.round(min)} ${unit} each were asked for and one has ${shortest}.`)
    : passed
}

const ITEM_MARK = /^(?:[-*•–▪◦]|\d{1,3}[.)])\s{1,8}/

/** A translation has about as many words as its text. */
export function checkTranslationLength(task: ReadTask, output: ReadText): Finding {
  const words = wordsOf(task.material).length
  if (
    !task.is.translation ||
    words < 6 ||
    /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Thai}]/u.test(`${task.material}${output.raw}`)
  )
    return notApplicable
  const isCut = words >= 8 && /[.!?]$/.test(task.material.trim()) && /[\p{L}\p{N},]$/u.test(output.raw.trim())
  return output.words.length * 3 < words
    ? failed('It is much shorter than the text to be translated.')
    : isCut
      ? doubt(failed('It stops before the end of the text to be translated.'))
      : passed
}
