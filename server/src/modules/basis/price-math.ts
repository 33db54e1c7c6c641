export const BPS = 10_000

/** Rounds to the decimals that are published and signed, and throws on a value that is not a finite number. */
export function roundTo(value: number, decimals: number): number {
  if (!Number.isFinite(value)) throw new RangeError(`${value} must not be published.`)
  const rounded = Number(value.toFixed(decimals))
  return rounded === 0 ? 0 : rounded
}

export const clamp = (value: number, low: number, high: number) => Math.min(high, Math.max(low, value))

/** Prices are published in millionths; a price above the maximum comes from wrong decimals or an emptied pool. */
const MIN_PRICE = 1e-6
const MAX_PRICE = 1e9

export const isPrice = (value: number) => value >= MIN_PRICE && value <= MAX_PRICE

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
