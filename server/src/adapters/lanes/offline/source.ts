import { spendSteps } from '../../../platform/step-budget.ts'
import type { Brief } from './brief.ts'

/** Code found in a task, with its language. */
export type Source = { language: Language; text: string; dialect: string }
export type Language = 'javascript' | 'python' | 'sql' | 'json' | 'other'

/** The result of analysing one source. Line numbers start at 1. */
export type SourceAnalysis = {
  errors: readonly { line: number; column: number; message: string }[]
  functions: readonly FunctionInfo[]
  smells: readonly { line: number; message: string }[]
  facts: readonly string[]
}
export type FunctionInfo = {
  name: string
  line: number
  lines: number
  parameters: readonly string[]
  complexity: number
  depth: number
  async?: boolean
}

export const MAX_SOURCE = 24_000

const ALIASES: Record<string, Language> = {
  js: 'javascript',
  jsx: 'javascript',
  javascript: 'javascript',
  mjs: 'javascript',
  cjs: 'javascript',
  node: 'javascript',
  ts: 'javascript',
  tsx: 'javascript',
  typescript: 'javascript',
  py: 'python',
  python: 'python',
  python3: 'python',
  sql: 'sql',
  postgres: 'sql',
  postgresql: 'sql',
  psql: 'sql',
  mysql: 'sql',
  sqlite: 'sql',
  json: 'json',
  jsonc: 'json',
}

/** Fenced code; without a fence, the lines that look like code. */
export function findSources(brief: Brief): Source[] {
  if (brief.fences.length > 0) {
    return brief.fences.slice(0, 5).map(({ language, code }) => ({
      language: ALIASES[language] ?? (language ? 'other' : guessLanguage(code)),
      text: code.slice(0, MAX_SOURCE),
      dialect: language,
    }))
  }
  spendSteps(brief.task.length)
  const text = extractCodeLines(brief.task)
  if (!text) return []
  const language = guessLanguage(text)
  return language === 'other' ? [] : [{ language, text: text.slice(0, MAX_SOURCE), dialect: '' }]
}

function extractCodeLines(task: string): string {
  const lines = task.split('\n')
  const isCode = lines.map(looksLikeCode)
  const first = isCode.indexOf(true)
  if (first < 0) return extractInlineCode(task)
  let end = isCode.lastIndexOf(true) + 1
  while (end < lines.length && /^\s+\S/.test(lines[end]!)) end++
  const codeLines = lines.slice(first, end)
  codeLines[0] = stripLeadIn(codeLines[0]!)
  return codeLines.join('\n')
}

/** Removes a sentence before code on the same line: up to its colon, or three or more words up to a question mark or full stop. */
function stripLeadIn(line: string): string {
  const leadIn =
    /^(?!(?:if|for|while|else|elif|with|try|except|class|case|default)\b)[A-Za-z][^(){};=<>"'`]{2,120}: (?=\S)/i.exec(
      line,
    ) ?? /^[A-Za-z'’,-]+(?: [A-Za-z'’,-]+){2,30}[?.!] (?=\S)/.exec(line)
  return leadIn ? line.slice(leadIn[0].length) : line
}

function extractInlineCode(task: string): string {
  return /`([^`\n]{6,2000})`/.exec(task)?.[1] ?? ''
}

function looksLikeCode(line: string): boolean {
  return (
    /[;{}]\s*$|^\s*[}\])]|=>|^\s*(?:def|class|import|from|const|let|var|function|async|return|export|if|for|while|try|except|elif|else|with|print)\b.*[:;({=)]\s*\S{0,40}$/.test(
      line,
    ) ||
    /^\s*(?:\w{1,20}: )?(?:select\b.+\bfrom\b|insert\s+into\b|update\b.+\bset\b|delete\s+from\b|create\s+(?:table|index|view)\b)/i.test(
      line,
    ) ||
    /\b(?:function\s+\w+\s*\(|const\s+\w+\s*=|def\s+\w+\s*\(|let\s+\w+\s*=|select\s.{1,200}\sfrom\s)/i.test(line) ||
    /^\s*[\w.[\]]+\s*[-+*/]?=\s*\S/.test(line) ||
    /^\s*[[{]\s*"?/.test(line)
  )
}

export function guessLanguage(text: string): Language {
  const head = text.slice(0, 6000)
  if (
    /^\s*[[{]/.test(head) &&
    /^\s*(?:\{\s*(?:"|\})|\[\s*(?:[\]{["\d-]|true|false|null))/.test(head) &&
    !/\b(?:const|let|function|=>)/.test(head)
  )
    return 'json'
  const scores: [Language, number][] = [
    [
      'sql',
      countMatches(
        head,
        /\b(?:select|from|where|insert into|update|delete from|join|group by|order by|create table)\b/gi,
      ) -
        3 * countMatches(head, /[{}]|=>|\bdef\b|\bimport\b/g),
    ],
    [
      'python',
      3 *
        countMatches(
          head,
          /^[ \t]*(?:def \w+\(.*|class \w.*|elif .*|except.*|with .*|if .*|for .*|while .*|else|try):[ \t]*$/gm,
        ) +
        countMatches(head, /\b(?:self|None|True|False|print\(|__\w+__|lambda )|^import \w+$|^from \w+ import/gm) +
        2 * countMatches(head, /\bdef \w+\(/g),
    ],
    [
      'javascript',
      countMatches(
        head,
        /\b(?:const|let|var|function|=>|async|await|typeof|undefined|require\(|console\.|export|interface)\b|=>|===|[{;]\s*$/gm,
      ),
    ],
  ]
  const [best, second] = scores.sort((a, b) => b[1] - a[1])
  return best![1] >= 2 && best![1] > second![1] ? best![0] : best![1] >= 1 && second![1] <= 0 ? best![0] : 'other'
}

const countMatches = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0

const MAX_NESTING = 40
const MAX_CHAIN = 400
const MAX_ELSE = 150

/**
 * The limit that a text exceeds, if any. Parsers recurse for every open bracket and every operator of a chain: without a
 * limit a hostile text overflows their stack, at a depth that differs between machines. Checking before parsing makes
 * every machine refuse the same text.
 */
export function findExceededLimit(text: string): string | undefined {
  spendSteps(text.length)
  let depth = 0
  let deepest = 0
  for (const character of text) {
    if (character === '(' || character === '[' || character === '{' || character === '<')
      deepest = Math.max(deepest, ++depth)
    else if (character === ')' || character === ']' || character === '}' || character === '>')
      depth = Math.max(0, depth - 1)
  }
  if (deepest > MAX_NESTING) return `Brackets nest ${deepest} deep; over ${MAX_NESTING}`
  const chain = Math.max(...text.split(/[;{},]/).map((expression) => countMatches(expression, OPERATORS)))
  if (chain > MAX_CHAIN) return `One expression chains ${chain} operators; over ${MAX_CHAIN}`
  const branches = countMatches(text, /\belse\b/g)
  return branches > MAX_ELSE ? `${branches} \`else\` branches; over ${MAX_ELSE}` : undefined
}

const OPERATORS = /[-+*/%&|^<>=!?:~.`]|\b(?:typeof|void|await|new|delete|in|instanceof|not|and|or|async)\b/g
