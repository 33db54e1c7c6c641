import { createTokenExchange } from '../adapters/brokers/oauth-token.ts'
import { type BrokerSettings, openBrokers } from '../adapters/brokers/open-brokers.ts'
import type { Basis } from '../modules/basis/basis.ts'
import { lastSession, marketState, nextOpen } from '../modules/basis/calendar.ts'
import { brokerageRoutes } from '../modules/brokerage/brokerage.routes.ts'
import { createBrokerage } from '../modules/brokerage/brokerage.ts'
import { oauthRoutes } from '../modules/brokerage/oauth.routes.ts'
import { createOauth } from '../modules/brokerage/oauth.ts'
import { loadDefaultPolicies } from '../modules/brokerage/policies.ts'
import { rwaReading } from '../modules/brokerage/rwa-reading.ts'
import { createVenues } from '../modules/brokerage/venues.ts'
import type { Governance } from '../modules/governance/governance.ts'
import type { Ledger } from '../modules/ledger/ledger.ts'
import type { Receipts } from '../modules/receipts/receipts.ts'
import type { Config } from '../platform/config.ts'
import type { App } from '../platform/http-app.ts'
import type { AppContext } from './context.ts'

const SWEEP_MS = 1_000

export type BrokerageParts = {
  basis: Basis
  governance: Governance
  ledger: Ledger
  receipts: Receipts
  frozen(tenantId: string, agentId: string): Promise<{ reason: string } | undefined>
}

export function composeBrokerage(f: AppContext, { basis, governance, ledger, receipts, frozen }: BrokerageParts) {
  const { config, db, clock, ids, keys, idempotency, outbox, jobs } = f
  const signer = keys.signer('receipts')

  const basisReading = async (symbol: string) => {
    const covered = basis.coverage.find(symbol)
    return covered && rwaReading(covered, basis.getReading(covered.symbol, covered.chain))
  }
  const brokers = openBrokers({
    db,
    clock,
    calendar: { marketState, nextOpen, lastSession },
    readBasis: basisReading,
    settings: brokerSettings(config),
  })

  const brokerage = createBrokerage({
    db,
    clock,
    ids,
    venues: createVenues(brokers.venues),
    policies: loadDefaultPolicies(),
    idempotency,
    approvalWindowSeconds: config.RH_APPROVAL_WINDOW_SECONDS,
    findPolicy: async (caller, policyId) => {
      const found = await governance.policies.find(caller, policyId)
      if (!found) return undefined
      const { id, name, status, mode, agent_id: agentId, key_id: keyId, content_hash: contentHash } = found
      return { id, name, status, mode, agentId, keyId, contentHash, constraints: found.constraints }
    },
    isFrozen: async (tenantId, agentId) => (await frozen(tenantId, agentId)) !== undefined,
    basisReading,
    wake: () => jobs.wake('brokerage'),
    sign: (bytes) => ({ alg: 'ed25519', keyId: signer.keyId, value: signer.sign(bytes).toString('base64') }),
    emit: outbox.emit,
    audit: outbox.audit,
    postLedger: ledger.post,
    // The public log commits to the receipt by its hash and tells nothing of the trade.
    issueReceipt: receipts.issueCommitment,
    coinbase: brokers.coinbase,
  })

  const oauth = createOauth({
    db,
    clock,
    // Made here while developing; in production a linked account may not hang on a key that nobody keeps.
    keys: config.NODE_ENV === 'production' && !config.ENCRYPTION_KEY ? undefined : keys,
    settings: {
      clientId: config.RH_OAUTH_CLIENT_ID,
      clientSecret: config.RH_OAUTH_CLIENT_SECRET,
      redirectUri: config.RH_OAUTH_REDIRECT_URI,
      authorizeUrl: config.RH_OAUTH_AUTHORIZE_URL ?? 'https://robinhood.com/oauth',
      scope: config.RH_OAUTH_SCOPE ?? 'read',
      mode: config.RH_OAUTH_MODE === 'strict' ? 'strict' : 'scaffold',
    },
    exchange: createTokenExchange(config.RH_OAUTH_TOKEN_URL ?? 'https://api.robinhood.com/oauth2/token/'),
  })

  return {
    brokerage,
    routes(app: App) {
      brokerageRoutes(app, brokerage)
      oauthRoutes(app, oauth)
    },
    start() {
      jobs.every('brokerage', SWEEP_MS, brokerage.sweep)
      jobs.every('paper-brokers', SWEEP_MS, brokers.advance)
    },
  }
}

/** A real broker is off until it has credentials and a tenant whose account it is. */
function brokerSettings(config: Config): BrokerSettings {
  const {
    ALPACA_KEY_ID,
    ALPACA_SECRET_KEY,
    ROBINHOOD_API_KEY,
    ROBINHOOD_PRIVATE_KEY,
    COINBASE_KEY_NAME,
    COINBASE_PRIVATE_KEY,
  } = config
  return {
    tenants: config.BROKER_TENANTS ?? [],
    ...(ALPACA_KEY_ID &&
      ALPACA_SECRET_KEY && {
        alpaca: {
          keyId: ALPACA_KEY_ID,
          secretKey: ALPACA_SECRET_KEY,
          baseUrl: config.ALPACA_TRADING_URL ?? 'https://api.alpaca.markets',
          dataUrl: config.ALPACA_DATA_URL ?? 'https://data.alpaca.markets',
        },
      }),
    ...(ROBINHOOD_API_KEY &&
      ROBINHOOD_PRIVATE_KEY && {
        robinhood: {
          apiKey: ROBINHOOD_API_KEY,
          privateKey: ROBINHOOD_PRIVATE_KEY,
          baseUrl: config.ROBINHOOD_URL ?? 'https://trading.robinhood.com',
        },
      }),
    ...(COINBASE_KEY_NAME &&
      COINBASE_PRIVATE_KEY && {
        coinbase: {
          keyName: COINBASE_KEY_NAME,
          privateKey: COINBASE_PRIVATE_KEY,
          baseUrl: config.COINBASE_URL ?? 'https://api.coinbase.com',
        },
      }),
  }
}
