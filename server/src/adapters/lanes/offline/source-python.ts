import type { FunctionInfo, SourceAnalysis } from './source.ts'
import { createPositions, formatCount } from './text.ts'

const BRANCHES = new Set([
  'IfStatement',
  'ForStatement',
  'WhileStatement',
  'ConditionalExpression',
  'except',
  'elif',
  'and',
  'or',
  'ComprehensionExpression',
  'ArrayComprehensionExpression',
])
const BLOCKS = new Set(['IfStatement', 'ForStatement', 'WhileStatement', 'TryStatement', 'WithStatement'])
const MAX_ERRORS = 20

/** Analyses Python with an error-tolerant parser, so that one syntax error does not hide the rest of the file. */
export async function analysePython(text: string): Promise<SourceAnalysis> {
  const { parser } = await import('@lezer/python')
  const errors: { line: number; column: number; message: string }[] = []
  const smells: { line: number; message: string }[] = []
  const functions: FunctionInfo[] = []
  const openFunctions: { info: FunctionInfo; end: number }[] = []
  const blockEnds: number[] = []
  const counts = { classes: 0, imports: 0 }
  const positionAt = createPositions(text)
  const addSmell = (offset: number, message: string) => smells.push({ line: positionAt(offset).line, message })

  parser.parse(text).iterate({
    enter: (node) => {
      while (openFunctions.length > 0 && node.from >= openFunctions.at(-1)!.end) openFunctions.pop()
      while (blockEnds.length > 0 && node.from >= blockEnds.at(-1)!) blockEnds.pop()
      const owner = openFunctions.at(-1)?.info
      if (node.type.isError && errors.length < MAX_ERRORS) {
        const snippet = text
          .slice(node.from, node.from + 30)
          .split('\n')[0]!
          .trim()
        errors.push({
          ...positionAt(node.from),
          message: snippet ? `Unexpected \`${snippet}\`` : 'Something is missing here',
        })
      }
      if (node.name === 'FunctionDefinition') {
        const info = toFunctionInfo(text, node.from, node.to, positionAt)
        functions.push(info)
        openFunctions.push({ info, end: node.to })
        blockEnds.length = 0
      } else if (owner && BRANCHES.has(node.name)) {
        owner.complexity++
      }
      if (owner && BLOCKS.has(node.name)) {
        blockEnds.push(node.to)
        owner.depth = Math.max(owner.depth, blockEnds.length)
      }
      if (node.name === 'ClassDefinition') counts.classes++
      if (node.name === 'ImportStatement') counts.imports++
      checkNode(node.name, text.slice(node.from, Math.min(node.to, node.from + 400)), node.from, addSmell)
    },
  })
  return {
    errors: keepFirstPerLine(errors),
    functions,
    smells,
    facts: [
      `Read as Python: ${formatCount(functions.length, 'function')}, ${formatCount(counts.classes, 'class')}, ${formatCount(counts.imports, 'import')}.`,
    ],
  }
}

/** The parser may report several errors for one mistake; only the first of each line is kept. */
const keepFirstPerLine = <T extends { line: number }>(errors: readonly T[]) =>
  errors.filter((error, i) => errors.findIndex((otherError) => otherError.line === error.line) === i)

function toFunctionInfo(
  text: string,
  from: number,
  to: number,
  positionAt: (offset: number) => { line: number },
): FunctionInfo & { complexity: number; depth: number } {
  const head = text.slice(from, Math.min(to, from + 1000))
  const signature = /^(?:async\s+)?def\s+(\w+)\s*\(([^)]*)/.exec(head)
  const start = positionAt(from).line
  return {
    name: signature?.[1] ?? '(unnamed)',
    line: start,
    lines: positionAt(Math.max(from, to - 1)).line - start + 1,
    parameters: (signature?.[2] ?? '')
      .split(',')
      .map((parameter) => parameter.split(/[:=]/)[0]!.trim())
      .filter(
        (parameter) =>
          parameter && parameter !== 'self' && parameter !== 'cls' && parameter !== '*' && parameter !== '/',
      ),
    complexity: 1,
    depth: 0,
  }
}

function checkNode(
  name: string,
  text: string,
  offset: number,
  addSmell: (offset: number, message: string) => void,
): void {
  if (name === 'TryStatement' && /\bexcept\s*:/.test(text))
    addSmell(offset, 'A bare `except:` also catches KeyboardInterrupt and SystemExit.')
  if (name === 'TryStatement' && /\bexcept[^:\n]{0,100}:\s*pass\b/.test(text))
    addSmell(offset, 'An exception is swallowed with `pass`.')
  if (name === 'ParamList' && /=\s*(?:\[\]|\{\}|list\(\)|dict\(\)|set\(\))/.test(text))
    addSmell(offset, 'A mutable default argument is shared between calls; use `None` and create it inside.')
  if (name === 'CallExpression' && /^(?:eval|exec)\(/.test(text))
    addSmell(offset, '`eval` and `exec` run text as code.')
  if (name === 'CallExpression' && /^print\(/.test(text))
    addSmell(offset, '`print` was left in; use logging where this runs unattended.')
  if (name === 'CallExpression' && /^[\w.]*execute\(\s*(?:f["']|["'][^"']*["']\s*(?:%|\+|\.format))/.test(text))
    addSmell(offset, 'SQL built by joining strings; pass values as parameters.')
  if (
    name === 'CallExpression' &&
    /^(?:subprocess\.\w+|os\.system)\(/.test(text) &&
    /shell\s*=\s*True|^os\.system/.test(text)
  )
    addSmell(offset, 'A shell runs this text: quoting mistakes become commands.')
  if (name === 'BinaryExpression' && /^[\w.]+\s*[!=]=\s*None$/.test(text))
    addSmell(offset, 'Compare with `None` by `is` or `is not`.')
  if (name === 'ImportStatement' && /^from\s+\S+\s+import\s+\*/.test(text))
    addSmell(offset, '`import *` hides where names come from.')
  if (name === 'ScopeStatement' && /^global\b/.test(text))
    addSmell(offset, '`global` state makes this function hard to test.')
}
