import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { canonicalJson, sha256 } from '../../platform/canonical.ts'
import { usdcFromMicro } from '../../platform/money.ts'

/** A lane in the price list. Prices are micro-USDC; the estimated cost comes from a cost model and is not charged. */
export type Lane = {
  agentId: string
  displayName: string
  description: string
  tier: string
  category: string
  recommendedUse: string
  basePriceMicro: bigint
  feeMicro: bigint
  priceMicro: bigint
  estimatedCostUsd: number
  status: 'active' | 'paused'
  model: string | null
  /** How long it may work on a run; null: as long as RUN_DEADLINE_SECONDS says. */
  deadlineSeconds: number | null
}

/** An operator's change to a lane, or a new lane. Stored as a row that overrides the shipped price list. */
export type LaneChange = {
  agent_id: string
  display_name?: string
  description?: string
  tier?: string
  category?: string
  recommended_use?: string
  base_price_micro?: number
  estimated_cost_usd?: number
  status?: 'active' | 'paused'
  model?: string | null
  deadline_seconds?: number | null
}

type PriceListEntry = Required<Omit<LaneChange, 'status' | 'model' | 'deadline_seconds'>>
type PriceListFile = {
  pricing_version: string
  cost_model: string
  orchestration_fee_micro: number
  lanes: PriceListEntry[]
  default: PriceListEntry
}

const priceListFile: PriceListFile = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../data/catalog/price-list.json'), 'utf8'),
)

export const FEE_MICRO = BigInt(priceListFile.orchestration_fee_micro)
export const costModel = priceListFile.cost_model
export const shippedVersion = priceListFile.pricing_version

export type PriceList = { version: string; lanes: Lane[]; fallback: Lane }

export function buildPriceList(changes: readonly LaneChange[]): PriceList {
  const byId = new Map<string, PriceListEntry & LaneChange>(priceListFile.lanes.map((lane) => [lane.agent_id, lane]))
  for (const change of changes) byId.set(change.agent_id, { ...byId.get(change.agent_id)!, ...change })
  const changesSuffix = changes.length > 0 ? `+${sha256(canonicalJson(changes)).slice(7, 15)}` : ''
  return {
    version: priceListFile.pricing_version + changesSuffix,
    lanes: [...byId.values()].map(toLane),
    fallback: toLane(priceListFile.default),
  }
}

/** The lowest and the highest price of a run, which has the fee in it, or of a loop, which has not. */
export function priceRange({ lanes, fallback }: Pick<PriceList, 'lanes' | 'fallback'>, kind: 'run' | 'loop') {
  const prices = [...lanes, fallback].map((lane) => (kind === 'run' ? lane.priceMicro : lane.basePriceMicro))
  return {
    minMicro: prices.reduce((a, b) => (b < a ? b : a)),
    maxMicro: prices.reduce((a, b) => (b > a ? b : a)),
  }
}

function toLane(row: PriceListEntry & LaneChange): Lane {
  const basePriceMicro = BigInt(row.base_price_micro)
  return {
    agentId: row.agent_id,
    displayName: row.display_name,
    description: row.description,
    tier: row.tier,
    category: row.category,
    recommendedUse: row.recommended_use,
    basePriceMicro,
    feeMicro: FEE_MICRO,
    priceMicro: basePriceMicro + FEE_MICRO,
    estimatedCostUsd: row.estimated_cost_usd,
    status: row.status ?? 'active',
    model: row.model ?? null,
    deadlineSeconds: row.deadline_seconds ?? null,
  }
}

/** The price record in the responses of `/api/pricing`, `/api/agents` and `/api/lanes`. */
export function priceRecord(lane: Lane) {
  const costMicro = BigInt(Math.round(lane.estimatedCostUsd * 1e6))
  const marginMicro = lane.priceMicro - costMicro
  return {
    agent_id: lane.agentId,
    display_name: lane.displayName,
    description: lane.description,
    tier: lane.tier,
    category: lane.category,
    recommended_use: lane.recommendedUse,
    endpoint: 'POST /api/run',
    base_price_usdc: usdcFromMicro(lane.basePriceMicro),
    orchestration_fee_usdc: usdcFromMicro(lane.feeMicro),
    price_usdc: usdcFromMicro(lane.priceMicro),
    estimated_cost_usd: lane.estimatedCostUsd,
    estimated_margin_usd: usdcFromMicro(marginMicro),
    margin_percent: Math.round(Number((marginMicro * 1_000_000n) / lane.priceMicro) / 100) / 100,
  }
}
