import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
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
    /\b(?:as|in|into|als|en|au format|come|em)(?: \w{1,20})? json(?: only| format| please| with\b.{0,200}| object| array)?(?: of \w{1,20}){0,2}\s{0,5}(?:[.,;:!?)\n]|$)|\b(?:valid )?json only\b|\bonly (?:valid )?json\b/.test(
      request,
    )
  )
}

export function checkJson(task: ReadTask, output: ReadText): Finding {
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
  const keys = requestedKeys(/json/i.test(task.request) ? task.request : task.full.raw)
  const missing = keys.filter((key) => !hasKey(value, key, 0))
  if (missing.length === 0) return passed
  const fault = failed(`The JSON has no key ${clip(missing[0]!, 30)}.`)
  // Keys that are listed in prose stand among other words.
  return isShape(task.full.raw, missing[0]!) ? fault : doubt(fault)
}

/** The keys of `{"min":..,"max":..}` and of "with keys a, b and c". */
const isShape = (task: string, key: string) => new RegExp(`["'\`]${key}["'\`]\\s?:`).test(task)

function requestedKeys(request: string): string[] {
  const named = /\b(?:keys?|fields?|properties|schlüsseln?|clés|claves|campos)[: ]{1,3}(.{1,200})/i.exec(request)?.[1]
  // Data given before the request has keys of its own.
  const shape = request.slice(Math.max(0, request.toLowerCase().lastIndexOf('json')))
  const example = [...shape.matchAll(/["'`]([A-Za-z_][\w-]{0,40})["'`]\s?:/g)].map((match) => match[1]!)
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

export const isTableRow = (line: string) => line.startsWith('|') || (line.match(/\|/g)?.length ?? 0) >= 2

export function checkTable(task: ReadTask, output: ReadText): Finding {
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
  return rows >= 2 || /<table/i.test(output.raw) || (isCsv(output) && !/\bmarkdown\b/.test(request))
    ? passed
    : failed('A table was asked for and there is none.')
}

const isCsv = ({ lines }: ReadText) =>
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

/** The formats other than JSON that a task may want: CSV, YAML, XML, Markdown headings. */
export function checkFormats(task: ReadTask, output: ReadText): Finding {
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

export function checkCase(task: ReadTask, output: ReadText): Finding {
  const request = task.request
  const letters = output.raw.replace(/[^\p{L}]/gu, '')
  if (letters.length < 4) return notApplicable
  if (
    /\b(?:in|use|using|write|with) (?:all )?(?:caps|capitals|capital letters|uppercase)\b|\b(?:capital letters|uppercase|all caps) only\b/i.test(
      request,
    )
  )
    return /\p{Ll}/u.test(letters) ? failed('Capital letters were asked for.') : passed
  if (/\b(?:all lowercase|in lowercase|lowercase only|no capital letters)\b/i.test(request))
    return /\p{Lu}/u.test(letters) ? failed('Lower case was asked for.') : passed
  return notApplicable
}
