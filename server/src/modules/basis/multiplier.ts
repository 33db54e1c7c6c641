/** How many shares one raw token stands for. It changes with splits and reinvested dividends, at an announced time. */
export type MultiplierReading = {
  source: string
  current: number
  next: { value: number; at: Date } | null
  onChain: boolean
  publishedAt?: Date
}

export type Multiplier = Remembered & { agree: boolean; source: string }

export type Remembered = {
  value: number
  previous: number | null
  changedAt: Date | null
  /** A change that nobody dated was made somewhere between this and `changedAt`, which is when it was seen. */
  unsureSince?: Date | null
  /** When `value` was last read. */
  seenAt?: Date | null
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
  remembered: Remembered | null,
  at: Date,
): Multiplier | undefined {
  const usable = readings.filter((reading) => isMultiplier(inForce(reading, at)))
  const chosen = usable.find((reading) => reading.onChain) ?? usable[0]
  if (!chosen) return undefined
  const value = inForce(chosen, at)
  const same = (other: number) => Math.abs(other / value - 1) <= AGREEMENT
  const agree = usable.every((reading) => same(inForce(reading, at)))
  const common = { value, agree, source: chosen.source, seenAt: chosen.publishedAt ?? at }
  if (chosen.next && at >= chosen.next.at && chosen.next.value !== chosen.current && isMultiplier(chosen.current))
    return { ...common, previous: chosen.current, changedAt: chosen.next.at, unsureSince: null }
  if (remembered && !same(remembered.value))
    return { ...common, previous: remembered.value, changedAt: at, unsureSince: remembered.seenAt ?? null }
  const { previous = null, changedAt = null, unsureSince = null } = remembered ?? {}
  return { ...common, previous, changedAt, unsureSince }
}

/** Whether nobody can say which multiplier was in force at this moment. */
export const isUnsure = ({ changedAt, unsureSince }: Multiplier, at: Date): boolean =>
  Boolean(changedAt && unsureSince && at >= unsureSince && at < changedAt)

/** A print belongs with the multiplier of its own moment, so a split before the first new print makes no false basis. */
export const multiplierAt = (multiplier: Multiplier, at: Date): number =>
  multiplier.changedAt && multiplier.previous !== null && at < multiplier.changedAt
    ? multiplier.previous
    : multiplier.value
