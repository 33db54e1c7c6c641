import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { readNumbers } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { clip, plainText, type ReadText, sentencesOf, splitFences } from './text.ts'

/** Small rules of form that a task states in so many words. */
export const checkDetails = (task: ReadTask, output: ReadText): Finding =>
  combine([
    checkNumberOnly(task, output),
    checkDecimals(task, output),
    checkDateForm(task, output),
    checkSeparator(task, output),
    checkHeader(task, output),
    checkFirstLetter(task, output),
    checkKnockKnock(task, output),
    checkForbiddenKeywords(task, output),
    checkEnds(task, output),
    checkEachLine(task, output),
    checkOneLine(task, output),
  ])

const isCoder = ({ agentId }: ReadTask) => agentId.startsWith('coder')

/** "Answer with a number only", "just the number". */
function checkNumberOnly(task: ReadTask, output: ReadText): Finding {
  if (
    !/\b(?:(?:a|the) (?:single )?number only|only (?:a|the) (?:single )?(?:number|figure)|just (?:a|the) (?:number|figure)|number and nothing else|nur die zahl|uniquement le nombre|solo el número|solo il numero)\b/i.test(
      task.full.raw,
    ) ||
    isCoder(task)
  )
    return notApplicable
  const words = output.words.filter((word) => !/\d/.test(word))
  return words.length > 4 ? failed('A number alone was asked for.') : passed
}

const DECIMALS =
  /\b(?:(?:to|with|at|round\w{0,2} to|exactly)\s(?:exactly )?(one|two|three|four|\d) (?:decimals?|decimal places?|digits after the (?:point|comma)))\b/i
const COUNTS: Readonly<Record<string, number>> = { one: 1, two: 2, three: 3, four: 4 }

/** "With exactly two decimals": an answer of one number has them. */
function checkDecimals(task: ReadTask, output: ReadText): Finding {
  const word = DECIMALS.exec(task.full.raw)?.[1]?.toLowerCase()
  const numbers = readNumbers(output.raw)
  if (!word || isCoder(task) || numbers.length !== 1 || output.words.length > 8) return notApplicable
  const wanted = COUNTS[word] ?? Number(word)
  const shown = /[.,](\d+)$/.exec(numbers[0]!.text)?.[1]?.length ?? 0
  return shown > wanted || (shown > 0 && shown < wanted)
    ? failed(`${wanted} decimals were asked for and there are ${shown}.`)
    : passed
}

const MONTHS = 'january february march april may june july august september october november december'.split(' ')

/** "As YYYY-MM-DD: 4 December 2026": the date of the task in that form. */
function checkDateForm(task: ReadTask, output: ReadText): Finding {
  const text = task.full.raw.slice(0, 600)
  if (!/\byyyy-mm-dd\b|\biso(?: ?8601)?(?: date| format)?\b/i.test(text) || isCoder(task)) return notApplicable
  const dates = [
    ...[...text.matchAll(/\b(\d{1,2})(?:st|nd|rd|th)? ([A-Za-z]{3,9}),? (\d{4})\b/g)].map(
      ([, day, month, year]) => [day!, month!, year!] as const,
    ),
    ...[...text.matchAll(/\b([A-Za-z]{3,9}) (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})\b/g)].map(
      ([, month, day, year]) => [day!, month!, year!] as const,
    ),
  ].flatMap(([day, month, year]) => {
    const index = MONTHS.findIndex((name) => name.startsWith(month.toLowerCase()))
    return index < 0 ? [] : [`${year}-${String(index + 1).padStart(2, '0')}-${day.padStart(2, '0')}`]
  })
  const written: string[] = output.raw.match(/\b\d{4}-\d{2}-\d{2}\b/g) ?? []
  if (dates.length !== 1 || written.length === 0) return notApplicable
  return written.includes(dates[0]!) ? passed : failed('The date is another one than the task gives.')
}

/** "Semicolon separated", "separated by dashes". */
function checkSeparator(task: ReadTask, output: ReadText): Finding {
  const name =
    /\b(semicolon|comma|tab|pipe|dash|hyphen|slash)(?:s|es)?[- ](?:separated|delimited)|\bseparated by (?:an? )?(semicolon|comma|tab|pipe|dash|hyphen|slash)/i.exec(
      task.full.raw,
    )
  if (!name || isCoder(task)) return notApplicable
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
  if (!listed || isCoder(task) || !/\b(?:csv|table|tabelle|tsv)\b/i.test(text)) return notApplicable
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

/** "Each must begin with B". */
function checkFirstLetter(task: ReadTask, output: ReadText): Finding {
  const letter =
    /\b(?:each|all|every|both)\b[^.\n]{0,40}\b(?:begin|start)s?(?:ning|ing)? with (?:the letter |an? )?["“'‘]?(\p{L})["”'’]?(?![\p{L}\d'’])/iu.exec(
      task.full.raw,
    )?.[1]
  if (!letter || isCoder(task)) return notApplicable
  const mark = /^(?:[-*•–]|\d{1,3}[.)])\s{1,8}/
  const items = output.lines
    .filter((line) => mark.test(line))
    .map((line) => line.replace(mark, '').replace(/^[^\p{L}]+/u, ''))
  if (items.length < 2 || /\b(?:word|sentence|line)s?\b/i.test(task.request)) return notApplicable
  return items.every((item) => item[0]?.toLowerCase() === letter.toLowerCase())
    ? passed
    : failed('An item begins with another letter.')
}

