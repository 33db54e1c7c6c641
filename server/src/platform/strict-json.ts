/**
 * JSON.parse keeps the last of two equal keys, turns 1e400 into Infinity, rounds integers past 2^53 and
 * spends half a second on five megabytes of brackets. Money must not pass through that: one scan refuses all four.
 */
const MAX_DEPTH = 32
const MAX_KEYS = 5_000

export class JsonRefused extends Error {}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const MINUS = 0x2d

export function parseStrictJson(text: string): unknown {
  scan(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new JsonRefused('The body is not valid JSON.')
  }
  return value
}

/** Looks only for what JSON.parse lets through; whether the text is JSON at all is left to JSON.parse. */
function scan(text: string) {
  // One entry a nesting level: the keys seen so far for an object, null for an array.
  const levels: (Set<string> | null)[] = []
  let keys = 0
  let expectKey = false
  let at = 0
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const end = stringEnd(text, at)
      refuseUnstorable(text.slice(at, end))
      if (expectKey) {
        rememberKey(levels.at(-1), text.slice(at, end))
        keys += 1
        if (keys > MAX_KEYS) throw new JsonRefused(`The body has more than ${MAX_KEYS} keys.`)
        expectKey = false
      }
      at = end
      continue
    }
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      levels.push(code === OPEN_OBJECT ? new Set() : null)
      if (levels.length > MAX_DEPTH) throw new JsonRefused(`The body is nested deeper than ${MAX_DEPTH} levels.`)
      expectKey = code === OPEN_OBJECT
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      levels.pop()
      expectKey = false
    } else if (code === COMMA) {
      expectKey = levels.at(-1) instanceof Set
    } else if (code === MINUS || (code >= 0x30 && code <= 0x39)) {
      at = checkNumber(text, at)
      continue
    }
    at += 1
  }
}

function stringEnd(text: string, start: number): number {
  let at = start + 1
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) return at + 1
    at += code === BACKSLASH ? 2 : 1
  }
  throw new JsonRefused('The body is not valid JSON.')
}

/** Half a surrogate pair is no text, and PostgreSQL keeps no NUL; both can only come as an escape. */
function refuseUnstorable(quoted: string) {
  if (!/\\u(0000|[dD][89a-fA-F])/.test(quoted)) return
  const value = read(quoted)
  if (value.includes('\0')) throw new JsonRefused('The body has a NUL character in a string.')
  if (!value.isWellFormed()) throw new JsonRefused('The body has half a surrogate pair in a string.')
}

function rememberKey(level: Set<string> | null | undefined, quoted: string) {
  const key = read(quoted)
  if (key === '__proto__') throw new JsonRefused("The key '__proto__' is refused.")
  if (level?.has(key)) throw new JsonRefused(`The key '${key.slice(0, 60)}' appears twice in one object.`)
  level?.add(key)
}

const number = /-?\d+(\.\d+)?([eE][+-]?\d+)?/y

function checkNumber(text: string, start: number): number {
  number.lastIndex = start
  const found = number.exec(text)?.[0]
  if (found === undefined) throw new JsonRefused('The body is not valid JSON.')
  const value = Number(found)
  if (!Number.isFinite(value)) throw new JsonRefused(`The number ${found.slice(0, 24)} is too large.`)
  if (!/[.eE]/.test(found) && !Number.isSafeInteger(value))
    throw new JsonRefused(`The integer ${found.slice(0, 24)} cannot be read exactly; send it as a string.`)
  return start + found.length
}

function read(quoted: string): string {
  try {
    return JSON.parse(quoted)
  } catch {
    throw new JsonRefused('The body is not valid JSON.')
  }
}
