import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  E8,
  type InstrumentType,
  parseDecimal,
  type Quote,
  type RwaReading,
} from '../../../modules/brokerage/broker.ts'
import { hashToNumber } from './matching.ts'
import type {
  Calendar,
  CorporateAction,
  Listing,
  MarketQuote,
  PaperMarket,
  ReadBasis,
  ReadShare,
} from './paper-market.ts'

/**
 * The default market of the paper broker: tokenised equities at their basis reading, their shares at the reference of
 * basis previews, everything else by the price list in `data/brokerage/prices.json` with prices that move by a fixed
 * function of time, and merchants at par. Nothing is random: the same time gives the same price.
 */
export type SimulatedMarketDeps = {
  calendar: Calendar
  readBasis: ReadBasis
  readShare: ReadShare
  file?: URL
}

type PriceListEntry = {
  type: InstrumentType
  symbol: string
  name: string
  price: string
  spread_bps: number
  adv: string
  sigma_bps: number
  follows?: string
  dividends?: { ex_at: string; per_share: string }[]
  splits?: { ex_at: string; numerator: number; denominator: number }[]
  maintenance_margin_bps?: number
  max_leverage?: number
  base_asset?: string
  quote_asset?: string
  network?: string
  yield_rate_bps?: number
  lock_days?: number
  early_exit_penalty_bps?: number
  protocol?: string
}

type TradingTerms = Pick<Listing, 'lotE8' | 'tickE8' | 'feeTier' | 'takerFeeBps' | 'settlementLag' | 'saleFeePpm'>

const PRICE_LIST_FILE = new URL('../../../../data/brokerage/prices.json', import.meta.url)

/** Regulatory fees on equity sales are about 28 millionths of the proceeds. */
const TRADING_TERMS: Record<InstrumentType, TradingTerms> = {
  equity: {
    lotE8: 100n,
    tickE8: 1_000_000n,
    feeTier: 'commission_free',
    takerFeeBps: 0,
    settlementLag: 'T+1',
    saleFeePpm: 28,
  },
  perp: { lotE8: 100n, tickE8: 1_000_000n, feeTier: 'taker_5bps', takerFeeBps: 5, settlementLag: 'T+0', saleFeePpm: 0 },
  crypto: {
    lotE8: 1n,
    tickE8: 1_000_000n,
    feeTier: 'taker_40bps',
    takerFeeBps: 40,
    settlementLag: 'T+0',
    saleFeePpm: 0,
  },
  rwa: { lotE8: 1n, tickE8: 10_000n, feeTier: 'taker_15bps', takerFeeBps: 15, settlementLag: 'T+0', saleFeePpm: 0 },
  earn: { lotE8: 100n, tickE8: 10_000n, feeTier: 'none', takerFeeBps: 0, settlementLag: 'T+0', saleFeePpm: 0 },
  spend: { lotE8: 100n, tickE8: 100n, feeTier: 'none', takerFeeBps: 0, settlementLag: 'T+0', saleFeePpm: 0 },
}

/** Prices are interpolated linearly between points this far apart. */
const KNOT_MS = 4 * 3_600_000
const FUNDING_MS = 8 * 3_600_000
const RWA_SPREAD_BPS = 10
const RWA_SIGMA_BPS = 150
/** The daily volume of a tokenised equity, as a multiple of what is offered near its reference price. */
const RWA_TURNOVER = 20
const RWA_PREVIEW_DAILY_USD = 5_000_000
/** Payments have no market impact: any amount is paid at par. */
const UNLIMITED_E8 = 10n ** 20n
const MERCHANT = /^[A-Za-z0-9][A-Za-z0-9 ._:@/-]{0,63}$/

