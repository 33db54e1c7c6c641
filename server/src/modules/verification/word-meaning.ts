import { readFileSync } from 'node:fs'
import { spendSteps } from '../../platform/step-budget.ts'

/** Vectors of the commonest English words, made by `server/scripts/build-word-vectors.ts`. Loaded at the first use. */
type WordVectors = { ranks: Map<string, number>; vectors: Int8Array; lengths: Float32Array; dimensions: number }

let loaded: WordVectors | undefined

function load(): WordVectors {
  if (loaded) return loaded
  const file = JSON.parse(
    readFileSync(new URL('../../../data/verification/word-vectors.json', import.meta.url), 'utf8'),
  ) as { dimensions: number; words: string; vectors: string }
  const { dimensions } = file
  const vectors = new Int8Array(Buffer.from(file.vectors, 'base64'))
  const ranks = new Map(file.words.split(' ').map((word, rank) => [word, rank]))
  const lengths = new Float32Array(ranks.size)
  for (let rank = 0; rank < ranks.size; rank++) {
    let sum = 0
    for (let i = rank * dimensions; i < (rank + 1) * dimensions; i++) sum += vectors[i]! ** 2
    lengths[rank] = Math.sqrt(sum) || 1
  }
  loaded = { ranks, vectors, lengths, dimensions }
  return loaded
}

/** The place of a word, or of its stem, among the commonest words; undefined when it is not among them. */
export function rankOf(word: string): number | undefined {
  const { ranks } = load()
  const rank = ranks.get(word)
  if (rank !== undefined || !/(?:s|ed|ing|er)$/.test(word)) return rank
  return (
    ranks.get(word.replace(/'s$|s$/, '')) ??
    ranks.get(word.replace(/(?:es|ed|ing|er)$/, '')) ??
    ranks.get(word.replace(/(?:ed|ing)$/, 'e'))
  )
}

/** How much a word says about a subject: nothing for the commonest, all for the rarer ones. */
export const weightOfRank = (rank: number): number =>
  Math.min(1, Math.max(0, (Math.log(rank + 1) - Math.log(120)) / (Math.log(3_000) - Math.log(120))))

/** The cosine of the angle between two words: 1 for the same meaning, about 0 for unrelated ones. */
function similarityOf({ vectors, lengths, dimensions }: WordVectors, a: number, b: number): number {
  const end = (a + 1) * dimensions
  let sum = 0
  for (let i = a * dimensions, k = b * dimensions; i < end; i++, k++) sum += vectors[i]! * vectors[k]!
  return sum / (lengths[a]! * lengths[b]!)
}

/** Of each of the words the similarity to the nearest of the others. */
export function nearestSimilarities(words: readonly number[], others: readonly number[]): number[] {
  spendSteps(words.length * others.length * 8)
  const wordVectors = load()
  return words.map((word) => {
    let nearest = -1
    for (const other of others) {
      const similarity = word === other ? 1 : similarityOf(wordVectors, word, other)
      if (similarity > nearest) nearest = similarity
    }
    return nearest
  })
}

/** The similarity of the weighted means of two sets of words. */
export function similarityOfMeans(words: readonly number[], others: readonly number[]): number {
  const [a, b] = [meanOf(words), meanOf(others)]
  let [sum, lengthA, lengthB] = [0, 0, 0]
  for (let i = 0; i < a.length; i++) {
    sum += a[i]! * b[i]!
    lengthA += a[i]! ** 2
    lengthB += b[i]! ** 2
  }
  return lengthA > 0 && lengthB > 0 ? sum / Math.sqrt(lengthA * lengthB) : 0
}

export function meanOf(words: readonly number[]): Float64Array {
  const { vectors, lengths, dimensions } = load()
  spendSteps(words.length * dimensions)
  const mean = new Float64Array(dimensions)
  for (const word of words) {
    const weight = weightOfRank(word) / lengths[word]! / Math.max(1, words.length)
    for (let i = 0; i < dimensions; i++) mean[i]! += weight * vectors[word * dimensions + i]!
  }
  return mean
}
