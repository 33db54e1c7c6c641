import type { SourcedObservation } from './price-source.ts'

export const MINUTE_MS = 60_000

/** A mandatory input older than this may no longer be called live. */
export const STALE_MS = 15 * MINUTE_MS

type TimedObservation = Pick<SourcedObservation, 'fetchedAt'>

export const isFresh = ({ fetchedAt }: TimedObservation, at: Date): boolean =>
  at.getTime() - fetchedAt.getTime() <= STALE_MS

export const filterFresh = <T extends TimedObservation>(observations: readonly T[], at: Date): T[] =>
  observations.filter((observation) => isFresh(observation, at))

export const findNewest = <T extends TimedObservation>(observations: readonly T[], at: Date): T | undefined =>
  filterFresh(observations, at).sort((a, b) => b.fetchedAt.getTime() - a.fetchedAt.getTime())[0]
