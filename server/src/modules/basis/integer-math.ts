/** The largest integer whose square is not above n, by Newton's method from above. */
export function integerSqrt(n: bigint): bigint {
  if (n < 0n) throw new RangeError('The square root of a negative number is not defined.')
  if (n < 2n) return n
  let root = 1n << BigInt((n.toString(2).length + 1) >> 1)
  for (;;) {
    const next = (root + n / root) >> 1n
    if (next >= root) return root
    root = next
  }
}

export const ceilDivide = (a: bigint, b: bigint): bigint => (a + b - 1n) / b

/** Prices are converted to integers with this many decimals. */
const FRACTION_DECIMALS = 12
export const FRACTION_ONE = 10n ** BigInt(FRACTION_DECIMALS)

/** A finite number as a bigint fraction over FRACTION_ONE, rounded to twelve decimals. */
export function toFraction(value: number): bigint {
  if (!Number.isFinite(value) || Math.abs(value) >= 1e15) throw new RangeError(`${value} is not a price.`)
  const text = value.toFixed(FRACTION_DECIMALS)
  return BigInt(text.replace('.', ''))
}

/** Converts atomic units to whole units, with the fifteen significant digits of a double. */
export function fromUnits(units: bigint, decimals: number): number {
  const negative = units < 0n
  const digits = (negative ? -units : units).toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const value = Number(decimals === 0 ? whole : `${whole}.${digits.slice(-decimals)}`)
  return negative ? -value : value
}
