import type { ParserPlugin } from '@babel/parser'
import type { FunctionInfo, SourceAnalysis } from './source.ts'
import { formatCount } from './text.ts'

type Node = { type: string; loc?: { start: { line: number; column: number }; end: { line: number } } } & Record<
  string,
  unknown
>

const BRANCHES = new Set([
  'IfStatement',
  'ConditionalExpression',
  'ForStatement',
  'ForInStatement',
  'ForOfStatement',
  'WhileStatement',
  'DoWhileStatement',
  'CatchClause',
  'SwitchCase',
  'LogicalExpression',
])
const BLOCKS = new Set([
  'IfStatement',
  'ForStatement',
  'ForInStatement',
  'ForOfStatement',
  'WhileStatement',
  'DoWhileStatement',
  'SwitchStatement',
  'TryStatement',
])
const FUNCTIONS = new Set([
  'FunctionDeclaration',
  'FunctionExpression',
  'ArrowFunctionExpression',
  'ObjectMethod',
  'ClassMethod',
  'ClassPrivateMethod',
])

/** Analyses JavaScript or TypeScript. The parser is loaded on first use, because most runs never need it. */
export async function analyseJavaScript(text: string, dialect: string): Promise<SourceAnalysis> {
  const { parse } = await import('@babel/parser')
  const isTypeScript =
    dialect.startsWith('ts') ||
    dialect.startsWith('typescript') ||
    /\b(?:interface \w+|type \w+ =)|\w\)?: (?:string|number|boolean|void|unknown|any|Promise)\b/.test(text)
  const plugins: ParserPlugin[] = [
    ...(isTypeScript ? (['typescript'] as const) : []),
    ...(/<\/|\/>/.test(text) ? (['jsx'] as const) : []),
    'decorators',
  ]
  try {
    const file = parse(text, {
      sourceType: 'unambiguous',
      allowReturnOutsideFunction: true,
      allowAwaitOutsideFunction: true,
      errorRecovery: true,
      plugins,
    })
    const errors = (file.errors as unknown as ParserError[]).map(toSyntaxError)
    return { errors, ...analyseProgram(file.program as unknown as Node, isTypeScript) }
  } catch (error) {
    return {
      errors: [toSyntaxError(error as ParserError)],
      functions: [],
      smells: [],
      facts: [isTypeScript ? 'Read as TypeScript.' : 'Read as JavaScript.'],
    }
  }
}

type ParserError = Error & { loc?: { line: number; column: number } }

const toSyntaxError = (error: ParserError) => ({
  line: error.loc?.line ?? 1,
  column: (error.loc?.column ?? 0) + 1,
  message: error.message.split('\n')[0]!.replace(/ \(\d+:\d+\)$/, ''),
})

function analyseProgram(program: Node, isTypeScript: boolean): Omit<SourceAnalysis, 'errors'> {
  const functions: FunctionInfo[] = []
  const smells: { line: number; message: string }[] = []
  const counts = { declarations: 0, awaits: 0, classes: 0, imports: 0 }
  const addSmell = (node: Node, message: string) => smells.push({ line: node.loc?.start.line ?? 1, message })

  const visit = (node: Node, enclosing: FunctionInfo | undefined, depth: number, name: string | undefined) => {
    let owner = enclosing
    let level = depth
    if (FUNCTIONS.has(node.type)) {
      owner = toFunctionInfo(node, name)
      functions.push(owner)
      level = 0
    } else if (owner) {
      if (BRANCHES.has(node.type) && !(node.type === 'SwitchCase' && node.test === null)) owner.complexity++
      if (BLOCKS.has(node.type)) {
        level = depth + 1
        owner.depth = Math.max(owner.depth, level)
      }
    }
    checkNode(node, addSmell)
    if (node.type === 'ImportDeclaration') counts.imports++
    if (node.type === 'ClassDeclaration') counts.classes++
    if (node.type === 'AwaitExpression') counts.awaits++
    for (const [key, child] of childNodes(node)) visit(child, owner, level, inferName(node, key))
  }
  visit(program, undefined, 0, undefined)
  return {
    functions,
    smells,
    facts: [
      isTypeScript ? 'Read as TypeScript.' : 'Read as JavaScript.',
      `${formatCount(functions.length, 'function')}, ${formatCount(counts.classes, 'class')}, ${formatCount(counts.imports, 'import')}, ${formatCount(counts.awaits, 'await')}.`,
    ],
  }
}

function* childNodes(node: Node): Generator<[string, Node]> {
  for (const key of Object.keys(node)) {
    if (key === 'loc' || key === 'extra' || key.endsWith('Comments') || key === 'errors' || key === 'tokens') continue
    const value = node[key]
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) yield [key, child]
    }
  }
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'

/** The name a function gets from its parent node: `const f = () => …`, `{ f() {} }`, `x.f = function () {}`. */
function inferName(parent: Node, key: string): string | undefined {
  const target = (
    key === 'init' ? parent.id : key === 'right' ? parent.left : key === 'value' ? parent.key : undefined
  ) as Node | undefined
  return target ? readIdentifier(target) : undefined
}

const readIdentifier = (node: Node): string | undefined =>
  typeof node.name === 'string'
    ? node.name
    : isNode(node.property)
      ? readIdentifier(node.property)
      : typeof node.value === 'string'
        ? node.value
        : undefined

