/**
 * JSON.parse keeps the last of two equal keys, turns 1e400 into Infinity, rounds integers past 2^53 and
 * spends half a second on five megabytes of brackets. For payments none of that is acceptable: one scan refuses all four.
 */
const MAX_DEPTH = 32
const MAX_KEYS = 5_000

export class StrictJsonError extends Error {}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const MINUS = 0x2d

export function parseStrictJson(text: string): unknown {
  checkText(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new StrictJsonError('The body is not valid JSON.')
  }
  return value
}

/** Checks only what JSON.parse lets through; whether the text is JSON at all is left to JSON.parse. */
function checkText(text: string) {
  // One entry per nesting level: the keys so far for an object, null for an array.
  const levels: (Set<string> | null)[] = []
  // Without a backslash a string ends at the next quotation mark and is what it shows.
  const hasEscapes = text.includes('\\')
  let keys = 0
  let expectKey = false
  let position = 0
  while (position < text.length) {
    const code = text.charCodeAt(position)
    if (code === QUOTE) {
      const end = hasEscapes ? stringEnd(text, position) : text.indexOf('"', position + 1) + 1
      if (end === 0) throw new StrictJsonError('The body is not valid JSON.')
      if (hasEscapes) refuseUnstorable(text.slice(position, end))
      if (expectKey) {
        const key = hasEscapes ? parseString(text.slice(position, end)) : text.slice(position + 1, end - 1)
        rememberKey(levels.at(-1), key)
        keys += 1
        if (keys > MAX_KEYS) throw new StrictJsonError(`The body has more than ${MAX_KEYS} keys.`)
        expectKey = false
      }
      position = end
      continue
    }
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      levels.push(code === OPEN_OBJECT ? new Set() : null)
      if (levels.length > MAX_DEPTH) throw new StrictJsonError(`The body is nested deeper than ${MAX_DEPTH} levels.`)
      expectKey = code === OPEN_OBJECT
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      levels.pop()
      expectKey = false
    } else if (code === COMMA) {
      expectKey = levels.at(-1) instanceof Set
    } else if (code === MINUS || (code >= 0x30 && code <= 0x39)) {
      position = checkNumber(text, position)
      continue
    }
    position += 1
  }
}

function stringEnd(text: string, start: number): number {
  let position = start + 1
  while (position < text.length) {
    const code = text.charCodeAt(position)
    if (code === QUOTE) return position + 1
    position += code === BACKSLASH ? 2 : 1
  }
  throw new StrictJsonError('The body is not valid JSON.')
}

/** A lone surrogate is not text, and PostgreSQL cannot store NUL; both can only appear as an escape. */
function refuseUnstorable(quoted: string) {
  if (!/\\u(0000|[dD][89a-fA-F])/.test(quoted)) return
  const value = parseString(quoted)
  if (value.includes('\0')) throw new StrictJsonError('A string in the body contains a NUL character.')
  if (!value.isWellFormed()) throw new StrictJsonError('A string in the body contains a lone surrogate.')
}

function rememberKey(level: Set<string> | null | undefined, key: string) {
  if (key === '__proto__') throw new StrictJsonError("The key '__proto__' is not allowed.")
  if (level?.has(key)) throw new StrictJsonError(`The key '${key.slice(0, 60)}' appears twice in one object.`)
  level?.add(key)
}

const numberPattern = /-?\d+(\.\d+)?([eE][+-]?\d+)?/y

function checkNumber(text: string, start: number): number {
  numberPattern.lastIndex = start
  const literal = numberPattern.exec(text)?.[0]
  if (literal === undefined) throw new StrictJsonError('The body is not valid JSON.')
  const value = Number(literal)
  if (!Number.isFinite(value)) throw new StrictJsonError(`The number ${literal.slice(0, 24)} is too large.`)
  if (!/[.eE]/.test(literal) && !Number.isSafeInteger(value))
    throw new StrictJsonError(`The integer ${literal.slice(0, 24)} cannot be read exactly; send it as a string.`)
  return start + literal.length
}

function parseString(quoted: string): string {
  try {
    return JSON.parse(quoted)
  } catch {
    throw new StrictJsonError('The body is not valid JSON.')
  }
}
