import { normalizeName } from '../assess/payment-facts.ts'

/** The names of each list in the form in which they are compared. Rules are cached, so a list is compiled once per version. */
const compiledLists = new WeakMap<readonly string[], ReadonlySet<string>>()

function compileList(list: readonly string[]): ReadonlySet<string> {
  const existing = compiledLists.get(list)
  if (existing) return existing
  const compiled = new Set(list.map(normalizeName))
  compiledLists.set(list, compiled)
  return compiled
}

/** The first of these names that is in the list. */
export function findName(list: readonly string[], names: readonly string[]): string | undefined {
  const compiled = compileList(list)
  return names.find((name) => compiled.has(normalizeName(name)))
}
