import { type FunctionFact, positionAt, type Reading } from './source.ts'
import { counted } from './text.ts'

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

/** Reads Python with an error-tolerant grammar: one mistake does not hide the rest of the file. */
export async function readPython(text: string): Promise<Reading> {
  const { parser } = await import('@lezer/python')
  const errors: { line: number; column: number; message: string }[] = []
  const smells: { line: number; message: string }[] = []
  const functions: FunctionFact[] = []
  const open: { fact: FunctionFact; end: number }[] = []
  const blocks: number[] = []
  const counts = { classes: 0, imports: 0 }
  const smell = (at: number, message: string) => smells.push({ line: positionAt(text, at).line, message })

  parser.parse(text).iterate({
    enter: (node) => {
      while (open.length > 0 && node.from >= open.at(-1)!.end) open.pop()
      while (blocks.length > 0 && node.from >= blocks.at(-1)!) blocks.pop()
      const owner = open.at(-1)?.fact
      if (node.type.isError && errors.length < MAX_ERRORS) {
        const near = text
          .slice(node.from, node.from + 30)
          .split('\n')[0]!
          .trim()
        errors.push({
          ...positionAt(text, node.from),
          message: near ? `Unexpected \`${near}\`` : 'Something is missing here',
        })
      }
      if (node.name === 'FunctionDefinition') {
        const fact = functionFact(text, node.from, node.to)
        functions.push(fact)
        open.push({ fact, end: node.to })
        blocks.length = 0
      } else if (owner && BRANCHES.has(node.name)) {
        owner.complexity++
      }
      if (owner && BLOCKS.has(node.name)) {
        blocks.push(node.to)
        owner.depth = Math.max(owner.depth, blocks.length)
      }
      if (node.name === 'ClassDefinition') counts.classes++
      if (node.name === 'ImportStatement') counts.imports++
      judge(node.name, text.slice(node.from, Math.min(node.to, node.from + 400)), node.from, smell)
    },
  })
  return {
    errors: oncePerLine(errors),
    functions,
    smells,
    facts: [
      `Read as Python: ${counted(functions.length, 'function')}, ${counted(counts.classes, 'class')}, ${counted(counts.imports, 'import')}.`,
    ],
  }
}

/** The grammar reports several marks around one mistake; the first of a line says where to look. */
const oncePerLine = <T extends { line: number }>(errors: readonly T[]) =>
  errors.filter((error, at) => errors.findIndex((other) => other.line === error.line) === at)

function functionFact(text: string, from: number, to: number): FunctionFact & { complexity: number; depth: number } {
  const head = text.slice(from, Math.min(to, from + 1000))
  const signature = /^(?:async\s+)?def\s+(\w+)\s*\(([^)]*)/.exec(head)
  const start = positionAt(text, from).line
  return {
    name: signature?.[1] ?? '(unnamed)',
    line: start,
    lines: positionAt(text, Math.max(from, to - 1)).line - start + 1,
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

function judge(name: string, text: string, at: number, smell: (at: number, message: string) => void): void {
  if (name === 'TryStatement' && /\bexcept\s*:/.test(text))
    smell(at, 'A bare `except:` also catches KeyboardInterrupt and SystemExit.')
  if (name === 'TryStatement' && /\bexcept[^:\n]*:\s*pass\b/.test(text))
    smell(at, 'An exception is swallowed with `pass`.')
  if (name === 'ParamList' && /=\s*(?:\[\]|\{\}|list\(\)|dict\(\)|set\(\))/.test(text))
    smell(at, 'A mutable default argument is shared between calls; use `None` and create it inside.')
  if (name === 'CallExpression' && /^(?:eval|exec)\(/.test(text)) smell(at, '`eval` and `exec` run text as code.')
  if (name === 'CallExpression' && /^print\(/.test(text))
    smell(at, '`print` was left in; use logging where this runs unattended.')
  if (name === 'CallExpression' && /^[\w.]*execute\(\s*(?:f["']|["'][^"']*["']\s*(?:%|\+|\.format))/.test(text))
    smell(at, 'SQL built by joining strings; pass values as parameters.')
  if (
    name === 'CallExpression' &&
    /^(?:subprocess\.\w+|os\.system)\(/.test(text) &&
    /shell\s*=\s*True|^os\.system/.test(text)
  )
    smell(at, 'A shell runs this text: quoting mistakes become commands.')
  if (name === 'BinaryExpression' && /^[\w.]+\s*[!=]=\s*None$/.test(text))
    smell(at, 'Compare with `None` by `is` or `is not`.')
  if (name === 'ImportStatement' && /^from\s+\S+\s+import\s+\*/.test(text))
    smell(at, '`import *` hides where names come from.')
  if (name === 'ScopeStatement' && /^global\b/.test(text)) smell(at, '`global` state makes this function hard to test.')
}
