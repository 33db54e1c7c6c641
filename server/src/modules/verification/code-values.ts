/** The value of an arithmetic expression of Python with names, for small questions about code. Undefined when it is anything else. */
type Scope = Readonly<Record<string, number>>

const TOKEN = /\s{0,8}(\d{1,12}(?:\.\d{1,6})?|[a-z_]\w{0,20}|\*\*|\/\/|==|!=|<=|>=|[-+*/%<>()])/giy
const MAX_TOKENS = 60

function tokenize(text: string): string[] | undefined {
  const tokens: string[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex
    const match = TOKEN.exec(text)
    if (!match) return text.slice(at).trim() === '' ? tokens : undefined
    tokens.push(match[1]!)
    if (tokens.length > MAX_TOKENS) return undefined
  }
  return tokens
}

/** Precedence climbing: comparisons, sums, products, powers. */
function evaluate(tokens: readonly string[], scope: Scope): number | undefined {
  let at = 0
  const peek = () => tokens[at]
  const primary = (): number => {
    const token = tokens[at++]
    if (token === '(') {
      const value = compare()
      if (tokens[at++] !== ')') return Number.NaN
      return value
    }
    if (token === '-') return -power()
    if (token === 'not') return compare() ? 0 : 1
    if (token !== undefined && /^\d/.test(token)) return Number(token)
    return token !== undefined && Object.hasOwn(scope, token) ? scope[token]! : Number.NaN
  }
  const power = (): number => {
    const base = primary()
    if (peek() !== '**') return base
    at++
    return base ** power()
  }
  const product = (): number => {
    let value = power()
    for (let sign = peek(); sign === '*' || sign === '/' || sign === '//' || sign === '%'; sign = peek()) {
      at++
      const other = power()
      value =
        sign === '*'
          ? value * other
          : sign === '/'
            ? value / other
            : sign === '//'
              ? Math.floor(value / other)
              : value - other * Math.floor(value / other)
    }
    return value
  }
  const sum = (): number => {
    let value = product()
    for (let sign = peek(); sign === '+' || sign === '-'; sign = peek()) {
      at++
      value = sign === '+' ? value + product() : value - product()
    }
    return value
  }
  const compare = (): number => {
    const left = sum()
    const sign = peek()
    if (sign === undefined || !/^(?:==|!=|<=|>=|<|>)$/.test(sign)) return left
    at++
    const right = sum()
    const isTrue =
      sign === '=='
        ? left === right
        : sign === '!='
          ? left !== right
          : sign === '<='
            ? left <= right
            : sign === '>='
              ? left >= right
              : sign === '<'
                ? left < right
                : left > right
    return isTrue ? 1 : 0
  }
  const value = compare()
  return at === tokens.length && Number.isFinite(value) ? value : undefined
}

const COMPREHENSION =
  /\[([^[\]]{1,60}?) for ([a-z_]\w{0,10}) in (?:range\((\d{1,3})(?:, ?(\d{1,3}))?(?:, ?(\d{1,2}))?\)|\[([\d, ]{1,120})\])(?: if ([^[\]]{1,60}))?\]/i

/** The value that a list comprehension or an assignment in the text has. */
export function evaluateCode(text: string): string | undefined {
  const list = COMPREHENSION.exec(text)
  if (list) {
    const [, expression, name, first, second, step, items, condition] = list
    const values = items
      ? items.split(',').map(Number)
      : Array.from({ length: 400 }, (_, i) => (second ? Number(first) : 0) + i * Number(step ?? 1)).filter(
          (value) => value < Number(second ?? first),
        )
    const body = tokenize(expression!)
    const test = condition ? tokenize(condition) : undefined
    if (!body || (condition && !test) || values.length > 200) return undefined
    const results: number[] = []
    for (const value of values) {
      const scope = { [name!]: value }
      const isKept = test ? evaluate(test, scope) : 1
      if (isKept === undefined) return undefined
      if (!isKept) continue
      const result = evaluate(body, scope)
      if (result === undefined) return undefined
      results.push(result)
    }
    return `[${results.join(', ')}]`
  }
  const assigned = /(?:\b[a-z]\w{0,10} = |`|print\()(\(?-?\d[\d\s+*/%().-]{2,60}?)(?:`|\)?(?=\s\(|$|\?|\n|`)|\))/i.exec(
    text,
  )
  if (!assigned || !/\/\/|%|\*\*|[+*-]/.test(assigned[1]!)) return undefined
  const tokens = tokenize(assigned[1]!.trim())
  const value = tokens ? evaluate(tokens, {}) : undefined
  return value === undefined ? undefined : String(value)
}
