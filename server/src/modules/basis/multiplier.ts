/** How many shares one raw token stands for. It changes with splits and reinvested dividends, at an announced time. */
export type MultiplierReading = {
  source: string
  current: number
  next: { value: number; at: Date } | null
  onChain: boolean
}

export type Multiplier = {
  value: number
  previous: number | null
  changedAt: Date | null
  agree: boolean
  source: string
}

/** Sources write the same multiplier with more or fewer digits; further apart than this, one of them is wrong. */
const AGREEMENT = 1e-6

/** Beyond these a multiplier is a mistake of decimals, not a corporate action. */
const LEAST = 1e-4
const MOST = 1e4

export const isMultiplier = (value: number) => Number.isFinite(value) && value >= LEAST && value <= MOST

/** The multiplier of a reading at an instant: the new one once its time has come. */
export const inForce = (reading: MultiplierReading, at: Date): number =>
  reading.next && at >= reading.next.at ? reading.next.value : reading.current

/**
 * One multiplier out of several readings, the chain's own before an issuer's page, with the last change that is known:
 * from the reading itself, or because what was remembered differs.
 */
export function settleMultiplier(
  readings: readonly MultiplierReading[],
  remembered: Pick<Multiplier, 'value' | 'previous' | 'changedAt'> | null,
  at: Date,
): Multiplier | undefined {
  const usable = readings.filter((reading) => isMultiplier(inForce(reading, at)))
  const chosen = usable.find((reading) => reading.onChain) ?? usable[0]
  if (!chosen) return undefined
  const value = inForce(chosen, at)
  const same = (other: number) => Math.abs(other / value - 1) <= AGREEMENT
  const agree = usable.every((reading) => same(inForce(reading, at)))
  const common = { value, agree, source: chosen.source }
  if (chosen.next && at >= chosen.next.at && chosen.next.value !== chosen.current && isMultiplier(chosen.current))
    return { ...common, previous: chosen.current, changedAt: chosen.next.at }
  if (remembered && !same(remembered.value)) return { ...common, previous: remembered.value, changedAt: at }
  return { ...common, previous: remembered?.previous ?? null, changedAt: remembered?.changedAt ?? null }
}

/** A print belongs with the multiplier of its own moment, so a split before the first new print makes no false basis. */
export const multiplierAt = (multiplier: Multiplier, at: Date): number =>
  multiplier.changedAt && multiplier.previous !== null && at < multiplier.changedAt
    ? multiplier.previous
    : multiplier.value
