import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import type { ReadTask } from './task.ts'
import { cutLinesAt, type ReadText, splitFences } from './text.ts'

/** Faults of code that show without running it: brackets, a guard that comes too late, a condition turned round, an expression and its examples. */
export const checkCodeFaults = (task: ReadTask, output: ReadText): Finding =>
  combine([
    checkBrackets(output),
    checkLateGuard(task, output),
    checkNullCondition(task, output),
    checkConditions(task, output),
    checkConstants(task, output),
    checkExamples(task, output),
  ])

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
  return lines.slice(0, division + 1).some((line) => CHECK.test(line))
    ? passed
    : failed('The division comes before the guard that was asked for.')
}

/** "(cancelled_on is null)" in the task and IS NOT NULL in the query. */
function checkNullCondition(task: ReadTask, output: ReadText): Finding {
  const code = codeOfAnswer(output).toLowerCase()
  if (!code) return notApplicable
  for (const [, column, not] of [...task.full.raw.toLowerCase().matchAll(/\b([a-z_]\w{2,40}) is (not )?null\b/g)].slice(
    0,
    5,
  )) {
    const has = (part: string) => new RegExp(`\\b${column}\\s{1,4}is\\s{1,4}${part}`).test(code)
    const [hasNull, hasNotNull] = [has('null'), has('not\\s{1,4}null')]
    if (hasNull !== hasNotNull && (not ? hasNull : hasNotNull))
      return failed('A condition of the query is the opposite of the one given.')
  }
  return notApplicable
}

const COMPARISON = /\b([a-z_][\w.]{0,30}) ?(>=|<=|==|!=|>|<) ?(\d{1,9}(?:\.\d{1,6})?)\b/gi

/** Code that is written anew without another result compares the same names with the same numbers in the same way. */
function checkConditions(task: ReadTask, output: ReadText): Finding {
  if (
    !task.code ||
    !/\b(?:refactor\w{0,3}|refactori\w{1,4}|rewrite|simplif\w{1,3}|same (?:result|behaviou?r|output)|without changing|sin cambiar|umschreiben|shorter|one-?liner|convert|port)\b/i.test(
      task.full.raw,
    )
  )
    return notApplicable
  if (/\b(?:fix|bug|wrong|change (?:it|the condition)|instead)\b/i.test(task.full.raw)) return notApplicable
  const code = codeOfAnswer(output)
  if (!code || /\bnot\b|!(?!=)|\bcontinue\b|\belse\b|\breject\b|\bunless\b/.test(code)) return notApplicable
  const readComparisons = (text: string) =>
    [...text.matchAll(COMPARISON)]
      .slice(0, 40)
      .map(([, name, sign, value]) => ({ name: name!.toLowerCase(), sign: sign!, value: value! }))
  const given = readComparisons(task.code)
  const isTurned = readComparisons(code).some(({ name, sign, value }) => {
    const same = given.filter((other) => other.name === name && other.value === value)
    return same.length > 0 && same.every((other) => other.sign !== sign)
  })
  return isTurned ? failed('A condition of the code is another one than before.') : passed
}

/** "(Sunday = 0, Saturday = 6)": the code has the numbers that the task gives to its names. */
function checkConstants(task: ReadTask, output: ReadText): Finding {
  const listed = /\(((?:\p{L}{3,12} = \d{1,4}(?:, )?){2,6})\)/u.exec(task.request)?.[1]
  const code = codeOfAnswer(output)
  if (!listed || !code || !task.agentId.startsWith('coder')) return notApplicable
  const named = [...listed.matchAll(/(\p{L}{3,12}) = (\d{1,4})/gu)].filter(
    ([, name]) => task.request.split(name!).length > 2,
  )
  return named.every(
    ([, , value]) =>
      new RegExp(`(?<![\\d.])${value}(?![\\d.])`).test(cutLinesAt(code, '//', '#')) || /%|\bin\b|includes/.test(code),
  )
    ? passed
    : failed('A number that the task gives is not in the code.')
}

/** An expression that has to match some texts and must not match others. */
function checkExamples(task: ReadTask, output: ReadText): Finding {
  if (
    !/\bregex\w{0,3}|\bregular expression\b/i.test(task.request) ||
    /\b(?:expli\w{1,5}|what does|why)\b/i.test(task.request)
  )
    return notApplicable
  const bare = output.raw.trim()
  const source = (
    /(?<!`)`\/?([^`\n]{4,120})`/.exec(output.raw)?.[1] ?? (/^\S{4,120}$/.test(bare) ? bare : undefined)
  )?.replace(/^\/|\/[gimsuy]{0,6}$/g, '')
  // Only expressions without repeated groups are tried: they take no more steps than their length times the example's.
  if (!source || source.length > 100 || /\)[*+{]|\(\?<?[=!]|[*+}].{0,20}[*+]/.test(source) || !/[\\[\]^$]/.test(source))
    return notApplicable
  const listed = (clause: string | undefined) =>
    (clause?.match(/(?<![\w:.])[\p{L}\d#][\p{L}\d:./@#-]{1,15}(?![\w:])/gu) ?? [])
      .map((example) => example.replace(/[.,]$/, ''))
      .filter((example) => /\d/.test(example) && /[^\d]/.test(example))
      .slice(0, 4)
  const refused = listed(
    /\b(?:must not|should not|shouldn't|not|never) match (.{2,60})/i.exec(task.request)?.[1]?.split(/[,;(]/, 1)[0],
  )
  const range = /\bfrom (\d{2}:\d{2}) to (\d{2}:\d{2})\b/.exec(task.request)?.slice(1) ?? []
  const wanted = [
    ...listed(/\bmatch(?:es|ing)? (?:\p{L}{2,12} )?(?:like|such as|e\.g\.) (.{2,24})/iu.exec(task.request)?.[1]).slice(
      0,
      1,
    ),
    ...range,
  ]
  if (refused.length + wanted.length === 0) return notApplicable
  try {
    const pattern = new RegExp(source, 'u')
    const isWrong =
      wanted.some((example) => !pattern.test(example)) ||
      (/^\^|\$$/.test(source) && refused.some((example) => pattern.test(example)))
    return isWrong ? failed('The expression does not do what the examples of the task ask for.') : passed
  } catch {
    return notApplicable
  }
}
