import { DIMENSIONS, extractFeatures, HASH_BITS } from '../../src/modules/routing/features.ts'
import { computeVersion, packRows, type RouterModel } from '../../src/modules/routing/model.ts'
import { softmax } from '../../src/modules/routing/softmax.ts'
import { createRandom, type Example } from './compose-examples.ts'

/** Multinomial logistic regression by AdaGrad. Only basic operations and square roots are used, so the result is equal on every machine. */
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

export const DEFAULT_FIT: FitOptions = { epochs: 8, rate: 0.2, ridge: 8e-4, smoothing: 0.04, minCount: 4, seed: 7 }

type Row = { indices: Uint32Array; values: Float64Array; target: Float64Array; weight: number }

export function fitWeights(
  examples: readonly Example[],
  lanes: readonly string[],
  options: FitOptions = DEFAULT_FIT,
): Weights {
  const rows = dropRareFeatures(
    examples.map((example) => toRow(example, lanes, options.smoothing)),
    options.minCount,
  )
  const classes = lanes.length
  const weights = new Float64Array(DIMENSIONS * classes)
  const squaredGradients = new Float64Array(DIMENSIONS * classes)
  const bias = new Float64Array(classes)
  const random = createRandom(options.seed)
  const order = rows.map((_, i) => i)
  for (let epoch = 0; epoch < options.epochs; epoch++) {
    shuffle(order, random)
    for (const i of order) {
      const row = rows[i]!
      const gradient = softmax(computeLogits(row, weights, bias, classes)).map(
        (p, lane) => (p - row.target[lane]!) * row.weight,
      )
      for (let feature = 0; feature < row.indices.length; feature++) {
        const base = row.indices[feature]! * classes
        const value = row.values[feature]!
        for (let lane = 0; lane < classes; lane++) {
          const slope = gradient[lane]! * value + options.ridge * weights[base + lane]!
          squaredGradients[base + lane]! += slope * slope
          weights[base + lane]! -= (options.rate * slope) / (Math.sqrt(squaredGradients[base + lane]!) + 1e-3)
        }
      }
    }
  }
  return { lanes, weights, bias }
}

function toRow(example: Example, lanes: readonly string[], smoothing: number): Row {
  const vector = extractFeatures(example.text)
  const length = Math.sqrt(Math.max(1, vector.squares))
  const laneIndex = example.lane === undefined ? -1 : lanes.indexOf(example.lane)
  const target = new Float64Array(lanes.length).fill(laneIndex < 0 ? 1 / lanes.length : smoothing / lanes.length)
  if (laneIndex >= 0) target[laneIndex]! += 1 - smoothing
  return {
    indices: vector.indices.slice(0, vector.count),
    values: Float64Array.from(vector.weights.subarray(0, vector.count), (weight) => weight / length),
    target,
    weight: example.weight,
  }
}

function dropRareFeatures(rows: readonly Row[], minCount: number): Row[] {
  const counts = new Uint32Array(DIMENSIONS)
  for (const row of rows) for (const index of row.indices) counts[index]!++
  return rows.map((row) => {
    const positions = row.indices
      .map((index, i) => (counts[index]! >= minCount ? i : DIMENSIONS))
      .filter((i) => i < DIMENSIONS)
    return {
      ...row,
      indices: Uint32Array.from(positions, (i) => row.indices[i]!),
      values: Float64Array.from(positions, (i) => row.values[i]!),
    }
  })
}

function computeLogits(
  row: Pick<Row, 'indices' | 'values'>,
  weights: Float64Array,
  bias: Float64Array,
  classes: number,
): number[] {
  const logits = Array.from(bias)
  for (let feature = 0; feature < row.indices.length; feature++) {
    const base = row.indices[feature]! * classes
    const value = row.values[feature]!
    for (let lane = 0; lane < classes; lane++) logits[lane]! += weights[base + lane]! * value
  }
  return logits
}

function shuffle(order: number[], random: ReturnType<typeof createRandom>): void {
  for (let i = order.length - 1; i > 0; i--) {
    const j = random.below(i + 1)
    const previous = order[i]!
    order[i] = order[j]!
    order[j] = previous
  }
}

/** Rounds the weights to signed bytes. Features whose weights all round to zero are not stored. */
export function quantiseWeights(fit: Weights, temperature: number, threshold: number): Omit<RouterModel, 'trained'> {
  const largest = fit.weights.reduce((top, weight) => Math.max(top, Math.abs(weight)), 0)
  const scaleMicro = Math.max(1, Math.ceil((largest / 127) * 1_000_000))
  const scale = scaleMicro / 1_000_000
  const bytes = Int8Array.from(fit.weights, (weight) => Math.round(weight / scale))
  const model = {
    lanes: fit.lanes,
    hash_bits: HASH_BITS,
    scale_micro: scaleMicro,
    temperature_milli: Math.round(temperature * 1000),
    threshold_milli: Math.round(threshold * 1000),
    bias: Array.from(fit.bias, (weight) => Math.round(weight / scale)),
    rows: packRows(bytes, fit.lanes.length),
  }
  return { routing_version: computeVersion(model), ...model }
}
