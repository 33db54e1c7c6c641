import { createHash } from 'node:crypto'
import { DIMENSIONS, extractFeatures, type FeatureVector, HASH_BITS } from './features.ts'
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

export function createRouter(model: RouterModel): Router {
  if (model.hash_bits !== HASH_BITS)
    throw new Error('The router model was trained with other features; train it again.')
  const lanes = model.lanes
  const weights = unpackRows(model.rows, lanes.length)
  const scale = model.scale_micro / 1_000_000
  const temperature = model.temperature_milli / 1000

  const logitsOf = (vector: FeatureVector): number[] => {
    const sums = new Array<number>(lanes.length).fill(0)
    for (let at = 0; at < vector.count; at++) {
      const row = vector.indices[at]! * lanes.length
      const weight = vector.weights[at]!
      for (let lane = 0; lane < lanes.length; lane++) sums[lane]! += weights[row + lane]! * weight
    }
    const length = Math.sqrt(Math.max(1, vector.squares))
    return sums.map((sum, lane) => (sum / length + model.bias[lane]!) * scale)
  }

  const read = (task: string): Reading => {
    const vector = extractFeatures(task)
    const length = Math.sqrt(Math.max(1, vector.squares))
    const probabilities = softmax(logitsOf(vector).map((logit) => logit / temperature))
    const scores = lanes
      .map((agentId, lane) => ({ agentId, probability: Number(probabilities[lane]!.toFixed(4)), lane }))
      .sort((a, b) => b.probability - a.probability || a.lane - b.lane)
    return {
      scores: scores.map(({ agentId, probability }) => ({ agentId, probability })),
      signals: signalsFor(scores[0]!.lane),
    }

    /** What spoke for a lane: how far each feature lifted it above the average of all lanes. */
    function signalsFor(winner: number): Signal[] {
      const lifts = new Map<string, number>()
      for (let at = 0; at < vector.count; at++) {
        const row = vector.indices[at]! * lanes.length
        let sum = 0
        for (let lane = 0; lane < lanes.length; lane++) sum += weights[row + lane]!
        const lift = ((weights[row + winner]! - sum / lanes.length) * vector.weights[at]! * scale) / length
        if (lift > 0.02) lifts.set(vector.label(at), (lifts.get(vector.label(at)) ?? 0) + lift)
      }
      return [...lifts]
        .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
        .slice(0, MAX_SIGNALS)
        .map(([name, weight]) => ({ name, weight: Number(weight.toFixed(3)) }))
    }
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
    const row = weights.subarray(index * lanes, (index + 1) * lanes)
    if (row.every((weight) => weight === 0)) continue
    const chunk = Buffer.alloc(3 + lanes)
    chunk.writeUIntLE(index - last, 0, 3)
    row.forEach((weight, lane) => {
      chunk.writeInt8(weight, 3 + lane)
    })
    chunks.push(chunk)
    last = index
  }
  return Buffer.concat(chunks).toString('base64')
}

/** Equal weights have equal versions: a quote can be replayed exactly when it names the version it was made with. */
export function versionOf(model: Omit<RouterModel, 'routing_version' | 'trained'>): string {
  return `linear-1.${createHash('sha256').update(JSON.stringify(model)).digest('hex').slice(0, 10)}`
}
