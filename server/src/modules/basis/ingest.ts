import type { Clock } from '../../platform/clock.ts'
import { type Attestation, type AttestationSigners, attestationHash, createAttestation } from './attestation.ts'
import type { Coverage } from './coverage.ts'
import { measure } from './measure.ts'
import { initialMeasurementState, type MeasurementState } from './measurement-state.ts'
import { type Fetch, mergeObservations, type PollResult, pollSource } from './poll-source.ts'
import type { CoveredWrapper, Observation, PriceSource, RejectedEntry, SourcedObservation } from './price-source.ts'
import type { Reading } from './quote.ts'
import { MINUTE_MS } from './staleness.ts'
import type { WindowStatus } from './window-score.ts'

/** The stored state of one wrapper, which every process serves. Without a reading, `reasons` explain why. */
export type AssetState = {
  asset: string
  reading: Reading | null
  reasons: string[]
  measurementState: MeasurementState
  attestation: Attestation | null
  seq: number
  hash: string | null
  updatedAt: Date
}

export type WindowStatusChange = {
  wrapper: CoveredWrapper
  from: WindowStatus
  to: WindowStatus
  reading: Reading | null
  at: Date
}

export type IngestStore = {
  storeBody(sha256: string, body: Uint8Array, at: Date): Promise<void>
  /** Only one process ingests at a time; false when another holds the lease. */
  acquireLease(holder: string, now: Date, until: Date): Promise<boolean>
  load(): Promise<AssetState[]>
  /** Saves everything one round produced, in one transaction. */
  save(
    states: readonly AssetState[],
    pollResults: readonly PollResult[],
    changes: readonly WindowStatusChange[],
  ): Promise<void>
}

export type IngestDeps = {
  sources: readonly PriceSource[]
  coverage: Coverage
  fetch: Fetch
  store: IngestStore
  signers: AttestationSigners
  restatedBy: string
  clock: Clock
  holder: string
  /** Called with the new states once they are saved. */
  onMeasured(states: readonly AssetState[]): void
}

type Rejection = { source: string; reason: string }

/** What one round did, for logs and tests. */
export type RoundResult = {
  hasLease: boolean
  /** Ids of the sources that were polled. */
  polled: string[]
  /** How many wrappers have a live reading. */
  live: number
  rejected: Rejection[]
}

const LEASE_MS = MINUTE_MS
const MAX_BACKOFF_MS = 15 * MINUTE_MS
/** A reading must be renewed even without new observations, because its inputs become stale. */
const MEASURE_INTERVAL_MS = 15_000

type Schedule = { dueAt: number; failures: number }
type LatestResult = Pick<PollResult, 'source' | 'request' | 'observations' | 'rejection' | 'rejectedEntries'>

/**
 * One round polls the sources that are due, measures every wrapper they cover, signs, stores and publishes.
 * A failing source is polled with exponential backoff, at most every 15 minutes, and at its own interval once it answers.
 */