export function createSimulatedMarket(deps: SimulatedMarketDeps): PaperMarket {
  const file = JSON.parse(readFileSync(deps.file ?? PRICE_LIST_FILE, 'utf8')) as {
    version: string
    listings: PriceListEntry[]
  }
  const entries = new Map(file.listings.map((entry) => [`${entry.type}/${entry.symbol}`, entry]))
  const source = `paper:${file.version}`

  const quoteEntry = (entry: PriceListEntry, at: Date): MarketQuote => {
    const session = entry.type === 'equity' ? deps.calendar.marketState(at) : 'always'
    // Outside the session the last price of the previous one applies.
    const pricedAt = session === 'open' || session === 'always' ? at : deps.calendar.lastSession(at).close
    const listing = toListing(entry)
    const share = entry.type === 'equity' ? deps.readShare(entry.symbol, at) : undefined
    const priceE8 = share ? parseListDecimal(share.price.toFixed(8)) : listPriceE8(entry, pricedAt)
    const mark = roundToTick(priceE8, listing.tickE8)
    return {
      ...spreadAround(mark, entry.spread_bps, listing.tickE8),
      symbol: entry.symbol,
      source,
      observedAt: pricedAt,
      session,
      nextOpen: session === 'open' || session === 'always' ? null : deps.calendar.nextOpen(at),
      halted: false,
      ...(entry.type === 'perp' ? { fundingRatePpm: fundingPpm(entry.symbol, at.getTime()) } : {}),
      listing,
    }
  }

  return {
    async quote(type, symbol, at) {
      if (type === 'spend') return MERCHANT.test(symbol) ? quoteMerchant(symbol, source, at) : undefined
      if (type === 'rwa') {
        const reading = await deps.readBasis(symbol)
        return reading ? quoteWrapper(reading) : undefined
      }
      const entry = entries.get(`${type}/${symbol}`)
      return entry ? quoteEntry(entry, at) : undefined
    },

    symbols: (type) => [...entries.values()].filter((entry) => entry.type === type).map(({ symbol }) => symbol),

    async actions(symbol, after, upTo) {
      const entry = entries.get(`equity/${symbol}`)
      return entry
        ? listCorporateActions(entry).filter(({ exAt }) => exAt > after.getTime() && exAt <= upTo.getTime())
        : []
    },
  }
}

function listPriceE8(entry: PriceListEntry, at: Date): bigint {
  const offsetPpm = priceOffsetPpm(entry.follows ?? entry.symbol, entry.sigma_bps, at.getTime())
  return (parseListDecimal(entry.price) * (1_000_000n + offsetPpm)) / 1_000_000n
}

/** The difference from the list price at this moment, in millionths, within half the daily range. */
export function priceOffsetPpm(symbol: string, sigmaBps: number, at: number): bigint {
  if (sigmaBps === 0) return 0n
  const knot = Math.floor(at / KNOT_MS)
  const range = sigmaBps * 100
  const knotPpm = (index: number) => hashToNumber(`path/${symbol}/${index}`, range + 1) - BigInt(Math.floor(range / 2))
  const elapsedMs = BigInt(at - knot * KNOT_MS)
  return (knotPpm(knot) * (BigInt(KNOT_MS) - elapsedMs) + knotPpm(knot + 1) * elapsedMs) / BigInt(KNOT_MS)
}

const fundingPpm = (symbol: string, at: number) =>
  Number(hashToNumber(`funding/${symbol}/${Math.floor(at / FUNDING_MS)}`, 151)) - 50

function toListing(entry: PriceListEntry): Listing {
  return {
    type: entry.type,
    symbol: entry.symbol,
    name: entry.name,
    ...TRADING_TERMS[entry.type],
    advE8: parseListDecimal(entry.adv),
    sigmaBps: entry.sigma_bps,
    ...(entry.type === 'perp' && {
      perp: { maintenanceMarginBps: entry.maintenance_margin_bps ?? 50, maxLeverage: entry.max_leverage ?? 20 },
    }),
    ...(entry.type === 'crypto' && {
      crypto: {
        baseAsset: entry.base_asset ?? entry.symbol,
        quoteAsset: entry.quote_asset ?? 'USD',
        network: entry.network ?? 'unknown',
      },
    }),
    ...(entry.type === 'earn' && {
      earn: {
        yieldRateBps: entry.yield_rate_bps ?? 0,
        lockDays: entry.lock_days ?? 0,
        earlyExitPenaltyBps: entry.early_exit_penalty_bps ?? 0,
        protocol: entry.protocol ?? entry.name,
      },
    }),
  }
}

