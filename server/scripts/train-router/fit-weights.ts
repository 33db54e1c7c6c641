import { DIMENSIONS, extractFeatures, HASH_BITS, vectorLength } from '../../src/modules/routing/features.ts'
import { computeVersion, packRows, type RouterModel } from '../../src/modules/routing/model.ts'
import { softmax } from '../../src/modules/routing/softmax.ts'
import { createRandom, type Example } from './compose-examples.ts'

/**
 * Multinomial logistic regression over the segments of a task, by AdaGrad. One more column of weights scores how much a
 * segment looks like the request; the segments' logits are averaged by the softmax of these scores, and both are learned
 * together. Only basic operations and square roots are used, so the result is equal on every machine.
 */
export type Weights = { lanes: readonly string[]; weights: Float64Array; bias: Float64Array }
export type FitOptions = {
  epochs: number
  rate: number
  ridge: number
  smoothing: number
  /** Features in fewer examples than this are dropped: they describe the example rather than its lane. */
  minCount: number
  seed: number
}

export const DEFAULT_FIT: FitOptions = { epochs: 6, rate: 0.15, ridge: 2e-4, smoothing: 0.04, minCount: 3, seed: 7 }

type Row = {
  /** Vector `v` has the features from `starts[v]` to `starts[v + 1]`; the last one is the whole text. */
  starts: Uint32Array
  indices: Uint32Array
  values: Float32Array
  target: Float64Array
  weight: number
}

export function fitWeights(
  examples: readonly Example[],
  lanes: readonly string[],
  options: FitOptions = DEFAULT_FIT,
): Weights {
  const rows = examples.map((example) => toRow(example, lanes, options.smoothing))
  dropRareFeatures(rows, options.minCount)
  const columns = lanes.length + 1
  const weights = new Float64Array(DIMENSIONS * columns)
  const squaredGradients = new Float64Array(DIMENSIONS * columns)
  const bias = new Float64Array(lanes.length)
  const random = createRandom(options.seed)
  const order = rows.map((_, i) => i)
  const slopes = new Float64Array(columns)
  for (let epoch = 0; epoch < options.epochs; epoch++) {
    shuffle(order, random)
    for (const i of order) {
      const row = rows[i]!
      const { sums, shares, logits } = computeLogits(row, weights, bias, lanes.length)
      const gradient = softmax(logits).map((p, lane) => (p - row.target[lane]!) * row.weight)
      const vectors = row.starts.length - 1
      // The whole text has no share to learn.
      let mean = 0
      for (let vector = 0; vector < vectors - 1; vector++)
        mean += shares[vector]! * dotLanes(gradient, sums, vector * columns)
      for (let vector = 0; vector < vectors; vector++) {
        const share = shares[vector]!
        for (let lane = 0; lane < lanes.length; lane++) slopes[lane] = gradient[lane]! * share
        slopes[lanes.length] = vector < vectors - 1 ? share * (dotLanes(gradient, sums, vector * columns) - mean) : 0
        for (let feature = row.starts[vector]!; feature < row.starts[vector + 1]!; feature++) {
          const base = row.indices[feature]! * columns
          const value = row.values[feature]!
          for (let column = 0; column < columns; column++) {
            const slope = slopes[column]! * value + options.ridge * weights[base + column]!
            squaredGradients[base + column]! += slope * slope
            weights[base + column]! -= (options.rate * slope) / (Math.sqrt(squaredGradients[base + column]!) + 1e-3)
          }
        }
      }
    }
  }
  return { lanes, weights, bias }
}

function dotLanes(gradient: readonly number[], sums: Float64Array, from: number): number {
  let sum = 0
  for (let lane = 0; lane < gradient.length; lane++) sum += gradient[lane]! * sums[from + lane]!
  return sum
}

function toRow(example: Example, lanes: readonly string[], smoothing: number): Row {
  const features = extractFeatures(example.text)
  const laneIndex = lanes.indexOf(example.lane)
  const target = new Float64Array(lanes.length).fill(smoothing / lanes.length)
  target[laneIndex]! += 1 - smoothing
  const starts = features.starts.slice(0, features.vectors + 1)
  const count = starts[features.vectors]!
  const values = new Float32Array(count)
  for (let vector = 0; vector < features.vectors; vector++) {
    const length = vectorLength(features.squares[vector]!)
    for (let i = starts[vector]!; i < starts[vector + 1]!; i++) values[i] = features.weights[i]! / length
  }
  return { starts, indices: features.indices.slice(0, count), values, target, weight: example.weight }
}

