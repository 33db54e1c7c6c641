import type { Brief } from './brief.ts'

/** Code found in a task, with the language it is to be read as. */
export type Source = { language: Language; text: string; dialect: string }
export type Language = 'javascript' | 'python' | 'sql' | 'json' | 'other'

/** What a reader of one language hands back. Lines count from 1. */
export type Reading = {
  errors: readonly { line: number; column: number; message: string }[]
  functions: readonly FunctionFact[]
  smells: readonly { line: number; message: string }[]
  facts: readonly string[]
}
export type FunctionFact = {
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

/** Fenced code first; otherwise the run of lines that reads most like code. */
export function sourcesOf(brief: Brief): Source[] {
  if (brief.fences.length > 0) {
    return brief.fences.slice(0, 5).map(({ language, code }) => ({
      language: ALIASES[language] ?? (language ? 'other' : guess(code)),
      text: code.slice(0, MAX_SOURCE),
      dialect: language,
    }))
  }
  const text = codeLines(brief.task)
  if (!text) return []
  const language = guess(text)
  return language === 'other' ? [] : [{ language, text: text.slice(0, MAX_SOURCE), dialect: '' }]
}

function codeLines(task: string): string {
  const lines = task.split('\n')
  const codey = lines.map(looksLikeCode)
  const first = codey.indexOf(true)
  if (first < 0) return inlineCode(task)
  let end = codey.lastIndexOf(true) + 1
  while (end < lines.length && /^\s+\S/.test(lines[end]!)) end++
  const run = lines.slice(first, end)
  run[0] = withoutLeadIn(run[0]!)
  return run.join('\n')
}

/** A sentence that leads into code on its own line goes: up to its colon, or three words and more up to its question or full stop. */
function withoutLeadIn(line: string): string {
  const prose =
    /^(?!(?:if|for|while|else|elif|with|try|except|class|case|default)\b)[A-Za-z][^(){};=<>"'`]{2,120}: (?=\S)/i.exec(
      line,
    ) ?? /^[A-Za-z'’,-]+(?: [A-Za-z'’,-]+){2,30}[?.!] (?=\S)/.exec(line)
  return prose ? line.slice(prose[0].length) : line
}

function inlineCode(task: string): string {
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

export function guess(text: string): Language {
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
      hits(head, /\b(?:select|from|where|insert into|update|delete from|join|group by|order by|create table)\b/gi) -
        3 * hits(head, /[{}]|=>|\bdef\b|\bimport\b/g),
    ],
    [
      'python',
      3 * hits(head, /^\s*(?:def \w+\(.*|class \w+.*|elif .*|except.*|with .*|if .*|for .*|while .*|else|try):\s*$/gm) +
        hits(head, /\b(?:self|None|True|False|print\(|__\w+__|lambda )|^import \w+$|^from \w+ import/gm) +
        2 * hits(head, /\bdef \w+\(/g),
    ],
    [
      'javascript',
      hits(
        head,
        /\b(?:const|let|var|function|=>|async|await|typeof|undefined|require\(|console\.|export|interface)\b|=>|===|[{;]\s*$/gm,
      ),
    ],
  ]
  const [best, second] = scores.sort((a, b) => b[1] - a[1])
  return best![1] >= 2 && best![1] > second![1] ? best![0] : best![1] >= 1 && second![1] <= 0 ? best![0] : 'other'
}

const hits = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0

const MAX_NESTING = 40
const MAX_CHAIN = 400
const MAX_ELSE = 150

/**
 * Why a text is too tangled to parse, if it is. Parsers descend once for every open bracket and every operator of a
 * chain: without a limit a hostile text costs them their stack, at a depth that differs between machines. Counting
 * before parsing makes every machine refuse the same text.
 */
export function tangleOf(text: string): string | undefined {
  let depth = 0
  let deepest = 0
  for (const mark of text) {
    if (mark === '(' || mark === '[' || mark === '{' || mark === '<') deepest = Math.max(deepest, ++depth)
    else if (mark === ')' || mark === ']' || mark === '}' || mark === '>') depth = Math.max(0, depth - 1)
  }
  if (deepest > MAX_NESTING) return `Brackets nest ${deepest} deep; over ${MAX_NESTING}`
  const chain = Math.max(...text.split(/[;{},]/).map((stretch) => hits(stretch, OPERATORS)))
  if (chain > MAX_CHAIN) return `One expression chains ${chain} operators; over ${MAX_CHAIN}`
  const branches = hits(text, /\belse\b/g)
  return branches > MAX_ELSE ? `${branches} \`else\` branches; over ${MAX_ELSE}` : undefined
}

const OPERATORS = /[-+*/%&|^<>=!?:~.`]|\b(?:typeof|void|await|new|delete|in|instanceof|not|and|or|async)\b/g

export function positionAt(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset)
  const line = before.split('\n').length
  return { line, column: offset - before.lastIndexOf('\n') }
}
