import { ProofError } from './proof-error.ts'

/** Deeper than any honest document, shallow enough that the recursion cannot exhaust a browser's stack. */
export const MAX_JSON_DEPTH = 128

/** Objects that share children can be tiny in memory and endless in text, so the number of values is limited too. */
export const MAX_JSON_VALUES = 1_000_000

/** The value has no canonical JSON form. `path` names the place, as in `$.route.lanes[2]`. */
export class CanonicalizeError extends ProofError {
  readonly path: string

  constructor(problem: string, path: string) {
    super(`Cannot canonicalize ${path}: ${problem}.`)
    this.path = path
  }
}

/**
 * The RFC 8785 (JCS) text of a JSON value: what every hash and signature of this package is computed over.
 * Whatever `JSON.stringify` would quietly drop or rewrite (undefined, dates, NaN, lone surrogates) is refused
 * instead, because a signature over something the author did not write is worse than none.
 */
export function canonicalize(value: unknown): string {
  const path: (string | number)[] = []
  let values = 0

  const refuse = (problem: string) => new CanonicalizeError(problem, `$${path.map(pathStep).join('')}`)

  const text = (string: string) => {
    if (!string.isWellFormed()) throw refuse('the text holds a lone surrogate, which UTF-8 cannot carry')
    return JSON.stringify(string)
  }

  const write = (item: unknown): string => {
    values += 1
    if (values > MAX_JSON_VALUES) throw refuse(`more than ${MAX_JSON_VALUES} values`)
    if (path.length > MAX_JSON_DEPTH) throw refuse(`nested deeper than ${MAX_JSON_DEPTH} levels, or in a circle`)
    if (item === null || item === true || item === false) return String(item)
    if (typeof item === 'string') return text(item)
    if (typeof item === 'number') {
      if (!Number.isFinite(item)) throw refuse(`${item} is not a JSON number`)
      // ECMAScript's own number text is what RFC 8785 prescribes, and it already writes -0 as 0.
      return String(item)
    }
    if (typeof item !== 'object') throw refuse(`${typeof item} is not a JSON type`)
    if (Array.isArray(item)) return list(item)
    if (isPlainObject(item)) return members(item)
    throw refuse('only plain objects and arrays have a JSON form of their own; convert this one first')
  }

  const list = (items: readonly unknown[]): string => {
    let out = '['
    for (let index = 0; index < items.length; index += 1) {
      path.push(index)
      out += index === 0 ? write(items[index]) : `,${write(items[index])}`
      path.pop()
    }
    return `${out}]`
  }

  const members = (object: Record<string, unknown>): string => {
    let out = '{'
    // The default sort compares UTF-16 code units, which is the order RFC 8785 asks for.
    for (const key of Object.keys(object).sort()) {
      path.push(key)
      out += `${out === '{' ? '' : ','}${text(key)}:${write(object[key])}`
      path.pop()
    }
    return `${out}}`
  }

  return write(value)
}

/** Plain also when made in another realm (an iframe, a vm), whose Object.prototype is not ours. */
function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

const pathStep = (step: string | number) =>
  typeof step === 'number' ? `[${step}]` : /^[A-Za-z_]\w{0,63}$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`
