import type { SourceAnalysis } from './source.ts'
import { createPositions } from './text.ts'

/** The parser takes up to 0.1 ms per character, so that longer texts are cut. For all SQL of a task together. */
export const MAX_SQL_CHARACTERS = 4000

type SqlStatement = { type: string } & Record<string, unknown>

/** Analyses SQL statement by statement, so that a syntax error in one does not hide the others. */
export async function analyseSql(text: string, maxCharacters = MAX_SQL_CHARACTERS): Promise<SourceAnalysis> {
  const { parse } = await import('pgsql-ast-parser')
  const errors: { line: number; column: number; message: string }[] = []
  const smells: { line: number; message: string }[] = []
  const statementTypes: string[] = []
  const readable = text.length <= maxCharacters ? text : text.slice(0, text.lastIndexOf(';', maxCharacters) + 1)
  for (const { body, line } of splitStatements(readable)) {
    try {
      for (const statement of parse(body) as unknown as SqlStatement[]) {
        statementTypes.push(statement.type)
        for (const message of findSmells(statement, body)) smells.push({ line, message })
      }
    } catch (error) {
      errors.push(toSyntaxError(error as Error & { token?: { line: number; col: number; text: string } }, line))
    }
  }
  return {
    errors,
    functions: [],
    smells,
    facts: [
      `Read as PostgreSQL: ${statementTypes.length} statements${statementTypes.length > 0 ? ` (${statementTypes.join(', ')})` : ''}.`,
      ...(readable.length < text.length
        ? [`Only whole statements within the first ${maxCharacters} characters were read.`]
        : []),
    ],
  }
}

/** Splits at semicolons outside quotes and comments. */
function splitStatements(text: string): { body: string; line: number }[] {
  const statements: { body: string; line: number }[] = []
  const positionAt = createPositions(text)
  let start = 0
  let quote = ''
  for (let i = 0; i <= text.length; i++) {
    const character = text[i]
    if (quote) {
      if (character === quote || character === undefined) quote = ''
    } else if (character === "'" || character === '"') {
      quote = character
    } else if (character === '-' && text[i + 1] === '-') {
      const end = text.indexOf('\n', i)
      i = end < 0 ? text.length - 1 : end
    }
    if (!quote && (character === ';' || i >= text.length)) {
      const raw = text.slice(start, i)
      const leadingSpace = raw.length - raw.trimStart().length
      if (raw.trim()) statements.push({ body: raw.trim(), line: positionAt(start + leadingSpace).line })
      start = i + 1
    }
  }
  return statements
}

function toSyntaxError(error: Error & { token?: { line: number; col: number; text: string } }, line: number) {
  const token = error.token
  return {
    line: line + (token?.line ?? 1) - 1,
    column: token?.col ?? 1,
    message: token
      ? `Unexpected \`${token.text.slice(0, 40)}\``
      : /end of input/i.test(error.message)
        ? 'The statement ends too early'
        : 'Not read as PostgreSQL',
  }
}

function findSmells(statement: SqlStatement, body: string): string[] {
  const messages: string[] = []
  const isSelect = statement.type === 'select'
  if (isSelect && JSON.stringify(statement.columns ?? []).includes('{"expr":{"type":"ref","name":"*"}}'))
    messages.push('`SELECT *` reads columns nobody asked for and breaks when the table changes.')
  if ((statement.type === 'update' || statement.type === 'delete') && !statement.where)
    messages.push(`\`${statement.type.toUpperCase()}\` without \`WHERE\` touches every row.`)
  const from = (statement.from as SqlStatement[] | undefined) ?? []
  if (isSelect && Array.isArray(from) && from.filter((item) => !item.join).length > 1 && !statement.where)
    messages.push('Tables listed with commas and no condition: every row meets every row.')
  if (/\blike\s+'%/i.test(body)) messages.push('`LIKE` with a leading `%` cannot use an ordinary index.')
  if (/\bnot\s+in\s*\(\s*select/i.test(body))
    messages.push('`NOT IN (SELECT …)` is never true once the subquery has a NULL; use `NOT EXISTS`.')
  if (/(?:=|<>|!=)\s*null\b/i.test(body)) messages.push('Nothing equals NULL; use `IS NULL` or `IS NOT NULL`.')
  if (isSelect && statement.limit && !statement.orderBy)
    messages.push('`LIMIT` without `ORDER BY` returns any rows it likes.')
  return messages
}
