import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  E8,
  type InstrumentType,
  parseDecimal,
  type Quote,
  type RwaReading,
} from '../../../modules/brokerage/broker.ts'
import type { Calendar, CorporateAction, Listing, MarketQuote, PaperMarket, ReadBasis } from './market.ts'
import { chance } from './matching.ts'

/**
 * The default market of the paper broker: a shipped list whose prices move by a fixed rule of the clock, wrappers at
 * their basis reading, and merchants at one dollar a dollar. Nothing here is random: a clock gives a price.
 */
export type ShippedMarketDeps = {
  calendar: Calendar
  readBasis: ReadBasis
  file?: URL
}

type ShippedListing = {
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

type Terms = Pick<Listing, 'lotE8' | 'tickE8' | 'feeTier' | 'takerFeeBps' | 'settlementLag' | 'saleFeePpm'>

const SHIPPED = new URL('../../../../data/brokerage/prices.json', import.meta.url)

/** Regulatory fees on equity sales are about 28 millionths of the proceeds. */
const TERMS: Record<InstrumentType, Terms> = {
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

/** Prices wander between fixed points this far apart, in a straight line. */
const KNOT_MS = 4 * 3_600_000
const FUNDING_MS = 8 * 3_600_000
const RWA_SPREAD_BPS = 10
const RWA_SIGMA_BPS = 150
/** A day trades about this many times what is offered near the reference. */
const RWA_TURNOVER = 20
const RWA_PREVIEW_DAILY_USD = 5_000_000
/** Payments are not a market: any amount goes through at par. */
const ENDLESS_E8 = 10n ** 20n
const MERCHANT = /^[A-Za-z0-9][A-Za-z0-9 ._:@/-]{0,63}$/

export function createShippedMarket(deps: ShippedMarketDeps): PaperMarket {
  const file = JSON.parse(readFileSync(deps.file ?? SHIPPED, 'utf8')) as { version: string; listings: ShippedListing[] }
  const shipped = new Map(file.listings.map((row) => [`${row.type}/${row.symbol}`, row]))
  const source = `paper:${file.version}`

  const listed = (row: ShippedListing, at: Date): MarketQuote => {
    const session = row.type === 'equity' ? deps.calendar.marketState(at) : 'always'
    // The last price of a session stands until the next one.
    const pricedAt = session === 'open' || session === 'always' ? at : deps.calendar.lastSession(at).close
    const listing = listingOf(row)
    const moved = pathPpm(row.follows ?? row.symbol, row.sigma_bps, pricedAt.getTime())
    const mark = onTick((decimal(row.price) * (1_000_000n + moved)) / 1_000_000n, listing.tickE8)
    return {
      ...around(mark, row.spread_bps, listing.tickE8),
      symbol: row.symbol,
      source,
      observedAt: pricedAt,
      session,
      nextOpen: session === 'open' || session === 'always' ? null : deps.calendar.nextOpen(at),
      halted: false,
      ...(row.type === 'perp' ? { fundingRatePpm: fundingPpm(row.symbol, at.getTime()) } : {}),
      listing,
    }
  }

  return {
    async quote(type, symbol, at) {
      if (type === 'spend') return MERCHANT.test(symbol) ? merchantQuote(symbol, source, at) : undefined
      if (type === 'rwa') {
        const reading = await deps.readBasis(symbol)
        return reading ? wrapperQuote(reading) : undefined
      }
      const row = shipped.get(`${type}/${symbol}`)
      return row ? listed(row, at) : undefined
    },

    async actions(symbol, after, upTo) {
      const row = shipped.get(`equity/${symbol}`)
      return row ? corporateActions(row).filter(({ exAt }) => exAt > after.getTime() && exAt <= upTo.getTime()) : []
    },
  }
}

/** How far the price stands from its list price at this moment, in millionths, within half the daily range. */
export function pathPpm(symbol: string, sigmaBps: number, at: number): bigint {
  if (sigmaBps === 0) return 0n
  const knot = Math.floor(at / KNOT_MS)
  const range = sigmaBps * 100
  const height = (index: number) => chance(`path/${symbol}/${index}`, range + 1) - BigInt(Math.floor(range / 2))
  const into = BigInt(at - knot * KNOT_MS)
  return (height(knot) * (BigInt(KNOT_MS) - into) + height(knot + 1) * into) / BigInt(KNOT_MS)
}

const fundingPpm = (symbol: string, at: number) =>
  Number(chance(`funding/${symbol}/${Math.floor(at / FUNDING_MS)}`, 151)) - 50

function listingOf(row: ShippedListing): Listing {
  return {
    type: row.type,
    symbol: row.symbol,
    name: row.name,
    ...TERMS[row.type],
    advE8: decimal(row.adv),
    sigmaBps: row.sigma_bps,
    ...(row.type === 'perp' && {
      perp: { maintenanceMarginBps: row.maintenance_margin_bps ?? 50, maxLeverage: row.max_leverage ?? 20 },
    }),
    ...(row.type === 'crypto' && {
      crypto: {
        baseAsset: row.base_asset ?? row.symbol,
        quoteAsset: row.quote_asset ?? 'USD',
        network: row.network ?? 'unknown',
      },
    }),
    ...(row.type === 'earn' && {
      earn: {
        yieldRateBps: row.yield_rate_bps ?? 0,
        lockDays: row.lock_days ?? 0,
        earlyExitPenaltyBps: row.early_exit_penalty_bps ?? 0,
        protocol: row.protocol ?? row.name,
      },
    }),
  }
}

function wrapperQuote(reading: RwaReading): MarketQuote {
  const terms = TERMS.rwa
  const mark = onTick(reading.wrapperPriceE8, terms.tickE8)
  const dailyUsd = reading.preview ? RWA_PREVIEW_DAILY_USD : reading.nearReferenceUsd * RWA_TURNOVER
  const dailyMicro = BigInt(Math.max(1, Math.round(dailyUsd))) * 1_000_000n
  return {
    ...around(mark, RWA_SPREAD_BPS, terms.tickE8),
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

function merchantQuote(symbol: string, source: string, at: Date): MarketQuote {
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
      ...TERMS.spend,
      advE8: ENDLESS_E8,
      sigmaBps: 0,
      spend: { merchantId, category: 'general', rail: 'paper_usdc' },
    },
  }
}

function corporateActions(row: ShippedListing): CorporateAction[] {
  const dividends = (row.dividends ?? []).map(
    ({ ex_at, per_share }) => ({ kind: 'dividend', exAt: Date.parse(ex_at), perShareE8: decimal(per_share) }) as const,
  )
  const splits = (row.splits ?? []).map(
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

/** Half the spread on either side, on the tick, never crossed. */
export function around(markE8: bigint, spreadBps: number, tickE8: bigint): Pick<Quote, 'bidE8' | 'askE8' | 'markE8'> {
  const half = (markE8 * BigInt(Math.round(spreadBps * 50))) / 1_000_000n
  const bid = markE8 - half
  const ask = markE8 + half
  const floor = bid - (bid % tickE8)
  const ceiling = ask % tickE8 === 0n ? ask : ask - (ask % tickE8) + tickE8
  return { markE8, bidE8: floor > 0n ? floor : tickE8, askE8: ceiling }
}

const onTick = (priceE8: bigint, tickE8: bigint) => {
  const rounded = ((priceE8 + tickE8 / 2n) / tickE8) * tickE8
  return rounded > 0n ? rounded : tickE8
}

function decimal(text: string): bigint {
  const value = parseDecimal(text, 8)
  if (value === undefined) throw new Error(`'${text}' in the shipped price list is not a decimal number.`)
  return value
}
