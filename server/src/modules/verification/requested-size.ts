import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { numberOfWord } from './numbers.ts'
import { isTableRow, readRequest, requestsJson } from './requested-form.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, sentencesOf, splitFences, wordsOf } from './text.ts'

const VERBS =
  'give|list|name|write|suggest|provide|tell|need|want|create|generate|propose|draft|find|make|identify|offer|share|recommend|pick|choose|turn this into|rewrite (?:this|it) as|summari[sz]e (?:this |it )?(?:in|as|into)|come up with|brainstorm|outline|state|show|with|in|as|nenne|gib|schreib|schreibe|liste|erzähl|donne|donne-moi|écris|cite|propose|dame|escribe|enumera|menciona|dammi|scrivi|elenca|dê|escreva|liste|geef|noem|schrijf'
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

/** What stands in front of a count that is asked for. */
const ORDERED = new RegExp(
  `(?:^|[.!?:;,\\n(] ?|\\b(?:please|me|us|mir|exactly|genau|exactement|exactamente|only|just|at most|no more than|max|maximum|up to|at least|the|und|and)\\s|\\b(?:${VERBS})(?: me| us| mir| (?:the|our|my|a) [a-z]{3,12})?(?: the| a list of| exactly| only| just| your| my| top| about)? |\\b(?:list|checklist|set|series) of |\\btop ?)$`,
)

export type RequestedCount = { count: number; unit: Unit; bound: 'exactly' | 'most' | 'least' }

const RANGE =
  /(?<![\d.,])(\d{1,2}|\p{L}{2,6}) ?(?:-|–|to|or|bis|oder|à|ou|a|o) ?(\d{1,2}|\p{L}{2,6}) (sentence|satz|sätze|phrase|frase|frasi)/giu

/** "2-3 sentences": two bounds. */
const sentenceRanges = (request: string): RequestedCount[] =>
  [...request.matchAll(RANGE)].slice(0, 1).flatMap(([, low, high]) => {
    const [min, max] = [readCount(low!), readCount(high!)]
    return min === undefined || max === undefined || min >= max
      ? []
      : [
          { count: min, unit: 'sentences', bound: 'least' } as const,
          { count: max, unit: 'sentences', bound: 'most' } as const,
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
    const count = readCount(compound ? compound[1]! : text)
    if (count === undefined || count < 1 || count > 50) return
    const before = request.slice(Math.max(0, start - 40), start)
    if (/[\d.,:/$€£-]$/.test(before) && !/[,:] $/.test(before)) return
    const after = tokens.slice(index + 1, index + 6).map((token) => token.text)
    const unit = compound ? UNIT_OF.get(compound[2]!) : unitAfter(request, tokens, index)
    const isOrdered = ORDERED.test(before)
    // "5 words that rhyme" are items of a list.
    if (unit === 'words' && isOrdered && WORD_LIST.test(request.slice(start + text.length))) {
      counts.push({ count, unit: 'items', bound: 'exactly' })
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
    if (unit) counts.push({ count, unit, bound })
    else if (isListing(before, after) || isExactList(request, before, after))
      counts.push({ count, unit: 'items', bound })
  })
  if (counts.length === 0) counts.push(...sentenceRanges(request))
  if (counts.length === 0) {
    if (/\bhaiku\b(?!s)/.test(request) && !/\bhaikus\b/.test(request))
      counts.push({ count: 3, unit: 'lines', bound: 'exactly' })
    else if (/\blimerick\b(?!s)/.test(request)) counts.push({ count: 5, unit: 'lines', bound: 'exactly' })
  }
  return counts
}

const WORD_LIST =
  /^ (?:\p{L}{3,12} )?words? (?:that|which|rhyming|meaning|starting|beginning|ending|for|related|to do with)\b/u

const readCount = (text: string): number | undefined =>
  /^\d{1,3}$/.test(text)
    ? Number(text)
    : text === 'one' || text === 'single'
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
    const unit = UNIT_OF.get(word) ?? UNIT_OF.get(word.split('-').at(-1)!)
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
  if (usable.length === 0 || requestsJson(readRequest(task)) || hasCode(task, output)) return notApplicable
  if (usable.length > 1 && usable.some(({ unit }) => unit === 'items')) return notApplicable
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
    // "Two sources are enough" orders no two of anything, and what a comma divides is no item for sure.
    if (fault) return wanted.unit === 'items' && !isPlainOrder(task, output) ? doubt(failed(fault)) : failed(fault)
  }
  return passed
}

