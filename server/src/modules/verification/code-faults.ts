import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import type { ReadTask } from './task.ts'
import { cutLinesAt, type ReadText, splitFences } from './text.ts'

/** Faults of code that show without running it: brackets, and a guard that is missing or comes too late. */
export const checkCodeFaults = (task: ReadTask, output: ReadText): Finding =>
  combine([checkBrackets(output), checkShellLoops(output), checkLateGuard(task, output)])

/** The code of an answer: its fenced blocks, or the whole of it where a line of code opens it. */
export function codeOfAnswer(output: ReadText): string {
  const { blocks } = splitFences(output.raw)
  if (blocks.length > 0) return blocks.map((block) => block.code).join('\n')
  return /^\s{0,8}(?:def |function |class |const |let |import |from \w{1,40} import |select |with |public |func |fn |#!)/i.test(
    output.raw,
  )
    ? output.raw
    : ''
}

const BRACKETED = new Set('php java c cpp c++ cs csharp go golang rust rs kotlin kt swift scala dart lua'.split(' '))
const SHELLS = new Set('bash sh shell zsh'.split(' '))
const PAIRS: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' }

/** Brackets of languages that no parser here reads; strings and comments are left out. */
function checkBrackets(output: ReadText): Finding {
  const blocks = splitFences(output.raw).blocks.filter(
    ({ language, code }) => BRACKETED.has(language) && !/^\s{0,40}(?:\.\.\.|…)/m.test(code),
  )
  if (blocks.length === 0) return notApplicable
  for (const { language, code } of blocks.slice(0, 3)) {
    const text = withoutStrings(code.slice(0, 12_000), language)
    const open: string[] = []
    for (const character of text) {
      if ('([{'.includes(character)) open.push(character)
      else if (PAIRS[character] && open.pop() !== PAIRS[character])
        return failed('The brackets of the code do not match.')
    }
    if (open.length > 0) return failed('The brackets of the code do not match.')
    const count = (word: RegExp) => text.match(word)?.length ?? 0
    if (
      language === 'lua' &&
      count(/\bfunction\b/g) + count(/\bdo\b/g) + count(/\bthen\b/g) - count(/\belseif\b/g) !== count(/\bend\b/g)
    )
      return failed('A block of the code has no end.')
  }
  return passed
}

/** A loop of a shell script that has no `done`. */
function checkShellLoops(output: ReadText): Finding {
  const blocks = splitFences(output.raw).blocks.filter(({ language }) => SHELLS.has(language))
  if (blocks.length === 0) return notApplicable
  const isOpen = blocks.some(({ code }) => {
    const text = code
      .slice(0, 12_000)
      .split('\n')
      .filter((line) => !/^\s{0,40}#/.test(line))
      .join('\n')
    const opened = text.match(/(?:^|[;\n])[ \t]{0,20}do(?=\s)/g)?.length ?? 0
    const closed = text.match(/(?:^|[;\n|&}])[ \t]{0,20}done\b/g)?.length ?? 0
    return opened > closed && !/\bdone\b/.test(text)
  })
  return isOpen ? failed('A loop of the code has no end.') : passed
}

function withoutStrings(code: string, language: string): string {
  const comment = language === 'lua' ? '--' : '//'
  let text = ''
  for (let i = 0; i < code.length; i++) {
    const character = code[i]!
    if (code.startsWith(comment, i) || (language === 'php' && character === '#')) {
      while (i < code.length && code[i] !== '\n') i++
    } else if (code.startsWith('/*', i)) {
      const end = code.indexOf('*/', i + 2)
      i = end < 0 ? code.length : end + 1
    } else if (
      character === '"' ||
      character === '`' ||
      (character === "'" && language !== 'rust' && language !== 'rs')
    ) {
      let end = i + 1
      while (end < code.length && code[end] !== character && (code[end] !== '\n' || character === '`'))
        end += code[end] === '\\' ? 2 : 1
      i = end
    } else text += character
  }
  return text
}

const DIVISION = /[\w)\]] ?\/{1,2} ?[\w(]/
const CHECK =
  /\bif\b|\btry\b|\?|\bor\b|\|\||\bmax\(|\bassert\b|\braise\b|\bthrow\b|\bnullif\b|\bguard\b|\bunless\b|\bmatch\b|\bcase\b/i

/** The field that is divided by: `/ w["beds"]`, `/ w.beds`. */
const DIVIDED_FIELD = /\/{1,2} ?\w{1,20}(?:\[["'](\w{2,30})["']\]|\.(\w{2,30})\b(?!\())/

/** A division by what may be zero stands in front of the guard against it, or there is none. */
function checkLateGuard(task: ReadTask, output: ReadText): Finding {
  if (
    !task.code ||
    !/\b(?:zerodivision\w{0,6}|division by zero|divide by zero|divid\w{1,4} by 0|guard|when \w{1,20} is (?:0|zero)|has no \w{1,12}|is empty|empty (?:list|array))\b/i.test(
      task.full.raw,
    ) ||
    !/\b(?:fix|guard|crash\w{0,3}|return\w{0,2}|handle|mend|repair)\b/i.test(task.full.raw) ||
    !DIVISION.test(task.code)
  )
    return notApplicable
  const lines = cutLinesAt(codeOfAnswer(output).replace(/"""[^"]{0,600}"""/g, ''), '#', '//').split('\n')
  const division = lines.findIndex((line) => DIVISION.test(line.replace(/["'][^"']{0,80}["']/g, '')))
  if (division < 0) return notApplicable
  // A guard against an empty list does not guard a field of its items.
  const field = DIVIDED_FIELD.exec(lines[division]!)
  const name = field?.[1] ?? field?.[2]
  const isGuard = (line: string) =>
    CHECK.test(line) && (!name || /\b(?:try|with)\b/.test(line) || line.replace(DIVIDED_FIELD, ' ').includes(name))
  return lines.slice(0, division + 1).some(isGuard)
    ? passed
    : failed('The division comes before the guard that was asked for.')
}