function toFunctionInfo(node: Node, name: string | undefined): FunctionInfo & { complexity: number; depth: number } {
  const nameNode = (node.id ?? node.key) as Node | undefined
  const start = node.loc?.start.line ?? 1
  return {
    name: (nameNode && readIdentifier(nameNode)) ?? name ?? '(anonymous)',
    line: start,
    lines: (node.loc?.end.line ?? start) - start + 1,
    parameters: ((node.params as Node[] | undefined) ?? []).map((parameter) => parameterName(parameter)),
    complexity: 1,
    depth: 0,
    ...(node.async === true && { async: true }),
  }
}

function parameterName(node: Node): string {
  if (typeof node.name === 'string') return node.name
  if (node.type === 'AssignmentPattern') return parameterName(node.left as Node)
  if (node.type === 'RestElement') return `...${parameterName(node.argument as Node)}`
  return 'options'
}

function checkNode(node: Node, addSmell: (node: Node, message: string) => void): void {
  switch (node.type) {
    case 'VariableDeclaration':
      if (node.kind === 'var') addSmell(node, '`var` leaks out of its block; use `const` or `let`.')
      return
    case 'BinaryExpression':
      if ((node.operator === '==' || node.operator === '!=') && !isNullLiteral(node.left) && !isNullLiteral(node.right))
        addSmell(node, `\`${node.operator}\` converts types before comparing; use \`${node.operator}=\`.`)
      return
    case 'CatchClause':
      if (((node.body as Node).body as unknown[]).length === 0) addSmell(node, 'An empty `catch` hides the failure.')
      return
    case 'TSAnyKeyword':
      addSmell(node, '`any` switches type checking off here; `unknown` keeps it.')
      return
    case 'DebuggerStatement':
      addSmell(node, '`debugger` was left in.')
      return
    case 'WithStatement':
      addSmell(node, '`with` makes names ambiguous and is refused in strict mode.')
      return
    case 'CallExpression':
    case 'NewExpression':
      checkCall(node, addSmell)
      return
    case 'AssignmentExpression':
      if (isNode(node.left) && isNode(node.left.property) && readIdentifier(node.left.property) === 'innerHTML')
        addSmell(node, 'Assigning `innerHTML` runs whatever markup the value carries.')
      return
    case 'WhileStatement':
    case 'DoWhileStatement':
      if (isEndlessLoop(node))
        addSmell(node, 'Nothing in this loop changes what its condition tests: once entered, it does not end.')
      checkSequentialAwait(node, addSmell)
      return
    case 'ForStatement':
    case 'ForOfStatement':
      if (node.await !== true) checkSequentialAwait(node, addSmell)
      return
    case 'ForInStatement':
      addSmell(node, '`for…in` walks inherited keys too; over arrays use `for…of`.')
  }
}

/** A loop whose condition has only names and literals, and whose body assigns none of them, calls no function and never exits. */
function isEndlessLoop(loop: Node): boolean {
  const names = new Set<string>()
  for (const node of walkWithin(loop.test as Node)) {
    if (/Call|Member|Await|Yield|Update|Assignment/.test(node.type)) return false
    if (node.type === 'Identifier') names.add(node.name as string)
  }
  if (names.size === 0) return false
  for (const node of walkWithin(loop.body as Node)) {
    if (/^(?:Break|Return|Throw)Statement$|^Await|^Yield/.test(node.type)) return false
    const target = (
      node.type === 'AssignmentExpression' ? node.left : node.type === 'UpdateExpression' ? node.argument : undefined
    ) as Node | undefined
    if (target && [...walkWithin(target)].some((part) => names.has(part.name as string))) return false
    // A called function may change a variable it closes over; only console methods certainly do not.
    if (node.type === 'CallExpression' && !isConsole(node.callee as Node)) return false
  }
  return true
}

const isConsole = (callee: Node) =>
  callee.type === 'MemberExpression' && isNode(callee.object) && readIdentifier(callee.object) === 'console'

function checkSequentialAwait(loop: Node, addSmell: (node: Node, message: string) => void): void {
  for (const node of walkWithin(loop.body as Node)) {
    if (node.type !== 'AwaitExpression') continue
    addSmell(
      node,
      '`await` inside a loop waits for one after the other; use `Promise.all` where the order does not matter.',
    )
    return
  }
}

/** A node and its descendants, without those in nested functions. */
function* walkWithin(node: Node): Generator<Node> {
  yield node
  for (const [, child] of childNodes(node)) if (!/Function|Method/.test(child.type)) yield* walkWithin(child)
}

function checkCall(node: Node, addSmell: (node: Node, message: string) => void): void {
  const callee = node.callee as Node
  const name = readIdentifier(callee)
  if (name === 'eval' || (node.type === 'NewExpression' && name === 'Function'))
    addSmell(node, '`eval` and `new Function` run text as code.')
  if (callee.type === 'MemberExpression' && isNode(callee.object) && readIdentifier(callee.object) === 'console')
    addSmell(node, `\`console.${name}\` was left in.`)
  const [firstArgument] = (node.arguments as Node[]) ?? []
  if (
    (name === 'query' || name === 'execute') &&
    firstArgument &&
    ((firstArgument.type === 'TemplateLiteral' && (firstArgument.expressions as unknown[]).length > 0) ||
      (firstArgument.type === 'BinaryExpression' && firstArgument.operator === '+'))
  ) {
    addSmell(node, 'SQL built by joining strings; pass values as parameters.')
  }
  if (name === 'forEach' && firstArgument?.async === true)
    addSmell(node, '`forEach` does not wait for async callbacks; use `for…of` with `await`.')
  if (name === 'parseInt' && (node.arguments as unknown[]).length === 1) addSmell(node, '`parseInt` without a radix.')
}

const isNullLiteral = (node: unknown) => isNode(node) && node.type === 'NullLiteral'
