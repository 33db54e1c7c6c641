import type { PriceSample } from './confidence.ts'
import { type Multiplier, resolveMultiplier, type StoredMultiplier } from './multiplier.ts'
import type { CoveredWrapper, Observation, SourcedObservation } from './price-source.ts'
import { addIssuanceEvents, addSupplyChange, emptySupplyHistory, type SupplyHistory } from './primary-market.ts'
import { filterFresh, MINUTE_MS } from './staleness.ts'
import type { WindowStatus } from './window-score.ts'

/** What one measurement of a wrapper passes to the next. It is stored as JSON, so that a restart loses nothing. */
export type MeasurementState = {
  multiplier: StoredMultiplier | null
  supply: SupplyHistory
  /** Since when the gap has been wider than band, fee and error. */
  gapSince: Date | null
  /** 1 when the wrapper is above its reference, -1 when below, 0 without a gap. */
  gapSign: -1 | 0 | 1
  creationOpenSince: Date | null
  samples: PriceSample[]
  /** Last known size of each venue, so that a venue that cannot be read still counts in the total. */
  venueSizes: Record<string, number>
  status: WindowStatus | null
}

export const initialMeasurementState: MeasurementState = {
  multiplier: null,
  supply: emptySupplyHistory,
  gapSince: null,
  gapSign: 0,
  creationOpenSince: null,
  samples: [],
  venueSizes: {},
  status: null,
}

const SAMPLE_RETENTION_MS = 6 * MINUTE_MS
const MAX_SAMPLES = 128

type Kind = Observation['kind']
export type SourcedObservationOf<K extends Kind> = SourcedObservation<Extract<Observation, { kind: K }>>

/** The observations of one kind that concern this wrapper or its underlying. */
export function selectObservations<K extends Kind>(
  observations: readonly SourcedObservation[],
  wrapper: CoveredWrapper,
  kind: K,
): SourcedObservationOf<K>[] {
  return observations.filter(
    ({ observation }) => observation.kind === kind && concernsWrapper(observation, wrapper),
  ) as SourcedObservationOf<K>[]
}

/** An observation without an asset or underlying, such as the exchange clock, concerns every wrapper. */
export function concernsWrapper(observation: Observation, wrapper: CoveredWrapper): boolean {
  if ('asset' in observation) return observation.asset === wrapper.asset
  return !('underlying' in observation) || observation.underlying === wrapper.underlying
}

/** Applies the inputs that do not depend on the measurement itself: shares per token and supply. */
export function applySupplyAndMultiplier(
  state: MeasurementState,
  wrapper: CoveredWrapper,
  observations: readonly SourcedObservation[],
  at: Date,
): { state: MeasurementState; multiplier: Multiplier | undefined } {
  const readings = filterFresh(selectObservations(observations, wrapper, 'multiplier'), at).map(
    ({ source, observation }) => ({ source, ...observation }),
  )
  const multiplier = resolveMultiplier(readings, state.multiplier, at)
  let supply = state.supply
  // An EVM chain has an event for each mint; counting the change in supply as well would count it twice.
  if (wrapper.chainKind === 'evm')
    for (const issuance of selectObservations(observations, wrapper, 'issuance'))
      supply = addIssuanceEvents(supply, issuance)
  else
    for (const reading of selectObservations(observations, wrapper, 'supply')) supply = addSupplyChange(supply, reading)
  return {
    state: { ...state, multiplier: multiplier ? toStoredMultiplier(multiplier) : state.multiplier, supply },
    multiplier,
  }
}

const toStoredMultiplier = ({ sourcesAgree: _, source: __, ...stored }: Multiplier): StoredMultiplier => stored

/** A gap lasts while the wrapper stays on one side; returning inside the band or crossing to the other side ends it. */
export function updateGap(
  state: MeasurementState,
  basisBps: number,
  excess: number,
  creationOpen: boolean,
  at: Date,
): MeasurementState {
  const sign = excess > 0 ? (Math.sign(basisBps) as -1 | 0 | 1) : 0
  return {
    ...state,
    gapSign: sign,
    gapSince: sign === 0 ? null : sign === state.gapSign ? (state.gapSince ?? at) : at,
    creationOpenSince: creationOpen ? (state.creationOpenSince ?? at) : null,
  }
}

export function addPriceSample(state: MeasurementState, price: number, at: Date): MeasurementState {
  const from = at.getTime() - SAMPLE_RETENTION_MS
  const samples = [...state.samples.filter((sample) => sample.at.getTime() >= from && sample.at < at), { at, price }]
  return { ...state, samples: samples.slice(-MAX_SAMPLES) }
}

/** Minutes for which the gap has been open while creation was open. */
export function gapOpenMinutes(state: MeasurementState, at: Date): number {
  if (!state.gapSince || !state.creationOpenSince) return 0
  return Math.max(0, at.getTime() - Math.max(state.gapSince.getTime(), state.creationOpenSince.getTime())) / MINUTE_MS
}

/** Turns the stored JSON back into a state: dates are stored as text. */
export function parseMeasurementState(stored: unknown): MeasurementState {
  const raw = stored as MeasurementState
  const toDate = (value: unknown) => (value === null || value === undefined ? null : new Date(value as string))
  return {
    ...initialMeasurementState,
    ...raw,
    multiplier: raw.multiplier
      ? {
          ...raw.multiplier,
          changedAt: toDate(raw.multiplier.changedAt),
          unsureSince: toDate(raw.multiplier.unsureSince),
          seenAt: toDate(raw.multiplier.seenAt),
        }
      : null,
    gapSince: toDate(raw.gapSince),
    creationOpenSince: toDate(raw.creationOpenSince),
    samples: (raw.samples ?? []).map(({ at, price }) => ({ at: new Date(at), price })),
  }
}
