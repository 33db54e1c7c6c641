import type { ParserPlugin } from '@babel/parser'
import type { FunctionFact, Reading } from './source.ts'
import { counted } from './text.ts'

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

/** Reads JavaScript or TypeScript. The parser is loaded on first use: most runs never need it. */
export async function readJavaScript(text: string, dialect: string): Promise<Reading> {
  const { parse } = await import('@babel/parser')
  const typed =
    dialect.startsWith('ts') ||
    dialect.startsWith('typescript') ||
    /\b(?:interface \w+|type \w+ =)|\w\)?: (?:string|number|boolean|void|unknown|any|Promise)\b/.test(text)
  const plugins: ParserPlugin[] = [
    ...(typed ? (['typescript'] as const) : []),
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
    const errors = (file.errors as unknown as ParseFault[]).map(faultOf)
    return { errors, ...walk(file.program as unknown as Node, typed) }
  } catch (error) {
    return {
      errors: [faultOf(error as ParseFault)],
      functions: [],
      smells: [],
      facts: [typed ? 'Read as TypeScript.' : 'Read as JavaScript.'],
    }
  }
}

type ParseFault = Error & { loc?: { line: number; column: number } }

const faultOf = (error: ParseFault) => ({
  line: error.loc?.line ?? 1,
  column: (error.loc?.column ?? 0) + 1,
  message: error.message.split('\n')[0]!.replace(/ \(\d+:\d+\)$/, ''),
})

function walk(program: Node, typed: boolean): Omit<Reading, 'errors'> {
  const functions: FunctionFact[] = []
  const smells: { line: number; message: string }[] = []
  const counts = { declarations: 0, awaits: 0, classes: 0, imports: 0 }
  const smell = (node: Node, message: string) => smells.push({ line: node.loc?.start.line ?? 1, message })

  const visit = (node: Node, inside: FunctionFact | undefined, depth: number, name: string | undefined) => {
    let owner = inside
    let level = depth
    if (FUNCTIONS.has(node.type)) {
      owner = functionFact(node, name)
      functions.push(owner)
      level = 0
    } else if (owner) {
      if (BRANCHES.has(node.type) && !(node.type === 'SwitchCase' && node.test === null)) owner.complexity++
      if (BLOCKS.has(node.type)) {
        level = depth + 1
        owner.depth = Math.max(owner.depth, level)
      }
    }
    judge(node, smell)
    if (node.type === 'ImportDeclaration') counts.imports++
    if (node.type === 'ClassDeclaration') counts.classes++
    if (node.type === 'AwaitExpression') counts.awaits++
    for (const [key, child] of childrenOf(node)) visit(child, owner, level, nameOf(node, key))
  }
  visit(program, undefined, 0, undefined)
  return {
    functions,
    smells,
    facts: [
      typed ? 'Read as TypeScript.' : 'Read as JavaScript.',
      `${counted(functions.length, 'function')}, ${counted(counts.classes, 'class')}, ${counted(counts.imports, 'import')}, ${counted(counts.awaits, 'await')}.`,
    ],
  }
}

