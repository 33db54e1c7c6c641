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

/** "Semicolon separated", "separated by dashes". */
function checkSeparator(task: ReadTask, output: ReadText): Finding {
  const name =
    /\b(semicolon|comma|tab|pipe|dash|hyphen|slash)(?:s|es)?[- ](?:separated|delimited)|\bseparated by (?:an? )?(semicolon|comma|tab|pipe|dash|hyphen|slash)/i.exec(
      task.full.raw,
    )
  if (!name) return notApplicable
  const marks: Readonly<Record<string, string>> = {
    semicolon: ';',
    comma: ',',
    tab: '\t',
    pipe: '|',
    dash: '-',
    hyphen: '-',
    slash: '/',
  }
  const mark = marks[(name[1] ?? name[2])!.toLowerCase()]!
  const { blocks } = splitFences(output.raw)
  const text = (blocks.length === 1 ? blocks[0]!.code : output.raw).trim()
  const others = Object.values(marks).filter((other) => other !== mark && other !== '-' && other !== '/')
  // One item needs no mark between items.
  const hasOther = others.some((other) => text.includes(other)) || (mark === ',' && text.includes(' '))
  if (mark === '-')
    return /[-–—]/.test(text) || text.length < 3 ? passed : failed('The items are not separated as asked for.')
  return text.includes(mark) || !hasOther || text.length > 600
    ? passed
    : failed('The items are not separated as asked for.')
}

const HEADER =
  /\b(?:header(?: row| line)?|columns?|spalten)\b\s?:?\s?(?:named |called |are )?["“]?([\p{L}_][\p{L}\d_ ]{0,24}(?:\s?[,|]\s?[\p{L}_][\p{L}\d_ ]{0,24}){1,9})/iu

/** "CSV with header: city,nights,total" and "a table with columns Employee, Vacation, Overtime (in that order)". */
function checkHeader(task: ReadTask, output: ReadText): Finding {
  const text = task.full.raw.slice(0, 1_500)
  const listed = HEADER.exec(text)?.[1]
  if (!listed || !/\b(?:csv|table|tabelle|tsv)\b/i.test(text)) return notApplicable
  const wanted = listed
    .split(/\s(?:for|from|of|with|in|and no|using)\s/i, 1)[0]!
    .split(/[,|]|\sand\s/)
    .map((name) => plainText(name))
    .filter(Boolean)
  if (wanted.length < 2 || wanted.some((name) => name.split(' ').length > 3)) return notApplicable
  const { blocks } = splitFences(output.raw)
  const lines = (blocks.length === 1 ? blocks[0]!.code : output.raw).split('\n').filter((line) => /[|,;\t]/.test(line))
  const header = lines[0]
    ?.replace(/^\s*\||\|\s*$/g, '')
    .split(lines[0].includes('|') ? '|' : /[,;\t]/)
    .map((name) => plainText(name))
  if (!header || header.length < 2) return notApplicable
  const isSame = (a: string, b: string) =>
    a === b || a.replaceAll(' ', '') === b.replaceAll(' ', '') || a.includes(b) || b.includes(a)
  const places = wanted.map((name) => header.findIndex((other) => other !== '' && isSame(other, name)))
  const missing = wanted.find((_, i) => places[i]! < 0)
  if (missing && /\bheader\b|\bcsv\b/i.test(text)) return failed(`There is no column ${clip(missing, 30)}.`)
  const isOrdered = places.every((place, i) => i === 0 || place < 0 || place > places[i - 1]!)
  return isOrdered ? passed : failed('The columns are not in the order asked for.')
}

const QUOTED = '["“„«\'‘]([^"”“»\'’\\n]{1,60})["”“»\'’]'
const FIRST = new RegExp(
  `(?:^|[.,;:!?\\n(] ?|\\b(?:and|must|should|has to|it|to) )(?:start|begin|open)s? (?:it |the \\w{3,10} |your \\w{3,10} )?with (?:the (?:words?|phrase|letters?|line) )?${QUOTED}|\\bfirst word (?:must be|has to be|should be|is|:) ?${QUOTED}`,
  'i',
)
const LAST = new RegExp(
  `(?:^|[.,;:!?\\n(] ?|\\b(?:and|must|should|has to|it|to) )(?:end|close|finish)(?:e?s)? (?:it |the \\w{3,10} |your \\w{3,10} )?(?:with|on|in) (?:the (?:words?|phrase|line|sentence) )?${QUOTED}|\\blast word (?:must be|has to be|should be|is|:) ?${QUOTED}`,
  'i',
)
const EACH_FIRST = new RegExp(
  `\\b(?:each|every|all) (?:\\w{1,12} )?(?:line|sentence|item|verse|bullet)s? (?:must |has to |have to |should |to )?(?:start|begin)s? with (?:the (?:words?|letter) )?${QUOTED}`,
  'i',
)
const EACH_HAS = new RegExp(
  `\\b(?:each|every|both) (line|sentence|bullet|item|verse)s? (?:must |has to |should |to )?(?:contains?|includes?|mentions?|uses?) (?:the )?(?:word |name )?${QUOTED}`,
  'i',
)

/** 'Start with "Subject:"', 'must end with the word "drill"', 'the last word must be "invoice"'. */
function checkEnds(task: ReadTask, output: ReadText): Finding {
  const text = task.full.raw.slice(0, 2_000)
  if (EACH_FIRST.test(text)) return notApplicable
  const [first, last] = [FIRST, LAST].map((pattern) => {
    const match = pattern.exec(text)
    return plainText(match?.[1] ?? match?.[2] ?? '')
  }) as [string, string]
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
  const first = plainText(EACH_FIRST.exec(text)?.[1] ?? '')
  const strip = (line: string) => line.replace(/^(?:[-*•–]|\d{1,3}[.)])\s{1,8}/, '')
  if (first && output.lines.length >= 2)
    return output.lines.every((line) => plainText(strip(line)).startsWith(first))
      ? passed
      : failed('A line does not begin as each was to.')
  const word = EACH_HAS.exec(text)
  if (!word) return notApplicable
  const parts = /sentence/i.test(word[1]!) ? sentencesOf(output.raw) : output.lines
  return parts.every((part) => part.toLowerCase().includes(word[2]!.toLowerCase()))
    ? passed
    : failed('A line does not have the word that each was to have.')
}
