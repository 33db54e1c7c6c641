import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { numberOfWord } from './numbers.ts'
import { isTableRow, readRequest, requestsJson } from './requested-form.ts'
import type { ReadTask } from './task.ts'
import { quotedPassages, type ReadText, sentencesOf, splitFences, wordsOf } from './text.ts'

const VERBS =
  'give|list|name|write|suggest|provide|tell|need|want|create|generate|propose|draft|find|make|identify|offer|share|recommend|pick|choose|turn this into|rewrite (?:this|it) as|summari[sz]e (?:this |it )?(?:in|as|into)|come up with|brainstorm|outline|state|show|with|in|as|en|avec|con|mit|em|nenne|gib|schreib|schreibe|liste|erzähl|donne|donne-moi|écris|cite|propose|dame|escribe|enumera|menciona|dammi|scrivi|elenca|dê|escreva|liste|geef|noem|schrijf'
type Unit = 'items' | 'sentences' | 'lines' | 'paragraphs' | 'words' | 'rows'

const UNIT_WORDS: Readonly<Record<Unit, string>> = {
  sentences: 'sentence sentences satz sätze sätzen phrase phrases frase frases frasi zin zinnen',
  lines: 'line lines zeile zeilen ligne lignes línea líneas linea linee linha linhas verse verses vers regel regels',
  paragraphs:
    'paragraph paragraphs absatz absätze paragraphe paragraphes párrafo párrafos paragrafo paragrafi parágrafos',
  words: 'word words wort worte wörter wörtern mot mots palabra palabras parola parole palavra palavras woord woorden',
  rows: 'row rows',
  items:
    'bullet bullets heading headings point points joke jokes pun puns one-liner one-liners idea ideas tip tips option options reason reasons example examples step steps question questions fact facts source sources headline headlines title titles tagline taglines slogan slogans item items entry entries pro pros con cons risk risks benefit benefits way ways thing things variant variants alternative alternatives haikus limericks phase phases tweet tweets hashtag hashtags keyword keywords advantage advantages disadvantage disadvantages difference differences cause causes theory theories argument arguments suggestion suggestions name names subject-lines rule rules goal goals habit habits quote quotes adjective adjectives synonym synonyms recommendation recommendations strategy strategies channel channels milestone milestones metric metrics kpi kpis lesson lessons takeaway takeaways finding findings objection objections feature features use-cases reply replies excuse excuses message messages caption captions comeback comebacks nickname nicknames toast toasts riddle riddles opener openers icebreaker icebreakers activity activities topic topics theme themes opportunity opportunities chance chances variation variations version versions measure measures task tasks requirement requirements mistake mistakes word-plays gründe grund ideen idee tipps witze beispiele vorschläge fragen punkte schritte vorteile nachteile namen idées raisons exemples conseils blagues avantages étapes titres ideas razones ejemplos consejos chistes pasos ventajas títulos idee ragioni esempi consigli barzellette passi vantaggi titoli ideias razões exemplos dicas piadas passos redenen ideeën tips voorbeelden',
}
const UNIT_OF = new Map<string, Unit>(
  Object.entries(UNIT_WORDS).flatMap(([unit, words]) => words.split(' ').map((word) => [word, unit as Unit] as const)),
)

/** "Examples", "tips": what a list has several of. */
export const isItemNoun = (word: string) => UNIT_OF.get(word) === 'items'

/** What stands in front of a count that is asked for. */
const ORDERED = new RegExp(
  `(?:^|[.!?:;,\\n(] ?|\\b(?:please|me|us|mir|exactly|genau|exactement|exactamente|only|just|at most|no more than|max|maximum|up to|at least|the|und|and)\\s|\\b(?:${VERBS})(?: me| us| mir| (?:the|our|my|a) [a-z]{3,12})?(?: the| a| a list of| exactly| only| just| your| my| top| about)? |\\b(?:list|checklist|set|series|poem|verse|text|story|note|message|reply|answer|summary) of |\\btop ?)$`,
)

