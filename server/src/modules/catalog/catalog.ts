import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import type { Notifications } from '../../platform/notifications.ts'
import { conflict, invalid, notFound } from '../../platform/problem.ts'
import { wilsonInterval } from '../../platform/wilson.ts'
import { changeLane, readLaneChanges, readLaneStats, readLaneTrust, readLastLaneChange } from './catalog.store.ts'
import {
  buildPriceList,
  type Lane,
  type LaneChange,
  type PriceList,
  priceRange,
  priceRecord,
  shippedVersion,
} from './price-list.ts'

export type CatalogDeps = {
  db: Db
  clock: Clock
  notifications: Pick<Notifications, 'listen'>
  settlement: { network: string; asset: string; payTo: string }
}

export type ProviderQuery = { category?: string; network?: string; trusted_only?: boolean; limit?: number }

export type Catalog = Awaited<ReturnType<typeof createCatalog>>

const TRUSTED_RECEIPTS = 10
const TRUSTED_SCORE = 0.9

export async function createCatalog(deps: CatalogDeps) {
  const readPriceList = async (): Promise<PriceList & { changedAt: Date | null }> => ({
    ...buildPriceList(await readLaneChanges(deps.db)),
    changedAt: await readLastLaneChange(deps.db),
  })
  let priceList = await readPriceList()
  const reload = async () => {
    priceList = await readPriceList()
  }
  deps.notifications.listen('catalog', () => void reload().catch(() => {}))

  const find = (agentId: string): Lane | undefined =>
    agentId === 'default' ? priceList.fallback : priceList.lanes.find((lane) => lane.agentId === agentId)

  /** Writes a change and reloads the price list; other processes are notified by the database. */
  const write = async (change: LaneChange) => {
    await changeLane(deps.db, change, deps.clock.now())
    await reload()
    return laneRecord(find(change.agent_id)!)
  }

  return {
    version: () => priceList.version,
    /** When the price list was last changed; its version is the day it was shipped. */
    updatedAt: (): Date => priceList.changedAt ?? new Date(shippedVersion),
    priceRange: (kind: 'run' | 'loop') => priceRange(priceList, kind),
    /** The lanes that accept runs, without the fallback lane. */
    active: () => priceList.lanes.filter((lane) => lane.status === 'active'),
    all: () => priceList.lanes,
    fallback: () => priceList.fallback,
    find,
    reload,

    async agents() {
      const stats = new Map((await readLaneStats(deps.db)).map((row) => [row.agent_id, row]))
      return priceList.lanes.map((lane) => ({
        ...priceRecord(lane),
        status: lane.status,
        stats: stats.get(lane.agentId) ?? { runs: 0, success_rate: null, p50_ms: null, p95_ms: null },
      }))
    },

    lanes: () => priceList.lanes.map(laneRecord),

    lane(agentId: string) {
      const lane = find(agentId)
      if (!lane) throw notFound('lane')
      return laneRecord(lane)
    },

    async createLane(change: LaneChange & { base_price_micro: number }) {
      if (find(change.agent_id)) throw conflict(`The lane '${change.agent_id}' already exists; use PATCH to change it.`)
      return write(change)
    },

    async updateLane(agentId: string, change: Omit<LaneChange, 'agent_id'>) {
      if (agentId === 'default') throw invalid('The default lane follows the cheapest agent and cannot be changed.')
      if (!find(agentId)) throw notFound('lane')
      return write({ agent_id: agentId, ...change })
    },

    /** Our own lanes as providers. Trust is computed from logged receipts only. */
    async providers(query: ProviderQuery) {
      const trust = new Map((await readLaneTrust(deps.db)).map((row) => [row.agent_id, row]))
      const accepts = [{ scheme: 'exact', ...deps.settlement }].map(({ payTo, ...settlement }) => ({
        ...settlement,
        pay_to: payTo,
      }))
      const providers = priceList.lanes.map((lane) => {
        const laneTrust = trust.get(lane.agentId)
        const score = laneTrust ? trustScore(laneTrust.succeeded, laneTrust.receipts) : 0
        return {
          id: lane.agentId,
          name: lane.displayName,
          resource: '/api/run',
          description: lane.description,
          category: lane.category,
          network: deps.settlement.network,
          tags: [lane.tier, lane.category],
          trusted: (laneTrust?.receipts ?? 0) >= TRUSTED_RECEIPTS && score >= TRUSTED_SCORE,
          trust: {
            score,
            receipts: laneTrust?.receipts ?? 0,
            success_rate: laneTrust ? laneTrust.succeeded / laneTrust.receipts : null,
            last_seen_at: laneTrust?.last_seen_at.toISOString() ?? null,
          },
          pricing: {
            scheme: 'exact',
            from_usdc: usdcFromMicro(lane.basePriceMicro),
            to_usdc: usdcFromMicro(lane.priceMicro),
          },
          accepts,
          updated_at: (laneTrust?.last_seen_at ?? deps.clock.now()).toISOString(),
        }
      })
      return providers
        .filter((provider) => query.category === undefined || provider.category === query.category)
        .filter((provider) => query.network === undefined || provider.network === query.network)
        .filter((provider) => !query.trusted_only || provider.trusted)
        .slice(0, query.limit ?? 100)
    },
  }
}

const laneRecord = (lane: Lane) => ({
  ...priceRecord(lane),
  status: lane.status,
  model: lane.model,
  deadline_seconds: lane.deadlineSeconds,
})

/** The lower bound of the success rate with 95 % confidence: a few good receipts do not give a high score. */
const trustScore = (succeeded: number, receipts: number) =>
  receipts === 0 ? 0 : Math.round(wilsonInterval(succeeded / receipts, receipts).low * 10_000) / 10_000
