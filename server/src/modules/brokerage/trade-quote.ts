import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Db } from '../../platform/db.ts'
import { notFound, unavailable } from '../../platform/problem.ts'
import { numberFromE8, type RwaReading } from './broker.ts'
import { findRun } from './brokerage.store.ts'
import { distanceToLiquidationBps, liquidationPriceE8 } from './liquidation-price.ts'
import { isUuid, type TradeRun } from './trade-run-record.ts'
import { signedDriftBps, touchPriceE8 } from './trade-terms.ts'
import type { Venues } from './venues.ts'

export type RunQuoteDeps = {
  db: Db
  venues: Venues
  readBasis(symbol: string): Promise<RwaReading | undefined>
}

/** GET /api/rh/runs/:id/quote: the market of one run now, beside what it was when the run was asked for. */
export const createReadRunQuote =
  ({ db, venues, readBasis }: RunQuoteDeps) =>
  async (caller: Pick<TenantCaller, 'tenantId'>, id: string) => {
    const run = isUuid(id) ? await findRun(db, caller.tenantId, id) : undefined
    if (!run) throw notFound('run')
    const { terms } = run
    const [result, reading] = await Promise.all([
      venues.byId(run.broker)?.quote(terms.type, terms.symbol),
      terms.type === 'rwa' ? readBasis(terms.symbol) : undefined,
    ])
    if (!result?.ok) throw unavailable(`No price from ${run.broker} at the moment.`)
    const { quote } = result
    const liquidationE8 = liquidationOf(run)
    return {
      run_id: run.id,
      price: numberFromE8(touchPriceE8(terms.orderSide, quote)),
      mark: numberFromE8(quote.markE8),
      source: quote.source,
      observed_at: quote.observedAt.toISOString(),
      session: quote.session,
      next_open: quote.nextOpen?.toISOString() ?? null,
      halted: quote.halted,
      price_when_asked: numberFromE8(terms.quotePriceE8),
      asked_at: terms.quotedAt.toISOString(),
      drift_bps: signedDriftBps(terms, quote),
      max_drift_bps: terms.maxDriftBps,
      liquidation_price: liquidationE8 === null ? null : numberFromE8(liquidationE8),
      distance_to_liq_pct:
        liquidationE8 === null ? null : distanceToLiquidationBps(quote.markE8, liquidationE8) / 10_000,
      basis_bps: reading?.basisBps ?? null,
      basis_when_asked_bps: terms.basisBps,
    }
  }

export type RunQuote = Awaited<ReturnType<ReturnType<typeof createReadRunQuote>>>

/** Of a perp on the terms that were asked for; null for anything else. */
const liquidationOf = ({ terms, instrument }: TradeRun): bigint | null =>
  terms.type === 'perp'
    ? liquidationPriceE8({
        direction: terms.orderSide === 'buy' ? 'long' : 'short',
        entryPriceE8: terms.quotePriceE8,
        leverageE2: terms.leverageE2 ?? 100n,
        maintenanceMarginBps: instrument.perp?.maintenanceMarginBps ?? 0,
      })
    : null
