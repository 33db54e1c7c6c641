/** The candidates that a misspelt or half-remembered word probably meant, best first; none when nothing is near. */
export function suggest(word: string, candidates: readonly string[], count = 1): string[] {
  const query = word.slice(0, MAX_LENGTH).toLowerCase()
  return candidates
    .map((candidate) => ({ candidate, score: distance(query, candidate.toLowerCase()) }))
    .filter(({ candidate, score }) => score <= Math.max(2, Math.ceil(candidate.length / 3)) && score < query.length)
    .sort((a, b) => a.score - b.score)
    .slice(0, count)
    .map(({ candidate }) => candidate)
}

const MAX_LENGTH = 80
/** A word that continues the other (`run.complete`, `analyst`) is nearer than one with as many letters changed. */
const CONTINUATION = 1

function distance(a: string, b: string): number {
  if (a.length > 2 && (b.startsWith(a) || a.startsWith(b))) return CONTINUATION
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const changed = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : isSwap ? 0 : 1)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, changed))
    }
    row = next
  }
  return row[b.length]!
}

/** ` Did you mean 'x'?`, or nothing. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const [nearest] = suggest(word, candidates)
  return nearest === undefined ? '' : ` Did you mean '${nearest}'?`
}