/** 'Start with "Subject:"', 'end with "Cheers"'. */
function checkEnds(task: ReadTask, output: ReadText): Finding {
  if (isCoder(task)) return notApplicable
  const plain = plainText(output.raw)
  const first =
    /(?:^|[.,;!?\n] ?|\band |\bmust |\bshould |\bit )(?:start|begin)s? (?:it |the (?:text|mail|email|message|reply|answer) )?with ["“]([^"”\n]{2,60})["”]/i.exec(
      task.request,
    )?.[1]
  const last =
    /(?:^|[.,;!?\n] ?|\band |\bmust |\bshould |\bit )(?:end|close|finish)(?:e?s)? (?:it |the (?:text|mail|email|message|reply|answer) )?with ["“]([^"”\n]{2,60})["”]/i.exec(
      task.request,
    )?.[1]
  if (first && plainText(first) && !plain.startsWith(plainText(first))) return failed('It does not begin as asked for.')
  if (last && plainText(last) && !plain.slice(-plainText(last).length - 60).includes(plainText(last)))
    return failed('It does not end as asked for.')
  return first || last ? passed : notApplicable
}

/** 'Each line must contain the word "sea"'. */
function checkEachLine(task: ReadTask, output: ReadText): Finding {
  const word =
    /\b(?:each|every|both) (line|sentence|bullet|item|verse)s? (?:must |has to |should |to )?(?:contains?|includes?|mentions?|uses?) (?:the )?(?:word |name )?["“]([^"”\n]{2,30})["”]/i.exec(
      task.request,
    )
  if (!word || isCoder(task)) return notApplicable
  const parts = /sentence/i.test(word[1]!) ? sentencesOf(output.raw) : output.lines
  return parts.every((part) => part.toLowerCase().includes(word[2]!.toLowerCase()))
    ? passed
    : failed('A line does not have the word that each was to have.')
}

/** A one-liner has one line of code. */
function checkOneLine(task: ReadTask, output: ReadText): Finding {
  if (!isCoder(task) || !/\bone line only\b|\bin (?:one|a single) line\b|\bsingle line\b/i.test(task.request))
    return notApplicable
  const { blocks } = splitFences(output.raw)
  if (blocks.length !== 1) return notApplicable
  const lines = blocks[0]!.code.split('\n').filter((line) => line.trim() && !/^\s*(?:#|\/\/)/.test(line))
  return lines.length === 1 ? passed : failed(`One line was asked for and there are ${lines.length}.`)
}

function checkKnockKnock(task: ReadTask, output: ReadText): Finding {
  if (!/\bknock[- ]knock\b/i.test(task.request)) return notApplicable
  return /\bknock\b|\bwho'?s there\b|\bwho’s there\b/i.test(output.raw) ? passed : failed('It is no knock-knock joke.')
}

/** "No for, no while": words of the language that the code may not use. */
function checkForbiddenKeywords(task: ReadTask, output: ReadText): Finding {
  if (!isCoder(task)) return notApplicable
  const keywords = [
    ...task.full.raw
      .slice(0, 1_500)
      .matchAll(
        /\b(?:no|without|don't use|do not use|avoid)\s(?:using\s)?(?:any\s)?[`"“]?(for|while|if|else|eval|var|goto|lambda|class|regex|recursion|import|switch|try|map|reduce|filter)[`"”]?(?:\sloops?|\sstatements?|\skeyword)?(?=[,.;:)\s]|$)/gi,
      ),
  ]
    .map((match) => match[1]!.toLowerCase())
    .filter((word) => !/^(?:regex|recursion|class)$/.test(word))
  if (/\b(?:no|without(?: any| a)?) loops?\b/i.test(task.full.raw.slice(0, 1_500))) keywords.push('for', 'while')
  const { blocks } = splitFences(output.raw)
  if (keywords.length === 0 || blocks.length === 0) return notApplicable
  const code = blocks.map((block) => block.code.replace(/#.*|\/\/.*/g, '')).join('\n')
  const found = keywords.find((word) => new RegExp(`(?<![\\w.$'"-])${word}\\b(?!['"-])`).test(code))
  return found ? failed(`It uses ${found}, which the task forbids.`) : passed
}
