import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { numberOfWord } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { clip, plainText, quotedPassages, type ReadText, sentencesOf, splitFences, wordsOf } from './text.ts'

/** What the task asks for by name: how many, how long, in which form, with which words. */
export const checkAskedFor = (task: ReadTask, output: ReadText): Finding =>
  // Who asks for the text that is missing cannot keep to its form.
  task.lacksMaterial || task.isVague
    ? notApplicable
    : combine([
        checkJson(task, output),
        checkTable(task, output),
        checkList(task, output),
        checkCount(task, output),
        checkLength(task, output),
        checkLabel(task, output),
        checkWanted(task, output),
        checkForbidden(task, output),
        checkCodeLanguage(task, output),
        checkCase(task, output),
        checkNamed(task, output),
        checkRecursion(task, output),
        checkTranslationLength(task, output),
        checkFormats(task, output),
        checkAcrostic(task, output),
        checkYesNo(task, output),
        checkOneOf(task, output),
        checkRemoval(task, output),
        checkOnePerLine(task, output),
        checkAllCovered(task, output),
      ])

/** Reads only the start and the end of a long request: text in the middle may mention JSON without requesting it. */
const readRequest = ({ request, full, material }: ReadTask) => {
  const text = request.length > 1200 ? `${request.slice(0, 600)}\n${request.slice(-600)}` : request
  // A request may follow the text it is about.
  const tail = material && full.raw.length < 4_000 ? (sentencesOf(full.raw).at(-1) ?? '') : ''
  return `${text}\n${tail.slice(0, 300)}`.toLowerCase()
}

export function requestsJson(request: string): boolean {
  // "Why does my API return JSON?" mentions JSON without requesting it: a request starts its clause ("return JSON") or ends it ("as JSON").
  return (
    /(?:^|[.!?:;,\n]|\b(?:please|and|then|must|only))\s{0,20}(?:return|output|produce|give me|give|(?:respond|reply|answer) with)(?: \w{1,20}){0,3} json\b/.test(
      request,
    ) ||
    /\b(?:as|in|into|als|en|au format|come|em)(?: \w{1,20})? json(?: only| format| please| with\b.{0,200}| object| array)?\s{0,5}(?:[.,;:!?)\n]|$)|\b(?:valid )?json only\b|\bonly (?:valid )?json\b/.test(
      request,
    )
  )
}

function checkJson(task: ReadTask, output: ReadText): Finding {
  const request = readRequest(task)
  if (!requestsJson(request)) return notApplicable
  const { blocks } = splitFences(output.raw)
  const text = blocks.length === 1 ? blocks[0]!.code : output.raw
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return failed('JSON was asked for and the output does not parse.')
  }
  const keys = requestedKeys(task.request)
  const missing = keys.filter((key) => !hasKey(value, key, 0))
  return missing.length > 0 ? failed(`The JSON has no key ${clip(missing[0]!, 30)}.`) : passed
}

