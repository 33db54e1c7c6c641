import type { ParserPlugin } from '@babel/parser'
import type { CodeBlock } from '../../modules/verification/code.ts'

/** Parsers recurse for every open bracket; deeper code is not checked. */
const MAX_NESTING = 40

/** One message for each block that does not parse. A parser that fails for another reason says nothing. */
export async function findSyntaxFaults(blocks: readonly CodeBlock[]): Promise<string[]> {
  const faults: string[] = []
  for (const block of blocks) {
    if (nestingOf(block.code) > MAX_NESTING) continue
    const fault = await PARSERS[block.language](block.code)
    if (fault) faults.push(fault)
  }
  return faults
}

const PARSERS: Readonly<Record<CodeBlock['language'], (code: string) => Promise<string | undefined>>> = {
  javascript: (code) => parseJavaScript(code, ['jsx']),
  typescript: async (code) =>
    (await parseJavaScript(code, ['typescript'])) ? parseJavaScript(code, ['typescript', 'jsx']) : undefined,
  python: parsePython,
  sql: parseSql,
  json: parseJson,
  yaml: parseYaml,
}

async function parseJavaScript(code: string, plugins: ParserPlugin[]): Promise<string | undefined> {
  const { parse } = await import('@babel/parser')
  const options = {
    allowReturnOutsideFunction: true,
    allowAwaitOutsideFunction: true,
    allowSuperOutsideMethod: true,
    allowUndeclaredExports: true,
    allowImportExportEverywhere: true,
    plugins: [...plugins, 'decorators' as const],
  }
  for (const sourceType of ['module', 'script'] as const)
    try {
      parse(code, { ...options, sourceType })
      return undefined
    } catch {
      // The other kind of source may fit.
    }
  try {
    // A single object is an expression.
    parse(`(${code.trim().replace(/;$/, '')})`, { ...options, sourceType: 'script' })
    return undefined
  } catch {
    return 'The JavaScript in it does not parse.'
  }
}

async function parsePython(code: string): Promise<string | undefined> {
  const { parser } = await import('@lezer/python')
  // Sessions of the interpreter and commands of the shell are no program.
  if (/^\s*(?:>>>|\$ |%|!)/m.test(code)) return undefined
  let hasError = false
  parser.parse(`${code}\n`).iterate({
    enter: (node) => {
      if (node.type.isError) hasError = true
      return !hasError
    },
  })
  return hasError ? 'The Python in it does not parse.' : undefined
}

/** Many dialects are valid and unknown to the parser, so a fault must be one in all of them. */
async function parseSql(code: string): Promise<string | undefined> {
  const { parse } = await import('pgsql-ast-parser')
  try {
    parse(code.slice(0, 4_000))
    return undefined
  } catch {
    const text = code
      .replace(/--.{0,400}$/gm, ' ')
      .replace(/'(?:[^']|'')*'/g, "''")
      .toLowerCase()
    const isOpen =
      (text.match(/\(/g)?.length ?? 0) !== (text.match(/\)/g)?.length ?? 0) || (text.match(/'/g)?.length ?? 0) % 2 === 1
    const isMisplaced =
      /,\s*from\b|\bselect\s+from\b|\bgroup\s+by\b[^()]{0,400}\bwhere\b|\border\s+by\b[^()]{0,400}\b(?:where|group\s+by)\b|\blimit\b[^()]{0,100}\border\s+by\b|\bwhere\s*(?:;|$|group|order)|\b(?:and|or|where|from|join|on|by|,|=)\s*;?\s*$/.test(
        text,
      )
    const isUnknown =
      !/\b(?:select|insert|update|delete|create|with|alter|drop|merge|explain|grant|truncate|begin|declare|set|values|call|show|use|replace|pragma|refresh|vacuum|analyze|comment|do)\b/.test(
        text,
      )
    return isOpen || isMisplaced || isUnknown ? 'The SQL in it does not parse.' : undefined
  }
}

async function parseJson(code: string): Promise<string | undefined> {
  try {
    JSON.parse(code)
    return undefined
  } catch {
    // With comments and several values in one block it is shown, not given.
    if (/^\s*\/\/|\/\*|\.\.\.|…/m.test(code)) return undefined
    const lines = code.trim().split('\n')
    try {
      for (const line of lines) JSON.parse(line)
      return undefined
    } catch {
      return 'The JSON in it does not parse.'
    }
  }
}

async function parseYaml(code: string): Promise<string | undefined> {
  // Templates of Helm, Jinja and the like are YAML only once they are filled in.
  if (/\{\{|\{%|<%/.test(code)) return undefined
  const { parseAllDocuments } = await import('yaml')
  const documents = parseAllDocuments(code, { logLevel: 'silent', uniqueKeys: false, strict: false })
  return Array.isArray(documents) && documents.some(({ errors }) => errors.length > 0)
    ? 'The YAML in it does not parse.'
    : undefined
}

function nestingOf(text: string): number {
  let depth = 0
  let deepest = 0
  for (const character of text)
    if ('([{<'.includes(character)) deepest = Math.max(deepest, ++depth)
    else if (')]}>'.includes(character)) depth = Math.max(0, depth - 1)
  return deepest
}
