import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Notifications } from '../../platform/notifications.ts'
import { invalid, notFound, unavailable } from '../../platform/problem.ts'
import { attest, type Signers } from './attest.ts'
import type { Attestation } from './attestation.ts'
import {
  findAttestation,
  findBody,
  keepBody,
  loadAssets,
  prune,
  readHistory,
  recordFetches,
  saveAsset,
  takeTurn,
  tellMeasured,
} from './basis.store.ts'
import { type Board, buildBoard } from './board.ts'
import type { Fetch } from './collect.ts'
import type { Coverage } from './coverage.ts'
import { type History, type HistoryQuery, livePoints, planHistory, previewPoints } from './history.ts'
import { type AssetState, createIngest, type IngestStore, type WindowChange } from './ingest.ts'
import { MINUTE_MS, STALE_MS } from './numbers.ts'
import { PREVIEW_EVERY_MS, previewMoment, previewReading } from './preview.ts'
import type { Covered, PriceSource } from './price-source.ts'
import type { Quote, Reading } from './quote.ts'

export type BasisDeps = {
  db: Db
  clock: Clock
  notifications: Pick<Notifications, 'listen'>
  coverage: Coverage
  /** Only those the operator configured. */
  sources: readonly PriceSource[]
  fetch: Fetch
  signers: Signers
  /** Names this process among those that may ingest. */
  holder: string
  restatedBy?: string
  /** Tells every subscriber, whoever they are, in the transaction that stored the change. */
  emit(tx: Tx, event: { type: 'basis.window_changed'; data: Record<string, unknown>; at: Date }): Promise<void>
}

export type Basis = ReturnType<typeof createBasis>

/** A reading as JSON, good until a newer reading or the moment it would grow stale. */
type Served = { text: string; until: number; reading: Reading }

/** Bodies and attestations are the bulk; a reading's figures and the hash of its attestation stay for longer. */
const KEEP_BODIES_MS = 30 * 24 * 60 * MINUTE_MS
const KEEP_READINGS_MS = 400 * 24 * 60 * MINUTE_MS
const PRUNE_AT_ONCE = 5_000

