/** Descriptive statistics. Only basic operations and square roots are used, because they round the same on every machine. */
export type Summary = {
  count: number
  sum: number
  mean: number
  median: number
  standardDeviation: number
  min: number
  max: number
  lowerQuartile: number
  upperQuartile: number
}

/** `significant` when the slope differs from zero with 95 % confidence. */
export type Trend = { slope: number; rSquared: number; direction: 'rising' | 'falling' | 'flat'; significant: boolean }

export function summarise(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b)
  const sum = values.reduce((total, value) => total + value, 0)
  const mean = sum / values.length
  const squaredSum = values.reduce((total, value) => total + (value - mean) * (value - mean), 0)
  return {
    count: values.length,
    sum,
    mean,
    median: quantile(sorted, 0.5),
    standardDeviation: values.length > 1 ? Math.sqrt(squaredSum / (values.length - 1)) : 0,
    min: sorted[0]!,
    max: sorted.at(-1)!,
    lowerQuartile: quantile(sorted, 0.25),
    upperQuartile: quantile(sorted, 0.75),
  }
}

export function quantile(sorted: readonly number[], share: number): number {
  const position = (sorted.length - 1) * share
  const low = Math.floor(position)
  const high = Math.ceil(position)
  return sorted[low]! + (sorted[high]! - sorted[low]!) * (position - low)
}

/** Positions further than 3.5 robust deviations from the median, or outside the quartile fences when that deviation is zero. */
export function findOutliers(values: readonly number[]): number[] {
  if (values.length < 5) return []
  const summary = summarise(values)
  const distances = values.map((value) => Math.abs(value - summary.median)).sort((a, b) => a - b)
  const spread = quantile(distances, 0.5)
  const range = summary.upperQuartile - summary.lowerQuartile
  return values.flatMap((value, position) => {
    const isOutlier =
      spread > 0
        ? (0.6745 * Math.abs(value - summary.median)) / spread > 3.5
        : value < summary.lowerQuartile - 1.5 * range || value > summary.upperQuartile + 1.5 * range
    return isOutlier ? [position] : []
  })
}

/** Least squares over the positions 0..n-1. A slope with R² under 0.1 counts as flat. */
export function fitTrend(values: readonly number[]): Trend | undefined {
  if (values.length < 3) return undefined
  const middle = (values.length - 1) / 2
  const mean = values.reduce((total, value) => total + value, 0) / values.length
  let covariance = 0
  let positionVariance = 0
  let valueVariance = 0
  values.forEach((value, position) => {
    covariance += (position - middle) * (value - mean)
    positionVariance += (position - middle) * (position - middle)
    valueVariance += (value - mean) * (value - mean)
  })
  const slope = covariance / positionVariance
  const rSquared = valueVariance > 0 ? (covariance * covariance) / (positionVariance * valueVariance) : 0
  const direction = rSquared < 0.1 || slope === 0 ? 'flat' : slope > 0 ? 'rising' : 'falling'
  const degreesOfFreedom = values.length - 2
  const tStatistic = rSquared < 1 ? Math.sqrt((rSquared * degreesOfFreedom) / (1 - rSquared)) : Number.POSITIVE_INFINITY
  return {
    slope,
    rSquared,
    direction,
    significant: direction !== 'flat' && values.length > 3 && tStatistic > studentT(degreesOfFreedom),
  }
}

/** The two-sided 95 % quantile of Student's t; from 30 degrees of freedom on it is close to the normal quantile 1.96. */
function studentT(degreesOfFreedom: number): number {
  const table = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
    2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045,
  ]
  return table[degreesOfFreedom - 1] ?? 2.0
}

/** The z-score of the difference between two proportions, each measured over `count`: significant at 95 % beyond 1.96. */
export function proportionZScore(before: number, after: number, count: number): number | undefined {
  const pooled = (before + after) / 2
  const error = Math.sqrt((2 * pooled * (1 - pooled)) / count)
  return error > 0 ? (after - before) / error : undefined
}

export function correlation(left: readonly number[], right: readonly number[]): number | undefined {
  const count = Math.min(left.length, right.length)
  if (count < 3) return undefined
  const leftMean = left.slice(0, count).reduce((total, value) => total + value, 0) / count
  const rightMean = right.slice(0, count).reduce((total, value) => total + value, 0) / count
  let productSum = 0
  let leftSquares = 0
  let rightSquares = 0
  for (let position = 0; position < count; position++) {
    const leftDelta = left[position]! - leftMean
    const rightDelta = right[position]! - rightMean
    productSum += leftDelta * rightDelta
    leftSquares += leftDelta * leftDelta
    rightSquares += rightDelta * rightDelta
  }
  const scale = Math.sqrt(leftSquares * rightSquares)
  return scale > 0 ? productSum / scale : undefined
}
