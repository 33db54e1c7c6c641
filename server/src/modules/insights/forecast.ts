/** A counter as it stood at a moment: milliseconds since the epoch, and micro-USDC taken by then. */
export type Sample = readonly [at: number, takenMicro: bigint]

export type Forecast = {
  /** Micro-USDC an hour, over the samples. */
  ratePerHourMicro: bigint
  exhaustedAt: Date
  /** With nine chances in ten it happens between these two; null when it may well not happen at all. */
  earliest: Date
  latest: Date | null
}

const Z_90 = 1.645
const HOUR_MS = 3_600_000
const MIN_SAMPLES = 3
// A burst of a few seconds says nothing about an hour.
const MIN_SPAN_MS = 60_000
const HORIZON_MS = 400 * 24 * HOUR_MS

/**
 * When the rest will be used up if spending goes on as it did. Spending is taken as a steady rate with noise: after a time
 * t the further amount is about rate·t, give or take the noise of the spending itself (growing with √t) and our ignorance
 * of the true rate (growing with t). The band is where that cone meets what remains. Undefined when too little is known.
 */
export function forecastExhaustion(samples: readonly Sample[], limitMicro: bigint, now: Date): Forecast | undefined {
  if (samples.length < MIN_SAMPLES) return undefined
  const [firstAt, firstTaken] = samples[0]!
  const [lastAt, lastTaken] = samples.at(-1)!
  const span = lastAt - firstAt
  const grown = Number(lastTaken - firstTaken)
  if (span < MIN_SPAN_MS || grown <= 0) return undefined
  const rate = grown / span
  const noise = noiseOf(samples, rate)
  const doubt = Math.sqrt(noise / span)
  const remaining = Number(limitMicro - lastTaken)
  const ratePerHourMicro = BigInt(Math.round(rate * HOUR_MS))
  if (remaining <= 0) return { ratePerHourMicro, exhaustedAt: now, earliest: now, latest: now }
  const spread = (t: number) => Z_90 * Math.sqrt(noise * t + doubt * doubt * t * t)
  const later = (ms: number) => new Date(lastAt + Math.round(ms))
  const latest = firstTime((t) => rate * t - spread(t) >= remaining)
  return {
    ratePerHourMicro,
    exhaustedAt: later(Math.min(remaining / rate, HORIZON_MS)),
    earliest: later(firstTime((t) => rate * t + spread(t) >= remaining) ?? HORIZON_MS),
    latest: latest === undefined ? null : later(latest),
  }
}

/** How far the steps stray from an even pace, squared, per millisecond. */
function noiseOf(samples: readonly Sample[], rate: number): number {
  let strayed = 0
  for (let index = 1; index < samples.length; index += 1) {
    const [before, takenBefore] = samples[index - 1]!
    const [at, taken] = samples[index]!
    strayed += (Number(taken - takenBefore) - rate * (at - before)) ** 2
  }
  return strayed / (samples.at(-1)![0] - samples[0]![0])
}

/** The first time at which something holds that, once true, stays true; undefined beyond the horizon. */
function firstTime(holds: (ms: number) => boolean): number | undefined {
  if (!holds(HORIZON_MS)) return undefined
  let low = 0
  let high = HORIZON_MS
  while (high - low > 1) {
    const middle = (low + high) / 2
    if (holds(middle)) high = middle
    else low = middle
  }
  return high
}

const MAX_SAMPLES = 64

/** Adds a sample and keeps the list short: the older half is thinned, so that the far past is coarse and the near past fine. */
export function addSample(samples: readonly Sample[], sample: Sample): Sample[] {
  const all = [...samples, sample]
  if (all.length <= MAX_SAMPLES) return all
  const half = all.length / 2
  return all.filter((_, index) => index >= half || index % 2 === 0)
}
