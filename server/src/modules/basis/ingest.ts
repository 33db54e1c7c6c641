import type { Clock } from '../../platform/clock.ts'
import { attest, attestationHash, type Signers } from './attest.ts'
import type { Attestation } from './attestation.ts'
import { type Collected, collect, type Fetch, mergeKept } from './collect.ts'
import type { Coverage } from './coverage.ts'
import { measure } from './measure.ts'
import { MINUTE_MS } from './numbers.ts'
import type { Covered, Kept, Observation, PriceSource, RefusedPart } from './price-source.ts'
import type { Reading } from './quote.ts'
import { emptyTrack, type Track } from './track.ts'
import type { WindowStatus } from './window-score.ts'

/** What is stored of one wrapper, and what every process serves of it. Without a reading, `reasons` say why. */
export type AssetState = {
  asset: string
  reading: Reading | null
  reasons: string[]
  track: Track
  attestation: Attestation | null
  seq: number
  hash: string | null
  updatedAt: Date
}

export type WindowChange = { covered: Covered; from: WindowStatus; to: WindowStatus; reading: Reading | null; at: Date }

export type IngestStore = {
  keepBody(sha256: string, body: Uint8Array, at: Date): Promise<void>
  /** One process ingests at a time; false when another holds the turn. */
  takeTurn(holder: string, now: Date, until: Date): Promise<boolean>
  load(): Promise<AssetState[]>
  /** Everything one round produced, in one transaction. */
  save(states: readonly AssetState[], fetches: readonly Collected[], changes: readonly WindowChange[]): Promise<void>
}

export type IngestDeps = {
  sources: readonly PriceSource[]
  coverage: Coverage
  fetch: Fetch
  store: IngestStore
  signers: Signers
  restatedBy: string
  clock: Clock
  holder: string
  /** Tells this process at once what it has just measured. */
  measured(states: readonly AssetState[]): void
}

const TURN_MS = MINUTE_MS
const LONGEST_WAIT_MS = 15 * MINUTE_MS
/** Even when nothing new came, a reading has to notice that its inputs have grown old. */
const MEASURE_EVERY_MS = 15_000

type Schedule = { dueAt: number; failures: number }

/**
 * One round: ask the sources that are due, measure every wrapper they cover, sign, store, tell.
 * A source that fails is asked less and less often, up to every quarter of an hour, and at its own pace again once it answers.
 */
