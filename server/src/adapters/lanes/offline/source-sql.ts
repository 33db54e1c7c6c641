import type { Reading } from './source.ts'

/** The grammar costs up to a tenth of a millisecond a character, so it is given no more than this. */
const MAX_READ = 4000

type Sql = { type: string } & Record<string, unknown>

/** Reads SQL statement by statement, so that a mistake in one leaves the others readable. */
export async function readSql(text: string): Promise<Reading> {
  const { parse } = await import('pgsql-ast-parser')
  const errors: { line: number; column: number; message: string }[] = []
  const smells: { line: number; message: string }[] = []
  const kinds: string[] = []
  const readable = text.length <= MAX_READ ? text : text.slice(0, text.lastIndexOf(';', MAX_READ) + 1)
  for (const { body, line } of statementsOf(readable)) {
    try {
      for (const statement of parse(body) as unknown as Sql[]) {
        kinds.push(statement.type)
        for (const message of judge(statement, body)) smells.push({ line, message })
      }
    } catch (error) {
      errors.push(faultOf(error as Error & { token?: { line: number; col: number; text: string } }, line))
    }
  }
  return {
    errors,
    functions: [],
    smells,
    facts: [
      `Read as PostgreSQL: ${kinds.length} statements${kinds.length > 0 ? ` (${kinds.join(', ')})` : ''}.`,
      ...(readable.length < text.length
        ? [`Only whole statements within the first ${MAX_READ} characters were read.`]
        : []),
    ],
  }
}

/** Splits at semicolons outside quotes and comments. */
function statementsOf(text: string): { body: string; line: number }[] {
  const found: { body: string; line: number }[] = []
  let start = 0
  let quote = ''
  for (let at = 0; at <= text.length; at++) {
    const mark = text[at]
    if (quote) {
      if (mark === quote || mark === undefined) quote = ''
    } else if (mark === "'" || mark === '"') {
      quote = mark
    } else if (mark === '-' && text[at + 1] === '-') {
      const end = text.indexOf('\n', at)
      at = end < 0 ? text.length - 1 : end
    }
    if (!quote && (mark === ';' || at >= text.length)) {
      const raw = text.slice(start, at)
      const lead = raw.length - raw.trimStart().length
      if (raw.trim()) found.push({ body: raw.trim(), line: text.slice(0, start + lead).split('\n').length })
      start = at + 1
    }
  }
  return found
}

function faultOf(error: Error & { token?: { line: number; col: number; text: string } }, line: number) {
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

function judge(statement: Sql, body: string): string[] {
  const found: string[] = []
  const isSelect = statement.type === 'select'
  if (isSelect && JSON.stringify(statement.columns ?? []).includes('{"expr":{"type":"ref","name":"*"}}'))
    found.push('`SELECT *` reads columns nobody asked for and breaks when the table changes.')
  if ((statement.type === 'update' || statement.type === 'delete') && !statement.where)
    found.push(`\`${statement.type.toUpperCase()}\` without \`WHERE\` touches every row.`)
  const from = (statement.from as Sql[] | undefined) ?? []
  if (isSelect && Array.isArray(from) && from.filter((item) => !item.join).length > 1 && !statement.where)
    found.push('Tables listed with commas and no condition: every row meets every row.')
  if (/\blike\s+'%/i.test(body)) found.push('`LIKE` with a leading `%` cannot use an ordinary index.')
  if (/\bnot\s+in\s*\(\s*select/i.test(body))
    found.push('`NOT IN (SELECT …)` is never true once the subquery has a NULL; use `NOT EXISTS`.')
  if (/(?:=|<>|!=)\s*null\b/i.test(body)) found.push('Nothing equals NULL; use `IS NULL` or `IS NOT NULL`.')
  if (isSelect && statement.limit && !statement.orderBy)
    found.push('`LIMIT` without `ORDER BY` returns any rows it likes.')
  return found
}
