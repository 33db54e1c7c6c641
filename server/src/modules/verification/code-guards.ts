import { cutLinesAt } from './text.ts'

/** Code without comments and strings of documentation; `a["b"]` becomes `a.b`, and other strings stay. */
export function plainCode(code: string): string {
  const isHashed =
    /^\s{0,40}(?:def |import |from |print\(|class \w{1,40}.{0,80}:|#!|for \w{1,30} in |if .{1,120}:\s{0,8}$)/m.test(
      code,
    )
  const text = code.replaceAll(/^[ \t]{0,40}"""[^"]{0,600}"""/gm, '').replaceAll(/\/\*[^*]{0,600}\*\//g, '')
  const hashed = isHashed ? text : cutLinesAt(text, '//')
  return (
    hashed
      .replaceAll(/(^|\s)#(?!\{)[^\n]{0,400}/gm, '$1')
      .replaceAll(/\[["'](\w{1,40})["']\]/g, '.$1')
      // The mark of a type that may be null tests nothing: `name: String?`.
      .replaceAll(/((?::|->)\s?[A-Z][\w.<>]{0,40})\?/g, '$1')
  )
}

/** Lines, and several of them as one where a bracket is open. */
export function statementsOf(code: string): string[] {
  const statements: string[] = []
  let depth = 0
  for (const line of code.split('\n').slice(0, 400)) {
    const last = statements.length - 1
    if (depth > 0 && last >= 0 && statements[last]!.length < 2_000) statements[last] += ` ${line.trim()}`
    else {
      statements.push(line)
      depth = 0
    }
    for (const mark of line.replaceAll(/"[^"\n]{0,200}"|'[^'\n]{0,200}'/g, ''))
      if (mark === '(' || mark === '[') depth++
      else if (mark === ')' || mark === ']') depth--
  }
  return statements
}

/** Takes the place of a condition that does not count, and of an access. */
const NOTHING = '§'

const IS_NULL =
  /(?<![\w.)])[\w.()$]{1,40}\s?[!=]==?\s?(?:null|nil|undefined|None)\b|(?<![\w.)])[\w.()]{1,40}\sis\s(?:not\s)?None\b|\bisinstance\([^()\n]{1,80}\)|\btypeof\s[\w.]{1,40}\s?[!=]==?\s?["']\w{1,12}["']/g
const IS_BELOW_ZERO = /(?<![\w.)])[\w.()$]{1,40}\s?(?:<\s?0(?:\.0)?|>=\s?0(?:\.0)?)(?![\d.])/g
const IS_EMPTY =
  /(?<![\w.)])[\w.()!$]{1,40}\.(?:isEmpty|isBlank|is_empty|empty|blank)(?:\(\)|\?)?|(?<![\w.)])[\w.()$]{1,40}\s?[!=]==?\s?(?:""|'')|\blen\([\w.]{1,40}\)\s?(?:[!=]==?|>|<)\s?\d|(?<![\w.)])[\w.!]{1,40}\.(?:length|count|size\(\))\s?(?:[!=]==?|>|<)\s?\d/g

/** The statement without the conditions that see no zero, or no null. */
export const withoutBlindTests = (statement: string, looksFor: 'zero' | 'null'): string =>
  looksFor === 'zero'
    ? statement.replaceAll(IS_NULL, NOTHING).replaceAll(IS_BELOW_ZERO, NOTHING)
    : statement.replaceAll(IS_EMPTY, NOTHING).replaceAll(IS_BELOW_ZERO, NOTHING)

/** A condition that is left: "if x", "x ? y : z", "x and y", "x == 0". */
const CONDITION =
  /\b(?:if|elif|unless|when|guard|assert|case|match|switch|require|check)\b[\s(!§)]{0,8}(?:(?:and|or|not|&&|\|\|)[\s(!§)]{0,8}){0,3}(?!(?:else|return|throw|raise|then)\b)[\w$"'[-]|[\w)\]'"]\s?\?(?![.:])|[\w)\]]\s?(?:&&|\|\||\?\?|\band\b|\bor\b)|[\w)\]]\s?(?:[!=]==?|<>|<=?|>=?)\s?[\w"']/

/** What guards whatever its names: an error that is caught, a least value, a value instead. */
const CATCHES = {
  zero: /\btry\b|\bsuppress\(|\bmax\(|\.max\(|\bnullif\b|\bcoerceAtLeast\b|\|\|\s?[1-9]|\bor\s[1-9]|\berrstate\b|unwrap_or|\brescue\b/i,
  null: /\btry\b|\bsuppress\(|\bcoalesce\b|\|\|\s?["'([{\d]|\bor\s["'([{\d]|\?\?|\?:|\?\.|&\.|unwrap_or|\bOptional\b|\b[gs]etattr\(|\.get\(|\.fetch\(|\.dig\(|getOrDefault|setdefault|defaultdict|\brescue\b|\bif let\b|\bguard let\b|, ok\b/,
} as const

const SMALL =
  /^(?:if|else|elif|return|len|float|int|double|number|count|size|length|math|max|min|round|sum|str|self|this|as|not|and|or|is|in|none|null|nil|undefined|true|false|const|let|var|val|def|function|func|fn|for|of|range|string|list|abs|new|get|isempty)$/i

export const namesIn = (text: string): string[] =>
  (text.match(/[A-Za-z_$][\w$]{0,40}/g) ?? []).filter((name) => !SMALL.test(name)).slice(0, 60)

/** What stands for the same as one of the names: `count = len(rows)`. */
function withAliases(names: readonly string[], statements: readonly string[]): Set<string> {
  const all = new Set(names)
  for (let round = 0; round < 2; round++)
    for (const statement of statements.slice(0, 200)) {
      const assigned =
        /^\s{0,40}(?:(?:const|let|var|val|auto|final|double|int|float|long)\s)?([A-Za-z_$][\w$]{0,40})(?:\s?:\s?[\w[\]<>]{1,30})?\s?:?=(?!=)(.{1,200})/.exec(
          statement,
        )
      if (!assigned) continue
      const sources = namesIn(assigned[2]!)
      if (all.has(assigned[1]!)) for (const source of sources) all.add(source)
      else if (sources.some((source) => all.has(source))) all.add(assigned[1]!)
    }
  return all
}

/** Whether one of the statements tests one of the names, or catches whatever comes. */
export function isGuarded(statements: readonly string[], names: readonly string[], looksFor: 'zero' | 'null'): boolean {
  const known = withAliases(names, statements)
  return statements.some((statement) => {
    if (CATCHES[looksFor].test(statement)) return true
    // The head of a loop tests nothing for what comes after it.
    if (/^\s{0,40}(?:for|while)\b/.test(statement) && !/\bif\b/.test(statement)) return false
    const rest = withoutBlindTests(statement, looksFor)
    return CONDITION.test(rest) && (names.length === 0 || namesIn(rest).some((name) => known.has(name)))
  })
}

/** What a statement divides by, but for numbers and constants. */
export function divisorOf(statement: string): string | undefined {
  const text = statement.replaceAll(/(["'`])[^"'`\n]{0,200}\1/g, "''")
  for (const match of text.matchAll(/[\w)\]]\s?\/{1,2}=?\s?(?=[\w($])/g)) {
    const start = match.index + match[0].length
    let depth = 0
    let end = start
    for (; end < text.length && end < start + 80; end++) {
      const character = text[end]!
      if (character === '(' || character === '[') depth++
      else if (character === ')' || character === ']') depth--
      if (depth < 0 || (depth === 0 && /[\s,;:?+*/-]/.test(character) && end > start)) break
    }
    const divisor = text.slice(start, end)
    if (!/^[\d(.\s)]{0,20}$/.test(divisor) && !/^[A-Z][A-Z_\d]{2,40}$/.test(divisor) && !/^[\d.]{1,12}$/.test(divisor))
      return divisor
  }
  return undefined
}