const PLAIN_ORDER =
  /\b(?:list|give(?: me| us)?|name|write|suggest|provide|propose|exactly|genau|nenne(?: mir)?|liste|donne(?:-moi)?|cite|dame|enumera|elenca|scrivi)\s(?:exactly\s|genau\s|exactement\s)?(?:the\s|an?\s(?=\S{1,5}-))?(?:top\s)?(?:\d{1,2}|two|three|four|five|six|seven|eight|nine|ten|zwei|drei|vier|fünf|sechs|deux|trois|quatre|cinq|dos|tres|cuatro|cinco|due|tre|quattro|cinque)\b/i

/** "3 puns on wood" at the start of the task. */
const OPENING_ORDER =
  /^\W{0,3}(?:please )?(?:exactly )?(?:[2-9]|[1-4]\d|two|three|four|five|six|seven|eight|nine|ten|zwei|drei|vier|fünf|deux|trois|quatre|cinq|dos|tres|cuatro|cinco) (?:\p{L}{2,12} ){0,2}(?:puns?|jokes?|ideas?|tips?|names?|titles?|headlines?|taglines?|slogans?|reasons?|questions?|bullets?|bullet points|one-liners?|examples?|synonyms?|subject lines?|facts?|captions?|hashtags?|excuses?|replies|comebacks?|nicknames?|toasts?|riddles?|openers?|icebreakers?|variants?|variations|options?|alternatives?|risks?|benefits?|objections?|keywords?|activities|topics?|rules?|wordplays?|witze|ideen|tipps|titel|idées|titres|ideas|consejos)\b/iu

