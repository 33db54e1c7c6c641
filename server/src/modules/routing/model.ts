import { createHash } from 'node:crypto'
import {
  describeOrigin,
  extractFeatures,
  HASH_BITS,
  MAX_FEATURES,
  MAX_TOKENS,
  MAX_VECTORS,
  type TaskFeatures,
  vectorLength,
} from './features.ts'
import { softmax } from './softmax.ts'

/** A trained router as stored in `model.json`: integers only, so that reading it back loses nothing. */
export type RouterModel = {
  routing_version: string
  trained: { tasks: number; validation_accuracy: number; calibration_error: number }
  /** The agent id of each column of weights. One more column says how much a segment looks like the request. */
  lanes: readonly string[]
  hash_bits: number
  /** One unit of an integer weight, in millionths. */
  scale_micro: number
  /** The logits are divided by this, in thousandths, so that confidence means how often the router is right. */
  temperature_milli: number
  /** Below this confidence, in thousandths, the fallback lane is chosen. */
  threshold_milli: number
  bias: readonly number[]
  /** The sizes that a weight may have. */
  levels: readonly number[]
  /** For each feature with a weight: the distance from the previous index, then four bits per column. Base64. */
  rows: string
}

export type LaneScore = { agentId: string; probability: number }
export type Signal = { name: string; weight: number }
export type Prediction = { scores: readonly LaneScore[]; signals: readonly Signal[] }

export type Router = {
  version: string
  threshold: number
  predict(task: string): Prediction
  /** The logits before the temperature is applied, in the order of the model's lanes; used for calibration. */
  logits(task: string): number[]
}

const MAX_SIGNALS = 5
const MAX_SHAPES = 48
const MIN_LIFT = 0.05

export function createRouter(model: RouterModel): Router {
  if (model.hash_bits !== HASH_BITS)
    throw new Error('The router model was trained with other features; train it again.')
  const lanes = model.lanes
  const columns = lanes.length + 1
  const table = new WeightTable(model.rows, model.levels, columns)
  const weights = table.weights
  const scale = model.scale_micro / 1_000_000
  const temperature = model.temperature_milli / 1000
  const lifts = new Float64Array(MAX_TOKENS + MAX_SHAPES)
  const sums = new Int32Array(MAX_VECTORS * columns)
  /** The row of each feature, found once for the logits and the signals. */
  const rows = new Int32Array(MAX_FEATURES)
  /** The share of each segment in the decision; the whole text counts fully. */
  const shares = new Float64Array(MAX_VECTORS)

  const computeLogits = (features: TaskFeatures): number[] => {
    const { vectors, starts, indices, origins } = features
    let hasKnownWord = false
    sums.fill(0, 0, vectors * columns)
    for (let vector = 0; vector < vectors; vector++) {
      const sum = vector * columns
      for (let i = starts[vector]!; i < starts[vector + 1]!; i++) {
        const row = table.findRow(indices[i]!)
        rows[i] = row
        if (row === 0) continue
        const weight = features.weights[i]!
        for (let column = 0; column < columns; column++) sums[sum + column]! += weights[row + column]! * weight
        hasKnownWord ||= origins[i]! >= 0
      }
    }
    // Without a single learned word, the shape of a text does not show which lane it needs.
    if (!hasKnownWord) {
      shares.fill(0)
      return lanes.map(() => 0)
    }
    const unit = (vector: number) => scale / vectorLength(features.squares[vector]!)
    const attention: number[] = []
    for (let vector = 0; vector < vectors - 1; vector++)
      attention.push(sums[vector * columns + lanes.length]! * unit(vector))
    if (attention.length > 0)
      softmax(attention).forEach((share, vector) => {
        shares[vector] = share
      })
    shares[vectors - 1] = 1
    return lanes.map((_, lane) => {
      let logit = model.bias[lane]! * scale
      for (let vector = 0; vector < vectors; vector++)
        logit += sums[vector * columns + lane]! * unit(vector) * shares[vector]!
      return logit
    })
  }

  const predict = (task: string): Prediction => {
    const features = extractFeatures(task)
    const probabilities = softmax(computeLogits(features).map((logit) => logit / temperature))
    const order = lanes.map((_, lane) => lane).sort((a, b) => probabilities[b]! - probabilities[a]! || a - b)
    return {
      scores: order.map((lane) => ({ agentId: lanes[lane]!, probability: Number(probabilities[lane]!.toFixed(4)) })),
      signals: computeSignals(features, order[0]!),
    }
  }

  /** The words and shapes that favour a lane: how far each one lifts it above the average of all lanes. */
  const computeSignals = (features: TaskFeatures, winner: number): Signal[] => {
    lifts.fill(0)
    for (let vector = 0; vector < features.vectors; vector++) {
      const unit = (scale * shares[vector]!) / vectorLength(features.squares[vector]!)
      for (let i = features.starts[vector]!; i < features.starts[vector + 1]!; i++) {
        const row = rows[i]!
        if (row === 0) continue
        const origin = features.origins[i]!
        lifts[origin < 0 ? MAX_TOKENS - 1 - origin : origin]! +=
          (weights[row + winner]! - table.laneMeans[row / columns]!) * features.weights[i]! * unit
      }
    }
    const liftByName = new Map<string, number>()
    for (const { slot, lift } of findTopLifts()) {
      const name = describeOrigin(features, slot < MAX_TOKENS ? slot : MAX_TOKENS - 1 - slot)
      liftByName.set(name, (liftByName.get(name) ?? 0) + lift)
    }
    return [...liftByName].map(([name, lift]) => ({ name, weight: Number(lift.toFixed(3)) }))
  }

  const findTopLifts = () => {
    const top: { slot: number; lift: number }[] = []
    for (let slot = 0; slot < lifts.length; slot++) {
      const lift = lifts[slot]!
      if (lift < MIN_LIFT || (top.length === MAX_SIGNALS && lift <= top[MAX_SIGNALS - 1]!.lift)) continue
      top.push({ slot, lift })
      top.sort((a, b) => b.lift - a.lift || a.slot - b.slot)
      if (top.length > MAX_SIGNALS) top.pop()
    }
    return top
  }

  return {
    version: model.routing_version,
    threshold: model.threshold_milli / 1000,
    predict,
    logits: (task) => computeLogits(extractFeatures(task)),
  }
}

