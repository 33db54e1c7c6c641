import type { InstrumentType } from '../../modules/brokerage/broker.ts'
import type { Venue } from '../../modules/brokerage/venues.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { createAlpacaBroker } from './alpaca.ts'
import { type CoinbaseAccount, createCoinbaseBroker } from './coinbase.ts'
import type { Calendar, ReadBasis } from './paper/market.ts'
import { createPaperBroker } from './paper/paper.ts'
import { createShippedMarket } from './paper/shipped-market.ts'
import { createPaperStore } from './paper/store.ts'
import { createRobinhoodCryptoBroker } from './robinhood-crypto.ts'

/** Every broker there is. A real one is off until it has credentials and a tenant whose account it is. */
export type BrokerSettings = {
  alpaca?: { keyId: string; secretKey: string; baseUrl: string; dataUrl: string }
  robinhood?: { apiKey: string; privateKey: string; baseUrl: string }
  coinbase?: { keyName: string; privateKey: string; baseUrl: string }
  /** The tenants who trade through them; nobody else does. */
  tenants: readonly string[]
}

export type BrokerDeps = { db: Db; clock: Clock; calendar: Calendar; readBasis: ReadBasis; settings: BrokerSettings }

const OPENING_CASH_MICRO = 100_000_000_000n
const ADVANCE_AT_ONCE = 100
/** Coins trade at Coinbase's stand-in, so that both integrations have something to show; the rest at Robinhood's. */
const PAPER_TYPES: readonly InstrumentType[] = ['equity', 'perp', 'rwa', 'earn', 'spend']
const COINBASE_PAPER_TYPES: readonly InstrumentType[] = ['crypto']

export function openBrokers({ db, clock, calendar, readBasis, settings }: BrokerDeps) {
  const market = createShippedMarket({ calendar, readBasis })
  const paper = (venue: string, types: readonly InstrumentType[]) =>
    createPaperBroker({
      venue,
      types,
      market,
      calendar,
      clock,
      store: createPaperStore(db, venue),
      seed: venue,
      openingCashMicro: OPENING_CASH_MICRO,
    })
  const robinhoodPaper = paper('paper', PAPER_TYPES)
  const coinbasePaper = paper('coinbase-paper', COINBASE_PAPER_TYPES)
  const tenants = new Set(settings.tenants)
  const on = tenants.size > 0
  const coinbase = on && settings.coinbase ? createCoinbaseBroker({ ...settings.coinbase, clock }) : undefined
  const real = [
    ...(on && settings.alpaca ? [createAlpacaBroker(settings.alpaca)] : []),
    ...(on && settings.robinhood ? [createRobinhoodCryptoBroker({ ...settings.robinhood, clock })] : []),
    ...(coinbase ? [coinbase] : []),
  ]

  return {
    venues: [
      ...real.map((broker): Venue => ({ broker, tenants })),
      { broker: robinhoodPaper, tenants: 'all' },
      { broker: coinbasePaper, tenants: 'all' },
    ] satisfies Venue[],

    coinbase: {
      brokerIds: ['coinbase', 'coinbase-paper'],
      /** Undefined when Coinbase does not answer. */
      async accounts(limit: number): Promise<CoinbaseAccount[] | undefined> {
        if (!coinbase) return coinbasePaper.coinbaseAccounts(limit)
        const answer = await coinbase.accounts()
        return answer.ok ? answer.accounts.slice(0, limit) : undefined
      },
    },

    /** Time passes for paper accounts that nobody asks about. */
    async advance(): Promise<number> {
      const advanced = await Promise.all(
        [robinhoodPaper, coinbasePaper].map((one) => one.advanceNeglected(ADVANCE_AT_ONCE)),
      )
      return advanced.reduce((sum, count) => sum + count, 0)
    },
  }
}
