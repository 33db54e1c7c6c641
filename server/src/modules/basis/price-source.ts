import type { Venue } from './depth.ts'

export type { ConcentratedPool } from './concentrated.ts'
export type { Venue } from './depth.ts'
export type { PoolUnits } from './tick-math.ts'

/**
 * The price-source port. A source is two pure halves: what to ask, and how to read an answer. The asking itself is done
 * elsewhere, once for all sources, so that every body is kept by its hash and a recorded one replays through the same code.
 * Adapters import this file and nothing else of the module.
 */
export type PriceSource = {
  id: string
  everySeconds: number
  ask(covered: readonly Covered[], now: Date): SourceRequest[]
  /** Throws `SourceRefused` for an answer that must not be believed. */
  read(request: SourceRequest, answer: SourceAnswer): SourceReading
}

export type SourceRequest = {
  method: 'GET' | 'POST'
  url: string
  /** The address without keys or account names: it is published with the evidence. */
  shownUrl: string
  headers: Record<string, string>
  body?: string
  /** What the reader needs to know about the question; plain JSON, so that a recording can hold it. */
  memo: Record<string, unknown>
}

export type SourceAnswer = { status: number; body: Uint8Array; fetchedAt: Date }

export type SourceReading = {
  observations: Observation[]
  /** Parts of the answer that must not be believed, while the rest may. */
  refused?: RefusedPart[]
  /** Questions that only this answer made possible, such as the ticks around a price. */
  follow?: SourceRequest[]
  publishedAt?: Date
  block?: number
}

export type RefusedPart = { asset?: string; underlying?: string; reason: string }

/** How an answer is known ever after. `url` is the shown one. */
export type FetchRecord = {
  source: string
  url: string
  status: number
  body_sha256: string
  fetched_at: string
  published_at: string | null
  block: number | null
}

export class SourceRefused extends Error {
  constructor(reason: string, options?: { cause?: unknown }) {
    super(reason, options)
    this.name = 'SourceRefused'
  }
}

/** One deployment of a covered wrapper, with all that a source may need to ask about it. */
export type Covered = {
  symbol: string
  underlying: string
  issuer: string
  chain: string
  chainKind: 'evm' | 'solana'
  address: string
  /** `chain:address`, the key by which observations find their wrapper. */
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
  | { kind: 'issuer'; asset: string; accepting: boolean; why: string; publishedAt: Date }
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

/** What an observation is about, so that a newer one takes its place and nothing else's. */
export function subjectOf(observation: Observation): string {
  if (observation.kind === 'venue') return `venue ${observation.asset} ${observation.venue.id}`
  if (observation.kind === 'exchange_clock') return `exchange_clock ${observation.by}`
  return `${observation.kind} ${'asset' in observation ? observation.asset : observation.underlying}`
}

/** An observation with where and when it came from. `changedAt` is when this source last said something else. */
export type Kept<O extends Observation = Observation> = {
  source: string
  observation: O
  fetchedAt: Date
  changedAt: Date
  records: readonly FetchRecord[]
}