export function createBasis(deps: BasisDeps) {
  const { db, clock, coverage } = deps
  const restatedBy = deps.restatedBy ?? 'countersign'
  const states = new Map<string, AssetState>()
  const served = new Map<string, Served>()
  const previewAttestations = new Map<string, { asOf: string; made: Promise<Attestation> }>()
  const listeners = new Set<(readings: readonly Reading[]) => void>()
  let loading: Promise<void> | undefined

  const show = (fresh: readonly AssetState[]) => {
    for (const state of fresh) {
      states.set(state.asset, state)
      served.delete(state.asset)
    }
    const known = new Set(fresh.map(({ asset }) => asset))
    publish(coverage.covered.filter(({ asset }) => known.has(asset)))
  }

  const publish = (changed: readonly Covered[]) => {
    if (listeners.size === 0 || changed.length === 0) return
    const readings = changed.map((covered) => serve(covered).reading)
    for (const listener of listeners) listener(readings)
  }

  const store: IngestStore = {
    keepBody: (sha256, body, at) => keepBody(db, sha256, body, at),
    takeTurn: (holder, now, until) => takeTurn(db, holder, now, until),
    load: () => loadAssets(db),
    save: (fresh, fetches, changes) =>
      db.transaction().execute(async (tx) => {
        await recordFetches(tx, fetches)
        for (const state of fresh) await saveAsset(tx, state)
        for (const change of changes) await deps.emit(tx, windowChanged(change))
        await tellMeasured(tx)
      }),
  }
  const ingest = createIngest({ ...deps, store, restatedBy, measured: show })

  /** Reads what any process has measured. Asked for again while it reads, it reads once more. */
  const reload = (): Promise<void> => {
    loading ??= loadAssets(db)
      .then((loaded) =>
        show(loaded.filter((state) => state.updatedAt > (states.get(state.asset)?.updatedAt ?? new Date(0)))),
      )
      .finally(() => {
        loading = undefined
      })
    return loading
  }
  if (deps.sources.length > 0) deps.notifications.listen('basis', () => void reload().catch(() => {}))

  const find = (symbol: string, chain?: string): Covered => {
    const covered = coverage.find(symbol, chain)
    if (!covered)
      throw notFound(
        chain === undefined
          ? `wrapper as ${symbol.slice(0, 64)}`
          : `wrapper as ${symbol.slice(0, 64)} on ${chain.slice(0, 64)}`,
      )
    return covered
  }

  /** The live reading while it is fresh, else the preview with the reasons. */
  const serve = (covered: Covered): Served => {
    const now = clock.now()
    const known = served.get(covered.asset)
    if (known && now.getTime() < known.until) return known
    const state = states.get(covered.asset)
    const staleAt = state?.reading ? Date.parse(state.reading.quote.as_of) + STALE_MS : 0
    const live = state?.reading && now.getTime() < staleAt ? state.reading : undefined
    const reading = live ?? previewReading(covered, coverage.bandBps, now, state ? whyPreview(state) : [])
    const fresh: Served = {
      reading,
      text: JSON.stringify(reading.quote),
      until: live ? staleAt : previewMoment(now).getTime() + PREVIEW_EVERY_MS,
    }
    served.set(covered.asset, fresh)
    return fresh
  }

  const attestPreview = (covered: Covered, reading: Reading): Promise<Attestation> => {
    const known = previewAttestations.get(covered.asset)
    if (known?.asOf === reading.quote.as_of) return known.made
    const made = attest({ covered, reading, seq: 0, prevHash: null, restatedBy }, deps.signers)
    previewAttestations.set(covered.asset, { asOf: reading.quote.as_of, made })
    return made
  }

  return {
    coverage,
    evmSigners: async () => ({
      live: await deps.signers.live.evmAddress(),
      preview: await deps.signers.preview.evmAddress(),
    }),
    /** True once the operator has configured any live source. */
    ingests: deps.sources.length > 0,
    reload,
    round: ingest.round,

    reading: (symbol: string, chain?: string): Reading => serve(find(symbol, chain)).reading,
    quote: (symbol: string, chain?: string): Quote => serve(find(symbol, chain)).reading.quote,
    /** The quote as it goes over the wire, made once a reading rather than once a request. */
    quoteText: (symbol: string, chain?: string): string => serve(find(symbol, chain)).text,

    board(chain?: string): Board {
      const wanted =
        chain === undefined
          ? coverage.symbols.map(({ symbol }) => find(symbol))
          : coverage.covered.filter((each) => each.chain === chain)
      if (wanted.length === 0) throw notFound(`chain as ${chain?.slice(0, 64)}`)
      return buildBoard(
        wanted.map((covered) => serve(covered).reading),
        clock.now(),
      )
    },

    async attestation(symbol: string, chain?: string, seq?: number): Promise<Attestation> {
      const covered = find(symbol, chain)
      if (seq !== undefined) {
        const older = await findAttestation(db, covered.asset, seq)
        if (!older) throw notFound('attestation')
        return older
      }
      const { reading } = serve(covered)
      const state = states.get(covered.asset)
      return reading.quote.source === 'live' && state?.attestation ? state.attestation : attestPreview(covered, reading)
    },

    async history(symbol: string, query: HistoryQuery): Promise<History> {
      const covered = find(symbol, query.chain)
      const plan = planHistory(query, clock.now())
      if ('problem' in plan) throw invalid(plan.problem)
      const { from, to, stepMs, interval, points: most } = plan
      const rows = deps.sources.length > 0 ? await readHistory(db, covered.asset, from, to, stepMs, most) : []
      const live = rows.length > 0
      const points = live ? livePoints(rows) : previewPoints(covered, coverage.bandBps, plan)
      const { chain } = covered
      const range = { from: from.toISOString(), to: to.toISOString() }
      return {
        symbol: covered.symbol,
        chain,
        interval,
        ...range,
        points,
        source: live ? 'live' : 'preview',
        preview: !live,
      }
    },

    async evidence(sha256: string): Promise<Buffer> {
      const body = await findBody(db, sha256.replace(/^sha256:/, '').toLowerCase())
      if (!body) throw notFound('evidence')
      return body
    },

    /** Calls back with every new reading; answers how to stop. */
    listen(listener: (readings: readonly Reading[]) => void, most: number): () => void {
      if (listeners.size >= most) throw unavailable('Too many streams are open at the moment.', 30)
      listeners.add(listener)
      return () => listeners.delete(listener)
    },

    listening: () => listeners.size,

    /** Previews move with the clock: whoever listens hears of it. */
    tickPreviews() {
      publish(coverage.covered.filter((covered) => serve(covered).reading.quote.preview))
    },

    prune(): Promise<number> {
      const now = clock.now().getTime()
      return prune(db, new Date(now - KEEP_BODIES_MS), new Date(now - KEEP_READINGS_MS), PRUNE_AT_ONCE)
    },
  }
}

function whyPreview({ reading, reasons, updatedAt }: AssetState): string[] {
  return reading ? [`Nothing was measured since ${updatedAt.toISOString()}.`] : reasons
}

function windowChanged({ covered, from, to, reading, at }: WindowChange) {
  return {
    type: 'basis.window_changed' as const,
    at,
    data: {
      symbol: covered.symbol,
      underlying: covered.underlying,
      chain: covered.chain,
      previous_status: from,
      window_status: to,
      window_score: reading?.window.score ?? 0,
      basis_bps: reading?.quote.basis_bps ?? null,
      as_of: at.toISOString(),
    },
  }
}