function quoteWrapper(reading: RwaReading): MarketQuote {
  const terms = TRADING_TERMS.rwa
  const mark = roundToTick(reading.wrapperPriceE8, terms.tickE8)
  const dailyUsd = reading.preview ? RWA_PREVIEW_DAILY_USD : reading.nearReferenceUsd * RWA_TURNOVER
  const dailyMicro = BigInt(Math.max(1, Math.round(dailyUsd))) * 1_000_000n
  return {
    ...spreadAround(mark, RWA_SPREAD_BPS, terms.tickE8),
    symbol: reading.symbol,
    source: reading.source,
    observedAt: reading.asOf,
    session: 'always',
    nextOpen: null,
    halted: reading.halted,
    listing: {
      type: 'rwa',
      symbol: reading.symbol,
      name: `${reading.symbol} on ${reading.chain}`,
      ...terms,
      advE8: (dailyMicro * 10_000_000_000n) / mark,
      sigmaBps: RWA_SIGMA_BPS,
      rwa: {
        underlyingAsset: reading.underlying,
        tokenContract: reading.tokenContract,
        chain: reading.chain,
        multiplier: reading.multiplier,
      },
    },
  }
}

function quoteMerchant(symbol: string, source: string, at: Date): MarketQuote {
  const merchantId = `mrc_${createHash('sha256').update(symbol).digest('hex').slice(0, 16)}`
  return {
    symbol,
    bidE8: E8,
    askE8: E8,
    markE8: E8,
    source,
    observedAt: at,
    session: 'always',
    nextOpen: null,
    halted: false,
    listing: {
      type: 'spend',
      symbol,
      name: symbol,
      ...TRADING_TERMS.spend,
      advE8: UNLIMITED_E8,
      sigmaBps: 0,
      spend: { merchantId, category: 'general', rail: 'paper_usdc' },
    },
  }
}

function listCorporateActions(entry: PriceListEntry): CorporateAction[] {
  const dividends = (entry.dividends ?? []).map(
    ({ ex_at, per_share }) =>
      ({ kind: 'dividend', exAt: Date.parse(ex_at), perShareE8: parseListDecimal(per_share) }) as const,
  )
  const splits = (entry.splits ?? []).map(
    ({ ex_at, numerator, denominator }) =>
      ({
        kind: 'split',
        exAt: Date.parse(ex_at),
        numerator: BigInt(numerator),
        denominator: BigInt(denominator),
      }) as const,
  )
  return [...dividends, ...splits]
}

/** Bid and ask at half the spread on either side of the mark, rounded outwards to the tick. */
export function spreadAround(
  markE8: bigint,
  spreadBps: number,
  tickE8: bigint,
): Pick<Quote, 'bidE8' | 'askE8' | 'markE8'> {
  const halfSpread = (markE8 * BigInt(Math.round(spreadBps * 50))) / 1_000_000n
  const bid = markE8 - halfSpread
  const ask = markE8 + halfSpread
  const bidOnTick = bid - (bid % tickE8)
  const askOnTick = ask % tickE8 === 0n ? ask : ask - (ask % tickE8) + tickE8
  return { markE8, bidE8: bidOnTick > 0n ? bidOnTick : tickE8, askE8: askOnTick }
}

const roundToTick = (priceE8: bigint, tickE8: bigint) => {
  const rounded = ((priceE8 + tickE8 / 2n) / tickE8) * tickE8
  return rounded > 0n ? rounded : tickE8
}

function parseListDecimal(text: string): bigint {
  const value = parseDecimal(text, 8)
  if (value === undefined) throw new Error(`'${text}' in the price list is not a decimal number.`)
  return value
}
