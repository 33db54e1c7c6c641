export const BPS = 10_000
export const MINUTE_MS = 60_000

/** Past this age a mandatory input may no longer be called live. */
export const STALE_MS = 15 * MINUTE_MS

/** Rounded to what is published and signed. Anything that is no number stops here rather than in an answer. */
export function roundTo(value: number, decimals: number): number {
  if (!Number.isFinite(value)) throw new RangeError(`${value} must not be published.`)
  const rounded = Number(value.toFixed(decimals))
  return rounded === 0 ? 0 : rounded
}

export const clamp = (value: number, low: number, high: number) => Math.min(high, Math.max(low, value))

/** Prices are published in millionths; beyond the other end it is a mistake of decimals, or a pool somebody emptied. */
const LEAST_PRICE = 1e-6
const MOST_PRICE = 1e9

export const isPrice = (value: number) => value >= LEAST_PRICE && value <= MOST_PRICE

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
