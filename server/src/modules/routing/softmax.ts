const LOG2_E = Math.LOG2E
const LN2_HIGH = 0.6931471803691238
const LN2_LOW = 1.9082149292705877e-10

/**
 * e^x from the four basic operations only. `Math.exp` may round differently between engines; the four basic
 * operations may not, and a confidence must be the same number wherever it is computed.
 */
export function exactExp(x: number): number {
  if (x < -700) return 0
  const power = Math.round(Math.min(x, 700) * LOG2_E)
  const remainder = Math.min(x, 700) - power * LN2_HIGH - power * LN2_LOW
  let sum = 1
  for (let term = 14; term > 0; term--) sum = 1 + (remainder * sum) / term
  let scale = 1
  for (let i = 0; i < Math.abs(power); i++) scale *= 2
  return power < 0 ? sum / scale : sum * scale
}

export function softmax(logits: readonly number[]): number[] {
  const max = Math.max(...logits)
  const powers = logits.map((logit) => exactExp(logit - max))
  const total = powers.reduce((sum, power) => sum + power, 0)
  return powers.map((power) => power / total)
}
