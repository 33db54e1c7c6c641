import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Notifications } from '../../platform/notifications.ts'
import { type PreparedResponse, prepareResponse } from '../../platform/prepared-responses.ts'
import { invalid, notFound, Problem, unavailable } from '../../platform/problem.ts'
import { didYouMean } from '../../platform/suggest.ts'
import { type Attestation, type AttestationSigners, createAttestation } from './attestation.ts'
import {
  type AttestationFilter,
  acquireLease,
  findAttestation,
  findAttestationAt,
  findBody,
  findHistory,
  findIssuedReading,
  loadAssetStates,
  notifyMeasured,
  pruneBasis,
  recordFetches,
  saveAssetState,
  storeBody,
} from './basis.store.ts'
import { type Board, buildBoard } from './board.ts'
import type { Coverage } from './coverage.ts'
import { buildPreviewPoints, type History, type HistoryQuery, planHistory, toHistoryPoints } from './history.ts'
import { type AssetState, createIngest, type IngestStore, type WindowStatusChange } from './ingest.ts'
import { createIssuedAttestations, type IssuedAttestation, type IssuedAttestationsDeps } from './issued-attestations.ts'
import type { Fetch } from './poll-source.ts'
import {
  buildPreviewReading,
  PREVIEW_INTERVAL_MS,
  type PreviewShare,
  previewIntervalStart,
  previewShare,
} from './preview.ts'
import type { CoveredWrapper, PriceSource } from './price-source.ts'
import { attestationUrl, type PublishedQuote, type PublishedReading, type Reading } from './quote.ts'
import { MINUTE_MS, STALE_MS } from './staleness.ts'

export type BasisDeps = {
  db: Db
  clock: Clock
  notifications: Pick<Notifications, 'listen'>
  coverage: Coverage
  /** Only the sources that the operator configured. */
  sources: readonly PriceSource[]
  fetch: Fetch
  signers: AttestationSigners
  /** The public log, in which every attestation that is handed out has its entry. */
  entries: IssuedAttestationsDeps['entries']
  /** Identifies this process as holder of the ingest lease. */
  holder: string
  restatedBy?: string
  /** Sends the event to every subscriber, in the transaction that stored the change. */
  emit(tx: Tx, event: { type: 'basis.window_changed'; data: Record<string, unknown>; at: Date }): Promise<void>
}

export type Basis = ReturnType<typeof createBasis>

/** A reading with its quote as JSON, valid until a newer reading arrives or it becomes stale. */
type CachedReading = {
  reading: PublishedReading
  quoteResponse: PreparedResponse
  /** A preview is not served before its time: a clock may be set back. */
  validFrom: number
  validUntil: number
}

/** Bodies and attestations that nobody asked for take most of the space, so they are pruned sooner than the figures of a reading. */
const BODY_RETENTION_MS = 30 * 24 * 60 * MINUTE_MS
const READING_RETENTION_MS = 400 * 24 * 60 * MINUTE_MS
const MAX_PRUNED_ROWS = 5_000

