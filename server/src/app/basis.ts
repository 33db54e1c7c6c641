import { sql } from 'kysely'
import { createConfiguredSources } from '../adapters/prices/configured-sources.ts'
import { createHttpFetch } from '../adapters/prices/http-fetch.ts'
import { createAttestationSigners } from '../modules/basis/attestation-signers.ts'
import { basisRoutes } from '../modules/basis/basis.routes.ts'
import { createBasis } from '../modules/basis/basis.ts'
import { loadCoverage } from '../modules/basis/coverage.ts'
import type { Receipts } from '../modules/receipts/receipts.ts'
import type { Authenticate } from '../platform/auth-context.ts'
import type { Tx } from '../platform/db.ts'
import type { App } from '../platform/http-app.ts'
import type { AppContext, Limits } from './context.ts'
import type { Pruning } from './retention.ts'

const ROUND_MS = 5_000

export async function composeBasis(context: AppContext, receipts: Receipts) {
  const { config, db, clock, notifications, keys, ids } = context

  /** A market event belongs to no tenant, so it goes to every tenant with a subscription for it. */
  const emit = async (tx: Tx, event: { type: string; data: Record<string, unknown>; at: Date }) => {
    const { rows } = await sql<{ tenant_id: string }>`
      select distinct tenant_id from webhook_subscriptions
      where is_active and deleted_at is null and events && ${[event.type, '*']}::text[]`.execute(tx)
    for (const { tenant_id } of rows) await context.outbox.emit(tx, { tenantId: tenant_id, ...event })
  }

  const basis = createBasis({
    db,
    clock,
    notifications,
    coverage: loadCoverage(config.BASIS_COVERAGE_FILE),
    sources: createConfiguredSources({
      pythUrl: config.PYTH_HERMES_URL,
      pythApiKey: config.PYTH_API_KEY,
      baseRpcUrl: config.BASE_RPC_URL,
      xstocksUrl: config.XSTOCKS_API_URL,
      coinbaseStocksUrl: config.COINBASE_STOCKS_URL,
      solanaRpcUrl: config.SOLANA_RPC_URL,
      jupiterUrl: config.JUPITER_API_URL,
      jupiterApiKey: config.JUPITER_API_KEY,
      alpacaDataUrl: config.ALPACA_DATA_URL,
      alpacaTradingUrl: config.ALPACA_TRADING_URL,
      alpacaKeyId: config.ALPACA_KEY_ID,
      alpacaSecretKey: config.ALPACA_SECRET_KEY,
    }),
    fetch: createHttpFetch({ clock }),
    signers: createAttestationSigners(keys),
    entries: receipts,
    holder: ids.next('ing'),
    emit,
  })
  if (basis.hasSources) await basis.reload()

  return {
    basis,
    routes: (app: App, authenticate: Authenticate, limits: Limits) =>
      basisRoutes(app, { basis, authenticate, metered: false, limits }),
    start(pruning: Pruning) {
      if (basis.hasSources) context.jobs.every('basis', ROUND_MS, basis.runIngestRound)
      pruning.every('basis-prune', basis.prune)
    },
  }
}