const isPlainOrder = (task: ReadTask, output: ReadText) =>
  (PLAIN_ORDER.test(task.request) || OPENING_ORDER.test(task.request)) && output.lines.length >= 2

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
  const { prose } = splitFences(output.raw)
  if (unit === 'lines') {
    const lines = output.lines.filter((line) => !/^[#*_]/.test(line) || output.lines.length <= count)
    if (fits(lines.length) || fits(output.lines.length)) return undefined
    // Verses may be written in one line with slashes.
    if (output.lines.length === 1 && fits(output.raw.split(' / ').length)) return undefined
    return count === 1 ? undefined : `${count} lines were asked for and there are ${output.lines.length}.`
  }
  if (unit === 'paragraphs') {
    // A greeting and a closing are no paragraphs.
    const paragraphs = prose.split(/\n\s*\n/).filter((part) => wordsOf(part).length > 8).length
    return fits(paragraphs) || Math.abs(paragraphs - count) <= 1
      ? undefined
      : `${count} paragraphs were asked for and there are ${paragraphs}.`
  }
  if (unit === 'sentences') {
    const all = sentencesOf(prose)
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
    // "glad, cheerful, joyful": one line of short parts.
    const parts =
      lines.length === 1 && !/[.!?;:]\s/.test(raw.trim())
        ? lines[0]!.split(/,| and | und | et | y /).filter((part) => part.trim())
        : []
    if (parts.length >= 3 && parts.every((part) => part.trim().split(/\s+/).length <= 3)) return [parts.length]
    // Three short lines and more without a full stop: titles, names, headings.
    const isPlainList =
      lines.length >= 3 && lines.every((line) => line.length <= 80 && !/[.!?:,;]$/.test(line) && !/[.!?] /.test(line))
    return isPlainList ? [lines.length] : []
  }
  // Headings and bold leads can be the items, with lists below them.
  return [...counts, ...(headings > 1 ? [headings, headings - 1] : []), ...(bold > 1 ? [bold, bold - 1] : [])]
}

type Bounds = { min: number; max: number; unit: 'words' | 'characters'; text: string }

export function requestedLengths(request: string): Bounds[] {
  const text = request.toLowerCase()
  const WORDS =
    '(?:words?|wörtern?|worte?n?|mots|palabras|parole|palavras|woorden|słów|characters?|chars?|zeichen|caractères|caracteres|caratteri|tekens|znaków)'
  const bounds: Bounds[] = []
  const push = (min: number, max: number, unitText: string, raw: string) =>
    bounds.push({ min, max, unit: /^(?:char|zeich|cara|tek|znak)/.test(unitText) ? 'characters' : 'words', text: raw })
  const number = '(\\d{1,5}|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|fifty)'
  const countOf = (word: string) => (/^\d/.test(word) ? Number(word) : (numberOfWord(word) ?? Number.NaN))
  for (const [raw, low, high, unit] of text.matchAll(
    new RegExp(`(\\d{1,5}) ?(?:-|–|to|and|und|et|y|bis|à|a) ?(\\d{1,5})[ -](${WORDS})`, 'g'),
  ))
    push(Number(low), Number(high), unit!, raw)
  if (bounds.length > 0) return bounds
  for (const [raw, bound, value, unit] of text
    .replaceAll(/<=? ?|≤ ?/g, ' at most ')
    .matchAll(
      new RegExp(
        `\\b(under|below|within|at most|no more than|not more than|no longer than|not exceed(?:ing)?|does not exceed|shorter than|max\\.?:?|maximum|maximum of|limit of|limited to|up to|no more than|fewer than|less than|höchstens|maximal|unter|au plus|maximum de|moins de|menos de|meno di|weniger als|nicht mehr als|pas plus de|no más de|non più di|como máximo|como máximo de|máximo|máximo de|massimo|al massimo|no máximo|até|maximaal|hooguit|minder dan|najwyżej|maksymalnie|do|at least|minimum|mindestens|au moins|al menos|almeno|more than|not less than|no fewer than|exactly|precisely|genau|exactement|exactamente|about|around|roughly|approximately|approx\\.?|circa|ca\\.?|etwa|rund|environ|unas?|in|of|keep it to|limit:?|limit is)\\s${number}[ -](${WORDS})`,
        'g',
      ),
    )) {
    const count = countOf(value!)
    if (
      /^(?:under|below|within|at most|no more|not more|no longer|not exceed|does not exceed|shorter|max|limit|up to|fewer|less|höchstens|maximal|unter|au plus|moins|menos|meno|weniger|nicht mehr|pas plus|no más|non più|como máximo|máximo|massimo|al massimo|no máximo|até|maximaal|hooguit|minder|najwyżej|maksymalnie|do$|keep)/.test(
        bound!,
      )
    )
      push(0, count, unit!, raw)
    else if (/^(?:at least|min(?:imum)?$|mindestens|au moins|al menos|almeno|more than|not less|no fewer)/.test(bound!))
      push(count, Number.POSITIVE_INFINITY, unit!, raw)
    else if (/^(?:exactly|precisely|genau|exactement|exactamente)/.test(bound!)) push(count, count, unit!, raw)
    else push(count * 0.6, count * 1.5, unit!, raw)
  }
  if (bounds.length > 0) return bounds
  const maxAfter = new RegExp(
    `${number}[ -](${WORDS})[ ,]{0,2}(?:max\\b|maximum|at most|or less|or fewer|tops|limit|oder weniger|ou moins|o menos|o meno|höchstens|maximal|como máximo|au maximum|al massimo)`,
  ).exec(text)
  if (maxAfter) push(0, countOf(maxAfter[1]!), maxAfter[2]!, maxAfter[0])
  else {
    const plain = new RegExp(`(?:^|[^\\d.,-])(\\d{2,5})[ -](${WORDS})(?=[\\s.,;:!?)]|$)`).exec(text)
    if (plain) push(Number(plain[1]) * 0.6, Number(plain[1]) * 1.5, plain[2]!, plain[0])
  }
  if (
    bounds.length === 0 &&
    /\b(?:one|a single|in one|1) word\b|\bone-word\b|\beinem wort\b|\bun (?:seul )?mot\b(?! (?:de|d'|pour|à|aux?)\b)|\buna (?:sola )?palabra\b/.test(
      text,
    ) &&
    // "One word and the reason".
    !/\bword(?: answer)?(?:\s?\+|,? (?:and|plus|with|then|followed))/.test(text)
  )
    push(1, 2, 'words', 'one word')
  return bounds
}

/** The fewest words that somebody could count: a hyphen joins two, and a line with the subject is no part of the text. */
function countWords(text: string): number {
  const body = text.replace(/^\s{0,4}\**(?:subject|betreff|objet|asunto|oggetto|titel|title)\b[^\n]{0,200}\n/i, '')
  return body.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
}

export function checkLength(task: ReadTask, output: ReadText): Finding {
  if (
    (task.agentId.startsWith('coder') && !/\b(?:commit|subject|changelog)\b/i.test(task.request)) ||
    /\b(?:outline|titles?|headlines?|plan|structure|gliederung|ideas?)\b/i.test(task.request)
  )
    return notApplicable
  const lengths = requestedLengths(task.request)
  if (lengths.length === 0) return notApplicable
  const { min, max, unit } = lengths[0]!
  if (!(max > 0)) return notApplicable
  // The subject of a commit is its first line.
  const text = task.agentId.startsWith('coder')
    ? (output.lines.find((line) => !line.startsWith('```')) ?? '')
    : output.raw
  const words = countWords(text)
  const size = unit === 'words' ? words : text.trim().length
  // People count words differently, and a greeting and a title may be meant or not.
  const isEach = EACH.test(task.request)
  if (isEach) return checkEachLength(output, max, unit)
  if (unit === 'words' && /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Thai}/u.test(output.raw)) return notApplicable
  // "3 variants, max 3 words", "{"why": at most 12 words}": the limit is that of a part.
  if (
    size > max &&
    (requestsJson(readRequest(task)) ||
      /^\s{0,8}[{[]\s?["{]/.test(output.raw) ||
      arePartsWithin(task, output, max, unit))
  )
    return notApplicable
  if (size > max) return failed(`At most ${Math.round(max)} ${unit} were asked for and there are ${size}.`)
  if (size < min - (min === max ? 0 : Math.max(1, min * 0.05)))
    return failed(`At least ${Math.round(min)} ${unit} were asked for and there are ${size}.`)
  return passed
}

/** Several things were asked for, and each line of the answer keeps to the limit. */
const arePartsWithin = (task: ReadTask, output: ReadText, max: number, unit: 'words' | 'characters') =>
  output.lines.length > 1 &&
  requestedCounts(task).some(({ unit: kind, count }) => count > 1 && (kind === 'items' || kind === 'lines')) &&
  output.lines.every((line) => {
    const text = line.replace(ITEM_MARK, '').trim()
    return (unit === 'words' ? countWords(text) : text.length) <= max
  })

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

const EACH =
  /\b(?:words?|characters?|chars?) (?:max )?(?:each|per \p{L}{3,12})\b|\beach (?:\w{1,12} )?(?:under|at most|max\.?|no more than|up to|within)\b/iu

/** "Three variants of at most 40 characters each": no line without its number is longer. */
function checkEachLength(output: ReadText, max: number, unit: 'words' | 'characters'): Finding {
  const items = output.lines.filter((line) => ITEM_MARK.test(line))
  const sizes = (items.length > 1 ? items : output.lines).map((line) => {
    const text = line
      .replace(ITEM_MARK, '')
      .replace(/^\*\*[^*]{1,60}\*\*:?\s?/, '')
      .replaceAll(/["“”*]/g, '')
      .trim()
    return unit === 'words' ? wordsOf(text).length : text.length
  })
  if (items.length < 2) return notApplicable
  const longest = Math.max(...sizes)
  return longest > max * (unit === 'words' ? 1.15 : 1) + 1
    ? failed(`At most ${Math.round(max)} ${unit} each were asked for and one has ${longest}.`)
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
      ? failed('It stops before the end of the text to be translated.')
      : passed
}