/** The keys of `{"min":..,"max":..}` and of "with keys a, b and c". */
function requestedKeys(request: string): string[] {
  const named = /\b(?:keys?|fields?|properties|schlüsseln?|clés|claves|campos)[: ]{1,3}(.{1,200})/i.exec(request)?.[1]
  const example = [...request.matchAll(/["'`]([A-Za-z_][\w-]{0,40})["'`]\s?:/g)].map((match) => match[1]!)
  if (example.length > 0) return example.slice(0, 20)
  if (!named) return []
  const clause = named.split(/[.;\n]|\bfor\b|\bfrom\b|\bof\b|\bper\b|\bwhere\b|\bwith\b/i, 1)[0]!
  const words = clause
    .split(/,|\band\b|\bund\b|\bet\b|\by\b|\be\b|\s/i)
    .map((word) => word.replace(/["'`(){}]/g, '').trim())
    .filter(Boolean)
  return words.length <= 12 && words.every((word) => /^[A-Za-z_][\w-]{0,40}$/.test(word)) ? words : []
}

function hasKey(value: unknown, key: string, depth: number): boolean {
  if (depth > 6 || value === null || typeof value !== 'object') return false
  if (!Array.isArray(value) && Object.keys(value).some((name) => name.toLowerCase() === key.toLowerCase())) return true
  return Object.values(value)
    .slice(0, 200)
    .some((child) => hasKey(child, key, depth + 1))
}

const isTableRow = (line: string) => line.startsWith('|') || (line.match(/\|/g)?.length ?? 0) >= 2

function checkTable(task: ReadTask, output: ReadText): Finding {
  const request = readRequest(task)
  const wants =
    /\b(?:in|as|into|make|give|show|create|build|with) (?:me )?(?:an? )?(?:\w{1,20} ){0,2}table\b|^(?:\w{1,12} )?table (?:with|of|only|please)|\btable only\b|\btable,|\bals tabelle\b|\bin einer tabelle\b|\b(?:en|dans un|sous forme de) tableau\b|\b(?:en|una) tabla\b|\b(?:in|una) tabella\b|\b(?:em|numa) tabela\b/.test(
      request,
    )
  if (
    !wants ||
    /\b(?:create|alter|drop) table\b|\btable for\b|\btables?:/.test(request) ||
    task.agentId.startsWith('coder')
  )
    return notApplicable
  const rows = output.lines.filter((line) => isTableRow(line) || /\t/.test(line)).length
  return rows >= 2 || /<table/i.test(output.raw) || isCsv(output)
    ? passed
    : failed('A table was asked for and there is none.')
}

const isCsv = ({ lines }: ReadText) =>
  lines.length >= 2 &&
  lines.every((line) => /[,;]/.test(line)) &&
  new Set(lines.map((line) => line.split(/[,;]/).length)).size === 1

const ITEM = /^(?:[-*•–▪◦]|\d{1,3}[.)]|[a-z][.)])\s{1,8}\S/

function checkList(task: ReadTask, output: ReadText): Finding {
  const request = readRequest(task)
  if (requestsJson(request)) return notApplicable
  const wants =
    /\b(?:bullet(?:ed)?(?: points?| list)?s?|numbered list|bulleted list|aufzählung|stichpunkte\w?|liste à puces|viñetas|elenco puntato|in stichpunkten)\b/.test(
      request,
    )
  if (!wants || /\bno bullets?\b|\bwithout bullets?\b/.test(request)) return notApplicable
  return output.lines.some((line) => ITEM.test(line)) ? passed : failed('A list was asked for and there is none.')
}

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
    'bullet bullets point points joke jokes pun puns one-liner one-liners idea ideas tip tips option options reason reasons example examples step steps question questions fact facts source sources headline headlines title titles tagline taglines slogan slogans item items entry entries pro pros con cons risk risks benefit benefits way ways thing things variant variants alternative alternatives haikus limericks phase phases tweet tweets hashtag hashtags keyword keywords advantage advantages disadvantage disadvantages difference differences cause causes theory theories argument arguments suggestion suggestions name names subject-lines rule rules goal goals habit habits quote quotes adjective adjectives synonym synonyms recommendation recommendations strategy strategies channel channels milestone milestones metric metrics kpi kpis lesson lessons takeaway takeaways finding findings objection objections feature features use-cases gründe grund ideen idee tipps witze beispiele vorschläge fragen punkte schritte vorteile nachteile namen idées raisons exemples conseils blagues avantages étapes titres ideas razones ejemplos consejos chistes pasos ventajas títulos idee ragioni esempi consigli barzellette passi vantaggi titoli ideias razões exemplos dicas piadas passos redenen ideeën tips voorbeelden',
}
const UNIT_OF = new Map<string, Unit>(
  Object.entries(UNIT_WORDS).flatMap(([unit, words]) => words.split(' ').map((word) => [word, unit as Unit] as const)),
)

/** What stands in front of a count that is asked for. */
const ORDERED = new RegExp(
  `(?:^|[.!?:;,\\n(] ?|\\b(?:please|me|us|mir|exactly|genau|exactement|exactamente|only|just|at most|no more than|max|maximum|up to|at least|the|und|and)\\s|\\b(?:${VERBS})(?: me| us| mir| (?:the|our|my|a) [a-z]{3,12})?(?: the| a list of| exactly| only| just| your| my| top| about)? |\\b(?:list|checklist|set|series) of |\\btop ?)$`,
)

export type RequestedCount = { count: number; unit: Unit; bound: 'exactly' | 'most' | 'least' }

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
    if (unit === 'words' || !isOrdered) {
      if (!compound || unit === 'words') return
    }
    const bound =
      /\b(?:at most|no more than|max(?:imum)?(?: of)?|up to|höchstens|maximal|au plus|como máximo|not more than)\s$/.test(
        before,
      )
        ? 'most'
        : /\b(?:at least|minimum(?: of)?|mindestens|au moins|al menos|almeno)\s$/.test(before)
          ? 'least'
          : 'exactly'
    // "3 to 5 ideas", "two or three": a range is no count.
    if (/^(?:to|or|bis|oder|à|ou|a|o)$/.test(after[0] ?? '') && readCount(after[1] ?? '') !== undefined) return
    if (/(?:to|or|-|–|bis|oder|à|ou) $/.test(before)) return
    // "five sources with one sentence each": the second count belongs to the items of the first.
    if (
      counts.length > 0 &&
      (/\b(?:with|each|per|of|in|mit|je|avec|con|com)\s$/.test(before) || after.slice(0, 4).includes('each'))
    )
      return
    if (unit) counts.push({ count, unit, bound })
    else if (isListing(before, after)) counts.push({ count, unit: 'items', bound })
  })
  if (counts.length === 0) {
    if (/\bhaiku\b(?!s)/.test(request) && !/\bhaikus\b/.test(request))
      counts.push({ count: 3, unit: 'lines', bound: 'exactly' })
    else if (/\blimerick\b(?!s)/.test(request)) counts.push({ count: 5, unit: 'lines', bound: 'exactly' })
  }
  return counts
}

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