function* childrenOf(node: Node): Generator<[string, Node]> {
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

/** The name a function gets from where it stands: `const f = () => …`, `{ f() {} }`, `x.f = function () {}`. */
function nameOf(parent: Node, key: string): string | undefined {
  const target = (
    key === 'init' ? parent.id : key === 'right' ? parent.left : key === 'value' ? parent.key : undefined
  ) as Node | undefined
  return target ? identifier(target) : undefined
}

const identifier = (node: Node): string | undefined =>
  typeof node.name === 'string'
    ? node.name
    : isNode(node.property)
      ? identifier(node.property)
      : typeof node.value === 'string'
        ? node.value
        : undefined

function functionFact(node: Node, name: string | undefined): FunctionFact & { complexity: number; depth: number } {
  const own = (node.id ?? node.key) as Node | undefined
  const start = node.loc?.start.line ?? 1
  return {
    name: (own && identifier(own)) ?? name ?? '(anonymous)',
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

function judge(node: Node, smell: (node: Node, message: string) => void): void {
  switch (node.type) {
    case 'VariableDeclaration':
      if (node.kind === 'var') smell(node, '`var` leaks out of its block; use `const` or `let`.')
      return
    case 'BinaryExpression':
      if ((node.operator === '==' || node.operator === '!=') && !isNullLiteral(node.left) && !isNullLiteral(node.right))
        smell(node, `\`${node.operator}\` converts types before comparing; use \`${node.operator}=\`.`)
      return
    case 'CatchClause':
      if (((node.body as Node).body as unknown[]).length === 0) smell(node, 'An empty `catch` hides the failure.')
      return
    case 'TSAnyKeyword':
      smell(node, '`any` switches type checking off here; `unknown` keeps it.')
      return
    case 'DebuggerStatement':
      smell(node, '`debugger` was left in.')
      return
    case 'WithStatement':
      smell(node, '`with` makes names ambiguous and is refused in strict mode.')
      return
    case 'CallExpression':
    case 'NewExpression':
      judgeCall(node, smell)
      return
    case 'AssignmentExpression':
      if (isNode(node.left) && isNode(node.left.property) && identifier(node.left.property) === 'innerHTML')
        smell(node, 'Assigning `innerHTML` runs whatever markup the value carries.')
      return
    case 'WhileStatement':
    case 'DoWhileStatement':
      if (neverEnds(node))
        smell(node, 'Nothing in this loop changes what its condition tests: once entered, it does not end.')
      waitsInTurn(node, smell)
      return
    case 'ForStatement':
    case 'ForOfStatement':
      if (node.await !== true) waitsInTurn(node, smell)
      return
    case 'ForInStatement':
      smell(node, '`for…in` walks inherited keys too; over arrays use `for…of`.')
  }
}

/** A condition of plain names and literals, and a body that assigns none of them, calls nothing on them and never leaves. */
function neverEnds(loop: Node): boolean {
  const names = new Set<string>()
  for (const node of within(loop.test as Node)) {
    if (/Call|Member|Await|Yield|Update|Assignment/.test(node.type)) return false
    if (node.type === 'Identifier') names.add(node.name as string)
  }
  if (names.size === 0) return false
  for (const node of within(loop.body as Node)) {
    if (/^(?:Break|Return|Throw)Statement$|^Await|^Yield/.test(node.type)) return false
    const target = (
      node.type === 'AssignmentExpression' ? node.left : node.type === 'UpdateExpression' ? node.argument : undefined
    ) as Node | undefined
    if (target && [...within(target)].some((part) => names.has(part.name as string))) return false
    // A function called here may change a name it closes over; only the console surely does not.
    if (node.type === 'CallExpression' && !isConsole(node.callee as Node)) return false
  }
  return true
}

const isConsole = (callee: Node) =>
  callee.type === 'MemberExpression' && isNode(callee.object) && identifier(callee.object) === 'console'

function waitsInTurn(loop: Node, smell: (node: Node, message: string) => void): void {
  for (const node of within(loop.body as Node)) {
    if (node.type !== 'AwaitExpression') continue
    smell(
      node,
      '`await` inside a loop waits for one after the other; use `Promise.all` where the order does not matter.',
    )
    return
  }
}

/** A node and all below it, but not what stands in functions of its own. */
function* within(node: Node): Generator<Node> {
  yield node
  for (const [, child] of childrenOf(node)) if (!/Function|Method/.test(child.type)) yield* within(child)
}

function judgeCall(node: Node, smell: (node: Node, message: string) => void): void {
  const callee = node.callee as Node
  const name = identifier(callee)
  if (name === 'eval' || (node.type === 'NewExpression' && name === 'Function'))
    smell(node, '`eval` and `new Function` run text as code.')
  if (callee.type === 'MemberExpression' && isNode(callee.object) && identifier(callee.object) === 'console')
    smell(node, `\`console.${name}\` was left in.`)
  const [first] = (node.arguments as Node[]) ?? []
  if (
    (name === 'query' || name === 'execute') &&
    first &&
    ((first.type === 'TemplateLiteral' && (first.expressions as unknown[]).length > 0) ||
      (first.type === 'BinaryExpression' && first.operator === '+'))
  ) {
    smell(node, 'SQL built by joining strings; pass values as parameters.')
  }
  if (name === 'forEach' && first?.async === true)
    smell(node, '`forEach` does not wait for async callbacks; use `for…of` with `await`.')
  if (name === 'parseInt' && (node.arguments as unknown[]).length === 1) smell(node, '`parseInt` without a radix.')
}

const isNullLiteral = (node: unknown) => isNode(node) && node.type === 'NullLiteral'
