import type { Venue } from './depth.ts'

export type { ConcentratedPool } from './concentrated-liquidity.ts'
export type { Venue } from './depth.ts'
export type { PoolUnits } from './tick-math.ts'

/**
 * The price-source port. A source is two pure functions: one builds the requests, the other parses a response.
 * `poll-source.ts` does the fetching for all sources, so every body is stored by its hash and a recorded body can be
 * replayed through the same code. Adapters import this file and nothing else of the module.
 */
export type PriceSource = {
  id: string
  everySeconds: number
  buildRequests(wrappers: readonly CoveredWrapper[], now: Date): SourceRequest[]
  /** Throws `PriceSourceError` when the response must not be used. */
  parseResponse(request: SourceRequest, response: SourceResponse): ParsedResponse
}

export type SourceRequest = {
  method: 'GET' | 'POST'
  url: string
  /** The URL without keys or account names; it is published with the evidence. */
  publicUrl: string
  headers: Record<string, string>
  body?: string
  /** What the parser needs to know about the request. Plain JSON, so that a recording can hold it. */
  context: Record<string, unknown>
}

export type SourceResponse = { status: number; body: Uint8Array; fetchedAt: Date }

export type ParsedResponse = {
  observations: Observation[]
  /** Entries of the response that must not be used, while the others may. */
  rejected?: RejectedEntry[]
  /** Requests that need data from this response, such as the ticks around a price. */
  followUps?: SourceRequest[]
  publishedAt?: Date
  block?: number
}

export type RejectedEntry = { asset?: string; underlying?: string; reason: string }

/** The stored record of one response. `url` is the public URL. */
export type FetchRecord = {
  source: string
  url: string
  status: number
  body_sha256: string
  fetched_at: string
  published_at: string | null
  block: number | null
}

export class PriceSourceError extends Error {
  constructor(reason: string, options?: { cause?: unknown }) {
    super(reason, options)
    this.name = 'PriceSourceError'
  }
}

/** One deployment of a covered wrapper, with everything a source may need to query it. */
export type CoveredWrapper = {
  symbol: string
  underlying: string
  issuer: string
  chain: string
  chainKind: 'evm' | 'solana'
  address: string
  /** `chain:address`, the key that links observations to their wrapper. */
  asset: string
  caip19: string
  decimals: number
  issuerApi: 'xstocks' | 'coinbase' | null
  feed: { address: string; decimals: number; includesMultiplier: boolean } | null
  registry: string | null
  pools: readonly { kind: 'uniswap-v3' | 'slipstream'; address: string; quoteAddress: string; quoteDecimals: number }[]
  lockedHolders: readonly { label: string; address: string }[]
  meme: { symbol: string; address: string } | null
  pythFeedId: string | null
  previewPrice: number
}

export type Issuance = { at: string; block: number | null; size: number }

export type Observation =
  /** The price of one share of the underlying. `conf` is the source's own error in the same unit, 0 if it states none. */
  | { kind: 'share_price'; underlying: string; price: number; conf: number; publishedAt: Date }
  /** A feed of the wrapper's fair value, already multiplied by shares per token. */
  | { kind: 'token_reference'; asset: string; price: number; conf: number; publishedAt: Date }
  | { kind: 'token_price'; asset: string; price: number; liquidityUsd: number | null; publishedAt: Date }
  | { kind: 'venue'; asset: string; venue: Venue; publishedAt: Date; block: number | null }
  | {
      kind: 'multiplier'
      asset: string
      current: number
      next: { value: number; at: Date } | null
      onChain: boolean
      publishedAt: Date
    }
  | { kind: 'supply'; asset: string; tokens: number; block: number; publishedAt: Date }
  | { kind: 'issuance'; asset: string; events: Issuance[]; toBlock: number; publishedAt: Date }
  | { kind: 'issuer'; asset: string; accepting: boolean; reason: string; publishedAt: Date }
  | {
      kind: 'reserves'
      asset: string
      ratio: number
      ratioBasis: 'reserve_report' | 'issuer_claim'
      reportUrl: string
      reportAsOf: Date | null
      publishedAt: Date
    }
  | { kind: 'locked'; asset: string; tokens: number; publishedAt: Date }
  | { kind: 'meme'; asset: string; symbol: string; change24h: number; publishedAt: Date }
  | { kind: 'halt'; underlying: string; halted: boolean; publishedAt: Date }
  | { kind: 'exchange_clock'; by: 'clock' | 'calendar'; open: boolean; publishedAt: Date }

/** The subject of an observation; a newer observation of the same source replaces the older one with the same key. */
export function observationKey(observation: Observation): string {
  if (observation.kind === 'venue') return `venue ${observation.asset} ${observation.venue.id}`
  if (observation.kind === 'exchange_clock') return `exchange_clock ${observation.by}`
  return `${observation.kind} ${'asset' in observation ? observation.asset : observation.underlying}`
}

/** An observation with its source and times. `changedAt` is when this source's value last changed. */
export type SourcedObservation<O extends Observation = Observation> = {
  source: string
  observation: O
  fetchedAt: Date
  changedAt: Date
  records: readonly FetchRecord[]
}
