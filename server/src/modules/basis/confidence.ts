import { BPS } from './price-math.ts'
import { MINUTE_MS } from './staleness.ts'

export type Confidence = 'high' | 'medium' | 'low'

export type ConfidenceInputs = {
  referenceCount: number
  referenceSpreadBps: number
  referenceAgeMs: number
  wrapperAgeMs: number
  /** Share of the known liquidity that was counted exactly, 0 to 1. */
  liquidityCoverage: number
  spotPrice: number
  /** Mean of the last five minutes, or undefined with fewer than two samples. */
  recentMean: number | undefined
  bandBps: number
  multipliersAgree: boolean
  referenceCarried: boolean
  isHalted: boolean
}

const MAX_REFERENCE_SPREAD_BPS = 10
const MAX_AGE_MS = MINUTE_MS
const MIN_LIQUIDITY_COVERAGE = 0.8

/** High when all five checks pass, medium when exactly one fails. With a carried reference or a halt it is low. */
export function rateConfidence(inputs: ConfidenceInputs): Confidence {
  if (inputs.referenceCarried || inputs.isHalted) return 'low'
  const failedCount = runChecks(inputs).filter((passed) => !passed).length
  return failedCount === 0 ? 'high' : failedCount === 1 ? 'medium' : 'low'
}

const runChecks = (inputs: ConfidenceInputs): boolean[] => [
  inputs.referenceCount >= 2 && inputs.referenceSpreadBps <= MAX_REFERENCE_SPREAD_BPS,
  inputs.referenceAgeMs <= MAX_AGE_MS && inputs.wrapperAgeMs <= MAX_AGE_MS,
  inputs.liquidityCoverage >= MIN_LIQUIDITY_COVERAGE,
  inputs.recentMean !== undefined && Math.abs(inputs.spotPrice / inputs.recentMean - 1) <= inputs.bandBps / 2 / BPS,
  inputs.multipliersAgree,
]

export type PriceSample = { at: Date; price: number }

const MEAN_PERIOD_MS = 5 * MINUTE_MS

/** The time-weighted mean of the last five minutes, or undefined with fewer than two samples. */
export function recentMean(samples: readonly PriceSample[], at: Date): number | undefined {
  const from = at.getTime() - MEAN_PERIOD_MS
  const recent = samples.filter((sample) => sample.at.getTime() >= from && sample.at <= at)
  if (recent.length < 2) return undefined
  let weightedSum = 0
  let totalMs = 0
  recent.forEach((sample, index) => {
    const until = recent[index + 1]?.at.getTime() ?? at.getTime()
    const durationMs = Math.max(1, until - sample.at.getTime())
    weightedSum += sample.price * durationMs
    totalMs += durationMs
  })
  return weightedSum / totalMs
}
