import type { LinearModel, TextModel } from '../src/modules/verification/answer-model.ts'
import type { Sample } from './fit-trees.ts'

const round = (value: number) => Math.round(value * 100_000) / 100_000

/** Logistic regression by gradient descent from zero, over features of equal spread. */
export function fitLinear(samples: readonly Sample[]): LinearModel {
  const [rounds, decay] = [300, 0.003]
  const names = Object.keys(samples[0]!.features)
  const count = samples.length
  const columns = names.map((name) => Float64Array.from(samples, ({ features }) => features[name]!))
  const means = columns.map((column) => column.reduce((sum, value) => sum + value, 0) / count)
  const spreads = columns.map(
    (column, i) => Math.sqrt(column.reduce((sum, value) => sum + (value - means[i]!) ** 2, 0) / count) || 1,
  )
  columns.forEach((column, i) => {
    for (let row = 0; row < count; row++)
      column[row] = Math.max(-3, Math.min(3, (column[row]! - means[i]!) / spreads[i]!))
  })
  const total = samples.reduce((sum, { weight }) => sum + weight, 0)
  const weights = new Float64Array(names.length)
  let bias = 0
  const errors = new Float64Array(count)
  for (let step = 0; step < rounds; step++) {
    errors.fill(bias)
    columns.forEach((column, i) => {
      for (let row = 0; row < count; row++) errors[row]! += weights[i]! * column[row]!
    })
    for (let row = 0; row < count; row++)
      errors[row] = ((1 / (1 + Math.exp(-errors[row]!)) - samples[row]!.y) * samples[row]!.weight) / total
    bias -= errors.reduce((sum, error) => sum + error, 0)
    columns.forEach((column, i) => {
      let gradient = decay * weights[i]!
      for (let row = 0; row < count; row++) gradient += errors[row]! * column[row]!
      weights[i]! -= gradient
    })
  }
  const scaled = [...weights].map((weight, i) => weight / spreads[i]!)
  return {
    bias: round(bias - scaled.reduce((sum, weight, i) => sum + weight * means[i]!, 0)),
    weights: Object.fromEntries(names.map((name, i) => [name, round(scaled[i]!)])),
  }
}

export type TextSample = { buckets: ReadonlyMap<number, number>; y: 0 | 1; weight: number }

/** Logistic regression over hashed words, one sample at a time in a fixed order, with steps that shrink for frequent words. */
export function fitText(samples: readonly TextSample[], size: number, rounds: number): TextModel {
  const [rate, decay] = [0.3, 0.001]
  const weights = new Float64Array(size)
  const history = new Float64Array(size).fill(0.001)
  let [bias, biasHistory] = [0, 0.001]
  for (let step = 0; step < rounds; step++)
    for (let k = 0; k < samples.length; k++) {
      const { buckets, y, weight } = samples[(k * 7_919 + step * 31) % samples.length]!
      let score = bias
      for (const [bucket, value] of buckets) score += weights[bucket]! * value
      const error = (1 / (1 + Math.exp(-score)) - y) * weight
      biasHistory += error ** 2
      bias -= (rate * error) / Math.sqrt(biasHistory)
      for (const [bucket, value] of buckets) {
        const gradient = error * value + decay * weights[bucket]!
        history[bucket]! += gradient ** 2
        weights[bucket]! -= (rate * gradient) / Math.sqrt(history[bucket]!)
      }
    }
  const scale = weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0) / 127 || 1
  const bytes = Int8Array.from(weights, (weight) => Math.round(weight / scale))
  return { bias: round(bias), scale: round(scale), words: Buffer.from(bytes.buffer).toString('base64') }
}
