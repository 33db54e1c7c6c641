export type JsonPath = (string | number)[]
export type ParsedJson = { value: unknown } | { error: string; line: number; column: number }

/** Parses JSON and says in which line and column it fails; a key that stands twice in an object is a failure too. */
export function parseJsonText(text: string): ParsedJson {
  const failure = scan(text)
  if (failure) return { error: failure.message, ...lineOf(text, failure.at) }
  try {
    return { value: JSON.parse(text) }
  } catch {
    return { error: 'This is not JSON.', ...lineOf(text, text.length) }
  }
}

function lineOf(text: string, at: number): { line: number; column: number } {
  const before = text.slice(0, at).split('\n')
  return { line: before.length, column: before.at(-1)!.length + 1 }
}

type Container = { isArray: boolean; keys: Set<string>; key: string | undefined; index: number; expects: Expected }
type Expected = 'key-or-end' | 'key' | 'colon' | 'value' | 'value-or-end' | 'comma-or-end'

const TOKEN = /\s+|"(?:[^"\\\n]|\\.)*"|[{}[\],:]|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

/** Reads the text token by token up to its first failure; `visit` sees the open containers before each token. */
function scan(
  text: string,
  visit: (open: readonly Container[], start: number, end: number) => void = () => {},
): { at: number; message: string } | undefined {
  const open: Container[] = []
  let isDone = false
  let at = 0
  const fail = (message: string) => ({ at, message })
  const endValue = () => {
    const container = open.at(-1)
    if (container) container.expects = 'comma-or-end'
    else isDone = true
  }
  while (at < text.length) {
    TOKEN.lastIndex = at
    const token = TOKEN.exec(text)?.[0]
    if (token === undefined) {
      const rest = text.slice(at, at + 12).split('\n')[0]
      return fail(rest?.startsWith('"') ? 'This text has no closing quote.' : `Unexpected ${rest}.`)
    }
    visit(open, at, at + token.length)
    if (/^\s/.test(token)) {
      at += token.length
      continue
    }
    const container = open.at(-1)
    if (isDone) return fail(`Unexpected ${token} after the end.`)
    const expects = container?.expects ?? 'value'
    if (token === ']' || token === '}') {
      const isMatch = container !== undefined && container.isArray === (token === ']')
      if (!isMatch || !['key-or-end', 'value-or-end', 'comma-or-end'].includes(expects))
        return fail(
          expects === 'value' || expects === 'key' ? `A comma too many before ${token}.` : `Unexpected ${token}.`,
        )
      open.pop()
      endValue()
    } else if (token === ',') {
      if (expects !== 'comma-or-end') return fail('Unexpected comma.')
      container!.expects = container!.isArray ? 'value' : 'key'
      container!.index += 1
    } else if (token === ':') {
      if (expects !== 'colon') return fail('Unexpected colon.')
      container!.expects = 'value'
    } else if (expects === 'comma-or-end') return fail('A comma is missing before this.')
    else if (expects === 'colon') return fail('A colon is missing before this.')
    else if (expects === 'key' || expects === 'key-or-end') {
      if (!token.startsWith('"')) return fail('The name of a field is a text in quotes.')
      const key = readText(token)
      if (key === undefined) return fail('This text has an escape that JSON does not have.')
      if (container!.keys.has(key)) return fail(`The field ${key} stands here twice.`)
      container!.keys.add(key)
      container!.key = key
      container!.expects = 'colon'
    } else if (token === '{' || token === '[') {
      const isArray = token === '['
      open.push({
        isArray,
        keys: new Set(),
        key: undefined,
        index: 0,
        expects: isArray ? 'value-or-end' : 'key-or-end',
      })
    } else {
      if (token.startsWith('"') && readText(token) === undefined)
        return fail('This text has an escape that JSON does not have.')
      endValue()
    }
    at += token.length
  }
  if (isDone) return undefined
  return fail(open.length === 0 ? 'There is no value.' : `A closing ${open.at(-1)!.isArray ? ']' : '}'} is missing.`)
}

function readText(token: string): string | undefined {
  try {
    return JSON.parse(token) as string
  } catch {
    return undefined
  }
}

/** The path of the object that the caret stands in, in text that may be unfinished. */
export function pathAtCaret(text: string, caret: number): JsonPath {
  let path: JsonPath = []
  let isFound = false
  const toPath = (open: readonly Container[]) =>
    open.slice(0, -1).map((container) => (container.isArray ? container.index : (container.key ?? '')))
  scan(text, (open, start, end) => {
    if (isFound || start > caret) return
    path = toPath(open)
    // A caret at the end of a bracket stands behind it.
    isFound = caret < end
  })
  return path
}
