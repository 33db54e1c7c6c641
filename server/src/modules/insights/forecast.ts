/** A counter's value at a point in time: milliseconds since the epoch, and micro-USDC used by then. */
export type Sample = readonly [at: number, usedMicro: bigint]

export type Forecast = {
  /** Micro-USDC an hour, over the samples. */
  ratePerHourMicro: bigint
  exhaustedAt: Date
  /** The 90 % interval. `latest` is null when exhaustion may not happen at all. */
  earliest: Date
  latest: Date | null
}

const Z_90 = 1.645
const HOUR_MS = 3_600_000
// A burst of a few seconds does not predict an hour, however long ago it was: a pace needs increases that are minutes apart.
const MIN_SPAN_MS = 5 * 60_000
const HORIZON_MS = 400 * 24 * HOUR_MS

/**
 * When the remaining amount will be used up at the present pace. Spending is modelled as a steady rate with noise: after a
 * time t the expected amount is rate·t, with an error from the noise of the spending (growing with √t) and one from the
 * estimate of the rate (growing with t). The interval is where these bounds reach the remaining amount. Undefined when
 * there are too few samples.
 */
export function forecastExhaustion(samples: readonly Sample[], limitMicro: bigint, now: Date): Forecast | undefined {
  if (samples.length === 0) return undefined
  const [firstAt, firstUsedMicro] = samples[0]!
  const [lastAt, lastUsedMicro] = samples.at(-1)!
  const span = lastAt - firstAt
  const increase = Number(lastUsedMicro - firstUsedMicro)
  if (increase <= 0) return undefined
  const isExhausted = limitMicro <= lastUsedMicro
  if (!isExhausted && !hasHistory(samples)) return undefined
  const rate = increase / span
  const variancePerMs = estimateVariancePerMs(samples, rate)
  const rateError = Math.sqrt(variancePerMs / span)
  const remaining = Number(limitMicro - lastUsedMicro)
  const ratePerHourMicro = BigInt(Math.round(rate * HOUR_MS))
  if (remaining <= 0) return { ratePerHourMicro, exhaustedAt: now, earliest: now, latest: now }
  const spread = (t: number) => Z_90 * Math.sqrt(variancePerMs * t + rateError * rateError * t * t)
  const afterLastSample = (ms: number) => new Date(lastAt + Math.round(ms))
  const latest = findFirstTime((t) => rate * t - spread(t) >= remaining)
  return {
    ratePerHourMicro,
    exhaustedAt: afterLastSample(Math.min(remaining / rate, HORIZON_MS)),
    earliest: afterLastSample(findFirstTime((t) => rate * t + spread(t) >= remaining) ?? HORIZON_MS),
    latest: latest === undefined ? null : afterLastSample(latest),
  }
}

/** Whether the use grew over a time that is long enough to have a pace. */
function hasHistory(samples: readonly Sample[]): boolean {
  const increases = samples.filter(([, used], index) => index > 0 && used > samples[index - 1]![1])
  return increases.length > 0 && increases.at(-1)![0] - increases[0]![0] >= MIN_SPAN_MS
}

/** The squared deviation of the steps from an even pace, per millisecond. */
function estimateVariancePerMs(samples: readonly Sample[], rate: number): number {
  let squaredDeviation = 0
  for (let index = 1; index < samples.length; index += 1) {
    const [previousAt, usedBefore] = samples[index - 1]!
    const [at, used] = samples[index]!
    squaredDeviation += (Number(used - usedBefore) - rate * (at - previousAt)) ** 2
  }
  return squaredDeviation / (samples.at(-1)![0] - samples[0]![0])
}

/** Binary search for the first time at which a monotonic condition holds; undefined beyond the horizon. */
function findFirstTime(isReached: (ms: number) => boolean): number | undefined {
  if (!isReached(HORIZON_MS)) return undefined
  let low = 0
  let high = HORIZON_MS
  while (high - low > 1) {
    const middle = (low + high) / 2
    if (isReached(middle)) high = middle
    else low = middle
  }
  return high
}

const MAX_SAMPLES = 64

/** Adds a sample. A full list drops every second sample of its older half, so that recent history is the most detailed. */
export function addSample(samples: readonly Sample[], sample: Sample): Sample[] {
  const all = [...samples, sample]
  if (all.length <= MAX_SAMPLES) return all
  const half = all.length / 2
  return all.filter((_, index) => index >= half || index % 2 === 0)
}
