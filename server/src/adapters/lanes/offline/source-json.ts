import type { SourceAnalysis } from './source.ts'
import { createPositions } from './text.ts'

/** Analyses JSON. `JSON.parse` decides validity; the position of a syntax error is found by a scan of our own. */
export function analyseJson(text: string): SourceAnalysis {
  try {
    const value: unknown = JSON.parse(text)
    return {
      errors: [],
      functions: [],
      smells: findDuplicateKeys(text),
      facts: [`Valid JSON: ${describeShape(value)}.`],
    }
  } catch {
    const syntaxError = findSyntaxError(text)
    return {
      errors: [{ ...createPositions(text)(syntaxError.offset), message: syntaxError.message }],
      functions: [],
      smells: [],
      facts: [],
    }
  }
}

function describeShape(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length} items`
  if (value && typeof value === 'object')
    return `an object with ${Object.keys(value).length} keys (${Object.keys(value).slice(0, 10).join(', ')})`
  return `a ${value === null ? 'null' : typeof value}`
}

/** Scans for the first syntax error, because the engine's error messages differ between versions. */
function findSyntaxError(text: string): { offset: number; message: string } {
  const stack: string[] = []
  let previousToken = ''
  for (let offset = 0; offset < text.length; offset++) {
    const character = text[offset]!
    if (/\s/.test(character)) continue
    if (character === "'") return { offset, message: 'Strings take double quotes' }
    if (character === '/' && (text[offset + 1] === '/' || text[offset + 1] === '*'))
      return { offset, message: 'JSON has no comments' }
    if (character === '"') {
      if (previousToken === 'value') return { offset, message: 'A comma is missing before this string' }
      const end = findStringEnd(text, offset)
      if (end < 0) return { offset, message: 'This string is not closed' }
      offset = end
      previousToken = 'value'
    } else if (character === '{' || character === '[') {
      if (previousToken === 'value') return { offset, message: 'A comma is missing here' }
      stack.push(character)
      previousToken = 'open'
    } else if (character === '}' || character === ']') {
      if (previousToken === ',') return { offset, message: 'A trailing comma is not allowed' }
      if (stack.pop() !== (character === '}' ? '{' : '[')) return { offset, message: `\`${character}\` closes nothing` }
      previousToken = 'value'
    } else if (character === ',' || character === ':') {
      if (previousToken !== 'value') return { offset, message: `Unexpected \`${character}\`` }
      previousToken = character
    } else {
      const word = /^[\w.+-]+/.exec(text.slice(offset, offset + 40))?.[0] ?? character
      if (!/^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/.test(word))
        return { offset, message: `\`${word}\` is not a JSON value` }
      if (previousToken === 'value') return { offset, message: 'A comma is missing here' }
      offset += word.length - 1
      previousToken = 'value'
    }
  }
  return {
    offset: text.length,
    message: stack.length > 0 ? `\`${stack.at(-1)}\` is not closed` : 'The text ends too early',
  }
}

function findStringEnd(text: string, start: number): number {
  for (let offset = start + 1; offset < text.length; offset++) {
    if (text[offset] === '\\') offset++
    else if (text[offset] === '"') return offset
    else if (text[offset] === '\n') return -1
  }
  return -1
}

/** Reports duplicate keys, because parsers silently keep the last one. */
function findDuplicateKeys(text: string): { line: number; message: string }[] {
  const duplicates: { line: number; message: string }[] = []
  const scopes: Set<string>[] = []
  const positionAt = createPositions(text)
  for (let offset = 0; offset < text.length; offset++) {
    const character = text[offset]!
    if (character === '{' || character === '[') scopes.push(new Set())
    else if (character === '}' || character === ']') scopes.pop()
    else if (character === '"') {
      const end = findStringEnd(text, offset)
      const key = text.slice(offset + 1, end)
      if (/^\s*:/.test(text.slice(end + 1, end + 20))) {
        if (scopes.at(-1)?.has(key) && duplicates.length < 10)
          duplicates.push({
            line: positionAt(offset).line,
            message: `The key “${key.slice(0, 40)}” appears twice; the last one wins.`,
          })
        scopes.at(-1)?.add(key)
      }
      offset = end
    }
  }
  return duplicates
}
