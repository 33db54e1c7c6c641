import { createTokenExchange } from '../adapters/brokers/oauth-token-exchange.ts'
import { type BrokerSettings, openBrokers } from '../adapters/brokers/open-brokers.ts'
import type { Basis } from '../modules/basis/basis.ts'
import { lastSession, marketState, nextOpen } from '../modules/basis/calendar.ts'
import { createBrokerage } from '../modules/brokerage/brokerage.ts'
import { cbReceiptsRoutes } from '../modules/brokerage/cb-receipts.routes.ts'
import { hasActivePaperAccounts, tradesDue } from '../modules/brokerage/due-work.ts'
import { rhRoutes } from '../modules/brokerage/rh.routes.ts'
import { rhAuthRoutes } from '../modules/brokerage/rh-auth.routes.ts'
import { createRhAuth } from '../modules/brokerage/rh-auth.ts'
import { toRwaReading } from '../modules/brokerage/rwa-reading.ts'
import { loadDefaultPolicies } from '../modules/brokerage/trade-policies.ts'
import { createVenues } from '../modules/brokerage/venues.ts'
import type { Governance } from '../modules/governance/governance.ts'
import type { Ledger } from '../modules/ledger/ledger.ts'
import type { Receipts } from '../modules/receipts/receipts.ts'
import type { AwaitAudit } from '../platform/audit-link.ts'
import type { Config } from '../platform/config.ts'
import type { App } from '../platform/http-app.ts'
import type { AppContext } from './context.ts'
import type { Pruning } from './retention.ts'

export type BrokerageParts = {
  basis: Basis
  governance: Governance
  ledger: Ledger
  receipts: Receipts
  awaitAudit: AwaitAudit
}

export function composeBrokerage(context: AppContext, parts: BrokerageParts) {
  const { basis, governance, ledger, receipts, awaitAudit } = parts
  const { config, db, clock, ids, keys, log, idempotency, outbox, jobs } = context
  const signer = keys.signer('receipts')

  const readBasis = async (symbol: string) => {
    const wrapper = basis.coverage.find(symbol)
    return wrapper && toRwaReading(wrapper, basis.getReading(wrapper.symbol, wrapper.chain))
  }
  const brokers = openBrokers({
    db,
    clock,
    calendar: { marketState, nextOpen, lastSession },
    readBasis,
    readShare: basis.getPreviewShare,
    settings: readBrokerSettings(config),
  })

  const brokerage = createBrokerage({
    db,
    clock,
    ids,
    venues: createVenues(brokers.venues),
    policies: loadDefaultPolicies(),
    idempotency,
    approvalWindowSeconds: config.RH_APPROVAL_WINDOW_SECONDS,
    governance: governance.trades,
    log,
    contentDays: config.APPROVAL_CONTENT_DAYS,
    awaitAudit,
    readBasis,
    wake: () => jobs.wake('brokerage'),
    sign: (bytes) => ({ alg: 'ed25519', keyId: signer.keyId, value: signer.sign(bytes).toString('base64') }),
    emit: outbox.emit,
    audit: outbox.audit,
    postLedger: ledger.post,
    // The public log holds the receipt's hash and nothing about the trade.
    issueCommitment: receipts.issueCommitment,
    queueApprovalMessages: governance.queueTradeMessages,
    coinbase: brokers.coinbase,
  })

  const rhAuth = createRhAuth({
    db,
    clock,
    // In production tokens are encrypted only with a configured key, because a generated one may be lost.
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
      rhRoutes(app, brokerage)
      cbReceiptsRoutes(app, brokerage)
      rhAuthRoutes(app, rhAuth)
    },
    start(pruning: Pruning) {
      jobs.everyDue('brokerage', tradesDue, brokerage.sweep)
      jobs.everyDue('paper-brokers', hasActivePaperAccounts, brokers.advancePaperAccounts)
      pruning.every('trade-keys-tidy', brokerage.sweepKeys)
      pruning.every('trade-content-tidy', brokerage.pruneContent)
    },
  }
}

/** A live broker is off until it has credentials and a tenant that owns the account. */
function readBrokerSettings(config: Config): BrokerSettings {
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
