/** The names of each list in the form in which they are compared. Rules are cached, so a list is compiled once per version. */
const compiledLists = new WeakMap<readonly string[], ReadonlySet<string>>()

type Normalize = (name: string) => string

/** Lists from before white space at an end was refused are compared without it. */
export const exactName: Normalize = (name) => name.trim()

/** What denies an address or a host as the name of an agent denies it in capitals too. */
export const looseName: Normalize = (name) => {
  const text = name.trim()
  return /^0x|\./i.test(text) ? text.toLowerCase() : text
}

/** Types and symbols of instruments are compared without regard to case. */
export const instrumentName: Normalize = (name) => name.trim().toLowerCase()

function compileList(list: readonly string[], normalize: Normalize): ReadonlySet<string> {
  const existing = compiledLists.get(list)
  if (existing) return existing
  const compiled = new Set(list.map(normalize))
  compiledLists.set(list, compiled)
  return compiled
}

/** The first of these names that is in the list. A list is always read with the same `normalize`. */
export function findName(list: readonly string[], names: readonly string[], normalize: Normalize): string | undefined {
  const compiled = compileList(list, normalize)
  return names.find((name) => compiled.has(normalize(name)))
}
