import type { Confidence } from './confidence.ts'
import { clamp, roundTo } from './price-math.ts'

/**
 * The window score: how far a wrapper is from its reference while no new supply has closed the gap.
 * It is a ranking aid and no recommendation. The upper-case names are those of `SCORING_FORMULA`.
 */
export type WindowInputs = {
  basisBps: number
  bandBps: number
  feesBps: number
  confBps: number
  confidence: Confidence
  /** N in the formula: quote currency that brings the pools back to the reference. */
  distanceUsd: number
  /** F in the formula: inventory near the reference. */
  nearReferenceUsd: number
  /** Tokens created or redeemed toward parity since the gap opened, in quote currency. */
  issuanceUsd: number
  creationOpen: boolean
  /** Minutes for which the gap has been open while creation was open. */
  openMinutes: number
  floatLocked: number
  /** 24-hour return of the memecoin quoted in the wrapper, a fraction; 0 when there is none. */
  momentum: number
}

export const WINDOW_STATUSES = {
  insufficient_data: 'A mandatory input is missing or too old to score.',
  reference_suspended: 'Shares per token changed and the underlying has not printed since.',
  aligned: 'The wrapper trades at its reference, within the band, fees and the error of the sources.',
  supply_responding: 'Issuance toward parity has covered at least half of the way back.',
  window_wide: 'The gap is large and supply has not closed it: score 65 or more.',
  window_open: 'The gap is open and supply has not closed it: score 35 to 65.',
  drifting: 'The wrapper is away from its reference, with a score below 35.',
} as const

export type WindowStatus = keyof typeof WINDOW_STATUSES

export const SCORING_FORMULA =
  'score = 100·q·D·U·G·(0.55 + 0.30·T + 0.15·M); e = max(0, |basis_bps| − max(band_bps, fees_bps + 2·conf_bps)); ' +
  'D = 1 − exp(−e/75); N = USD that brings the pools back to reference; U = 1 − clamp(issuance toward parity since e > 0 ÷ N, 0, 1); ' +
  'G = 1 if creation is closed, else 0.35 + 0.65·(1 − exp(−minutes open/30)); T = ½·float_locked + ½·(1 − F/(F+N)), F = near_reference_usd; ' +
  'M = clamp(24 h momentum, 0, 1); q = 1, 0.8 or 0.5 by confidence high, medium or low'

const CONFIDENCE_WEIGHT: Record<Confidence, number> = { high: 1, medium: 0.8, low: 0.5 }

export type WindowScore = { score: number; status: WindowStatus }

export const INSUFFICIENT_DATA: WindowScore = { score: 0, status: 'insufficient_data' }

export function scoreWindow(inputs: WindowInputs, suspended: boolean): WindowScore {
  if (!Object.values(inputs).every((value) => typeof value !== 'number' || Number.isFinite(value)))
    return INSUFFICIENT_DATA
  if (suspended) return { score: 0, status: 'reference_suspended' }
  const factors = computeFactors(inputs)
  const score = roundTo(
    100 * factors.q * factors.D * factors.U * factors.G * (0.55 + 0.3 * factors.T + 0.15 * factors.M),
    2,
  )
  return { score, status: toStatus(factors, score) }
}

function toStatus({ D, U }: { D: number; U: number }, score: number): WindowStatus {
  if (D < 0.1) return 'aligned'
  if (U < 0.5) return 'supply_responding'
  if (score >= 65) return 'window_wide'
  if (score >= 35) return 'window_open'
  return 'drifting'
}

function computeFactors(inputs: WindowInputs) {
  const { distanceUsd: N, nearReferenceUsd: F } = inputs
  const issuedShare = N > 0 ? inputs.issuanceUsd / N : inputs.issuanceUsd > 0 ? 1 : 0
  const nearShare = F + N > 0 ? F / (F + N) : 0
  return {
    q: CONFIDENCE_WEIGHT[inputs.confidence],
    D: 1 - Math.exp(-excessBps(inputs) / 75),
    U: 1 - clamp(issuedShare, 0, 1),
    G: inputs.creationOpen ? 0.35 + 0.65 * (1 - Math.exp(-Math.max(0, inputs.openMinutes) / 30)) : 1,
    T: 0.5 * clamp(inputs.floatLocked, 0, 1) + 0.5 * (1 - nearShare),
    M: clamp(inputs.momentum, 0, 1),
  }
}

/** The part of the gap beyond the band, or beyond the venue's fee plus twice the error of the sources if that is wider. */
export const excessBps = (inputs: Pick<WindowInputs, 'basisBps' | 'bandBps' | 'feesBps' | 'confBps'>): number =>
  Math.max(0, Math.abs(inputs.basisBps) - Math.max(inputs.bandBps, inputs.feesBps + 2 * inputs.confBps))
