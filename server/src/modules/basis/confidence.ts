import { BPS, MINUTE_MS } from './numbers.ts'

export type Confidence = 'high' | 'medium' | 'low'

export type ConfidenceInputs = {
  references: number
  referenceSpreadBps: number
  referenceAgeMs: number
  wrapperAgeMs: number
  /** Share of the known liquidity that was counted exactly, 0 to 1. */
  liquidityCounted: number
  spot: number
  /** Mean of the last five minutes, or undefined when too little was seen. */
  recentMean: number | undefined
  bandBps: number
  multipliersAgree: boolean
  carried: boolean
  halted: boolean
}

const TOGETHER_BPS = 10
const FRESH_MS = MINUTE_MS
const COUNTED = 0.8

/** High when all five hold, medium when exactly one fails. A reference no market stands behind is never more than low. */
export function rateConfidence(inputs: ConfidenceInputs): Confidence {
  if (inputs.carried || inputs.halted) return 'low'
  const failed = checks(inputs).filter((holds) => !holds).length
  return failed === 0 ? 'high' : failed === 1 ? 'medium' : 'low'
}

const checks = (inputs: ConfidenceInputs): boolean[] => [
  inputs.references >= 2 && inputs.referenceSpreadBps <= TOGETHER_BPS,
  inputs.referenceAgeMs <= FRESH_MS && inputs.wrapperAgeMs <= FRESH_MS,
  inputs.liquidityCounted >= COUNTED,
  inputs.recentMean !== undefined && Math.abs(inputs.spot / inputs.recentMean - 1) <= inputs.bandBps / 2 / BPS,
  inputs.multipliersAgree,
]

export type Sample = { at: Date; price: number }

const MEAN_OVER_MS = 5 * MINUTE_MS

/** The mean over the last five minutes, each price for as long as it stood. One sample alone is no mean. */
export function recentMean(samples: readonly Sample[], at: Date): number | undefined {
  const from = at.getTime() - MEAN_OVER_MS
  const inside = samples.filter((sample) => sample.at.getTime() >= from && sample.at <= at)
  if (inside.length < 2) return undefined
  let weighted = 0
  let total = 0
  inside.forEach((sample, index) => {
    const until = inside[index + 1]?.at.getTime() ?? at.getTime()
    const stood = Math.max(1, until - sample.at.getTime())
    weighted += sample.price * stood
    total += stood
  })
  return weighted / total
}