/** The weights of the features that have any, found by an open hash table: most of the dimensions are empty. */
class WeightTable {
  /** Slot by slot the feature's index plus one, 0 for an empty slot, and where its weights begin. */
  readonly #slots: Int32Array
  readonly #mask: number
  readonly weights: Int8Array
  /** The mean of a row's weights over the lanes. */
  readonly laneMeans: Float64Array

  constructor(rows: string, levels: readonly number[], columns: number) {
    const features = [...readRows(rows, columns)]
    const slots = 1 << Math.max(4, Math.ceil(Math.log2(features.length * 2 + 1)))
    this.#mask = slots - 1
    this.#slots = new Int32Array(2 * slots)
    // The first row is that of unknown features.
    this.weights = new Int8Array((features.length + 1) * columns)
    this.laneMeans = new Float64Array(features.length + 1)
    features.forEach(({ index, codes }, i) => {
      const row = (i + 1) * columns
      let sum = 0
      for (let column = 0; column < columns; column++) {
        const weight = decodeWeight(codes[column]!, levels)
        this.weights[row + column] = weight
        if (column < columns - 1) sum += weight
      }
      this.laneMeans[i + 1] = sum / (columns - 1)
      const slot = this.#findSlot(index)
      this.#slots[2 * slot] = index + 1
      this.#slots[2 * slot + 1] = row
    })
  }

  /** Where the weights of a feature begin; 0 is a row of zeros. */
  findRow(index: number): number {
    return this.#slots[2 * this.#findSlot(index) + 1]!
  }

  #findSlot(index: number): number {
    let slot = index & this.#mask
    while (this.#slots[2 * slot] !== 0 && this.#slots[2 * slot] !== index + 1) slot = (slot + 1) & this.#mask
    return slot
  }
}

const EMPTY_STEP = 255

/** A weight is four bits: a sign and one of eight levels, the first of which is zero. */
const decodeWeight = (code: number, levels: readonly number[]) => (code & 8 ? -levels[code & 7]! : levels[code & 7]!)

function* readRows(rows: string, columns: number): Generator<{ index: number; codes: number[] }> {
  const bytes = Buffer.from(rows, 'base64')
  const size = Math.ceil(columns / 2)
  let index = 0
  let i = 0
  while (i < bytes.length) {
    const step = bytes[i++]!
    index += step
    if (step === EMPTY_STEP) continue
    const codes: number[] = []
    for (let column = 0; column < columns; column++)
      codes.push((bytes[i + (column >> 1)]! >> (column & 1 ? 4 : 0)) & 15)
    i += size
    yield { index, codes }
  }
}

/** Rows in the order of their index: the distance from the previous one, then two codes in each byte. */
export function packRows(rows: readonly { index: number; codes: readonly number[] }[], columns: number): string {
  const bytes: number[] = []
  let lastIndex = 0
  for (const { index, codes } of rows) {
    let step = index - lastIndex
    for (; step >= EMPTY_STEP; step -= EMPTY_STEP) bytes.push(EMPTY_STEP)
    bytes.push(step)
    for (let column = 0; column < columns; column += 2) bytes.push(codes[column]! | ((codes[column + 1] ?? 0) << 4))
    lastIndex = index
  }
  return Buffer.from(bytes).toString('base64')
}

/** A hash of the weights, so that a quote that names its version can be replayed exactly. */
export function computeVersion(model: Omit<RouterModel, 'routing_version' | 'trained'>): string {
  return `linear-2.${createHash('sha256').update(JSON.stringify(model)).digest('hex').slice(0, 10)}`
}
