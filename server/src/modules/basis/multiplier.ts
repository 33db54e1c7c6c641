/** How many shares one raw token represents. It changes with splits and reinvested dividends, at an announced time. */
export type MultiplierReading = {
  source: string
  current: number
  next: { value: number; at: Date } | null
  onChain: boolean
  publishedAt?: Date
}

export type Multiplier = StoredMultiplier & { sourcesAgree: boolean; source: string }

export type StoredMultiplier = {
  value: number
  previous: number | null
  changedAt: Date | null
  /**
   * Set when no source gave the time of the last change: the change happened between this time and `changedAt`, which
   * is then the time it was first observed.
   */
  unsureSince?: Date | null
  /** When `value` was last read. */
  seenAt?: Date | null
}

/** Sources publish the same multiplier with more or fewer digits; a larger relative difference is a disagreement. */
const AGREEMENT_TOLERANCE = 1e-6

/** A multiplier outside these limits comes from wrong decimals, not from a corporate action. */
const MIN_MULTIPLIER = 1e-4
const MAX_MULTIPLIER = 1e4

export const isPlausibleMultiplier = (value: number) =>
  Number.isFinite(value) && value >= MIN_MULTIPLIER && value <= MAX_MULTIPLIER

/** The multiplier of a reading at an instant: the announced one from its activation time on. */
export const effectiveMultiplier = (reading: MultiplierReading, at: Date): number =>
  reading.next && at >= reading.next.at ? reading.next.value : reading.current

/**
 * Chooses one multiplier from several readings, preferring the chain over an issuer's page. The last change is known
 * from the reading itself, or from a difference to the stored value.
 */
export function resolveMultiplier(
  readings: readonly MultiplierReading[],
  stored: StoredMultiplier | null,
  at: Date,
): Multiplier | undefined {
  const usableReadings = readings.filter((reading) => isPlausibleMultiplier(effectiveMultiplier(reading, at)))
  const chosenReading = usableReadings.find((reading) => reading.onChain) ?? usableReadings[0]
  if (!chosenReading) return undefined
  const { current, next, source } = chosenReading
  const value = effectiveMultiplier(chosenReading, at)
  const isSame = (other: number) => Math.abs(other / value - 1) <= AGREEMENT_TOLERANCE
  const sourcesAgree = usableReadings.every((reading) => isSame(effectiveMultiplier(reading, at)))
  const common = { value, sourcesAgree, source, seenAt: chosenReading.publishedAt ?? at }
  if (next && at >= next.at && next.value !== current && isPlausibleMultiplier(current))
    return { ...common, previous: current, changedAt: next.at, unsureSince: null }
  if (stored && !isSame(stored.value))
    return { ...common, previous: stored.value, changedAt: at, unsureSince: stored.seenAt ?? null }
  const { previous = null, changedAt = null, unsureSince = null } = stored ?? {}
  return { ...common, previous, changedAt, unsureSince }
}

/** Whether it is unknown which multiplier applied at this instant. */
export const isMultiplierUncertain = ({ changedAt, unsureSince }: Multiplier, at: Date): boolean =>
  Boolean(changedAt && unsureSince && at >= unsureSince && at < changedAt)

/** A print is valued with the multiplier of its own time, so a split before the first new print makes no false basis. */
export const multiplierAt = (multiplier: Multiplier, at: Date): number =>
  multiplier.changedAt && multiplier.previous !== null && at < multiplier.changedAt
    ? multiplier.previous
    : multiplier.value