export function createIngest(deps: IngestDeps) {
  const { coverage, sources, clock, store } = deps
  const schedule = new Map<string, Schedule>()
  const answers = new Map<string, Pick<Collected, 'source' | 'root' | 'kept' | 'refused' | 'refusedParts'>>()
  const concerned = new Map(
    coverage.covered.map((covered) => [
      covered.asset,
      sources.filter((source) => source.ask([covered], clock.now()).length > 0),
    ]),
  )
  let states: Map<string, AssetState> | undefined
  let measuredAt = 0

  const takeAnswers = (source: PriceSource, collected: readonly Collected[]) => {
    const asked = new Set(collected.map(({ key }) => key))
    for (const [key, answer] of answers) if (answer.source === source.id && !asked.has(key)) answers.delete(key)
    for (const { key, kept, root, refused, refusedParts } of collected) {
      const before = answers.get(key)?.kept ?? []
      // What is refused leaves its last good word, for as long as that may count.
      const lastWords = before.filter(({ observation }) => refusedParts.some((part) => isOf(part, observation)))
      answers.set(key, {
        source: source.id,
        root,
        refused,
        refusedParts,
        kept: refused ? before : [...mergeKept(before, kept), ...lastWords],
      })
    }
  }

  const refusalsFor = (covered: Covered) =>
    [...answers.values()]
      .filter(({ source }) => concerned.get(covered.asset)!.some(({ id }) => id === source))
      .flatMap(({ source, root, refused, refusedParts }) => [
        ...(refused && isAbout(root.memo, covered) ? [{ source, reason: refused }] : []),
        ...refusedParts.filter((part) => isAbout(part, covered)).map(({ reason }) => ({ source, reason })),
      ])

  const reschedule = (source: PriceSource, collected: readonly Collected[], now: number) => {
    const failed = collected.length > 0 && collected.every(({ refused }) => refused !== undefined)
    const failures = failed ? (schedule.get(source.id)?.failures ?? 0) + 1 : 0
    const wait = Math.min(source.everySeconds * 1000 * 2 ** Math.min(failures, 12), LONGEST_WAIT_MS)
    schedule.set(source.id, { failures, dueAt: now + wait })
  }

  const measureAll = async (at: Date) => {
    const unmeasured: { source: string; reason: string }[] = []
    const kept = [...answers.values()].flatMap((answer) => answer.kept)
    const next: AssetState[] = []
    const changes: WindowChange[] = []
    for (const covered of coverage.covered.filter(({ asset }) => concerned.get(asset)!.length > 0)) {
      const before = states!.get(covered.asset)
      const state = await measureOne(covered, kept, before, at).catch((error: unknown) => {
        unmeasured.push({ source: covered.asset, reason: `it could not be measured: ${(error as Error).message}` })
        return withoutReading(covered, before, at)
      })
      const { reading, track } = state
      const from = before?.track.status
      if (from && from !== track.status) changes.push({ covered, from, to: track.status!, reading, at })
      next.push(state)
    }
    return { states: next, changes, unmeasured }
  }

  const measureOne = async (covered: Covered, kept: readonly Kept[], before: AssetState | undefined, at: Date) => {
    const { reading, reasons, track } = measure({
      covered,
      kept,
      refused: refusalsFor(covered),
      track: before?.track ?? emptyTrack,
      bandBps: coverage.bandBps,
      at,
    })
    const status = reading?.window.status ?? 'insufficient_data'
    return stateOf(covered, reading, reasons, { ...track, status }, before, at)
  }

  /** One wrapper's impossible inputs must not silence the others. */
  const withoutReading = (covered: Covered, before: AssetState | undefined, at: Date): AssetState => ({
    asset: covered.asset,
    reading: null,
    reasons: ['Its inputs could not be measured.'],
    track: { ...(before?.track ?? emptyTrack), status: 'insufficient_data' },
    attestation: null,
    seq: before?.seq ?? 0,
    hash: before?.hash ?? null,
    updatedAt: at,
  })

  const stateOf = async (
    covered: Covered,
    reading: Reading | undefined,
    reasons: string[],
    track: Track,
    before: AssetState | undefined,
    at: Date,
  ): Promise<AssetState> => {
    const { seq, hash } = { seq: before?.seq ?? 0, hash: before?.hash ?? null }
    const common = { asset: covered.asset, reasons, track, updatedAt: at }
    if (!reading) return { ...common, reading: null, attestation: null, seq, hash }
    const attestation = await attest(
      { covered, reading, seq: seq + 1, prevHash: hash, restatedBy: deps.restatedBy },
      deps.signers,
    )
    return { ...common, reading, attestation, seq: seq + 1, hash: attestationHash(attestation) }
  }

  return {
    /** Answers what it did, for logs and tests. */
    async round(): Promise<{
      turn: boolean
      asked: string[]
      live: number
      refused: { source: string; reason: string }[]
    }> {
      const now = clock.now()
      const nothing = { turn: true, asked: [], live: 0, refused: [] }
      if (sources.length === 0) return nothing
      const due = sources.filter(({ id }) => (schedule.get(id)?.dueAt ?? 0) <= now.getTime())
      if (due.length === 0 && now.getTime() - measuredAt < MEASURE_EVERY_MS) return nothing
      if (!(await store.takeTurn(deps.holder, now, new Date(now.getTime() + TURN_MS)))) {
        // Another process measures; what it stored is newer than what is remembered here.
        states = undefined
        return { ...nothing, turn: false }
      }
      states ??= new Map((await store.load()).map((state) => [state.asset, state]))

      const collected = await Promise.all(
        due.map(async (source) => {
          const each = await collect(source, coverage.covered, now, { fetch: deps.fetch, keepBody: store.keepBody })
          reschedule(source, each, now.getTime())
          takeAnswers(source, each)
          return each
        }),
      )
      const round = await measureAll(clock.now())
      try {
        await store.save(round.states, collected.flat(), round.changes)
      } catch (error) {
        // What is stored is the truth; the next round begins from it.
        states = undefined
        throw error
      }
      for (const state of round.states) states.set(state.asset, state)
      measuredAt = now.getTime()
      deps.measured(round.states)
      return {
        turn: true,
        asked: due.map(({ id }) => id),
        live: round.states.filter(({ reading }) => reading !== null).length,
        refused: [
          ...collected
            .flat()
            .flatMap(({ source, refused, refusedParts }) => [
              ...(refused ? [{ source, reason: refused }] : []),
              ...refusedParts.map(({ reason }) => ({ source, reason })),
            ]),
          ...round.unmeasured,
        ],
      }
    },
  }
}

/** Whether the part of an answer is the one this observation would have come from. */
const isOf = (part: RefusedPart, observation: Observation): boolean =>
  'asset' in observation
    ? observation.asset === part.asset
    : 'underlying' in observation && observation.underlying === part.underlying

/** A question that names a wrapper or an underlying concerns only that; one about many concerns all its source covers. */
function isAbout(memo: Record<string, unknown>, covered: Covered): boolean {
  if (typeof memo.asset === 'string') return memo.asset === covered.asset
  if (typeof memo.underlying === 'string') return memo.underlying === covered.underlying
  return true
}