function checkCount(task: ReadTask, output: ReadText): Finding {
  const counts = requestedCounts(task)
  // Two counts ("two pros, two cons", "three options with two risks each") can be nested in each other.
  const usable = counts.filter(({ unit }) => unit !== 'words')
  if (usable.length === 0 || requestsJson(readRequest(task)) || task.agentId.startsWith('coder')) return notApplicable
  if (usable.length > 1 && usable.some(({ unit }) => unit === 'items')) return notApplicable
  for (const wanted of usable) {
    const fault = findCountFault(wanted, output)
    if (fault) return failed(fault)
  }
  return passed
}

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
    if ([low, sentences.length, all.length].some(fits)) return undefined
    return Math.min(...[low, sentences.length].map((value) => Math.abs(value - count))) > (count > 4 ? 1 : 0)
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
    return parts.length >= 3 && parts.every((part) => part.trim().split(/\s+/).length <= 3) ? [parts.length] : []
  }
  // Headings and bold leads can be the items, with lists below them.
  return [...counts, ...(headings > 1 ? [headings, headings - 1] : []), ...(bold > 1 ? [bold, bold - 1] : [])]
}

type Bounds = { min: number; max: number; unit: 'words' | 'characters'; text: string }

export function requestedLengths(request: string): Bounds[] {
  const text = request.toLowerCase()
  const WORDS =
    '(?:words?|wörtern?|worte?n?|mots|palabras|parole|palavras|woorden|characters?|chars?|zeichen|caractères|caracteres|caratteri|tekens)'
  const bounds: Bounds[] = []
  const push = (min: number, max: number, unitText: string, raw: string) =>
    bounds.push({ min, max, unit: /^(?:char|zeich|cara|tek)/.test(unitText) ? 'characters' : 'words', text: raw })
  const number = '(\\d{1,5}|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|fifty)'
  const countOf = (word: string) => (/^\d/.test(word) ? Number(word) : (numberOfWord(word) ?? Number.NaN))
  for (const [raw, low, high, unit] of text.matchAll(
    new RegExp(`(\\d{1,5}) ?(?:-|–|to|bis|à|a) ?(\\d{1,5})[ -](${WORDS})`, 'g'),
  ))
    push(Number(low), Number(high), unit!, raw)
  if (bounds.length > 0) return bounds
  for (const [raw, bound, value, unit] of text.matchAll(
    new RegExp(
      `\\b(under|below|within|at most|no more than|not more than|max\\.?|maximum|maximum of|up to|fewer than|less than|höchstens|maximal|unter|au plus|maximum de|como máximo|máximo|massimo|no máximo|maximaal|at least|minimum|mindestens|au moins|al menos|almeno|more than|exactly|genau|exactement|exactamente|about|around|roughly|approximately|approx\\.?|circa|ca\\.?|etwa|rund|environ|unas?|in|of|keep it to|limit:?)\\s${number}[ -](${WORDS})`,
      'g',
    ),
  )) {
    const count = countOf(value!)
    if (
      /^(?:under|below|within|at most|no more|not more|max|up to|fewer|less|höchstens|maximal|unter|au plus|como máximo|máximo|massimo|no máximo|maximaal|keep|limit)/.test(
        bound!,
      )
    )
      push(0, count, unit!, raw)
    else if (/^(?:at least|min|mindestens|au moins|al menos|almeno|more than)/.test(bound!))
      push(count, Number.POSITIVE_INFINITY, unit!, raw)
    else if (/^(?:exactly|genau|exactement|exactamente)/.test(bound!)) push(count, count, unit!, raw)
    else push(count * 0.6, count * 1.5, unit!, raw)
  }
  if (bounds.length > 0) return bounds
  const maxAfter = new RegExp(
    `${number}[ -](${WORDS})[ ,]{0,2}(?:max\\b|maximum|at most|or less|or fewer|tops|limit)`,
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
    )
  )
    push(1, 2, 'words', 'one word')
  return bounds
}

