import { createHash } from 'node:crypto'
import { DIMENSIONS, describeOrigin, extractFeatures, type FeatureVector, HASH_BITS, MAX_TOKENS } from './features.ts'
import { softmax } from './softmax.ts'

/** A trained router as stored in `model.json`: integers only, so that reading it back loses nothing. */
export type RouterModel = {
  routing_version: string
  trained: { tasks: number; validation_accuracy: number; calibration_error: number }
  /** The agent id of each column of weights. */
  lanes: readonly string[]
  hash_bits: number
  /** One unit of an integer weight, in millionths. */
  scale_micro: number
  /** The logits are divided by this, in thousandths, so that confidence means how often the router is right. */
  temperature_milli: number
  /** Below this confidence, in thousandths, the fallback lane is chosen. */
  threshold_milli: number
  bias: readonly number[]
  /** For each feature with a weight: the distance from the previous index (three bytes), then one signed byte per lane. Base64. */
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
const MAX_SHAPES = 32
const MIN_LIFT = 0.05

export function createRouter(model: RouterModel): Router {
  if (model.hash_bits !== HASH_BITS)
    throw new Error('The router model was trained with other features; train it again.')
  const lanes = model.lanes
  const weights = unpackRows(model.rows, lanes.length)
  const scale = model.scale_micro / 1_000_000
  const temperature = model.temperature_milli / 1000
  const lifts = new Float64Array(MAX_TOKENS + MAX_SHAPES)

  const computeLogits = (vector: FeatureVector): number[] => {
    const sums = new Array<number>(lanes.length).fill(0)
    let hasKnownWord = false
    for (let i = 0; i < vector.count; i++) {
      const row = vector.indices[i]! * lanes.length
      const weight = vector.weights[i]!
      for (let lane = 0; lane < lanes.length; lane++) sums[lane]! += weights[row + lane]! * weight
      hasKnownWord ||= vector.origins[i]! >= 0 && weights[row] !== 0
    }
    // Without a single learned word, the shape of a text does not show which lane it needs.
    if (!hasKnownWord) return sums.fill(0)
    const length = Math.sqrt(Math.max(1, vector.squares))
    return sums.map((sum, lane) => (sum / length + model.bias[lane]!) * scale)
  }

  const predict = (task: string): Prediction => {
    const vector = extractFeatures(task)
    const probabilities = softmax(computeLogits(vector).map((logit) => logit / temperature))
    const order = lanes.map((_, lane) => lane).sort((a, b) => probabilities[b]! - probabilities[a]! || a - b)
    return {
      scores: order.map((lane) => ({ agentId: lanes[lane]!, probability: Number(probabilities[lane]!.toFixed(4)) })),
      signals: computeSignals(vector, order[0]!),
    }
  }

  /** The words and shapes that favour a lane: how far each one lifts it above the average of all lanes. */
  const computeSignals = (vector: FeatureVector, winner: number): Signal[] => {
    const unit = scale / Math.sqrt(Math.max(1, vector.squares))
    lifts.fill(0)
    for (let i = 0; i < vector.count; i++) {
      const row = vector.indices[i]! * lanes.length
      let sum = 0
      for (let lane = 0; lane < lanes.length; lane++) sum += weights[row + lane]!
      const origin = vector.origins[i]!
      lifts[origin < 0 ? MAX_TOKENS - 1 - origin : origin]! +=
        (weights[row + winner]! - sum / lanes.length) * vector.weights[i]! * unit
    }
    const liftByName = new Map<string, number>()
    for (const { slot, lift } of findTopLifts()) {
      const name = describeOrigin(vector, slot < MAX_TOKENS ? slot : MAX_TOKENS - 1 - slot)
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

function unpackRows(rows: string, laneCount: number): Int8Array {
  const bytes = Buffer.from(rows, 'base64')
  const weights = new Int8Array(DIMENSIONS * laneCount)
  let index = 0
  for (let i = 0; i + 3 + laneCount <= bytes.length; i += 3 + laneCount) {
    index += bytes.readUIntLE(i, 3)
    for (let lane = 0; lane < laneCount; lane++) weights[index * laneCount + lane] = bytes.readInt8(i + 3 + lane)
  }
  return weights
}

export function packRows(weights: Int8Array, laneCount: number): string {
  const chunks: Buffer[] = []
  let lastIndex = 0
  for (let index = 0; index < DIMENSIONS; index++) {
    let hasWeight = false
    for (let lane = 0; lane < laneCount; lane++) hasWeight ||= weights[index * laneCount + lane] !== 0
    if (!hasWeight) continue
    const chunk = Buffer.alloc(3 + laneCount)
    chunk.writeUIntLE(index - lastIndex, 0, 3)
    for (let lane = 0; lane < laneCount; lane++) chunk.writeInt8(weights[index * laneCount + lane]!, 3 + lane)
    chunks.push(chunk)
    lastIndex = index
  }
  return Buffer.concat(chunks).toString('base64')
}

/** A hash of the weights, so that a quote that names its version can be replayed exactly. */
export function computeVersion(model: Omit<RouterModel, 'routing_version' | 'trained'>): string {
  return `linear-1.${createHash('sha256').update(JSON.stringify(model)).digest('hex').slice(0, 10)}`
}
