import type { CoinbaseAccount, InstrumentType } from '../../modules/brokerage/broker.ts'
import type { Venue } from '../../modules/brokerage/venues.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { createAlpacaBroker } from './alpaca.ts'
import { createCoinbaseBroker } from './coinbase.ts'
import { createPaperBroker } from './paper/paper-broker.ts'
import type { Calendar, ReadBasis, ReadShare } from './paper/paper-market.ts'
import { createPaperStore } from './paper/paper-store.ts'
import { createSimulatedMarket } from './paper/simulated-market.ts'
import { createRobinhoodCryptoBroker } from './robinhood-crypto.ts'

/** A live broker is off until it has credentials and a tenant that owns the account. */
export type BrokerSettings = {
  alpaca?: { keyId: string; secretKey: string; baseUrl: string; dataUrl: string }
  robinhood?: { apiKey: string; privateKey: string; baseUrl: string }
  coinbase?: { keyName: string; privateKey: string; baseUrl: string }
  /** The tenants that trade at the live brokers; all others trade on paper. */
  tenants: readonly string[]
}

export type BrokerDeps = {
  db: Db
  clock: Clock
  calendar: Calendar
  readBasis: ReadBasis
  readShare: ReadShare
  settings: BrokerSettings
}

const OPENING_CASH_MICRO = 100_000_000_000n
const ADVANCE_BATCH_SIZE = 100
/** Paper crypto trades go to the simulated Coinbase, all others to the simulated Robinhood, so that both integrations have data. */
const PAPER_TYPES: readonly InstrumentType[] = ['equity', 'perp', 'rwa', 'earn', 'spend']
const COINBASE_PAPER_TYPES: readonly InstrumentType[] = ['crypto']

export function openBrokers({ db, clock, calendar, readBasis, readShare, settings }: BrokerDeps) {
  const market = createSimulatedMarket({ calendar, readBasis, readShare })
  const createPaper = (venue: string, types: readonly InstrumentType[]) =>
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
  const robinhoodPaper = createPaper('paper', PAPER_TYPES)
  const coinbasePaper = createPaper('coinbase-paper', COINBASE_PAPER_TYPES)
  const tenants = new Set(settings.tenants)
  const hasTenants = tenants.size > 0
  const coinbase = hasTenants && settings.coinbase ? createCoinbaseBroker({ ...settings.coinbase, clock }) : undefined
  const liveBrokers = [
    ...(hasTenants && settings.alpaca ? [createAlpacaBroker(settings.alpaca)] : []),
    ...(hasTenants && settings.robinhood ? [createRobinhoodCryptoBroker({ ...settings.robinhood, clock })] : []),
    ...(coinbase ? [coinbase] : []),
  ]

  return {
    venues: [
      ...liveBrokers.map((broker): Venue => ({ broker, tenants })),
      { broker: robinhoodPaper, tenants: 'all' },
      { broker: coinbasePaper, tenants: 'all' },
    ] satisfies Venue[],

    coinbase: {
      brokerIds: ['coinbase', 'coinbase-paper'],
      /** Undefined when Coinbase does not answer. */
      async accounts(limit: number): Promise<CoinbaseAccount[] | undefined> {
        if (!coinbase) return coinbasePaper.coinbaseAccounts(limit)
        const result = await coinbase.accounts()
        return result.ok ? result.accounts.slice(0, limit) : undefined
      },
    },

    /** Brings idle paper accounts up to the current time. */
    async advancePaperAccounts(): Promise<number> {
      const counts = await Promise.all(
        [robinhoodPaper, coinbasePaper].map((broker) => broker.advanceIdleAccounts(ADVANCE_BATCH_SIZE)),
      )
      return counts.reduce((sum, count) => sum + count, 0)
    },
  }
}
