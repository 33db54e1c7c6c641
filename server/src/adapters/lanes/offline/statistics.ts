/** Descriptive statistics with additions, divisions and square roots only: those round the same on every machine. */
export type Summary = {
  count: number
  sum: number
  mean: number
  median: number
  deviation: number
  min: number
  max: number
  lowerQuartile: number
  upperQuartile: number
}

/** `clear` when the slope differs from none at 95 % confidence: otherwise scatter alone could have made it. */
export type Trend = { slope: number; fit: number; direction: 'rising' | 'falling' | 'flat'; clear: boolean }

export function summarise(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b)
  const sum = values.reduce((total, value) => total + value, 0)
  const mean = sum / values.length
  const squares = values.reduce((total, value) => total + (value - mean) * (value - mean), 0)
  return {
    count: values.length,
    sum,
    mean,
    median: quantile(sorted, 0.5),
    deviation: values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0,
    min: sorted[0]!,
    max: sorted.at(-1)!,
    lowerQuartile: quantile(sorted, 0.25),
    upperQuartile: quantile(sorted, 0.75),
  }
}

export function quantile(sorted: readonly number[], share: number): number {
  const at = (sorted.length - 1) * share
  const low = Math.floor(at)
  const high = Math.ceil(at)
  return sorted[low]! + (sorted[high]! - sorted[low]!) * (at - low)
}

/** Positions whose distance from the median is over 3.5 robust deviations, or outside the quartile fences when there is no spread. */
export function outliersOf(values: readonly number[]): number[] {
  if (values.length < 5) return []
  const summary = summarise(values)
  const distances = values.map((value) => Math.abs(value - summary.median)).sort((a, b) => a - b)
  const spread = quantile(distances, 0.5)
  const range = summary.upperQuartile - summary.lowerQuartile
  return values.flatMap((value, at) => {
    const far =
      spread > 0
        ? (0.6745 * Math.abs(value - summary.median)) / spread > 3.5
        : value < summary.lowerQuartile - 1.5 * range || value > summary.upperQuartile + 1.5 * range
    return far ? [at] : []
  })
}

/** Least squares over the positions 0..n-1. A slope that explains under a tenth of the movement is called flat. */
export function trendOf(values: readonly number[]): Trend | undefined {
  if (values.length < 3) return undefined
  const middle = (values.length - 1) / 2
  const mean = values.reduce((total, value) => total + value, 0) / values.length
  let across = 0
  let along = 0
  let around = 0
  values.forEach((value, at) => {
    across += (at - middle) * (value - mean)
    along += (at - middle) * (at - middle)
    around += (value - mean) * (value - mean)
  })
  const slope = across / along
  const fit = around > 0 ? (across * across) / (along * around) : 0
  const direction = fit < 0.1 || slope === 0 ? 'flat' : slope > 0 ? 'rising' : 'falling'
  const freedom = values.length - 2
  const distance = fit < 1 ? Math.sqrt((fit * freedom) / (1 - fit)) : Number.POSITIVE_INFINITY
  return { slope, fit, direction, clear: direction !== 'flat' && values.length > 3 && distance > studentT(freedom) }
}

/** The two-sided 95 % quantile of Student's t; from 30 degrees on it hardly differs from the normal's 1.96. */
function studentT(freedom: number): number {
  const table = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
    2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045,
  ]
  return table[freedom - 1] ?? 2.0
}

/** How many standard errors lie between two shares that were each measured over `count`: beyond 1.96 it is more than chance at 95 %. */
export function sharesApart(before: number, after: number, count: number): number | undefined {
  const pooled = (before + after) / 2
  const error = Math.sqrt((2 * pooled * (1 - pooled)) / count)
  return error > 0 ? (after - before) / error : undefined
}

export function correlation(left: readonly number[], right: readonly number[]): number | undefined {
  const count = Math.min(left.length, right.length)
  if (count < 3) return undefined
  const leftMean = left.slice(0, count).reduce((total, value) => total + value, 0) / count
  const rightMean = right.slice(0, count).reduce((total, value) => total + value, 0) / count
  let shared = 0
  let leftSquares = 0
  let rightSquares = 0
  for (let at = 0; at < count; at++) {
    const l = left[at]! - leftMean
    const r = right[at]! - rightMean
    shared += l * r
    leftSquares += l * l
    rightSquares += r * r
  }
  const scale = Math.sqrt(leftSquares * rightSquares)
  return scale > 0 ? shared / scale : undefined
}
