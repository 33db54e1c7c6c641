import { type Finding, failed, notApplicable, passed } from './finding.ts'
import type { ReadTask } from './task.ts'
import { clip, type ReadText, sentencesOf, splitFences } from './text.ts'

/** Reads only the start and the end of a long request: text in the middle may mention JSON without requesting it. */
export const readRequest = ({ request, full, material }: ReadTask) => {
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
    /\b(?:as|in|into|als|en|au format|come|em|convert (?:\w{1,12} ){0,4}to)(?: \w{1,20})? json(?: only| format| please| for (?:\w{1,12} ?){1,3}| (?:with|mit|avec|con|com)\b.{0,200}| object| array)?(?: of \w{1,20}){0,2}\s{0,5}(?:[.,;:!?(){[\n–—]|$)|\b(?:valid )?json(?: format)? only\b|\bonly (?:in |the )?(?:valid )?json\b/.test(
      request,
    ) ||
    // "Produce a JSON object", where nothing else does so ("the endpoint should return a JSON object").
    /(?<!\b(?:should|must|will|to|can|that|which|it|does|not) )\b(?:return|output|produce|give me|create|make|build|generate) (?:an? |one )?(?:valid |single )?json (?:object|array)\b/.test(
      request,
    ) ||
    // "JSON object with …" at the start of a clause, "must be valid JSON".
    /(?:^|[.!?;]\s{1,3}|\n\s{0,3})(?:valid )?json(?: object| array| only| please| with| for|,|:)|\b(?:answer|reply|output|response|it|result) (?:must|has to|should) be (?:valid |a |one |in )?json\b/.test(
      request,
    )
  )
}

/** "Valid JSON config with …": what stands between the first bracket and the last one has to parse. */
function checkValidJson(request: string, output: ReadText): Finding {
  const isWanted =
    /(?:^|[.!?;:,\n]\s{0,3}|\b(?:write|give me|give|make|create|return|output|produce|need|want|as) (?:an? |some |me )?)valid json\b/.test(
      request,
    )
  const start = output.raw.search(/[{[]/)
  const end = Math.max(output.raw.lastIndexOf('}'), output.raw.lastIndexOf(']'))
  if (!isWanted || start < 0 || end < start || splitFences(output.raw).blocks.length > 1) return notApplicable
  try {
    JSON.parse(output.raw.slice(start, end + 1))
    return passed
  } catch {
    return failed('JSON was asked for and the output does not parse.')
  }
}

export function checkJson(task: ReadTask, output: ReadText): Finding {
  const request = readRequest(task)
  if (!requestsJson(request)) return checkValidJson(request, output)
  if (/\bjsonc\b|\bwith comments\b/.test(request)) return notApplicable
  const { blocks } = splitFences(output.raw)
  // "A handler that returns {"status":"ok"} as json" is code.
  const isOfCode =
    task.agentId.startsWith('coder') &&
    RETURNS.test(request) &&
    blocks.some(({ language }) => !/^(?:json\w{0,2}|ya?ml|xml|csv)?$/.test(language))
  if (isOfCode) return notApplicable
  const text = blocks.length === 1 ? blocks[0]!.code : output.raw
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return failed('JSON was asked for and the output does not parse.')
  }
  const isOptional =
    /\b(?:optional\w{0,2}|omit\w{0,4}|if (?:any|available|given|known|present|there)|where (?:available|given|known))\b/i
  const rows = Array.isArray(value) && !isOptional.test(task.full.raw) ? value : [value]
  const missing = wantedKeys(task).find(
    (key) =>
      !hasKey(value, key, 0) || (rows.some((row) => hasOwnKey(row, key)) && !rows.every((row) => hasKey(row, key, 0))),
  )
  return missing === undefined ? passed : failed(`The JSON has no key ${clip(missing, 30)}.`)
}

const RETURNS =
  /\b(?:handlers?|endpoints?|functions?|routes?|controllers?|methods?|scripts?|servers?)\b.{0,60}\b(?:returns?|respond\w{0,3}|prints?|outputs?|sends?|writes?|loads?|exports?|saves?)\b/

/** The keys that the request names; what is quoted in it may stand in the whole task only. */
function wantedKeys(task: ReadTask): string[] {
  const all = requestedKeys(task.full.raw)
  if (!/json/i.test(task.request)) return all
  const keys = requestedKeys(task.request)
  return keys.length > 0 && keys.every((key, i) => all[i] === key) ? all : keys
}

const KEY =
  /\s{0,3}["'`“]?([A-Za-z_][\w-]{0,40})["'`”]?\s{0,3}(?:\([^)\n]{0,80}\)|=\s?\w{1,20})?\s{0,3}(,\s{0,3}(?:and|und|et|y)\b|,|;|\+|&|\band\b|\bund\b|\bet\b|\by\b|\be\b)?/iy
/** What may follow the last key of a list. */
const AFTER_KEYS =
  /^\s{0,3}(?:$|[.:;?!)\n"“'`[{]|(?:from|for|of|per|where|with|only|please|back|as|in|zurück|bitte|aus|für|pour|de|para)\b)/i

/** The keys of `{"min":..,"max":..}`, of `{"a","b"}` and `{a, b}`, and of "with keys a, b and c". */
function requestedKeys(request: string): string[] {
  // {"keys": ["sku", "qty"], …}
  const listed = /["'](?:keys|fields)["']\s?:\s?\[([^\]\n]{3,300})\]/i.exec(request)?.[1]
  if (listed) return [...listed.matchAll(/["']([\w-]{1,40})["']/g)].map((match) => match[1]!).slice(0, 20)
  // Data given before the request has keys of its own.
  const shape = request.slice(Math.max(0, request.toLowerCase().lastIndexOf('json')))
  const example = [...shape.matchAll(/["'`]([A-Za-z_][\w-]{0,40})["'`]\s?:/g)].map((match) => match[1]!)
  // Keys that come again are those of rows of data.
  if (new Set(example).size < example.length) return []
  // `{"month": rate}` says what the keys are.
  if (example.length === 1 && /["'`]\s?:\s?\p{L}/u.test(shape)) return []
  if (example.length > 0) return example.slice(0, 20)
  const braces = /^json[^{\n]{0,40}\{([^{}:\n]{3,200})\}/i.exec(shape)?.[1]
  if (braces) return readKeys(braces)
  const named =
    /\b(?:keys?(?: as json)?|fields?|properties|schlüsseln?|feldern?|clés|champs|claves|campos|chiavi|json objects? with|an object with)\b[: ]{1,3}(?:are |named |called |the |keys? |fields? |exactly:? ){0,3}(.{1,300})/is.exec(
      request,
    )?.[1]
  // "joints (6), gripper (object with type)"
  return named ? readKeys(named.replaceAll(/ ?\([^()\n]{1,60}\)/g, '')) : []
}

/** Single words with marks between them; a word that begins a sentence of its own is no key. */
function readKeys(text: string): string[] {
  const keys: string[] = []
  for (KEY.lastIndex = 0; keys.length < 20; ) {
    const match = KEY.exec(text)
    if (!match) break
    const isListed = match[2] !== undefined
    const rest = text.slice(match.index + match[0].length)
    if (!isListed && (!AFTER_KEYS.test(rest) || isTypeOfValues(match[1]!, rest))) break
    keys.push(match[1]!)
    if (!isListed) break
  }
  return keys
}

/** "keys net, vat, gross, numbers with 2 decimals" */
const isTypeOfValues = (word: string, rest: string) =>
  /^(?:numbers?|strings?|values?|integers?|floats?|dates?)$/i.test(word) && /^\s{0,3}(?:with|as|in|only)\b/i.test(rest)

const plainKey = (key: string) => key.toLowerCase().replace(/[^a-z\d]/g, '')

const hasOwnKey = (value: unknown, key: string): boolean =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.keys(value).some((name) => plainKey(name) === plainKey(key))

function hasKey(value: unknown, key: string, depth: number): boolean {
  if (depth > 6 || value === null || typeof value !== 'object') return false
  if (hasOwnKey(value, key)) return true
  return Object.values(value)
    .slice(0, 200)
    .some((child) => hasKey(child, key, depth + 1))
}

export const isTableRow = (line: string) => line.startsWith('|') || (line.match(/\|/g)?.length ?? 0) >= 2

export function checkTable(task: ReadTask, output: ReadText): Finding {
  const request = readRequest(task)
  const wants =
    /\b(?:in|as|into|make|give|show|create|build|with) (?:me )?(?:an? )?(?:\w{1,20} ){0,2}table\b(?! of contents)|^(?:\w{1,12} )?table (?:with|of|only|please)|\btable only\b|(?<!\b(?:the|this|that|our|my|your|each|every) )\btable, (?:please|pls|no|with|columns?|markdown|only|sorted)\b|\bals tabelle\b|\bin einer tabelle\b|\b(?:en|dans un|sous forme de) tableau\b|\b(?:en|una) tabla\b|\b(?:in|una) tabella\b|\b(?:em|numa) tabela\b/.test(
      request,
    )
  if (
    !wants ||
    /\b(?:create|alter|drop) table\b|\btable for\b|\btables:|(?:^|[.\n]\s?)table:/.test(request) ||
    task.agentId.startsWith('coder')
  )
    return notApplicable
  const rows = output.lines.filter((line) => isTableRow(line) || /\t/.test(line)).length
  return rows >= 2 || /<table/i.test(output.raw) || (isCsv(output) && !/\bmarkdown\b/.test(request))
    ? passed
    : failed('A table was asked for and there is none.')
}

export const isCsv = ({ lines }: ReadText) =>
  lines.length >= 2 &&
  lines.every((line) => /[,;]/.test(line) && !/[.!?]$/.test(line)) &&
  new Set(lines.map((line) => line.split(/[,;]/).length)).size === 1

const ITEM = /^(?:[-*•–▪◦]|\d{1,3}[.)]|[a-z][.)])\s{1,8}\S/

export function checkList(task: ReadTask, output: ReadText): Finding {
  const request = readRequest(task)
  if (requestsJson(request)) return notApplicable
  const wants =
    /\b(?:bullet(?:ed)?(?: points?| list)?s?|numbered list|bulleted list|aufzählung|stichpunkte\w?|liste à puces|viñetas|elenco puntato|in stichpunkten)\b/.test(
      request,
    )
  if (!wants || /\bno bullets?\b|\bwithout bullets?\b/.test(request)) return notApplicable
  return output.lines.some((line) => ITEM.test(line)) ? passed : failed('A list was asked for and there is none.')
}

const WANTS_CSV =
  /\bcsv(?: format| file)? only(?=\s{0,3}(?:[.,;:!?\n]|$))|\b(?:as|in|to|into|return|output|export|produce)(?: \w{1,12}){0,2} csv\b|\bcsv(?: format| file)?,? (?:with )?(?:the )?(?:columns|header|fields)\b|(?:^|[.!?\n] ?)csv (?:output|please|with|format|file)\b|\bcsv (?:output )?please\b/
/** "The CSV below": one that is there. */
const HAS_CSV =
  /\b(?:this|these|the|my|our|from|following|attached|given|read|reads|parse|parses|parsing|import)(?: \w{1,12})? csv\b/

/** The formats other than JSON that a task may want: CSV, YAML, XML. */
export function checkFormats(task: ReadTask, output: ReadText): Finding {
  const request = readRequest(task)
  const { blocks } = splitFences(output.raw)
  const text = (blocks.length === 1 ? blocks[0]!.code : output.raw).trim()
  const lines = text.split('\n').filter((line) => line.trim())
  if (WANTS_CSV.test(request) && !HAS_CSV.test(request) && !task.agentId.startsWith('coder'))
    return lines.length >= 1 &&
      lines.every((line) => /[,;\t|]/.test(line)) &&
      new Set(lines.map((line) => line.split(/[,;\t|]/).length)).size <= 2 &&
      !/[.!?]$/.test(lines[0]!)
      ? passed
      : failed('CSV was asked for and the output is none.')
  if (wantsYaml(request))
    return /^[{[]/.test(text)
      ? failed('YAML was asked for and the output is JSON.')
      : /^[\w"'-]{1,60}:(?:\s|$)|^- /m.test(text)
        ? passed
        : failed('YAML was asked for and the output is none.')
  if (/\b(?:as|in|to|into) (?:valid )?xml\b|\b(?:valid xml|xml only)\b/.test(request)) {
    if (!text.startsWith('<')) return failed('XML was asked for and the output is none.')
    return isXmlClosed(text) ? passed : failed('A tag of the XML has no end.')
  }
  return notApplicable
}

export const wantsYaml = (request: string) =>
  /\b(?:as|in|to|into) (?:valid )?yaml\b|\b(?:valid yaml|yaml only)\b/.test(request)

/** Every tag is closed by its own, in order; comments, declarations and CDATA are left out. */
function isXmlClosed(text: string): boolean {
  const open: string[] = []
  for (const [, skipped, slash, name, selfClosed] of text.matchAll(
    /<(?:(!--[^>]{0,2000}--|[?!][^>]{0,2000})|(\/?)([\p{L}_][\w:.-]{0,80})(?:\s[^<>]{0,2000}?)?(\/?))>/gu,
  )) {
    if (skipped !== undefined || selfClosed) continue
    if (!slash) open.push(name!)
    else if (open.pop() !== name) return false
  }
  return open.length === 0
}

export function checkCase(task: ReadTask, output: ReadText): Finding {
  const request = task.request
  const letters = output.raw.replace(/[^\p{L}]/gu, '')
  // "The customer wrote in all caps" tells of a text that is there.
  if (
    letters.length < 4 ||
    (task.agentId.startsWith('coder') && output.raw.includes('`')) ||
    /\b(?:wrote|writes|written|sent|sends|typed|shouted|how (?:do|can|to|would|should))\b/i.test(request)
  )
    return notApplicable
  if (
    /\b(?:in|use|using|write|with) (?:all |only |block )?(?:caps|capitals|capital letters|upper[- ]?case)\b|\b(?:capitals|capital letters|upper[- ]?case|all caps) only\b|\bonly (?:capitals|capital letters|upper[- ]?case)\b|\bin großbuchstaben\b|\ben majuscules\b|\ben mayúsculas\b/i.test(
      request,
    )
  )
    return /\p{Ll}/u.test(letters) ? failed('Capital letters were asked for.') : passed
  if (
    /\b(?:all|in|only|use|using)(?: all)? lower[- ]?case\b|\blower[- ]?case(?: letters)? only\b|\bno (?:capital letters|capitals|upper[- ]?case)\b|[,;] lower[- ]?case\s?(?:[,;.)\n]|$)|\bin kleinbuchstaben\b|\ben minuscules\b|\ben minúsculas\b/i.test(
      request,
    )
  )
    return /\p{Lu}/u.test(letters) ? failed('Lower case was asked for.') : passed
  return notApplicable
}

/** "No numbering", and lines with numbers in front. */
export function checkNumbering(task: ReadTask, output: ReadText): Finding {
  if (
    !/\b(?:no|without|skip the) (?:line )?(?:numbering|numbers? in front)\b|\bunnumbered\b|\bohne nummerierung\b|\bsans numérotation\b|\bsin numeración\b|\bsenza numerazione\b/i.test(
      task.request,
    )
  )
    return notApplicable
  return output.lines.filter((line) => /^\d{1,2}[.)]\s/.test(line)).length >= 2
    ? failed('Its lines are numbered, and no numbering was wanted.')
    : passed
}
