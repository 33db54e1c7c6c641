import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { readNumbers, standsFor } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { clip, type ReadText, wordsOf } from './text.ts'
import { nearestSimilarities, rankOf } from './word-meaning.ts'

/** Points that a task lists and wants in the text: each has left a word, a figure or a word near in meaning. */
export function checkRequiredPoints(task: ReadTask, output: ReadText): Finding {
  const item = itemLeftOut(task, output)
  if (item) return failed(`It leaves out ${clip(item, 30)}, which the task wants in it.`)
  if (task.agentId.startsWith('coder') || task.is.translation || task.language?.language !== 'en') return notApplicable
  const points = [
    ...pointsOf(task.full.raw.slice(0, 6_000)),
    ...markedPoints(task.full.raw.slice(0, 3_000)),
    ...ownCodes(task),
    ...ownName(task),
    ...lettersOf(task.full.raw.slice(0, 3_000)),
    ...namedPersons(task.full.raw.slice(0, 3_000)),
    ...appearingThings(task.full.raw.slice(0, 3_000)),
  ]
  if (points.length === 0 || /\bwithout (?:using|saying|naming|mentioning)\b/i.test(task.request)) return notApplicable
  const missing = points.filter((point) => !isCovered(point, task, output))
  const sure = missing.find((point) => !isClause(point))
  const fault = (point: string) => failed(`It leaves out ${clip(point, 30)}, which the task wants in it.`)
  if (sure) return fault(sure)
  return missing[0] ? doubt(fault(missing[0])) : passed
}

const EVERYTHING =
  /\b(?:(?:name|mention|include|list|state) (?:everything|it all|them all|all of (?:it|them|this|these|that))|(?:everything|all of (?:it|them|this|these)) (?:must|has to|needs to|should) be (?:mentioned|named|included|listed|stated)|alles (?:nennen|erwähnen|aufführen|angeben|aufzählen)|(?:nenne?|erwähne?) (?:bitte )?alles|tout mentionner|mentionne[rz]? tout|menciona(?:r|lo)? todo)(?![\p{L}\d])/iu
const ITEM = String.raw`[\p{L}\d][\p{L}\d-]{0,29}(?: [\p{L}\d-]{1,30}){0,2}`
const NAMED_LIST = new RegExp(String.raw`:\s((?:${ITEM}, ){2,10}${ITEM})(?=[.;!\n]|$)`, 'gu')

/** "To bring: passport, photo, birth certificate. Name everything!": the thing of a list that has left no part of a word. */
function itemLeftOut(task: ReadTask, output: ReadText): string | undefined {
  if (task.is.translation || !task.full.raw.includes(':') || !EVERYTHING.test(task.full.raw)) return undefined
  const items = [...task.full.raw.slice(0, 3_000).matchAll(NAMED_LIST)]
    .slice(0, 4)
    .flatMap(([, list]) => list!.split(', '))
  const isSaid = (word: string) =>
    output.words.some((other) => other.startsWith(word.slice(0, 4)) || other.endsWith(word.slice(-4)))
  const text = ` ${output.words.join(' ')} `
  return items.find((item) => {
    if (/\d/.test(item)) return !item.match(/\d+/g)!.every((figure) => output.raw.includes(figure))
    const words = wordsOf(item)
    const long = words.filter((word) => word.length >= 4)
    return long.length > 0 ? !long.some(isSaid) : !words.some((word) => text.includes(` ${word} `))
  })
}

/** "That labelled items are kept" can be said in other words; a figure, a code or a name cannot. */
const isClause = (point: string) =>
  /^(?:that|how|why|when|where|who|what|whether) |\b(?:is|are|was|were|be|been|has|have|had|will|would|can|cannot|could|may|must|should|do|does|did|gets?|not)\b|n['’]t\b/i.test(
    point,
  ) && !/\d|\p{L}\p{Lu}|(?<=\p{Ll},? )\p{Lu}/u.test(point)

/** "…, max 40 words" is a limit, not something to mention. */
export const LENGTH_LIMIT =
  /(?:\b(?:max\.?|maximum|at (?:most|least)|under|up to|exactly|about|in|within|no more than|between|zwischen|höchstens|maximal|entre) )?\d{1,5}(?:\s?(?:[-–]|to|and|or|bis|und|à|et|a|y)\s?\d{1,5})?[ -](?:words?|characters?|chars|sentences?|lines?|paragraphs?|wörtern?|zeichen|sätzen?|mots|caractères|palabras|parole)(?![\p{L}])/giu

