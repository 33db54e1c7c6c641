import { ProofError } from './proof-error.ts'

/** Deeper than any real document, shallow enough that the recursion cannot exhaust a browser's stack. */
export const MAX_JSON_DEPTH = 128

/** Objects that share children can be small in memory and huge as text, so the number of values is limited too. */
export const MAX_JSON_VALUES = 1_000_000

/** The value has no canonical JSON form. `path` is the position of the problem, as in `$.route.lanes[2]`. */
export class CanonicalizeError extends ProofError {
  readonly path: string

  constructor(problem: string, path: string) {
    super(`Cannot canonicalize ${path}: ${problem}.`)
    this.path = path
  }
}

/**
 * The RFC 8785 (JCS) text of a JSON value: what every hash and signature of this package is computed over.
 * Values that `JSON.stringify` would silently drop or rewrite (undefined, dates, NaN, lone surrogates) are rejected
 * instead, because the signature would cover something other than the given value.
 */
export function canonicalize(value: unknown): string {
  const path: (string | number)[] = []
  let values = 0

  const createError = (problem: string) => new CanonicalizeError(problem, `$${path.map(formatPathStep).join('')}`)

  const writeString = (string: string) => {
    if (!string.isWellFormed()) throw createError('the text contains a lone surrogate, which UTF-8 cannot encode')
    return JSON.stringify(string)
  }

  const writeValue = (item: unknown): string => {
    values += 1
    if (values > MAX_JSON_VALUES) throw createError(`more than ${MAX_JSON_VALUES} values`)
    if (path.length > MAX_JSON_DEPTH) throw createError(`nested deeper than ${MAX_JSON_DEPTH} levels, or circular`)
    if (item === null || item === true || item === false) return String(item)
    if (typeof item === 'string') return writeString(item)
    if (typeof item === 'number') {
      if (!Number.isFinite(item)) throw createError(`${item} is not a JSON number`)
      // RFC 8785 prescribes ECMAScript's number format, which already writes -0 as 0.
      return String(item)
    }
    if (typeof item !== 'object') throw createError(`${typeof item} is not a JSON type`)
    if (Array.isArray(item)) return writeArray(item)
    if (isPlainObject(item)) return writeObject(item)
    throw createError('only plain objects and arrays can be canonicalized; convert this value first')
  }

  const writeArray = (items: readonly unknown[]): string => {
    let out = '['
    for (let index = 0; index < items.length; index += 1) {
      path.push(index)
      out += index === 0 ? writeValue(items[index]) : `,${writeValue(items[index])}`
      path.pop()
    }
    return `${out}]`
  }

  const writeObject = (object: Record<string, unknown>): string => {
    let out = '{'
    // The default sort compares UTF-16 code units, which is the order RFC 8785 requires.
    for (const key of Object.keys(object).sort()) {
      path.push(key)
      out += `${out === '{' ? '' : ','}${writeString(key)}:${writeValue(object[key])}`
      path.pop()
    }
    return `${out}}`
  }

  return writeValue(value)
}

/** Also true for objects of another realm (an iframe, a vm), which have their own Object.prototype. */
function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

const formatPathStep = (step: string | number) =>
  typeof step === 'number' ? `[${step}]` : /^[A-Za-z_]\w{0,63}$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`
