import { createHash } from 'node:crypto'
import { DIMENSIONS, extractFeatures, type FeatureVector, HASH_BITS, labelOf, MAX_TOKENS } from './features.ts'
import { softmax } from './softmax.ts'

/** A trained router as it is stored: whole numbers only, so that reading it back loses nothing. */
export type RouterModel = {
  routing_version: string
  trained: { tasks: number; validation_accuracy: number; calibration_error: number }
  /** The class of each column, an agent id. */
  lanes: readonly string[]
  hash_bits: number
  /** One unit of an integer weight, in millionths. */
  scale_micro: number
  /** The logits are divided by this, in thousandths, so that confidence means how often the router is right. */
  temperature_milli: number
  /** Below this confidence, in thousandths, the router does not trust itself. */
  threshold_milli: number
  bias: readonly number[]
  /** For each feature with any weight: the step to its index (three bytes), then one signed byte a lane. Base64. */
  rows: string
}

export type LaneScore = { agentId: string; probability: number }
export type Signal = { name: string; weight: number }
export type Reading = { scores: readonly LaneScore[]; signals: readonly Signal[] }

export type Router = {
  version: string
  threshold: number
  read(task: string): Reading
  /** Before the temperature, in the order of the model's lanes: what calibration works on. */
  logits(task: string): number[]
}

const MAX_SIGNALS = 5
const MAX_SHAPES = 32
const LEAST_LIFT = 0.05

export function createRouter(model: RouterModel): Router {
  if (model.hash_bits !== HASH_BITS)
    throw new Error('The router model was trained with other features; train it again.')
  const lanes = model.lanes
  const weights = unpackRows(model.rows, lanes.length)
  const scale = model.scale_micro / 1_000_000
  const temperature = model.temperature_milli / 1000
  const lifts = new Float64Array(MAX_TOKENS + MAX_SHAPES)

  const logitsOf = (vector: FeatureVector): number[] => {
    const sums = new Array<number>(lanes.length).fill(0)
    let known = false
    for (let at = 0; at < vector.count; at++) {
      const row = vector.indices[at]! * lanes.length
      const weight = vector.weights[at]!
      for (let lane = 0; lane < lanes.length; lane++) sums[lane]! += weights[row + lane]! * weight
      known ||= vector.origins[at]! >= 0 && weights[row] !== 0
    }
    // The shape of a text without one word the router has learned says nothing about its work.
    if (!known) return sums.fill(0)
    const length = Math.sqrt(Math.max(1, vector.squares))
    return sums.map((sum, lane) => (sum / length + model.bias[lane]!) * scale)
  }

  const read = (task: string): Reading => {
    const vector = extractFeatures(task)
    const probabilities = softmax(logitsOf(vector).map((logit) => logit / temperature))
    const order = lanes.map((_, lane) => lane).sort((a, b) => probabilities[b]! - probabilities[a]! || a - b)
    return {
      scores: order.map((lane) => ({ agentId: lanes[lane]!, probability: Number(probabilities[lane]!.toFixed(4)) })),
      signals: signalsFor(vector, order[0]!),
    }
  }

  /** What spoke for a lane: how far each word or shape lifted it above the average of all lanes. */
  const signalsFor = (vector: FeatureVector, winner: number): Signal[] => {
    const unit = scale / Math.sqrt(Math.max(1, vector.squares))
    lifts.fill(0)
    for (let at = 0; at < vector.count; at++) {
      const row = vector.indices[at]! * lanes.length
      let sum = 0
      for (let lane = 0; lane < lanes.length; lane++) sum += weights[row + lane]!
      const origin = vector.origins[at]!
      lifts[origin < 0 ? MAX_TOKENS - 1 - origin : origin]! +=
        (weights[row + winner]! - sum / lanes.length) * vector.weights[at]! * unit
    }
    const named = new Map<string, number>()
    for (const { slot, lift } of topLifts()) {
      const name = labelOf(vector, slot < MAX_TOKENS ? slot : MAX_TOKENS - 1 - slot)
      named.set(name, (named.get(name) ?? 0) + lift)
    }
    return [...named].map(([name, lift]) => ({ name, weight: Number(lift.toFixed(3)) }))
  }

  const topLifts = () => {
    const top: { slot: number; lift: number }[] = []
    for (let slot = 0; slot < lifts.length; slot++) {
      const lift = lifts[slot]!
      if (lift < LEAST_LIFT || (top.length === MAX_SIGNALS && lift <= top[MAX_SIGNALS - 1]!.lift)) continue
      top.push({ slot, lift })
      top.sort((a, b) => b.lift - a.lift || a.slot - b.slot)
      if (top.length > MAX_SIGNALS) top.pop()
    }
    return top
  }

  return {
    version: model.routing_version,
    threshold: model.threshold_milli / 1000,
    read,
    logits: (task) => logitsOf(extractFeatures(task)),
  }
}

function unpackRows(rows: string, lanes: number): Int8Array {
  const bytes = Buffer.from(rows, 'base64')
  const weights = new Int8Array(DIMENSIONS * lanes)
  let index = 0
  for (let at = 0; at + 3 + lanes <= bytes.length; at += 3 + lanes) {
    index += bytes.readUIntLE(at, 3)
    for (let lane = 0; lane < lanes; lane++) weights[index * lanes + lane] = bytes.readInt8(at + 3 + lane)
  }
  return weights
}

export function packRows(weights: Int8Array, lanes: number): string {
  const chunks: Buffer[] = []
  let last = 0
  for (let index = 0; index < DIMENSIONS; index++) {
    let filled = false
    for (let lane = 0; lane < lanes; lane++) filled ||= weights[index * lanes + lane] !== 0
    if (!filled) continue
    const chunk = Buffer.alloc(3 + lanes)
    chunk.writeUIntLE(index - last, 0, 3)
    for (let lane = 0; lane < lanes; lane++) chunk.writeInt8(weights[index * lanes + lane]!, 3 + lane)
    chunks.push(chunk)
    last = index
  }
  return Buffer.concat(chunks).toString('base64')
}

/** Equal weights have equal versions: a quote can be replayed exactly when it names the version it was made with. */
export function versionOf(model: Omit<RouterModel, 'routing_version' | 'trained'>): string {
  return `linear-1.${createHash('sha256').update(JSON.stringify(model)).digest('hex').slice(0, 10)}`
}