export type RequestedCount = {
  count: number
  unit: Unit
  bound: 'exactly' | 'most' | 'least'
  /** A verb that orders it stands in front, the task begins with it, or a clause consists of it. */
  isPlain: boolean
}

const RANGE =
  /(?<![\d.,])(\d{1,2}|\p{L}{2,6}) ?(?:-|–|to|or|bis|oder|à|ou|a|o) ?(\d{1,2}|\p{L}{2,6}) (sentence|satz|sätze|phrase|frase|frasi)/giu

/** "2-3 sentences": two bounds. */
const sentenceRanges = (request: string): RequestedCount[] =>
  [...request.matchAll(RANGE)].slice(0, 1).flatMap(([, low, high]) => {
    const [min, max] = [readCount(low!), readCount(high!)]
    return min === undefined || max === undefined || min >= max
      ? []
      : [
          { count: min, unit: 'sentences', bound: 'least', isPlain: true } as const,
          { count: max, unit: 'sentences', bound: 'most', isPlain: true } as const,
        ]
  })

/** "exactly 5 one-liners", "three bullets", "List five energy sources", "in two sentences". */
export function requestedCounts(task: ReadTask): RequestedCount[] {
  const request = task.request.toLowerCase().replaceAll('’', "'")
  const counts: RequestedCount[] = []
  const tokens = [...request.matchAll(/[\p{L}\d]+(?:[-'][\p{L}\d]+)*/gu)]
    .map((match) => ({ text: match[0], start: match.index }))
    .slice(0, 400)
  tokens.forEach(({ text, start }, index) => {
    const compound = /^(\p{L}+|\d{1,3})-(sentence|line|paragraph|bullet|step|point|item|word|phase|row)s?$/u.exec(text)
    const count = readCount(compound ? compound[1]! : text) ?? (ARTICLE.test(text) ? 1 : undefined)
    if (count === undefined || count < 1 || count > 50) return
    const before = request.slice(Math.max(0, start - 40), start)
    if (/[\d.,:/$€£–-]$/.test(before) && !/[,:] $/.test(before)) return
    // "3–4 sentences": a range is no count.
    if (/^ ?[–-] ?\d/.test(request.slice(start + text.length, start + text.length + 4))) return
    const after = tokens.slice(index + 1, index + 6).map((token) => token.text)
    // "45 min lesson" is a length.
    if (/^(?:mins?|minutes?|hours?|hrs?|h|kg|g|km|cm|mm|ml|l|eur|euros?|usd|dollars?|pounds?)$/.test(after[0] ?? ''))
      return
    // "Exactly one sentence with that" is one of several.
    if (unitAfter(request, tokens, index) === 'sentences' && /^\w{1,12} with (?:that|this|it)\b/.test(after.join(' ')))
      return
    // "Three results, each exactly one sentence"
    if (/\beach (?:\w{1,10} )?$/.test(before) || EACH.test(request.slice(start, start + 60).split(/[.?!,\n]/, 1)[0]!))
      return
    // "The three cost lines" are those that the task has.
    if (/\b(?:the|these|those|our|my) $/.test(before) && !UNIT_OF.has(after[0] ?? '')) return
    const unit = compound ? UNIT_OF.get(compound[2]!) : unitAfter(request, tokens, index)
    const isOrdered = ORDERED.test(before)
    // "En une seule phrase".
    const counted = ONLY_ONE.test(after[0] ?? '') ? after[1] : after[0]
    if (ARTICLE.test(text) && UNIT_OF.get(counted ?? '') !== 'sentences') return
    // "And a recommendation in one sentence": the rest of the answer has others.
    if (unit === 'sentences' && /[.?!]\s(?:and|und|et|y|e|plus|then|dann)\b[^.?!]{0,34}$/.test(before)) return
    // "5 words that rhyme" are items of a list.
    if (unit === 'words' && isOrdered && WORD_LIST.test(request.slice(start + text.length))) {
      counts.push({ count, unit: 'items', bound: 'exactly', isPlain: true })
      return
    }
    if (unit === 'words' || !isOrdered) {
      if (!compound || unit === 'words') return
    }
    const bound =
      /\b(?:at most|no more than|max(?:imum)?(?: of)?|up to|höchstens|maximal|au plus|como máximo|not more than)\s$/.test(
        before,
      ) || after.slice(0, 3).some((word) => /^(?:höchstens|maximal|max|maximum|tops|máximo|massimo)$/.test(word))
        ? 'most'
        : /\b(?:at least|minimum(?: of)?|mindestens|au moins|al menos|almeno)\s$/.test(before)
          ? 'least'
          : 'exactly'
    // "3 to 5 ideas", "two or three": a range is no count.
    if (/^(?:to|or|bis|oder|à|ou|a|o)$/.test(after[0] ?? '') && readCount(after[1] ?? '') !== undefined) return
    if (/(?:to|or|-|–|bis|oder|à|ou) $/.test(before)) return
    // "One bullet per task": as many as there are tasks.
    if (after.slice(0, 3).some((word) => /^(?:per|each|every|pro|je|por|par)$/.test(word))) return
    // "five sources with one sentence each": the second count belongs to the items of the first.
    if (
      counts.length > 0 &&
      (/\b(?:with|each|per|of|in|mit|je|avec|con|com)\s$/.test(before) || after.slice(0, 4).includes('each'))
    )
      return
    const isPlain = compound !== null || isPlainOrder(request, before, start + text.length)
    if (unit) counts.push({ count, unit, bound, isPlain })
    else if (isListing(before, after) || isExactList(request, before, after))
      counts.push({ count, unit: 'items', bound, isPlain: true })
  })
  if (counts.length === 0) counts.push(...sentenceRanges(request))
  if (counts.length === 0) {
    if (/\bhaiku\b(?!s)/.test(request) && !/\bhaikus\b/.test(request))
      counts.push({ count: 3, unit: 'lines', bound: 'exactly', isPlain: true })
    else if (/\blimerick\b(?!s)/.test(request))
      counts.push({ count: 5, unit: 'lines', bound: 'exactly', isPlain: true })
  }
  return counts
}

const WORD_LIST =
  /^ (?:\p{L}{3,12} )?words? (?:that|which|rhyming|meaning|starting|beginning|ending|for|related|to do with)\b/u

const EACH = /\b(?:each|apiece|chacune?|jeweils|cada una?|ciascun[oa]|elk)$/
const ONLY_ONE = /^(?:single|seule?|einzige[nr]?|sol[oa])$/
/** "En une phrase": an article counts sentences only. */
const ARTICLE = /^(?:une?|eine?[nmr]?|un[ao]|uma?)$/

const readCount = (text: string): number | undefined =>
  /^\d{1,3}$/.test(text)
    ? Number(text)
    : text === 'one' || ONLY_ONE.test(text)
      ? 1
      : text === 'null' || text === 'hundred' || text === 'zero'
        ? undefined
        : numberOfWord(text)

/** The kind of thing that is counted: within four words, and not across a comma or a full stop. */
function unitAfter(
  request: string,
  tokens: readonly { text: string; start: number }[],
  index: number,
): Unit | undefined {
  const from = tokens[index]!.start + tokens[index]!.text.length
  for (let next = index + 1; next <= index + 4 && next < tokens.length; next++) {
    if (/[.,;:!?\n()]/.test(request.slice(from, tokens[next]!.start))) return undefined
    const word = tokens[next]!.text
    // "Flachwitze" are jokes.
    const compound = /(?:witze|ideen|tipps|gründe|vorschläge|fragen|beispiele|sprüche)$/.exec(word)?.[0]
    const unit = UNIT_OF.get(word) ?? UNIT_OF.get(word.split('-').at(-1)!) ?? (compound && UNIT_OF.get(compound))
    if (unit) return unit
    if (
      /^(?:about|on|for|of|from|in|with|to|that|per|at|über|für|von|pour|sur|de|sobre|per|su|months?|years?|days?|weeks?|hours?|minutes?|people|persons?|members?|euros?|dollars?|percent|usd|eur|km|kg|users?|customers?|employees?|devs?|developers?|rooms?)$/.test(
        word,
      )
    )
      return undefined
  }
  return undefined
}

/** "List five renewable energy sources", "Name two seasons": the verb stands directly in front and a plural follows. */
const isListing = (before: string, after: readonly string[]) =>
  /(?:^|[.!?:\n] ?)(?:please )?(?:list|name|nenne|cite|nombra|menciona|enumera|elenca|noem)(?: me| mir)?(?: exactly| the| genau)? $/.test(
    before,
  ) && after.slice(0, 4).some((word) => word.length > 3 && /(?:s|en|er|e|i)$/.test(word))

/** "Exactly 5 out-of-office replies", "give me 4 replies, numbered". */
const isExactList = (request: string, before: string, after: readonly string[]) =>
  (/\bexactly $/.test(before) || (/\bnumbered\b/.test(request) && /\b(?:give me|write|list|name) $/.test(before))) &&
  after.slice(0, 4).some((word) => word.length > 3 && /[^s]s$/.test(word))

export function checkCount(task: ReadTask, output: ReadText): Finding {
  const counts = requestedCounts(task)
  // Two counts ("two pros, two cons", "three options with two risks each") can be nested in each other.
  const usable = counts.filter(({ unit }) => unit !== 'words')
  if (/\b(?:last|first|final|next|missing|second|third) (?:line|sentence)\b/i.test(task.request)) return notApplicable
  if (usable.length === 0 || requestsJson(readRequest(task)) || hasCode(task, output)) return notApplicable
  if (usable.length > 1 && usable.some(({ unit }) => unit === 'items')) return notApplicable
  // "If you only have two good ones, give two", "4 bullets for tasks and 3 for what we offer"
  if (
    /\bif you (?:only )?have (?:only )?(?:one|two|three|four|fewer|less|not enough)\b|\bmay be (?:merged|combined|left out|skipped)\b|\b(?:bullets?|points?|items?|lines?) (?:for|on|about|of)\b[^.\n]{1,40}\band (?:\d{1,2}|two|three|four|five|six) (?:for|on|about|of)\b/i.test(
      task.request,
    )
  )
    return notApplicable
  // "One reason for, one against, and a recommendation"
  if (/\bone \p{L}{2,20}[^.;\n]{0,40}, (?:and )?one\b/iu.test(task.request)) return notApplicable
  const pair = PAIR.exec(task.request)
  if (pair) {
    const [a, b] = pair.slice(1).map((word) => readCount(word.toLowerCase())) as [
      number | undefined,
      number | undefined,
    ]
    const structures = countItems(output)
    if (a === undefined || b === undefined || structures.length === 0) return notApplicable
    return structures.some((count) => count === a + b || count === Math.max(a, b))
      ? passed
      : failed(`${a} and ${b} were asked for and there are ${Math.max(...structures)}.`)
  }
  for (const wanted of usable) {
    const fault = findCountFault(wanted, output)
    // "Two sentences in Italian, and the same in English"
    if (fault && task.mentionsLanguage && !findCountFault({ ...wanted, count: 2 * wanted.count }, output)) continue
    // "Two sources are enough" orders no two of anything, and what a comma divides is no item for sure.
    if (fault)
      return wanted.unit === 'items' &&
        !(
          (wanted.isPlain || /,? no more\b/i.test(task.request)) &&
          (output.lines.length >= 2 || output.raw.startsWith('#'))
        )
        ? doubt(failed(fault))
        : isWrapped(wanted, task, output)
          ? doubt(failed(fault))
          : failed(fault)
  }
  return passed
}

/** "A card, two lines" of prose that has no line breaks at all may fill two lines where it is printed. */
const isWrapped = ({ unit, count }: RequestedCount, task: ReadTask, output: ReadText) =>
  unit === 'lines' &&
  count <= 4 &&
  output.lines.length === 1 &&
  output.words.length >= 8 * count &&
  !VERSE.test(task.full.raw)
const VERSE =
  /\b(?:poems?|rhym\w{1,4}|verses?|couplets?|haikus?|limericks?|lyrics|stanzas?|quatrains?|songs?|dialogues?|address|gedicht\w{0,2}|reim\w{0,3}|zweizeiler|vierzeiler|poèmes?|poemas?|poesia|each line|per line|exactly)\b/i

const ORDER_VERB =
  /(?:^|[^\p{L}])(?:list|gi(?:ve|b|mme)|name|writ(?:e|ing)|suggest|provide|propose|need|want|create|generate|find|tell|make|recommend|offer|share|pick|come up with|brainstorm|draft|think of|exactly|genau|exactement|exactamente|nenne|schreibe?|liste|donne(?:-moi)?|écris|cite|dame|escribe|enumera|dammi|elenca|scrivi|noem|geef|schrijf)(?: (?:me|us|mir|uns|moi|down|out))?(?: (?:exactly|genau|exactement|just|only|the|a|an|some|your|top|a list of|a set of)){0,2} $/u
const OPENING = /^\W{0,3}(?:please |pls |hi,? |hey,? )?(?:exactly |genau |the |top |your )?$/

/** "Suggest 3 names", "3 puns on wood" at the start of the task, and "…, 10 items" at the end of a clause; not "Two sources are enough". */
function isPlainOrder(request: string, before: string, end: number): boolean {
  const rest = request.slice(end, end + 60)
  if (ORDER_VERB.test(before)) return true
  if (before.length < 40 && OPENING.test(before))
    return !/^[^.\n]{0,30}(?::| (?:are|is|were|have|has|can|will)\b)/.test(rest)
  return (
    /[,(] ?$/.test(before) &&
    /^ (?:[\p{L}-]{2,15} ){0,1}[\p{L}-]{3,15}(?: max| please| in total)?(?:[.,;!)\n]|$)/u.test(rest)
  )
}

/** Lines of code are no items. */
const hasCode = (task: ReadTask, output: ReadText) =>
  task.agentId.startsWith('coder') &&
  (task.code !== '' || output.raw.includes('```') || !/\bexactly\b/i.test(task.request))

/** "3 risks and 2 opportunities". */
const PAIR =
  /\b(?:name|list|give|write|find|suggest)(?: me)? (\d{1,2}|[a-z]{3,5}) \p{L}{3,20} and (\d{1,2}|[a-z]{3,5}) \p{L}{3,20}\b/iu

function findCountFault({ count, unit, bound }: RequestedCount, output: ReadText): string | undefined {
  const fits = (value: number) =>
    bound === 'exactly' ? value === count : bound === 'most' ? value <= count : value >= count
  if (unit === 'lines') {
    const lines = output.lines.filter((line) => !/^[#*_]/.test(line) || output.lines.length <= count)
    if (fits(lines.length) || fits(output.lines.length)) return undefined
    // Verses may be written in one line with slashes.
    if (output.lines.length === 1 && fits(output.raw.split(' / ').length)) return undefined
    return count === 1 ? undefined : `${count} lines were asked for and there are ${output.lines.length}.`
  }
  if (unit === 'paragraphs') {
    // A greeting and a closing are no paragraphs.
    const paragraphs = splitFences(output.raw)
      .prose.split(/\n\s*\n/)
      .filter((part) => wordsOf(part).length > 8).length
    return fits(paragraphs) || Math.abs(paragraphs - count) <= 1
      ? undefined
      : `${count} paragraphs were asked for and there are ${paragraphs}.`
  }
  if (unit === 'sentences') {
    const { prose } = splitFences(output.raw)
    const all = sentencesOf(prose)
    // "Add the rates, and tell me in one sentence which to look at": the table is none of them.
    const besideTable = prose.replaceAll(/^\|.*$/gm, '')
    if (besideTable !== prose && fits(sentencesOf(besideTable).length)) return undefined
    // "Which one, and what should the note say in two sentences?": the note is quoted.
    if (quotedPassages(prose, 900).some(({ text }) => wordsOf(text).length >= 8 && fits(sentencesOf(text).length)))
      return undefined
    // A remark in brackets at the end may be none of them.
    const body = prose.replace(/(?<=[.!?])\s{0,4}\([^()\n]{20,300}\)\s*$/, '')
    if (body !== prose && fits(sentencesOf(body).length)) return undefined
    const sentences = all.filter((sentence) => wordsOf(sentence).length > 3 && !/[,:]$/.test(sentence))
    const low = sentences.filter((sentence) => /[.!?。！？…]["”’)]*$/u.test(sentence)).length
    // A question in quotation marks ends no sentence.
    const openings = all.filter((sentence) => !/^\p{Ll}/u.test(sentence)).length
    if ([low, sentences.length, all.length, openings].some(fits)) return undefined
    // Short sentences are sentences where there are no others.
    const counts = [low, sentences.length, ...(sentences.length === 0 ? [all.length] : [])]
    return Math.min(...counts.map((value) => Math.abs(value - count))) > (count > 4 ? 1 : 0)
      ? `${count} sentences were asked for and there are ${low}.`
      : undefined
  }
  if (unit === 'rows') {
    const rows = output.lines.filter(isTableRow).filter((line) => !/^[\s|:-]+$/.test(line)).length
    return rows === 0 || fits(rows) || fits(rows - 1) || fits(rows - 2)
      ? undefined
      : `${count} rows were asked for and there are ${rows - 1}.`
  }
  const structures = countItems(output)
  // "fast, rapid": two short parts where more were asked for.
  const parts =
    output.lines.length === 1 && count >= 3 ? output.raw.split(',').map((part) => part.trim().split(/\s+/).length) : []
  if (structures.length === 0 && parts.length === 2 && parts.every((words) => words <= 2)) structures.push(2)
  if (structures.length === 0 || structures.some(fits)) return undefined
  const most = Math.max(...structures)
  return `${count} were asked for and there are ${most}.`
}

/** In how many ways the parts of an answer can be counted. Empty when it has no parts that can be told apart. */
function countItems({ raw, lines }: ReadText): number[] {
  const rawLines = raw.split('\n').filter((line) => line.trim())
  const indentOf = (line: string) => line.length - line.trimStart().length
  const numbered = rawLines.filter((line) => /^\s*(?:\*\*)?\d{1,3}[.)]\s/.test(line))
  const bullets = rawLines.filter((line) => /^\s*[-*•–▪]\s/.test(line))
  const labelled = new Set(
    raw
      .match(
        /^[ \t*#]{0,10}(?:option|phase|step|idea|reason|tip|way|schritt|option|étape|opción|paso|joke|variant|alternative|q|question) ?\d{1,2}\b/gim,
      )
      ?.map((label) => label.replace(/[\s*#]/g, '').toLowerCase()),
  ).size
  const headings = lines.filter((line) => /^#{1,6}\s/.test(line)).length
  const bold = lines.filter((line) => /^\*\*[^*]{1,120}\*\*/.test(line)).length
  const top = (items: string[]) => {
    const least = Math.min(...items.map(indentOf))
    return items.filter((line) => indentOf(line) <= least + 1).length
  }
  const rows = lines.filter(isTableRow).filter((line) => !/^[\s|:-]+$/.test(line)).length
  const counts = [
    ...(numbered.length > 1 ? [top(numbered)] : []),
    ...(labelled > 1 ? [labelled] : []),
    ...(bullets.length > 1 ? [top(bullets), bullets.length] : []),
    ...(rows > 2 ? [rows - 1, rows - 2] : []),
  ]
  if (counts.length === 0) {
    const tags = raw.trim().split(/[\s,]+/)
    if (tags.length > 1 && tags.every((tag) => /^#\p{L}/u.test(tag))) return [tags.length]
    // "glad, cheerful, joyful": one line of short parts.
    const parts =
      lines.length === 1 && !/[.!?;:]\s/.test(raw.trim())
        ? lines[0]!.split(/,| and | und | et | y /).filter((part) => part.trim())
        : []
    if (parts.length >= 3 && parts.every((part) => part.trim().split(/\s+/).length <= 3)) return [parts.length]
    // Three short lines and more without a full stop: titles, names, headings.
    const isPlainList =
      lines.length >= 3 && lines.every((line) => line.length <= 80 && !/[.!?:,;]$/.test(line) && !/[.!?] /.test(line))
    if (isPlainList) return [lines.length]
    // "**How do I log in?**" and its answer below.
    return bold > 1 ? [bold, bold - 1] : headings > 1 ? [headings, headings - 1] : []
  }
  // Headings and bold leads can be the items, with lists below them.
  return [...counts, ...(headings > 1 ? [headings, headings - 1] : []), ...(bold > 1 ? [bold, bold - 1] : [])]
}

/** "Exactly 5 names, one per line, nothing else". */
export function checkOnePerLine(task: ReadTask, output: ReadText): Finding {
  if (!/\bone (?:\w{1,12} )?(?:per|a|on each) line\b|\beach on (?:a|its own) (?:new )?line\b/i.test(task.request))
    return notApplicable
  const [wanted] = requestedCounts(task).filter(({ unit }) => unit === 'items')
  if (!wanted || output.lines.length < 2 || !/\bnothing else\b|\bexactly\b|\bonly\b/i.test(task.request))
    return notApplicable
  const { count, bound } = wanted
  const lines = output.lines.length
  const isRight = bound === 'most' ? lines <= count : bound === 'least' ? lines >= count : lines === count
  return isRight ? passed : failed(`${count} were asked for and there are ${lines}.`)
}

const COUNT_EACH =
  /\b(\d{1,2}|one|two|three|four|five|six) (?:(?:short|key|main|concrete|brief) )?([\p{L}-]{3,16}) (?:each|per (?:heading|section|option|category|quadrant|group|topic|person|field|column))\b/iu

/** "Four headings, two points each": every list has as many as the others. */
export function checkCountEach(task: ReadTask, output: ReadText): Finding {
  const [, word = '', noun = ''] = COUNT_EACH.exec(task.request) ?? []
  const count = readCount(word.toLowerCase())
  if (count === undefined || !isItemNoun(noun.toLowerCase())) return notApplicable
  const groups = listGroups(output)
  const isWhole = [...task.request.toLowerCase().matchAll(/[\p{L}\d]+/gu)].some(
    ([token]) => readCount(token) === groups.length || (token === 'swot' && groups.length === 4),
  )
  // Lists of which none has that many are counted in another way.
  if (groups.length < 2 || !isWhole || !groups.includes(count)) return notApplicable
  const isLimit = /\b(?:at most|max(?:imum)?|up to|no more than|at least|minimum|about|around)\b/i.test(task.request)
  const other = groups.find((size) => size !== count)
  return other === undefined || isLimit ? passed : failed(`${count} each were asked for and one list has ${other}.`)
}

/** How many items the lists have that headings or other lines keep apart. */
function listGroups(output: ReadText): number[] {
  const groups: number[] = []
  let isOpen = false
  for (const line of output.lines) {
    const isItem = /^[-*•–▪]\s/.test(line)
    if (isItem && isOpen) groups[groups.length - 1]!++
    else if (isItem) groups.push(1)
    isOpen = isItem
  }
  return groups
}