const LISTED =
  /\b(?:(?:must|should|has to|have to|needs to) include(?=:)|must mention|should mention|has to mention|needs to mention|mention(?:s|ing)?|(?:must |please )?name (?:both|all)(?: \w{1,12}){0,3}|include (?:all|every|each)(?: \w{1,12}){0,3}|cover (?:all|every|each)(?: \w{1,12}){0,3}|keep (?:all|every)(?: \w{1,12}){0,3})(?: of (?:them|these))?(?: that)?(?::\s?|\s|\s?\()([^\n]{3,400})/gi

/** "Mention the price" is an order at the start of a clause or after "must"; "does it mention a price" and "prices include tax" are none. */
export const isOrder = (order: string, ahead: string): boolean => {
  if (NEGATED.test(ahead) || /\b(?:forgot|failed|neglected) to $/i.test(ahead)) return false
  if (/^mentions/i.test(order)) return /\b(?:that|which|and) $/i.test(ahead)
  return !/^(?:mention|include|name|credit|call)(?:ing)?[ :(]/i.test(order) || ORDERS.test(ahead)
}
const ORDERS =
  /(?:^|[.,;:!?\n()–—-] ?|\b(?:and|please|pls|also|must|should|to|it|then|but|just|briefly|that|which|always|definitely|plus|or|casually|clearly) )$/i

const NEGATED = /(?:\b(?:not|never|avoid|without|no|nor|or)|n['’]t)\s(?:to\s)?$/i

/** "Must mention: a, b, c" and "include every point: a; b; c", to the end of the sentence. */
function pointsOf(text: string): string[] {
  // What stands in brackets explains a point, unless it is the list.
  const plain = text
    .replaceAll(/(?<=\p{Lu}\p{Ll}{1,20}) \([^()\n]{1,60}\)(?=[,. ])/gu, '')
    .replaceAll(/(?<=\p{Ll}) \(([^(),\n]{1,60})\)(?=[,.; ])/gu, ' / $1')
  return [...plain.matchAll(LISTED)].slice(0, 4).flatMap((match) => {
    if (!isOrder(match[0], plain.slice(Math.max(0, match.index - 24), match.index))) return []
    const isThat = / that\s$/i.test(match[0].slice(0, match[0].length - match[1]!.length))
    const isList = /[:(]\s?$/.test(match[0].slice(0, match[0].length - match[1]!.length))
    const clause = match[1]!.split(
      isList
        ? /(?<!\b(?:Dr|Mrs?|Ms|St|Prof|No))[.!?](?=\s(?:\p{Lu}|$)|$)|\)/u
        : /(?<!\b(?:Dr|Mrs?|Ms|St|Prof|No))[.!?;:](?=\s|$)|\)|, (?:but|so|then)\b|\b(?:if|when|in (?:\d|one|two|three|a (?:few|single|sentence)|the (?:first|last|same|style|tone|title|subject))|who|which|because)\b/u,
      1,
    )[0]!
    const parts = clause.includes(';') ? clause.split(';') : clause.split(/,| and | & /)
    return parts.length > 12
      ? []
      : parts
          .map((part) => part.replaceAll(LENGTH_LIMIT, ' ').trim())
          .filter((part) => part.length > 2 && !NO_POINT.test(part))
          .map((part) => (isThat ? `that ${part}` : part))
  })
}

/** "Not for microwaves (must be mentioned)". */
function markedPoints(text: string): string[] {
  if (!text.includes(' (')) return []
  return [
    ...text.matchAll(
      /([^,.;:()\n]{4,40}) \((?:must|has to|needs to|should) be (?:mentioned|included|stated|named)\)/gi,
    ),
  ]
    .slice(0, 4)
    .map(([, point]) => point!.trim())
}

const WANTS_CODE =
  /(?:\b(?:must|has to|needs to|should|please|make sure to|be sure to|and|to)\s|(?:^|[.!?;:,\n(]) ?)(?:include|mention|contain|give|state|quote|name|add)(?: \w{1,12}){0,2}? (?:reference|order|ticket|booking|case|invoice|tracking|confirmation|claim) (?:number|code|id|no)\b/i

/** "Must include the reference number", and the task has one code. */
function ownCodes(task: ReadTask): string[] {
  if (!WANTS_CODE.test(task.full.raw)) return []
  const codes = new Set(task.full.raw.match(/(?<![\w-])(?=[\w-]{0,20}\d)[A-Z]{1,5}-?\d[\w-]{2,16}(?![\w-])/g))
  return codes.size === 1 ? [`code ${[...codes][0]}`] : []
}

/** "Our accountant Greta … mention her name": the one name of the task. */
function ownName(task: ReadTask): string[] {
  if (!/\b(?:mention|include|use) (?:her|his|their) (?:first )?name\b/i.test(task.request)) return []
  const names = new Set(task.request.match(/(?<=\p{Ll} )\p{Lu}\p{Ll}{2,20}(?![\p{L}\d])/gu))
  return names.size === 1 ? [`code ${[...names][0]}`] : []
}

const NAME = String.raw`\p{Lu}\p{Ll}{1,20}(?:-\p{Lu}\p{Ll}{1,20})?`
const NAMED = new RegExp(
  String.raw`\b(?:[Nn]ame|[Ii]nclude|[Mm]ention|[Cc]redit)(?:s|ing)? (?:both |our |my |the )?(?:\p{Ll}{3,15} ){0,2}(${NAME}(?:(?:, | and |, and | & )${NAME}){0,5})(?=[.,;!?\n)]| as | in | by |$)`,
  'gu',
)

/** "Name Jonas and Mei", "mention our colleague Reyes": each of the names. */
const namedPersons = (text: string): string[] =>
  [...text.matchAll(NAMED)]
    .slice(0, 4)
    .filter(({ 0: order, index }) => isOrder(order, text.slice(Math.max(0, index - 24), index)))
    .flatMap(([, names]) => names!.split(/, and |, | and | & /))
    .filter((name) => (rankOf(name.toLowerCase()) ?? RARE) >= RARE)
    .map((name) => `code ${name}`)

const APPEAR =
  /(?:,|\.|;|\s[-–—]|\()?\s?\(?(?:(all|both|each|they)\b(?: of (?:them|these))?(?: (?:two|three|four|five|six|\d)\b)?(?: words| things| people| characters)?\s)?(?:must|has to|have to|needs? to|should|ought to)(?: all| both)? (?:appear|occur|feature|show up|come up|be (?:in (?:it|there|the \w{3,10})|mentioned|included|named|featured|used))\b/gi

/** "With a farmer, a drone AND a goose, all three must appear": the list in front of the verb. */
const appearingThings = (text: string): string[] =>
  [...text.matchAll(APPEAR)].slice(0, 3).flatMap(({ index }) => {
    // The list stands in the same sentence or in the one before.
    const sentence = text
      .slice(Math.max(0, index - 200), index)
      .split(/[.!?:\n]/)
      .at(-1)!
    const parts = sentence.split(/, (?:and |plus )?| and | plus | & /i)
    if (parts.length < 2 || parts.length > 8 || /\b(?:none|not?|neither|never|without)\b|n['’]t\b/i.test(sentence))
      return []
    // "A short scene with a plumber": what stands in front of the first thing is no part of it.
    const things = [
      parts[0]!.split(/\b(?:with|about|featuring|between|involving|of|on|using|containing)\b/i).at(-1)!,
      ...parts.slice(1),
    ]
      .map((thing) => thing.replace(/^(?:the words?|words?)\b|["“”'‘’]/gi, '').trim())
      .filter((thing) => thing !== '' && !TEXT_KIND.test(thing))
    return things.every((thing) => thing.split(' ').length <= 4) ? things.map((thing) => `thing ${thing}`) : []
  })

/** What is to be written is no thing that occurs in it. */
const TEXT_KIND =
  /^(?:an? |the )?(?:\w{1,12} ){0,2}(?:joke|limerick|haiku|poem|story|scene|sketch|text|ad|post|mail|email|letter|card|note|message|article|paragraph|reply|answer|summary|speech|toast)s?$/i

/** "Each of these tickets (A, B, C)": the letters. */
const lettersOf = (text: string): string[] =>
  (
    /\b(?:each|all|every)\b[^.\n]{0,40}\(([A-Z](?:, ?[A-Z]){1,7}(?:,? (?:and|&) [A-Z])?)\)/
      .exec(text)?.[1]
      ?.match(/[A-Z]/g) ?? []
  ).map((letter) => `ticket ${letter}`)

/** "Mention that with a wink" says how. */
const NO_POINT = /^(?:not|with|in|at|by|only|too|as|somewhere|briefly|casually|twice|once|it|this|them)\b/i

/** Words that tell what kind of fact is wanted and need not be in the text themselves. */
const KINDS = new Set(
  'name names date dates time times place price prices cost costs hours salary number numbers reason reasons detail details benefit benefits example examples fact facts point points item items word words this that these those them they their there with from into about which what when where your our his her its the and for you are was will been have has had not but all any both each also once twice least most more than only just someone something somewhere how why who their name age person persons people address contact information info feature features advantage advantages everything following above below list source sources relevant important specific key main other others first second third last next every way ways topic topics subject message email mail letter text line lines sentence sentences tone style aspect aspects quality qualities value values experience skill skills goal goals challenge challenges problem problems solution solutions option options step steps action call least somehow briefly explicitly directly keep must should would could might shall being'.split(
    ' ',
  ),
)
/** "The order number" is in the text as a number. */
const OF_KIND =
  /^(?:the |her |his |their |our |its |your )?\w{1,14} (?:number|code|id|reference|name|date|price|address)s?$/i
const NEAR = 0.55

function isCovered(point: string, task: ReadTask, output: ReadText): boolean {
  const letter = /^ticket ([A-Z])$/.exec(point)?.[1]
  if (letter) return new RegExp(`(?<![A-Za-z])${letter}(?![A-Za-z'’])`).test(output.raw)
  if (point.startsWith('code ')) return output.raw.toLowerCase().includes(point.slice(5).toLowerCase())
  const stems = new Set(output.words.map(stemOf))
  const isSaid = (word: string) =>
    stems.has(stemOf(word)) ||
    (word.length <= 6 && output.words.some((other) => other.startsWith(word.slice(0, 4)))) ||
    SYNONYMS.some((group) => group.has(stemOf(word)) && [...group].some((stem) => stems.has(stem)))
  if (point.startsWith('thing ')) {
    const word = wordsOf(point.slice(6))
      .filter((part) => part.length >= 3 && !KINDS.has(part))
      .at(-1)
    return word === undefined || isSaid(word)
  }
  const figures = readNumbers(point)
  const written = readNumbers(output.raw, { words: true })
  const isShown = (value: number) => written.some((number) => standsFor(number, value))
  // "Mention the factor": any figure may be one.
  if (/^(?:the |by what |which )?(?:factor|ratio|percentage)s?$/i.test(point.trim())) return written.length > 0
  if (figures.length > 0) return figures.some(({ values: [value] }) => isShown(value!))
  const all = wordsOf(point.replaceAll(/["“”]/g, '')).filter((word) => word.length >= 4 && !KINDS.has(word))
  // "Coats must be left": the commonest words are in any text.
  const rare = all.filter((word) => (rankOf(word) ?? COMMON) >= COMMON)
  const words = rare.length > 0 ? rare : all
  if (words.length === 0 || OF_KIND.test(point)) return isKindShown(point, task, isShown)
  // A person who is named with a task of theirs is named in the text too.
  const names = [...point.matchAll(/(?<![\p{L}\d])\p{Lu}\p{Ll}{2,20}(?![\p{L}\d])/gu)]
    .map(([name]) => name.toLowerCase())
    .filter((name) => (rankOf(name) ?? RARE) >= RARE)
  if (names.length > 0 && !/^(?:how|why|when)\b/.test(point)) return names.some((name) => output.words.includes(name))
  const ranks = words.map(rankOf)
  // A word that has no vector can be said in ways that nobody here knows.
  if (ranks.some((rank) => rank === undefined)) return words.some(isSaid)
  // What the rest of the task says is in the text anyway.
  const otherWords = new Set(wordsOf(task.full.raw.replace(point, ' ')).map(startOf))
  const others = output.words
    .filter((word) => !otherWords.has(startOf(word)))
    .map(rankOf)
    .filter((rank) => rank !== undefined && rank >= COMMON) as number[]
  const similarities = nearestSimilarities(ranks as number[], others.slice(0, 400))
  const isNear = words.map((word, i) => isSaid(word) || similarities[i]! >= NEAR)
  // The rarest word tells most; two others tell as much.
  const rarest = ranks.indexOf(Math.max(...(ranks as number[])))
  const isHalfSaid = words.length === 2 && words.some((word) => isSaid(word) && !otherWords.has(startOf(word)))
  return isNear[rarest]! || isHalfSaid || isNear.filter(Boolean).length >= 2
}

/** "Salary" where the task has "salary 5,200": the figure. */
function isKindShown(point: string, task: ReadTask, isShown: (value: number) => boolean): boolean {
  const kind = wordsOf(point).at(-1)
  if (!kind || kind.length < 4) return true
  const text = task.full.raw.toLowerCase()
  const after = new RegExp(`\\b${kind}(?: is| of|:)? [$€£]?(\\d[\\d.,]{0,10})`).exec(text)?.[1]
  const value = after ? readNumbers(after)[0]?.values[0] : undefined
  return value === undefined || isShown(value)
}

/** What letters and notices most often say in other words. */
const SYNONYMS = [
  'free nothing gratis complimentary charge',
  'parcel parcels package packages packet',
  'closed close closes shut',
  'discount reduction reduced cheaper off',
  'refund refunds reimburse money',
  'sorry apologise apologize apologies apology regret',
  'thank thanks grateful gratitude appreciate',
  'wifi internet wlan',
  'begin begins start starts',
  'bring pack carry',
].map((words) => new Set(words.split(' ').map(stemOf)))

/** Ranks under these are of common words, and of the commonest. */
const RARE = 1_500
const COMMON = 300

const startOf = (word: string) => word.slice(0, 5)

function stemOf(word: string): string {
  return word.slice(0, Math.max(4, Math.min(6, word.length - 2)))
}