export function createBasis(deps: BasisDeps) {
  const { db, clock, coverage } = deps
  const restatedBy = deps.restatedBy ?? 'countersign'
  const states = new Map<string, AssetState>()
  const cache = new Map<string, CachedReading>()
  const issued = createIssuedAttestations(deps)
  /** The newest of each wrapper, so that a reading is written to the log by one request. */
  const newestIssued = new Map<string, { reading: Reading; attestation: Promise<IssuedAttestation> }>()
  const subscribers = new Set<(readings: readonly Reading[]) => void>()
  let loading: Promise<void> | undefined

  const applyStates = (newStates: readonly AssetState[]) => {
    for (const state of newStates) {
      states.set(state.asset, state)
      cache.delete(state.asset)
    }
    const assets = new Set(newStates.map(({ asset }) => asset))
    publish(coverage.wrappers.filter(({ asset }) => assets.has(asset)))
  }

  const publish = (wrappers: readonly CoveredWrapper[]) => {
    if (subscribers.size === 0 || wrappers.length === 0) return
    const readings = wrappers.map((wrapper) => currentReading(wrapper).reading)
    for (const subscriber of subscribers) subscriber(readings)
  }

  const store: IngestStore = {
    storeBody: (sha256, body, at) => storeBody(db, sha256, body, at),
    acquireLease: (holder, now, until) => acquireLease(db, holder, now, until),
    load: () => loadAssetStates(db),
    save: (newStates, pollResults, changes) =>
      db.transaction().execute(async (tx) => {
        await recordFetches(tx, pollResults)
        for (const state of newStates) await saveAssetState(tx, state)
        for (const change of changes) await deps.emit(tx, toWindowChangedEvent(change))
        await notifyMeasured(tx)
      }),
  }
  const ingest = createIngest({ ...deps, store, restatedBy, onMeasured: applyStates })

  /** Loads the readings that any process has stored. Concurrent calls share one query. */
  const reload = (): Promise<void> => {
    loading ??= loadAssetStates(db)
      .then((loadedStates) =>
        applyStates(
          loadedStates.filter((state) => state.updatedAt > (states.get(state.asset)?.updatedAt ?? new Date(0))),
        ),
      )
      .finally(() => {
        loading = undefined
      })
    return loading
  }
  if (deps.sources.length > 0) deps.notifications.listen('basis', () => void reload().catch(() => {}))

  /** The wrappers of a share, when a share was named, or the symbol that was probably meant. */
  const suggestWrapper = (symbol: string) => {
    const wrappers = coverage.symbols.filter(({ underlying }) => underlying.toLowerCase() === symbol.toLowerCase())
    if (wrappers.length === 0)
      return didYouMean(
        symbol,
        coverage.symbols.map((covered) => covered.symbol),
      )
    return ` ${symbol.slice(0, 64)} is a share; its wrappers are ${wrappers.map((wrapper) => wrapper.symbol).join(', ')}.`
  }

  const findWrapper = (symbol: string, chain?: string): CoveredWrapper => {
    const wrapper = coverage.find(symbol, chain)
    if (!wrapper)
      throw new Problem(
        'error',
        `No such wrapper as ${symbol.slice(0, 64)}${chain === undefined ? '' : ` on ${chain.slice(0, 64)}`}.${suggestWrapper(symbol)} GET /api/basis/v1/coverage lists them.`,
        { status: 404, code: 'not_found' },
      )
    return wrapper
  }

  /** The live reading while it is fresh, otherwise the preview with the reasons. */
  const currentReading = (wrapper: CoveredWrapper): CachedReading => {
    const now = clock.now()
    const cachedReading = cache.get(wrapper.asset)
    const time = now.getTime()
    if (cachedReading && cachedReading.validFrom <= time && time < cachedReading.validUntil) return cachedReading
    const state = states.get(wrapper.asset)
    const staleAt = state?.reading ? Date.parse(state.reading.quote.as_of) + STALE_MS : 0
    const live = state?.reading && now.getTime() < staleAt ? state.reading : undefined
    const measured = live ?? buildPreviewReading(wrapper, coverage.bandBps, now, state ? previewReasons(state) : [])
    const attestation_url = attestationUrl(measured.quote, live && state!.seq)
    const reading = { ...measured, quote: { ...measured.quote, attestation_url } }
    const current: CachedReading = {
      reading,
      quoteResponse: prepareResponse(JSON.stringify(reading.quote)),
      validFrom: live ? 0 : previewIntervalStart(now).getTime(),
      validUntil: live ? staleAt : previewIntervalStart(now).getTime() + PREVIEW_INTERVAL_MS,
    }
    cache.set(wrapper.asset, current)
    return current
  }

  const issueReading = async (wrapper: CoveredWrapper, reading: Reading, measured?: Attestation | null) =>
    issued.issue(
      wrapper.asset,
      measured ?? (await createAttestation({ wrapper, reading, seq: 0, prevHash: null, restatedBy }, deps.signers)),
    )

  /** The attestation of the reading that is served now. Requests for one reading share it; one that failed is tried again. */
  const issueCurrent = (wrapper: CoveredWrapper): Promise<IssuedAttestation> => {
    const { reading } = currentReading(wrapper)
    const newest = newestIssued.get(wrapper.asset)
    if (newest?.reading === reading) return newest.attestation
    const state = states.get(wrapper.asset)
    const attestation = issueReading(wrapper, reading, reading.quote.source === 'live' ? state?.attestation : null)
    newestIssued.set(wrapper.asset, { reading, attestation })
    attestation.catch(() => {
      if (newestIssued.get(wrapper.asset)?.attestation === attestation) newestIssued.delete(wrapper.asset)
    })
    return attestation
  }

  /**
   * A reading that is not the newest: as it was handed out, or as it was measured. A preview that nobody asked for can be
   * computed again while it is valid; later nobody can say that it was shown.
   */
  const issuePast = async (wrapper: CoveredWrapper, past: { asOf: Date } | { seq: number }) => {
    const stored = await findIssuedReading(db, wrapper.asset, past)
    if (stored) return JSON.parse(stored.body) as IssuedAttestation
    const measured =
      'asOf' in past
        ? await findAttestationAt(db, wrapper.asset, past.asOf)
        : await findAttestation(db, wrapper.asset, past.seq)
    if (measured) return issued.issue(wrapper.asset, measured)
    const now = clock.now().getTime()
    if ('asOf' in past && deps.sources.length === 0) {
      const time = past.asOf.getTime()
      if (time <= now && now < time + STALE_MS && previewIntervalStart(past.asOf).getTime() === time)
        return issueReading(wrapper, buildPreviewReading(wrapper, coverage.bandBps, past.asOf))
    }
    throw notFound('attestation')
  }

  return {
    coverage,
    evmSigners: async () => ({
      live: await deps.signers.live.evmAddress(),
      preview: await deps.signers.preview.evmAddress(),
    }),
    /** True when the operator has configured at least one live source. */
    hasSources: deps.sources.length > 0,
    reload,
    runIngestRound: ingest.runRound,

    getReading: (symbol: string, chain?: string): Reading => currentReading(findWrapper(symbol, chain)).reading,
    getQuote: (symbol: string, chain?: string): PublishedQuote =>
      currentReading(findWrapper(symbol, chain)).reading.quote,
    /** The quote as JSON, serialised once per reading instead of once per request. */
    prepareQuote: (symbol: string, chain?: string): PreparedResponse =>
      currentReading(findWrapper(symbol, chain)).quoteResponse,

    /** The share in the illustrative market that previews are about; undefined when no wrapper of it is covered. */
    getPreviewShare(underlying: string, at: Date): PreviewShare | undefined {
      const wrapper = coverage.wrappers.find((covered) => covered.underlying === underlying)
      return wrapper && previewShare(underlying, wrapper.previewPrice, at)
    },

    getBoard(chain?: string): Board {
      const wrappers =
        chain === undefined
          ? coverage.symbols.map(({ symbol }) => findWrapper(symbol))
          : coverage.wrappers.filter((wrapper) => wrapper.chain === chain)
      if (wrappers.length === 0) throw notFound(`chain as ${chain?.slice(0, 64)}`)
      return buildBoard(
        wrappers.map((wrapper) => currentReading(wrapper).reading),
        clock.now(),
      )
    },

    /** The newest attestation of a wrapper, or that of the reading with this sequence number or of this time. */
    async getAttestation(
      symbol: string,
      { chain, seq, as_of }: { chain?: string; seq?: number; as_of?: string } = {},
    ): Promise<IssuedAttestation> {
      const wrapper = findWrapper(symbol, chain)
      if (seq !== undefined && as_of !== undefined) throw invalid('Send either seq or as_of.')
      if (seq !== undefined) return issuePast(wrapper, { seq })
      const asOf = as_of === undefined ? undefined : new Date(as_of)
      const isNewest = asOf === undefined || Date.parse(currentReading(wrapper).reading.quote.as_of) === asOf.getTime()
      return isNewest ? issueCurrent(wrapper) : issuePast(wrapper, { asOf })
    },

    /** Attestations that were handed out, newest first, each with its place in the log. */
    async listAttestations(filter: AttestationFilter, page: { limit: number; cursor?: string }) {
      const covered = filter.symbol === undefined ? undefined : coverage.find(filter.symbol)
      const listed = await issued.list({ ...filter, ...(covered && { symbol: covered.symbol }) }, page)
      // A wrapper that is no longer covered keeps its attestations; one that never was is probably misspelt.
      if (filter.symbol !== undefined && !covered && listed.attestations.length === 0) findWrapper(filter.symbol)
      return listed
    },
    getIssuedAttestation: issued.get,
    getAttestationProof: issued.proof,

    async getHistory(symbol: string, query: HistoryQuery): Promise<History> {
      const wrapper = findWrapper(symbol, query.chain)
      const plan = planHistory(query, clock.now())
      if ('problem' in plan) throw invalid(plan.problem)
      const { from, to, stepMs, interval, maxPoints } = plan
      const rows = deps.sources.length > 0 ? await findHistory(db, wrapper.asset, from, to, stepMs, maxPoints) : []
      const live = rows.length > 0
      return {
        symbol: wrapper.symbol,
        chain: wrapper.chain,
        interval,
        from: from.toISOString(),
        to: to.toISOString(),
        points: live ? toHistoryPoints(rows) : buildPreviewPoints(wrapper, coverage.bandBps, plan),
        source: live ? 'live' : 'preview',
        preview: !live,
      }
    },

    async getEvidence(sha256: string): Promise<Buffer> {
      const body = await findBody(db, sha256.replace(/^sha256:/, '').toLowerCase())
      if (!body) throw notFound('evidence')
      return body
    },

    /** Calls `subscriber` with every new reading; returns the function that ends the subscription. */
    subscribe(subscriber: (readings: readonly Reading[]) => void, maxSubscribers: number): () => void {
      if (subscribers.size >= maxSubscribers) throw unavailable('Too many streams are open at the moment.', 30)
      subscribers.add(subscriber)
      return () => subscribers.delete(subscriber)
    },

    subscriberCount: () => subscribers.size,

    /** Previews change with the clock, so subscribers get them at each interval. */
    publishPreviews() {
      publish(coverage.wrappers.filter((wrapper) => currentReading(wrapper).reading.quote.preview))
    },

    prune(): Promise<number> {
      const now = clock.now().getTime()
      return pruneBasis(db, new Date(now - BODY_RETENTION_MS), new Date(now - READING_RETENTION_MS), MAX_PRUNED_ROWS)
    },
  }
}

function previewReasons({ reading, reasons, updatedAt }: AssetState): string[] {
  return reading ? [`Nothing has been measured since ${updatedAt.toISOString()}.`] : reasons
}

function toWindowChangedEvent({ wrapper, from, to, reading, at }: WindowStatusChange) {
  return {
    type: 'basis.window_changed' as const,
    at,
    data: {
      symbol: wrapper.symbol,
      underlying: wrapper.underlying,
      chain: wrapper.chain,
      previous_status: from,
      window_status: to,
      window_score: reading?.window.score ?? 0,
      basis_bps: reading?.quote.basis_bps ?? null,
      as_of: at.toISOString(),
    },
  }
}
