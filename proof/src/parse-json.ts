import { MAX_JSON_DEPTH } from './canonicalize.ts'
import { ProofError } from './proof-error.ts'

/**
 * JSON.parse for evidence. It also refuses duplicate keys, because two readers may then see two documents under one
 * signature, and nesting deeper than a canonical form may have.
 */
export function parseJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new ProofError('Not JSON.', { cause })
  }
  refuseDuplicateKeys(text)
  return value
}

/** The text is known to be valid JSON here, so a string before a colon is a key and every bracket has its partner. */
function refuseDuplicateKeys(text: string): void {
  const open: (Set<string> | undefined)[] = []
  const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\]]/g
  for (let token = tokens.exec(text); token; token = tokens.exec(text)) {
    const [found, colon] = token
    if (found === '{' || found === '[') {
      open.push(found === '{' ? new Set() : undefined)
      if (open.length > MAX_JSON_DEPTH) throw new ProofError(`JSON nested deeper than ${MAX_JSON_DEPTH} levels.`)
    } else if (found === '}' || found === ']') {
      open.pop()
    } else if (colon !== undefined) {
      const key = String(JSON.parse(found.slice(0, found.length - colon.length)))
      const keys = open.at(-1)
      if (keys?.has(key)) throw new ProofError(`The key ${JSON.stringify(key)} appears twice in one object.`)
      keys?.add(key)
    }
  }
}