function dropRareFeatures(rows: readonly Row[], minCount: number): void {
  const counts = new Uint32Array(DIMENSIONS)
  for (const row of rows) for (const index of row.indices) counts[index]!++
  for (const row of rows) {
    let kept = 0
    const starts = new Uint32Array(row.starts.length)
    for (let vector = 0; vector + 1 < row.starts.length; vector++) {
      for (let i = row.starts[vector]!; i < row.starts[vector + 1]!; i++) {
        if (counts[row.indices[i]!]! < minCount) continue
        row.indices[kept] = row.indices[i]!
        row.values[kept] = row.values[i]!
        kept++
      }
      starts[vector + 1] = kept
    }
    row.starts = starts
    row.indices = row.indices.slice(0, kept)
    row.values = row.values.slice(0, kept)
  }
}

function computeLogits(row: Row, weights: Float64Array, bias: Float64Array, lanes: number) {
  const columns = lanes + 1
  const vectors = row.starts.length - 1
  const sums = new Float64Array(vectors * columns)
  for (let vector = 0; vector < vectors; vector++) {
    const sum = vector * columns
    for (let feature = row.starts[vector]!; feature < row.starts[vector + 1]!; feature++) {
      const base = row.indices[feature]! * columns
      const value = row.values[feature]!
      for (let column = 0; column < columns; column++) sums[sum + column]! += weights[base + column]! * value
    }
  }
  const attention: number[] = []
  for (let vector = 0; vector < vectors - 1; vector++) attention.push(sums[vector * columns + lanes]!)
  const shares = [...(attention.length > 0 ? softmax(attention) : []), 1]
  const logits = Array.from(bias)
  for (let vector = 0; vector < vectors; vector++)
    for (let lane = 0; lane < lanes; lane++) logits[lane]! += sums[vector * columns + lane]! * shares[vector]!
  return { sums, shares, logits }
}

function shuffle(order: number[], random: ReturnType<typeof createRandom>): void {
  for (let i = order.length - 1; i > 0; i--) {
    const j = random.below(i + 1)
    const previous = order[i]!
    order[i] = order[j]!
    order[j] = previous
  }
}

/** Features with the smallest weights are left out until this many remain. */
const MAX_ROWS = 180_000
/** The sizes of weights: small ones are told apart more finely than large ones. */
const LEVELS = [0, 3, 8, 16, 29, 48, 76, 127]
/** So many of the largest weights are cut to the largest level, so that the others keep their differences. */
const CLIPPED_ROWS = 60

/** Rounds the weights to levels. Features whose weights all round to zero are not stored. */
export function quantiseWeights(fit: Weights, temperature: number, threshold: number): Omit<RouterModel, 'trained'> {
  const columns = fit.lanes.length + 1
  const sizes = new Float64Array(DIMENSIONS)
  for (let index = 0; index < DIMENSIONS; index++) {
    let size = 0
    for (let column = 0; column < columns; column++)
      size = Math.max(size, Math.abs(fit.weights[index * columns + column]!))
    sizes[index] = size
  }
  const sortedSizes = sizes.toSorted().reverse()
  const smallestKept = sortedSizes[MAX_ROWS]!
  const largest = LEVELS.at(-1)!
  const scaleMicro = Math.max(1, Math.ceil((sortedSizes[CLIPPED_ROWS]! / largest) * 1_000_000))
  const scale = scaleMicro / 1_000_000
  const rows: { index: number; codes: number[] }[] = []
  for (let index = 0; index < DIMENSIONS; index++) {
    if (sizes[index]! <= smallestKept) continue
    const codes = Array.from({ length: columns }, (_, column) =>
      encodeWeight(fit.weights[index * columns + column]! / scale),
    )
    if (codes.some((code) => code !== 0)) rows.push({ index, codes })
  }
  const model = {
    lanes: fit.lanes,
    hash_bits: HASH_BITS,
    scale_micro: scaleMicro,
    temperature_milli: Math.round(temperature * 1000),
    threshold_milli: Math.round(threshold * 1000),
    bias: Array.from(fit.bias, (weight) => Math.round(weight / scale)),
    levels: LEVELS,
    rows: packRows(rows, columns),
  }
  return { routing_version: computeVersion(model), ...model }
}

function encodeWeight(weight: number): number {
  const size = Math.abs(weight)
  let code = 0
  while (code + 1 < LEVELS.length && size >= (LEVELS[code]! + LEVELS[code + 1]!) / 2) code++
  return code === 0 || weight > 0 ? code : code | 8
}
