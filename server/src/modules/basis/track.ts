import type { Sample } from './confidence.ts'
import { type Multiplier, type Remembered, settleMultiplier } from './multiplier.ts'
import { MINUTE_MS, STALE_MS } from './numbers.ts'
import type { Covered, Kept, Observation } from './price-source.ts'
import { emptySupplyTrack, foldIssuance, foldSupply, type SupplyTrack } from './primary-market.ts'
import type { WindowStatus } from './window-score.ts'

/** What one cycle hands to the next about a wrapper. Plain JSON once dates are text, so that a restart forgets nothing. */
export type Track = {
  multiplier: Remembered | null
  supply: SupplyTrack
  /** Since when the gap is wider than band, fee and error, and to which side. */
  gapSince: Date | null
  gapSign: -1 | 0 | 1
  creationOpenSince: Date | null
  samples: Sample[]
  /** Last known size of each venue, so that one that cannot be read still counts in the whole. */
  venueSizes: Record<string, number>
  status: WindowStatus | null
}

export const emptyTrack: Track = {
  multiplier: null,
  supply: emptySupplyTrack,
  gapSince: null,
  gapSign: 0,
  creationOpenSince: null,
  samples: [],
  venueSizes: {},
  status: null,
}

const KEEP_SAMPLES_MS = 6 * MINUTE_MS
const KEEP_SAMPLES = 128

type Kind = Observation['kind']
export type KeptOf<K extends Kind> = Kept<Extract<Observation, { kind: K }>>

/** The observations of one kind that concern this wrapper or its underlying. */
export function about<K extends Kind>(kept: readonly Kept[], covered: Covered, kind: K): KeptOf<K>[] {
  return kept.filter(({ observation }) => {
    if (observation.kind !== kind) return false
    if ('asset' in observation) return observation.asset === covered.asset
    if ('underlying' in observation) return observation.underlying === covered.underlying
    return true
  }) as KeptOf<K>[]
}

/** Takes in what does not depend on the measurement itself: shares per token and supply. */
export function takeIn(
  track: Track,
  covered: Covered,
  kept: readonly Kept[],
  at: Date,
): { track: Track; multiplier: Multiplier | undefined } {
  const readings = about(kept, covered, 'multiplier')
    .filter(({ fetchedAt }) => at.getTime() - fetchedAt.getTime() <= STALE_MS)
    .map(({ source, observation }) => ({ source, ...observation }))
  const multiplier = settleMultiplier(readings, track.multiplier, at)
  let supply = track.supply
  // An EVM chain keeps an event of each mint; counting the supply's change as well would count it twice.
  if (covered.chainKind === 'evm')
    for (const each of about(kept, covered, 'issuance')) supply = foldIssuance(supply, each)
  else for (const each of about(kept, covered, 'supply')) supply = foldSupply(supply, each)
  return { track: { ...track, multiplier: multiplier ? toRemember(multiplier) : track.multiplier, supply }, multiplier }
}

const toRemember = ({ agree: _, source: __, ...rest }: Multiplier): Remembered => rest

/** The gap is the same one while it stays on its side; coming back inside the band, or crossing over, ends it. */
export function followGap(track: Track, basisBps: number, excess: number, creationOpen: boolean, at: Date): Track {
  const sign = excess > 0 ? (Math.sign(basisBps) as -1 | 0 | 1) : 0
  return {
    ...track,
    gapSign: sign,
    gapSince: sign === 0 ? null : sign === track.gapSign ? (track.gapSince ?? at) : at,
    creationOpenSince: creationOpen ? (track.creationOpenSince ?? at) : null,
  }
}

export function sample(track: Track, price: number, at: Date): Track {
  const from = at.getTime() - KEEP_SAMPLES_MS
  const samples = [...track.samples.filter((each) => each.at.getTime() >= from && each.at < at), { at, price }]
  return { ...track, samples: samples.slice(-KEEP_SAMPLES) }
}

/** Minutes during which supply could have come and the gap still stood. */
export function openMinutes(track: Track, at: Date): number {
  if (!track.gapSince || !track.creationOpenSince) return 0
  return Math.max(0, at.getTime() - Math.max(track.gapSince.getTime(), track.creationOpenSince.getTime())) / MINUTE_MS
}

/** Dates become text in the store; this makes them dates again. */
export function reviveTrack(stored: unknown): Track {
  const raw = stored as Track
  const date = (value: unknown) => (value === null || value === undefined ? null : new Date(value as string))
  return {
    ...emptyTrack,
    ...raw,
    multiplier: raw.multiplier
      ? {
          ...raw.multiplier,
          changedAt: date(raw.multiplier.changedAt),
          unsureSince: date(raw.multiplier.unsureSince),
          seenAt: date(raw.multiplier.seenAt),
        }
      : null,
    gapSince: date(raw.gapSince),
    creationOpenSince: date(raw.creationOpenSince),
    samples: (raw.samples ?? []).map((each) => ({ at: new Date(each.at), price: each.price })),
  }
}
