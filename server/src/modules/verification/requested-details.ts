import { combine, doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import type { ReadTask } from './task.ts'
import { clip, plainText, type ReadText, sentencesOf, splitFences } from './text.ts'

/** Small rules of form that a task states in so many words. */
export const checkDetails = (task: ReadTask, output: ReadText): Finding =>
  isCoder(task)
    ? notApplicable
    : combine([
        doubt(checkNumberOnly(task, output)),
        checkSeparator(task, output),
        checkHeader(task, output),
        checkEnds(task, output),
        checkEachLine(task, output),
      ])

const isCoder = ({ agentId }: ReadTask) => agentId.startsWith('coder')

/** "Answer with a number only", "just the number". */
function checkNumberOnly(task: ReadTask, output: ReadText): Finding {
  if (
    !/\b(?:(?:a|the) (?:single )?number only|only (?:a|the) (?:single )?(?:number|figure)|just (?:a|the) (?:number|figure)|number and nothing else|nur die zahl|uniquement le nombre|solo el número|solo il numero)\b/i.test(
      task.full.raw,
    )
  )
    return notApplicable
  const words = output.words.filter((word) => !/\d/.test(word))
  return words.length > 4 ? failed('A number alone was asked for.') : passed
}

const MARKS: Readonly<Record<string, string>> = {
  semicolon: ';',
  comma: ',',
  tab: '\t',
  pipe: '|',
  dash: '-',
  hyphen: '-',
  slash: '/',
}
const MARK = '(semicolon|comma|tab|pipe|dash|hyphen|slash)(?:s|es)?'
const SIGN = `["'\`“(]?(?:${MARK}|([;,|]))["'\`”)]?`
const SEPARATORS = [
  `${MARK}[- ](?:separated|delimited|csv|as (?:the |a )?(?:separator|delimiter))\\b`,
  `\\b(?:separated|delimited|split|divided) (?:by|with) (?:an? )?${SIGN}`,
  `\\b(?:separator|delimiter)s?(?: is| should be| must be|:| =) ?(?:an? )?${SIGN}`,
  `${SIGN} as (?:the |a |its )?(?:field |column )?(?:separator|delimiter)`,
  `\\bcsv\\b[^.\\n]{0,24}(?:\\(|\\bwith |\\busing |\\buse )${SIGN}(?=[\\s).,!]|$)`,
].map((pattern) => new RegExp(pattern, 'i'))
/** "Header port;teu". */
const MARKED_HEADER = /\b(?:header(?: row| line)?|columns?)\b:? ?["'`“]?[\p{L}_][\p{L}\d_]{0,24}([;|\t])[\p{L}_]/iu

/** "Semicolon separated", "delimiter: ;", "CSV (semicolon)", "separated by dashes". */
function checkSeparator(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 1_500)
  const named = SEPARATORS.map((pattern) => pattern.exec(request)).find((match) => match !== null)
  const sign = named?.slice(1).find((part) => part !== undefined)
  const isCsv = /\bcsv\b/i.test(request)
  const mark = sign ? (MARKS[sign.toLowerCase()] ?? sign) : isCsv ? MARKED_HEADER.exec(request)?.[1] : undefined
  // "These semicolon-separated values: 4;8;15" are given so.
  if (!mark || (mark !== ',' && /[;|\t] ?\d|\d ?[;|\t]/.test(request))) return notApplicable
  const { blocks } = splitFences(output.raw)
  const text = (blocks.length === 1 ? blocks[0]!.code : output.raw).trim()
  if (mark === '-')
    return /[-–—]/.test(text) || text.length < 3 ? passed : failed('The items are not separated as asked for.')
  // The first row of CSV is its header.
  const [header = ''] = text.split('\n')
  const part = isCsv ? header : text.slice(0, 600)
  // One item needs no mark between items.
  const others = [';', ',', '\t', '|'].filter((other) => other !== mark)
  const hasOther = others.some((other) => part.includes(other)) || (mark === ',' && part.includes(' '))
  return part.includes(mark) || !hasOther || (!isCsv && text.length > 600)
    ? passed
    : failed('The items are not separated as asked for.')
}

const COLUMN = String.raw`[\p{L}_][\p{L}\d_ ]{0,24}`
const HEADER = new RegExp(
  String.raw`\b(?:header(?: row| line)?|columns?|spalten)\b ?(:)? ?(?:(named|called|are) )?(["“'])?(${COLUMN}(?:(?: ?[,|] ?|;(?=\S))${COLUMN}){0,9})`,
  'iu',
)

/** "CSV with header: city,nights,total" and "a table with columns Employee, Vacation, Overtime (in that order)". */
function checkHeader(task: ReadTask, output: ReadText): Finding {
  const text = task.full.raw.slice(0, 1_500)
  const match = HEADER.exec(text)
  if (!match || !/\b(?:csv|table|tabelle|tsv)\b/i.test(text)) return notApplicable
  // "My file has columns date, amount" tells of one that is there.
  if (
    /\b(?:has|have|had|contains?|input|given|my|our)\b[^.\n]{0,20}$/i.test(
      text.slice(Math.max(0, match.index - 30), match.index),
    )
  )
    return notApplicable
  // "name;city;amount, semicolon separated"
  const listed = match[4]!.includes(';') ? match[4]!.split(',', 1)[0]! : match[4]!
  const wanted = listed
    .split(/\s(?:for|from|of|with|in|and no|using|where|sorted)(?:\s|$)/i, 1)[0]!
    .split(/[,|;]|\sand\s|\sund\s/)
    .map((name) => name.trim())
    .filter(Boolean)
  if (
    wanted.length < 2 ||
    wanted.some((name) => name.split(' ').length > 3 || /^(?:for|of|with|and|in|the|as)\b/i.test(name))
  )
    return notApplicable
  const { blocks } = splitFences(output.raw)
  const lines = (blocks.length === 1 ? blocks[0]!.code : output.raw).split('\n').filter((line) => /[|,;\t]/.test(line))
  const header = lines[0]
    ?.replace(/^\s*\||\|\s*$/g, '')
    .split(lines[0].includes('|') ? '|' : /[,;\t]/)
    .map((name) => plainText(name))
  if (!header || header.length < 2) return notApplicable
  const isSame = (a: string, b: string) =>
    a === b || a.replaceAll(' ', '') === b.replaceAll(' ', '') || a.includes(b) || b.includes(a)
  const places = wanted.map((column) => {
    const name = plainText(column)
    const same = header.indexOf(name)
    return same >= 0 ? same : header.findIndex((other) => other !== '' && isSame(other, name))
  })
  const missing = wanted.find((_, i) => places[i]! < 0)
  if (missing) {
    const fault = failed(`There is no column ${clip(missing, 30)}.`)
    // "With columns for the price and what it does" describes them.
    const isNamed =
      /\bheader\b|\bcsv\b/i.test(text) ||
      match.slice(1, 4).some(Boolean) ||
      match[4]!.includes('|') ||
      wanted.every((name) => /^\p{Lu}/u.test(name))
    return isNamed ? fault : doubt(fault)
  }
  const isOrdered = places.every((place, i) => i === 0 || place > places[i - 1]!)
  return isOrdered ? passed : failed('The columns are not in the order asked for.')
}

const OPENS_QUOTE = `(?=["“„«'‘])`
const CLAUSE = String.raw`(?:^|[.,;:!?\n(] ?|\b(?:and|must|should|has to|it|to|that|text|please) )`
const FIRST = new RegExp(
  String.raw`${CLAUSE}(?:start|begin|open)s? (?:it |the \w{3,10} |your \w{3,10} )?with (?:the (?:words?|phrase|letters?|line|sentence) )?${OPENS_QUOTE}|\bfirst words? (?:must be|has to be|should be|is|are|:) ?${OPENS_QUOTE}`,
  'i',
)
const LAST = new RegExp(
  String.raw`${CLAUSE}(?:end|close|finish)(?:e?s)? (?:it |the \w{3,10} |your \w{3,10} )?(?:with|on|in) (?:the (?:words?|phrase|line|sentence) )?${OPENS_QUOTE}|\blast words? (?:must be|has to be|should be|is|are|:) ?${OPENS_QUOTE}`,
  'i',
)
const PARTS = '(?:line|sentence|item|verse|bullet)s?'
const EACH_FIRST = new RegExp(
  String.raw`\b(?:each|every|all) (?:\w{1,12} )?${PARTS} (?:must |has to |have to |should |to |that )?(?:start|begin)s? with (?:the (?:words?|letter) )?${OPENS_QUOTE}|\b(?:start|begin) (?:each|every|all) (?:\w{1,12} )?${PARTS} with (?:the (?:words?|letter) )?${OPENS_QUOTE}`,
  'i',
)
const EACH_HAS = new RegExp(
  String.raw`\b(?:each|every|both) (line|sentence|bullet|item|verse)s? (?:must |has to |should |to )?(?:contains?|includes?|mentions?|uses?) (?:the )?(?:word |name )?${OPENS_QUOTE}`,
  'i',
)

/** The quotation that follows a pattern, or nothing. An apostrophe does not end one in double marks. */
function quotationAfter(pattern: RegExp, text: string): string | undefined {
  const match = pattern.exec(text)
  if (!match) return undefined
  const rest = text.slice(match.index + match[0].length)
  const quote = /^["“„«]([^"”“»\n]{1,120})["”“»]|^['‘]([^\n]{1,60}?)['’](?!\p{L})/u.exec(rest)
  return quote?.[1] ?? quote?.[2]
}

/** 'Start with "Subject:"', 'must end with the word "drill"', 'the last word must be "invoice"'. */
function checkEnds(task: ReadTask, output: ReadText): Finding {
  const text = task.full.raw.slice(0, 2_000)
  if (EACH_FIRST.test(text)) return notApplicable
  const [first, last] = [FIRST, LAST].map((pattern) => plainText(quotationAfter(pattern, text) ?? '')) as [
    string,
    string,
  ]
  if (!first && !last) return notApplicable
  const plain = plainText(output.raw)
  if (first && !plain.startsWith(first)) return failed('It does not begin as asked for.')
  return last && !plain.endsWith(last) && !isSignedAfter(output, last)
    ? failed('It does not end as asked for.')
    : passed
}

/** A short line, such as a name, may follow the words at the end of a letter. */
const isSignedAfter = ({ lines }: ReadText, last: string) => {
  const end = lines.at(-1) ?? ''
  return last.includes(' ') && !/[.!?]$/.test(end) && plainText(lines.at(-2) ?? '').endsWith(last)
}

/** 'Each line must contain the word "sea"', 'every line must start with "Press"'. */
function checkEachLine(task: ReadTask, output: ReadText): Finding {
  const text = task.full.raw.slice(0, 2_000)
  const first = plainText(quotationAfter(EACH_FIRST, text) ?? '')
  const strip = (line: string) => line.replace(/^(?:[-*•–]|\d{1,3}[.)])\s{1,8}/, '')
  if (first && output.lines.length >= 2)
    return output.lines.every((line) => plainText(strip(line)).startsWith(first))
      ? passed
      : failed('A line does not begin as each was to.')
  const word = quotationAfter(EACH_HAS, text)
  if (!word) return notApplicable
  const parts = /sentence/i.test(EACH_HAS.exec(text)?.[1] ?? '') ? sentencesOf(output.raw) : output.lines
  return parts.every((part) => part.toLowerCase().includes(word.toLowerCase()))
    ? passed
    : failed('A line does not have the word that each was to have.')
}
