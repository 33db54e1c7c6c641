import { MAX_JSON_DEPTH } from './canonicalize.ts'
import { ProofError } from './proof-error.ts'

/**
 * JSON.parse for evidence. It also rejects duplicate keys, because two parsers could then read different documents under
 * one signature, and nesting deeper than `canonicalize` allows.
 */
export function parseJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new ProofError('Not JSON.', { cause })
  }
  rejectDuplicateKeys(text)
  return value
}

/** The text is valid JSON at this point, so a string before a colon is a key and brackets are balanced. */
function rejectDuplicateKeys(text: string): void {
  const openContainers: (Set<string> | undefined)[] = []
  const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\]]/g
  for (let token = tokens.exec(text); token; token = tokens.exec(text)) {
    const [tokenText, colon] = token
    if (tokenText === '{' || tokenText === '[') {
      openContainers.push(tokenText === '{' ? new Set() : undefined)
      if (openContainers.length > MAX_JSON_DEPTH)
        throw new ProofError(`JSON nested deeper than ${MAX_JSON_DEPTH} levels.`)
    } else if (tokenText === '}' || tokenText === ']') {
      openContainers.pop()
    } else if (colon !== undefined) {
      const key = String(JSON.parse(tokenText.slice(0, tokenText.length - colon.length)))
      const keys = openContainers.at(-1)
      if (keys?.has(key)) throw new ProofError(`The key ${JSON.stringify(key)} appears twice in one object.`)
      keys?.add(key)
    }
  }
}
