import { positionAt, type Reading } from './source.ts'

/** JSON read by the engine, with the place of the mistake worked out from the longest prefix that is still sound. */
export function readJson(text: string): Reading {
  try {
    const value: unknown = JSON.parse(text)
    return { errors: [], functions: [], smells: duplicateKeys(text), facts: [`Valid JSON: ${shapeOf(value)}.`] }
  } catch {
    const fault = findFault(text)
    return { errors: [{ ...positionAt(text, fault.at), message: fault.message }], functions: [], smells: [], facts: [] }
  }
}

function shapeOf(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length} items`
  if (value && typeof value === 'object')
    return `an object with ${Object.keys(value).length} keys (${Object.keys(value).slice(0, 10).join(', ')})`
  return `a ${value === null ? 'null' : typeof value}`
}

/** The engine's own words for a mistake change between versions, so the place is found here. */
function findFault(text: string): { at: number; message: string } {
  const stack: string[] = []
  let last = ''
  for (let at = 0; at < text.length; at++) {
    const mark = text[at]!
    if (/\s/.test(mark)) continue
    if (mark === "'") return { at, message: 'Strings take double quotes' }
    if (mark === '/' && (text[at + 1] === '/' || text[at + 1] === '*')) return { at, message: 'JSON has no comments' }
    if (mark === '"') {
      if (last === 'value') return { at, message: 'A comma is missing before this string' }
      const end = stringEnd(text, at)
      if (end < 0) return { at, message: 'This string is not closed' }
      at = end
      last = 'value'
    } else if (mark === '{' || mark === '[') {
      if (last === 'value') return { at, message: 'A comma is missing here' }
      stack.push(mark)
      last = 'open'
    } else if (mark === '}' || mark === ']') {
      if (last === ',') return { at, message: 'A trailing comma is not allowed' }
      if (stack.pop() !== (mark === '}' ? '{' : '[')) return { at, message: `\`${mark}\` closes nothing` }
      last = 'value'
    } else if (mark === ',' || mark === ':') {
      if (last !== 'value') return { at, message: `Unexpected \`${mark}\`` }
      last = mark
    } else {
      const word = /^[\w.+-]+/.exec(text.slice(at, at + 40))?.[0] ?? mark
      if (!/^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/.test(word))
        return { at, message: `\`${word}\` is not a JSON value` }
      if (last === 'value') return { at, message: 'A comma is missing here' }
      at += word.length - 1
      last = 'value'
    }
  }
  return {
    at: text.length,
    message: stack.length > 0 ? `\`${stack.at(-1)}\` is not closed` : 'The text ends too early',
  }
}

function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at
    else if (text[at] === '\n') return -1
  }
  return -1
}

/** Parsers keep the last of two equal keys and say nothing; that is worth saying. */
function duplicateKeys(text: string): { line: number; message: string }[] {
  const found: { line: number; message: string }[] = []
  const scopes: Set<string>[] = []
  for (let at = 0; at < text.length; at++) {
    const mark = text[at]!
    if (mark === '{' || mark === '[') scopes.push(new Set())
    else if (mark === '}' || mark === ']') scopes.pop()
    else if (mark === '"') {
      const end = stringEnd(text, at)
      const key = text.slice(at + 1, end)
      if (/^\s*:/.test(text.slice(end + 1, end + 20))) {
        if (scopes.at(-1)?.has(key) && found.length < 10)
          found.push({
            line: positionAt(text, at).line,
            message: `The key “${key.slice(0, 40)}” appears twice; the last one wins.`,
          })
        scopes.at(-1)?.add(key)
      }
      at = end
    }
  }
  return found
}