export function createIngest(deps: IngestDeps) {
  const { coverage, sources, clock, store } = deps
  const schedule = new Map<string, Schedule>()
  const latestResults = new Map<string, LatestResult>()
  const sourcesByAsset = new Map(
    coverage.wrappers.map((wrapper) => [
      wrapper.asset,
      sources.filter((source) => source.buildRequests([wrapper], clock.now()).length > 0),
    ]),
  )
  let states: Map<string, AssetState> | undefined
  let measuredAt = 0

  const recordResults = (source: PriceSource, results: readonly PollResult[]) => {
    const currentKeys = new Set(results.map(({ key }) => key))
    for (const [key, result] of latestResults)
      if (result.source === source.id && !currentKeys.has(key)) latestResults.delete(key)
    for (const { key, request, observations, rejection, rejectedEntries } of results) {
      const previous = latestResults.get(key)?.observations ?? []
      // A rejected entry leaves its last valid observation in place until that is stale.
      const lastValid = previous.filter(({ observation }) =>
        rejectedEntries.some((entry) => isAboutEntry(observation, entry)),
      )
      latestResults.set(key, {
        source: source.id,
        request,
        rejection,
        rejectedEntries,
        observations: rejection ? previous : [...mergeObservations(previous, observations), ...lastValid],
      })
    }
  }

  const rejectionsFor = (wrapper: CoveredWrapper): Rejection[] =>
    [...latestResults.values()]
      .filter(({ source }) => sourcesByAsset.get(wrapper.asset)!.some(({ id }) => id === source))
      .flatMap(({ source, request, rejection, rejectedEntries }) => [
        ...(rejection && isAboutWrapper(request.context, wrapper) ? [{ source, reason: rejection }] : []),
        ...rejectedEntries.filter((entry) => isAboutWrapper(entry, wrapper)).map(({ reason }) => ({ source, reason })),
      ])

  const reschedule = (source: PriceSource, results: readonly PollResult[], now: number) => {
    const failed = results.length > 0 && results.every(({ rejection }) => rejection !== undefined)
    const failures = failed ? (schedule.get(source.id)?.failures ?? 0) + 1 : 0
    const waitMs = Math.min(source.everySeconds * 1000 * 2 ** Math.min(failures, 12), MAX_BACKOFF_MS)
    schedule.set(source.id, { failures, dueAt: now + waitMs })
  }

  const measureWrappers = async (at: Date) => {
    const failures: Rejection[] = []
    const observations = [...latestResults.values()].flatMap((result) => result.observations)
    const nextStates: AssetState[] = []
    const changes: WindowStatusChange[] = []
    for (const wrapper of coverage.wrappers.filter(({ asset }) => sourcesByAsset.get(asset)!.length > 0)) {
      const previous = states!.get(wrapper.asset)
      const next = await measureWrapper(wrapper, observations, previous, at).catch((error: unknown) => {
        failures.push({ source: wrapper.asset, reason: `it could not be measured: ${(error as Error).message}` })
        return stateWithoutReading(wrapper, previous, at)
      })
      const from = previous?.measurementState.status
      const to = next.measurementState.status
      if (from && from !== to) changes.push({ wrapper, from, to: to!, reading: next.reading, at })
      nextStates.push(next)
    }
    return { states: nextStates, changes, failures }
  }

  const measureWrapper = async (
    wrapper: CoveredWrapper,
    observations: readonly SourcedObservation[],
    previous: AssetState | undefined,
    at: Date,
  ): Promise<AssetState> => {
    const { reading, reasons, state } = measure({
      wrapper,
      observations,
      rejected: rejectionsFor(wrapper),
      state: previous?.measurementState ?? initialMeasurementState,
      bandBps: coverage.bandBps,
      at,
    })
    const status = reading?.window.status ?? 'insufficient_data'
    const seq = previous?.seq ?? 0
    const hash = previous?.hash ?? null
    const common = { asset: wrapper.asset, reasons, measurementState: { ...state, status }, updatedAt: at }
    if (!reading) return { ...common, reading: null, attestation: null, seq, hash }
    const attestation = await createAttestation(
      { wrapper, reading, seq: seq + 1, prevHash: hash, restatedBy: deps.restatedBy },
      deps.signers,
    )
    return { ...common, reading, attestation, seq: seq + 1, hash: attestationHash(attestation) }
  }

  /** A wrapper whose measurement throws must not stop the others. */
  const stateWithoutReading = (wrapper: CoveredWrapper, previous: AssetState | undefined, at: Date): AssetState => ({
    asset: wrapper.asset,
    reading: null,
    reasons: ['The inputs of this wrapper could not be measured.'],
    measurementState: { ...(previous?.measurementState ?? initialMeasurementState), status: 'insufficient_data' },
    attestation: null,
    seq: previous?.seq ?? 0,
    hash: previous?.hash ?? null,
    updatedAt: at,
  })

  return {
    async runRound(): Promise<RoundResult> {
      const now = clock.now()
      const idle: RoundResult = { hasLease: true, polled: [], live: 0, rejected: [] }
      if (sources.length === 0) return idle
      const due = sources.filter(({ id }) => (schedule.get(id)?.dueAt ?? 0) <= now.getTime())
      if (due.length === 0 && now.getTime() - measuredAt < MEASURE_INTERVAL_MS) return idle
      if (!(await store.acquireLease(deps.holder, now, new Date(now.getTime() + LEASE_MS)))) {
        // Another process is measuring, so the states in memory are out of date.
        states = undefined
        return { ...idle, hasLease: false }
      }
      states ??= new Map((await store.load()).map((state) => [state.asset, state]))

      const pollResults = await Promise.all(
        due.map(async (source) => {
          const results = await pollSource(source, coverage.wrappers, now, {
            fetch: deps.fetch,
            storeBody: store.storeBody,
          })
          reschedule(source, results, now.getTime())
          recordResults(source, results)
          return results
        }),
      )
      const measurements = await measureWrappers(clock.now())
      try {
        await store.save(measurements.states, pollResults.flat(), measurements.changes)
      } catch (error) {
        // The database is authoritative; the next round loads the states from it.
        states = undefined
        throw error
      }
      for (const state of measurements.states) states.set(state.asset, state)
      measuredAt = now.getTime()
      deps.onMeasured(measurements.states)
      return {
        hasLease: true,
        polled: due.map(({ id }) => id),
        live: measurements.states.filter(({ reading }) => reading !== null).length,
        rejected: [
          ...pollResults
            .flat()
            .flatMap(({ source, rejection, rejectedEntries }) => [
              ...(rejection ? [{ source, reason: rejection }] : []),
              ...rejectedEntries.map(({ reason }) => ({ source, reason })),
            ]),
          ...measurements.failures,
        ],
      }
    },
  }
}

/** Whether a rejected entry has the same subject as this observation. */
const isAboutEntry = (observation: Observation, entry: RejectedEntry): boolean =>
  'asset' in observation
    ? observation.asset === entry.asset
    : 'underlying' in observation && observation.underlying === entry.underlying

/** A context that names an asset or underlying is about that alone; any other is about every wrapper of its source. */
function isAboutWrapper(context: Record<string, unknown>, wrapper: CoveredWrapper): boolean {
  if (typeof context.asset === 'string') return context.asset === wrapper.asset
  if (typeof context.underlying === 'string') return context.underlying === wrapper.underlying
  return true
}
