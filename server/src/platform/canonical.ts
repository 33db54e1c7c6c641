import { hash } from 'node:crypto'

/**
 * The RFC 8785 form of a value; members without a JSON form are left out, as by JSON.stringify. `proof/` has an
 * independent second implementation for auditors, and the tests compare both with the `canonicalize` library.
 */
export function canonicalJson(value: unknown): string {
  const text = writeValue(value)
  if (text === undefined) throw new TypeError('This value has no JSON form.')
  return text
}

/** Undefined for a value that JSON leaves out of an object. */
function writeValue(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return writeString(value)
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`In JSON ${value} is not allowed`)
      // RFC 8785 prescribes ECMAScript's number format, which writes -0 as 0.
      return String(value)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      return value === null ? 'null' : writeObject(value as Record<string, unknown>)
    case 'bigint':
      throw new TypeError('A bigint has no JSON form.')
    default:
      return undefined
  }
}

function writeObject(value: Record<string, unknown>): string | undefined {
  if (Array.isArray(value)) return writeArray(value)
  if (typeof value.toJSON === 'function') return writeValue(value.toJSON())
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return writeValue(value.valueOf())
  return `{${writeMembers(value).join(',')}}`
}

function writeArray(items: readonly unknown[]): string {
  let text = '['
  for (let index = 0; index < items.length; index += 1) {
    if (index > 0) text += ','
    text += writeValue(items[index]) ?? 'null'
  }
  return `${text}]`
}

/** The members of an object in canonical order, each as `"name":value`. */
export function writeMembers(value: Record<string, unknown>): string[] {
  const members: string[] = []
  // The default order of sort() is by UTF-16 code units, as RFC 8785 requires.
  for (const name of Object.keys(value).sort()) {
    const text = writeValue(value[name])
    if (text !== undefined) members.push(`${writeString(name)}:${text}`)
  }
  return members
}

function writeString(text: string): string {
  if (!text.isWellFormed()) throw new TypeError('In canonical JSON a lone surrogate is not allowed')
  return JSON.stringify(text)
}

export const sha256 = (data: string | Uint8Array): string => `sha256:${hash('sha256', data)}`

/** The hash by which requests, policies and receipts are identified. */
export const hashJson = (value: unknown): string => sha256(canonicalJson(value))