function checkLength(task: ReadTask, output: ReadText): Finding {
  if (
    task.agentId.startsWith('coder') ||
    /\b(?:outline|titles?|headlines?|plan|structure|gliederung|ideas?)\b/i.test(task.request)
  )
    return notApplicable
  const lengths = requestedLengths(task.request)
  if (lengths.length === 0) return notApplicable
  const { min, max, unit } = lengths[0]!
  if (!(max > 0)) return notApplicable
  const words = output.raw.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
  const size = unit === 'words' ? words : output.raw.trim().length
  // People count words differently, and a greeting and a title may be meant or not.
  const slack = unit === 'words' ? Math.max(1, max * 0.15) : Math.max(2, max * 0.02)
  if (unit === 'words' && /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Thai}/u.test(output.raw)) return notApplicable
  if (size > max + (min === max ? Math.max(1, max * 0.1) : slack))
    return failed(`At most ${Math.round(max)} ${unit} were asked for and there are ${size}.`)
  if (size < min - Math.max(1, min * 0.15))
    return failed(`At least ${Math.round(min)} ${unit} were asked for and there are ${size}.`)
  return passed
}

/** "Classify as one of: a, b, c", "(billing / shipping / technical)", "yes or no". */
function checkLabel(task: ReadTask, output: ReadText): Finding {
  const request = task.request
  const isOnly =
    /\b(?:only|one word|single word|just|nothing else|label|category|classif\w{1,5}|nur|seulement|solo|apenas|alleen)\b/i.test(
      request,
    )
  if (!isOnly) return notApplicable
  const listed =
    /\b(?:one of|as|into|either|labels?|categor(?:y|ies)|options?|choose from|from|type|priority|sentiment|team|queue|tag)(?: the following| these)?[:? ]{1,2}\(?([\w -]{2,30}(?:(?:, ?| ?\/ ?| or |, or )[\w -]{2,30}){1,10})\)?/i.exec(
      request,
    )?.[1] ?? /\(([\w-]{2,20}(?: ?[/|,] ?[\w-]{2,20}){1,10})\)/.exec(request)?.[1]
  const labels =
    listed
      ?.split(/,| or |\/|\|/)
      .map((label) => plainText(label.replace(/^ ?or /, '')))
      .filter(Boolean) ?? []
  if (labels.length < 2 || labels.some((label) => label.split(' ').length > 3)) return notApplicable
  if (output.words.length > 6)
    return /\b(?:only|nothing else|just)\b/i.test(request) &&
      /\b(?:answer|reply|respond|return|output)\b/i.test(request) &&
      output.words.length > 15 &&
      /\b(?:label|word|category)\b/i.test(request)
      ? failed('One of the named labels was asked for, alone.')
      : notApplicable
  const text = ` ${plainText(output.raw)} `
  return labels.some((label) => text.includes(` ${label} `))
    ? passed
    : failed('It is none of the labels that the task allows.')
}

