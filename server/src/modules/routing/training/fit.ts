import { DIMENSIONS, extractFeatures, HASH_BITS } from '../features.ts'
import { packRows, type RouterModel, versionOf } from '../model.ts'
import { softmax } from '../softmax.ts'
import { createChance, type Example } from './compose.ts'

/** Multinomial logistic regression by AdaGrad, in the four basic operations and square roots: equal on every machine. */
export type Weights = { lanes: readonly string[]; weights: Float64Array; bias: Float64Array }
/** `rarest`: a feature seen in fewer examples than this says more about the example than about its lane. */
export type FitOptions = {
  epochs: number
  rate: number
  ridge: number
  smoothing: number
  rarest: number
  seed: number
}

export const DEFAULT_FIT: FitOptions = { epochs: 8, rate: 0.2, ridge: 8e-4, smoothing: 0.04, rarest: 4, seed: 7 }

type Row = { indices: Uint32Array; values: Float64Array; target: Float64Array; weight: number }

export function fit(
  examples: readonly Example[],
  lanes: readonly string[],
  options: FitOptions = DEFAULT_FIT,
): Weights {
  const rows = withoutRare(
    examples.map((example) => toRow(example, lanes, options.smoothing)),
    options.rarest,
  )
  const classes = lanes.length
  const weights = new Float64Array(DIMENSIONS * classes)
  const slopes = new Float64Array(DIMENSIONS * classes)
  const bias = new Float64Array(classes)
  const chance = createChance(options.seed)
  const order = rows.map((_, at) => at)
  for (let epoch = 0; epoch < options.epochs; epoch++) {
    shuffle(order, chance)
    for (const at of order) {
      const row = rows[at]!
      const gradient = softmax(logitsOf(row, weights, bias, classes)).map(
        (p, lane) => (p - row.target[lane]!) * row.weight,
      )
      for (let feature = 0; feature < row.indices.length; feature++) {
        const base = row.indices[feature]! * classes
        const value = row.values[feature]!
        for (let lane = 0; lane < classes; lane++) {
          const slope = gradient[lane]! * value + options.ridge * weights[base + lane]!
          slopes[base + lane]! += slope * slope
          weights[base + lane]! -= (options.rate * slope) / (Math.sqrt(slopes[base + lane]!) + 1e-3)
        }
      }
    }
  }
  return { lanes, weights, bias }
}

function toRow(example: Example, lanes: readonly string[], smoothing: number): Row {
  const vector = extractFeatures(example.text)
  const length = Math.sqrt(Math.max(1, vector.squares))
  const at = example.lane === undefined ? -1 : lanes.indexOf(example.lane)
  const target = new Float64Array(lanes.length).fill(at < 0 ? 1 / lanes.length : smoothing / lanes.length)
  if (at >= 0) target[at]! += 1 - smoothing
  return {
    indices: vector.indices.slice(0, vector.count),
    values: Float64Array.from(vector.weights.subarray(0, vector.count), (weight) => weight / length),
    target,
    weight: example.weight,
  }
}

function withoutRare(rows: readonly Row[], rarest: number): Row[] {
  const counts = new Uint32Array(DIMENSIONS)
  for (const row of rows) for (const index of row.indices) counts[index]!++
  return rows.map((row) => {
    const kept = row.indices
      .map((index, at) => (counts[index]! >= rarest ? at : DIMENSIONS))
      .filter((at) => at < DIMENSIONS)
    return {
      ...row,
      indices: Uint32Array.from(kept, (at) => row.indices[at]!),
      values: Float64Array.from(kept, (at) => row.values[at]!),
    }
  })
}

function logitsOf(
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

function shuffle(order: number[], chance: ReturnType<typeof createChance>): void {
  for (let at = order.length - 1; at > 0; at--) {
    const other = chance.below(at + 1)
    const kept = order[at]!
    order[at] = order[other]!
    order[other] = kept
  }
}

/** Rounds the weights to signed bytes. What rounds to nothing in every lane is not stored. */
export function quantise(fitted: Weights, temperature: number, threshold: number): Omit<RouterModel, 'trained'> {
  const largest = fitted.weights.reduce((top, weight) => Math.max(top, Math.abs(weight)), 0)
  const scaleMicro = Math.max(1, Math.ceil((largest / 127) * 1_000_000))
  const scale = scaleMicro / 1_000_000
  const bytes = Int8Array.from(fitted.weights, (weight) => Math.round(weight / scale))
  const model = {
    lanes: fitted.lanes,
    hash_bits: HASH_BITS,
    scale_micro: scaleMicro,
    temperature_milli: Math.round(temperature * 1000),
    threshold_milli: Math.round(threshold * 1000),
    bias: Array.from(fitted.bias, (weight) => Math.round(weight / scale)),
    rows: packRows(bytes, fitted.lanes.length),
  }
  return { routing_version: versionOf(model), ...model }
}