/** Codes, figures and quoted words after "must mention", "include", "contain". */
function checkWanted(task: ReadTask, output: ReadText): Finding {
  const clause =
    /\b(?:must (?:mention|contain|include|have|say|use)|(?:has|needs|have|need) to (?:mention|contain|include|say)|should (?:mention|contain|include|say)|be sure to (?:mention|include)|make sure (?:to |it )?(?:mention|include|contain)\w?|don't forget (?:to mention |the )?|include (?:the )?(?:words?|phrase|code|sentence|hashtag)|mention(?: that)?|use the words?|contain(?:s|ing)? the (?:words?|phrase)|with the (?:words?|phrase)|using the (?:words?|phrase)|muss (?:enthalten|erwähnen)|erwähne|mentionne[rz]?|menciona|include)[: ](.{1,300})/i.exec(
      task.full.raw.slice(0, 6_000),
    )?.[1]
  const before = WANTED_BEFORE.exec(task.full.raw.slice(0, 6_000))?.[1]
  if (before && !` ${plainText(output.raw)} `.includes(` ${plainText(before)} `))
    return failed(`It leaves out ${clip(before, 30)}, which the task wants in it.`)
  const code =
    /\b(?:give|tell|send|include|mention|state|quote|with|add|name)\b[^.\n]{0,40}?\b(?:number|code|reference|ticket|voucher|id|no\.?|nr\.?)[: ]{1,2}((?=[\w-]{0,20}\d)[A-Z][\w-]{3,20})/i.exec(
      task.full.raw.slice(0, 2_000),
    )?.[1]
  if (code && /^(?:writer|support)/.test(task.agentId) && !output.raw.toLowerCase().includes(code.toLowerCase()))
    return failed(`It leaves out ${clip(code, 30)}, which the task wants in it.`)
  if (
    !clause ||
    /\b(?:without|avoid|not|never|don't)\b.{0,12}\b(?:us\w{1,3}|mention\w{0,3}|contain\w{0,3}|includ\w{1,3}|saying?)\b/i.test(
      task.request,
    )
  )
    return before || code ? passed : notApplicable
  const part = clause.split(/[!?\n]|\.(?=\s|$)/, 1)[0]!
  const requirements = [
    ...quotedPassages(part, 80).map((quote) => quote.text),
    ...(part.match(/\b(?=[A-Z0-9-]*\d)(?=[A-Z0-9-]*[A-Z])[A-Z0-9-]{4,20}\b/g) ?? []),
    ...(part.match(/#[\p{L}\d_]{2,40}/gu) ?? []),
    ...(part.match(/\d+(?:[.,:]\d+)*/g) ?? []),
  ].slice(0, 20)
  if (requirements.length === 0) return notApplicable
  const text = output.raw.toLowerCase()
  const missing = requirements.filter((item) => !text.includes(item.toLowerCase().trim()) && !isWritten(item, output))
  return missing.length > 0 ? failed(`It leaves out ${clip(missing[0]!, 30)}, which the task wants in it.`) : passed
}

const isWritten = (item: string, output: ReadText) => {
  const value = Number(item.replace(/,/g, ''))
  return (
    Number.isFinite(value) &&
    (output.words.some((word) => numberOfWord(word) === value) ||
      output.raw.replace(/[,.'\s]/g, '').includes(item.replace(/[,.'\s]/g, '')))
  )
}

function checkForbidden(task: ReadTask, output: ReadText): Finding {
  // What a memory says of tone and words holds for every task.
  const request = [task.full.raw.slice(0, 6_000), ...task.context.map((memory) => memory.slice(0, 1_000))].join('\n')
  const findings: Finding[] = []
  if (/\b(?:no|without|avoid|don't use|do not use|ohne|sans|sin|senza|sem) (?:any )?emojis?\b/i.test(request))
    findings.push(
      /\p{Extended_Pictographic}/u.test(output.raw) ? failed('It has an emoji, and none was wanted.') : passed,
    )
  if (
    /\b(?:no|without|avoid|don't use|do not use|never use|remove (?:all|every|the)) (?:any )?exclamation (?:marks?|points?)\b/i.test(
      request,
    )
  )
    findings.push(output.raw.includes('!') ? failed('It has an exclamation mark, and none was wanted.') : passed)
  for (const match of request.matchAll(
    /\b(?:without (?:using |saying |the )?(?:the )?(?:words?)?|(?:do not|don't|never|must not|avoid|not) (?:use|using|mention|mentioning|say|saying|include|including|write|contain)?(?: the)?(?: words?)?)\s?["“'‘]([^"”'’\n]{2,40})["”'’]/gi,
  )) {
    const word = plainText(match[1]!)
    if (word)
      findings.push(
        ` ${plainText(output.raw)} `.includes(` ${word} `)
          ? failed(`It uses ${clip(match[1]!, 30)}, which the task forbids.`)
          : passed,
      )
  }
  // "Avoid the words "a" and "b"": every quoted word of the clause.
  const listed =
    /\b(?:avoid|without|don't use|do not use|never use|not use|no) (?:using )?(?:the )?(?:words?|terms?|phrases?)\b(.{1,200})/i.exec(
      request,
    )
  for (const { text } of listed ? quotedPassages(listed[1]!.split(/[.!?\n]/, 1)[0]!, 40) : []) {
    const word = plainText(text)
    if (word && ` ${plainText(output.raw)} `.includes(` ${word} `))
      findings.push(failed(`It uses ${clip(text, 30)}, which the task forbids.`))
  }
  const letter = /\bwithout (?:using )?the letter ["'“]?(\p{L})\b/iu.exec(request)?.[1]
  if (letter)
    findings.push(
      output.raw.toLowerCase().includes(letter.toLowerCase())
        ? failed('It has a letter that the task forbids.')
        : passed,
    )
  if (
    /\b(?:do not|don't|never|without) (?:promis\w{1,3}|giv\w{1,3}|nam\w{1,3}|commit\w{0,4} to|mention\w{0,3}) (?:an? |any )?(?:dates?|timelines?|deadlines?)\b/i.test(
      request,
    )
  )
    findings.push(
      /\b\d{1,2}(?:st|nd|rd|th)? (?:of )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\b|\b(?:january|february|march|april|june|july|august|september|october|november|december)\b|\bnext (?:week|month)\b|\bby (?:monday|tuesday|wednesday|thursday|friday)\b|\bwithin \d+ (?:days|weeks)\b/i.test(
        output.raw,
      )
        ? failed('It names a date, and none was wanted.')
        : passed,
    )
  return combine(findings)
}

/** "has to be in it", "must occur": the quoted word stands in front of the verb. */
const WANTED_BEFORE =
  /["“'‘]([^"”'’\n]{2,40})["”'’](?: and [^.]{1,40})? (?:has|have|must|needs?|should) (?:to )?(?:be in|occur|appear|be (?:used|mentioned|included))/i

/** The formats other than JSON that a task may want: CSV, YAML, XML, Markdown headings. */
function checkFormats(task: ReadTask, output: ReadText): Finding {
  const request = readRequest(task)
  const { blocks } = splitFences(output.raw)
  const text = (blocks.length === 1 ? blocks[0]!.code : output.raw).trim()
  const lines = text.split('\n').filter((line) => line.trim())
  if (
    /\bcsv only\b|\b(?:as|in|to|into) csv\b|\bcsv(?: format)?,? (?:with )?columns\b|\breturn (?:only )?csv\b/.test(
      request,
    ) &&
    !task.agentId.startsWith('coder')
  )
    return lines.length >= 1 &&
      lines.every((line) => /[,;\t]/.test(line)) &&
      new Set(lines.map((line) => line.split(/[,;\t]/).length)).size <= 2 &&
      !/[.!?]$/.test(lines[0]!)
      ? passed
      : failed('CSV was asked for and the output is none.')
  if (/\b(?:as|in|to|into) yaml\b|\byaml only\b/.test(request))
    return /^[{[]/.test(text)
      ? failed('YAML was asked for and the output is JSON.')
      : /^[\w"'-]{1,60}:(?:\s|$)|^- /m.test(text)
        ? passed
        : failed('YAML was asked for and the output is none.')
  if (/\b(?:as|in|to|into) xml\b|\bxml only\b/.test(request))
    return /^</.test(text) ? passed : failed('XML was asked for and the output is none.')
  if (
    /(?:^|[.!?:;,\n]|please|and)\s{0,3}(?:reply|answer|respond)(?: only)?(?: with| in)? json\b|\bonly json\b|\bjson\s?[{[]/.test(
      request,
    ) &&
    !/^[[{]/.test(text)
  )
    return failed('JSON was asked for and the output is none.')
  return notApplicable
}

/** "Acrostic on the word FROG": the lines begin with its letters. */
function checkAcrostic(task: ReadTask, output: ReadText): Finding {
  const word =
    /\bacrostic\b[^\n]{0,40}?(?:\b(?:word|name|on|of|for|from)\b\s["“'‘]?(?:the (?:word|name) )?["“'‘]?)([A-Z]{2,15}|\p{L}{2,15})\b/iu.exec(
      task.request,
    )?.[1]
  const lines = output.lines.map((line) => line.replace(/^[^\p{L}]+/u, '')).filter(Boolean)
  if (!word || /^(?:the|word|name|a|my|funny)$/i.test(word) || lines.length < 2) return notApplicable
  const initials = lines.map((line) => line[0]!.toLowerCase()).join('')
  return initials.includes(word.toLowerCase()) ? passed : failed('Its lines do not begin with the letters of the word.')
}

/** "Answer with yes or no only". */
function checkYesNo(task: ReadTask, output: ReadText): Finding {
  if (
    !/\b(?:yes or no|yes\/no|ja oder nein|oui ou non|sí o no)\b/i.test(task.request) ||
    !/\b(?:only|just|nothing else|one word|single word|nur|uniquement|solo)\b/i.test(task.request)
  )
    return notApplicable
  return output.words.length <= 6 && /\b(?:yes|no|ja|nein|oui|non|sí|si)\b/i.test(output.raw)
    ? passed
    : failed('Yes or no was asked for, alone.')
}

/** "Answer only one of billing, bug, feature", "pick a tag from {bug, feature}". */
function checkOneOf(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 1_500)
  const listed =
    /\b(?:one of|pick (?:a |one )?(?:\w{1,12} )?from|choose (?:one )?from|tag from|label from|categor(?:y|ies) from|either)(?: the following| these)?[: ]{1,2}[{([]?["'“]?([\p{L}-]{2,20}(?:["'”]?(?:, ?| ?\/ ?| ?\| ?| or |, or )["'“]?[\p{L}-]{2,20}){1,9})/iu.exec(
      request,
    )?.[1] ?? /[{]([\p{L}-]{2,20}(?:, ?[\p{L}-]{2,20}){1,9})[}]/u.exec(request)?.[1]
  const isAlone = /\b(?:only|just|nothing else|one word|single word|nur|category|label|tag|classify)\b/i.test(request)
  if (!listed || !isAlone) return notApplicable
  const labels = listed
    .split(/,| or |\/|\|/)
    .map((label) => plainText(label.replace(/^ ?or /, '')))
    .filter(Boolean)
  if (labels.length < 2 || output.words.length > 40) return notApplicable
  const text = ` ${plainText(output.raw)} `
  return labels.some((label) => text.includes(` ${label} `))
    ? passed
    : failed('It is none of the labels that the task allows.')
}

/** "Remove every exclamation mark": the mark is gone. */
function checkRemoval(task: ReadTask, output: ReadText): Finding {
  const mark =
    /\b(?:remove|delete|strip|drop|take out) (?:all|every|the|any)(?: of)?(?: the)? (exclamation (?:marks?|points?)|question marks?|commas?|emojis?|digits?|numbers?|hyphens?|semicolons?|quotation marks?|spaces?|vowels?)\b/i.exec(
      task.request,
    )?.[1]
  if (!mark || task.code || task.agentId.startsWith('coder')) return notApplicable
  const patterns: readonly (readonly [RegExp, RegExp])[] = [
    [/^exclamation/i, /!/],
    [/^question/i, /\?/],
    [/^comma/i, /,/],
    [/^emoji/i, /\p{Extended_Pictographic}/u],
    [/^(?:digit|number)/i, /\d/],
    [/^hyphen/i, /-/],
    [/^semicolon/i, /;/],
    [/^quotation/i, /["“”]/],
    [/^vowel/i, /[aeiou]/i],
  ]
  const pattern = patterns.find(([name]) => name.test(mark))?.[1]
  if (!pattern || sentencesOf(output.raw).some((sentence) => /^(?:here|i (?:removed|have)|removed)\b/i.test(sentence)))
    return notApplicable
  return pattern.test(output.raw) ? failed('It still has what was to be removed.') : passed
}

/** "Exactly 5 names, one per line, nothing else". */
function checkOnePerLine(task: ReadTask, output: ReadText): Finding {
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

/** "Compare squash, badminton and table tennis": every one of them is in the answer. */
function checkAllCovered(task: ReadTask, output: ReadText): Finding {
  const list =
    /^\W{0,3}(?:compare|contrast|comparison of|rank|vergleiche|compara|compare[rz]?)\s([\p{L}][\p{L} '-]{1,30}(?:, [\p{L}][\p{L} '-]{1,30}){0,5},? (?:and|vs\.?|versus|with|or|und|et|y) [\p{L}][\p{L} '-]{1,24})(?=[:,.?(]|$| by | in | for | as | on | to | \()/iu.exec(
      task.request.trim(),
    )?.[1]
  if (!list) return notApplicable
  const items = list
    .split(/, | and | vs\.? | versus | with | or | und | et | y /)
    .map((item) =>
      item
        .replace(/^(?:and|the|our|a) /, '')
        .trim()
        .toLowerCase(),
    )
    .filter((item) => item.length > 2)
  if (items.length < 2 || items.length > 7 || items.some((item) => item.split(' ').length > 3)) return notApplicable
  const text = output.raw.toLowerCase()
  const isNamed = (item: string) =>
    text.includes(item.slice(0, Math.max(4, item.length - 2))) ||
    text.includes(item.split(' ').at(-1)!.slice(0, 5)) ||
    text.includes(item.split(' ')[0]!.slice(0, 5))
  const missing = items.filter((item) => !isNamed(item))
  return missing.length > 0 ? failed(`It leaves out ${clip(missing[0]!, 30)}.`) : passed
}

const CODE_LANGUAGES: Readonly<Record<string, RegExp>> = {
  python: /\bpython\b/i,
  javascript: /\b(?:javascript|node\.?js|in node|js)\b/i,
  typescript: /\b(?:typescript|\bts\b)/i,
  rust: /\brust\b/i,
  go: /\b(?:golang|in go\b|a go\b|go (?:function|program|code|struct))/i,
  java: /\bjava\b(?!script)/i,
  ruby: /\bruby\b/i,
  php: /\bphp\b/i,
  sql: /\bsql\b/i,
  bash: /\b(?:bash|shell script|sh script)\b/i,
  'c#': /\bc#|\bcsharp\b/i,
  'c++': /\bc\+\+/i,
  kotlin: /\bkotlin\b/i,
  swift: /\bswift\b/i,
  html: /\bhtml\b/i,
  css: /\bcss\b/i,
  yaml: /\byaml\b/i,
}
const TAGS: Readonly<Record<string, string>> = {
  py: 'python',
  python3: 'python',
  js: 'javascript',
  jsx: 'javascript',
  node: 'javascript',
  mjs: 'javascript',
  ts: 'typescript',
  tsx: 'typescript',
  rs: 'rust',
  golang: 'go',
  rb: 'ruby',
  sh: 'bash',
  shell: 'bash',
  zsh: 'bash',
  cs: 'c#',
  csharp: 'c#',
  cpp: 'c++',
  kt: 'kotlin',
  yml: 'yaml',
  postgresql: 'sql',
  mysql: 'sql',
  sqlite: 'sql',
}

/** The code is in the language that the task names, when it names one. */
function checkCodeLanguage(task: ReadTask, output: ReadText): Finding {
  const requestedLanguages = Object.entries(CODE_LANGUAGES)
    .filter(([, pattern]) => pattern.test(task.request))
    .map(([name]) => name)
  const { blocks } = splitFences(output.raw)
  if (requestedLanguages.length !== 1 || blocks.length === 0) return notApplicable
  const isKin = (a: string, b: string) =>
    a === b ||
    (['javascript', 'typescript', 'html', 'css'].includes(a) && ['javascript', 'typescript', 'html', 'css'].includes(b))
  const tags = blocks
    .map((block) => TAGS[block.language] ?? (block.language || guessCodeLanguage(block.code) || ''))
    .filter((tag) => Object.hasOwn(CODE_LANGUAGES, tag))
  if (tags.length === 0) return notApplicable
  return tags.some((tag) => isKin(tag, requestedLanguages[0]!)) ||
    requestedLanguages[0] === 'sql' ||
    requestedLanguages[0] === 'html' ||
    (requestedLanguages[0] === 'css' && tags.includes('html'))
    ? passed
    : requestedLanguages[0] === 'bash' && tags.includes('yaml')
      ? passed
      : failed(`The code is not in ${requestedLanguages[0]}.`)
}

const guessCodeLanguage = (code: string): string | undefined =>
  /^[ \t]{0,40}def \w{1,60}\(.{0,200}\).{0,60}:[ \t]{0,10}$/m.test(code)
    ? 'python'
    : /^[ \t]{0,40}(?:pub )?fn \w{1,60}/m.test(code)
      ? 'rust'
      : /^func \w{1,60}\(/m.test(code)
        ? 'go'
        : /\bfunction \w{0,60}\(|=>|\bconst \w{1,60} =/.test(code)
          ? 'javascript'
          : /^[ \t]{0,40}select\b/im.test(code)
            ? 'sql'
            : undefined

/** A function that is to be recursive calls itself. */
function checkRecursion(task: ReadTask, output: ReadText): Finding {
  const { blocks } = splitFences(output.raw)
  if (!/\brecursive(?:ly)?\b|\busing recursion\b/i.test(task.request) || blocks.length === 0) return notApplicable
  const code = blocks.map((block) => block.code).join('\n')
  const name = /\b(?:def|function|func|fn|const|let)\s+(?:\([^)]{0,60}\)\s*)?([A-Za-z_]\w{0,60})/.exec(code)?.[1]
  if (!name || /\bwith\s+recursive\b/i.test(code)) return notApplicable
  return code.split(`${name}(`).length > 2 || (code.includes(`${name} =`) && code.includes(`${name}(`))
    ? passed
    : failed('The function does not call itself.')
}

/** A translation has about as many words as its text. */
function checkTranslationLength(task: ReadTask, output: ReadText): Finding {
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

/** The function or class that the task gives a name is in the code under that name. */
function checkNamed(task: ReadTask, output: ReadText): Finding {
  const name =
    /\b(?:function|method|class|variable|component|table|script)\s(?:called|named|that is called)\s[`"'“]?([A-Za-z_]\w{2,40})/i.exec(
      task.request,
    )?.[1]
  const { blocks } = splitFences(output.raw)
  if (!name || blocks.length === 0) return notApplicable
  return output.raw.includes(name) ? passed : failed(`There is nothing named ${clip(name, 30)} in it.`)
}

function checkCase(task: ReadTask, output: ReadText): Finding {
  const request = task.request
  const letters = output.raw.replace(/[^\p{L}]/gu, '')
  if (letters.length < 4) return notApplicable
  if (
    /\b(?:in |all |use )?(?:all caps|capital letters only|in capitals|uppercase only|in uppercase|in all caps)\b/i.test(
      request,
    )
  )
    return /\p{Ll}/u.test(letters) ? failed('Capital letters were asked for.') : passed
  if (/\b(?:all lowercase|in lowercase|lowercase only|no capital letters)\b/i.test(request))
    return /\p{Lu}/u.test(letters) ? failed('Lower case was asked for.') : passed
  return notApplicable
}
