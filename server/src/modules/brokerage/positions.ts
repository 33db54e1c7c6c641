import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { unavailable } from '../../platform/problem.ts'
import { averagePriceE8, type BrokerAccount, numberFromE8 } from './broker.ts'
import type { Venues } from './venues.ts'

/** GET /api/rh/positions: cash, buying power and positions at each broker the tenant can reach. */
export const createReadPositions =
  ({ clock, venues }: { clock: Clock; venues: Venues }) =>
  async (caller: TenantCaller) => {
    const brokers = venues.listFor(caller.tenantId)
    const results = await Promise.all(
      brokers.map(async (broker) => ({ broker, result: await broker.account(caller.tenantId) })),
    )
    const silent = results.filter(({ result }) => !result.ok).map(({ broker }) => broker.id)
    if (silent.length > 0) throw unavailable(`No answer from ${silent.join(', ')} at the moment.`)
    return {
      as_of: clock.now().toISOString(),
      accounts: results.flatMap(({ broker, result }) =>
        result.ok ? [toAccountResponse(broker.id, broker.mode, result.account)] : [],
      ),
    }
  }

const toAccountResponse = (broker: string, mode: string, account: BrokerAccount) => ({
  broker,
  mode,
  currency: account.currency,
  cash_usdc: usdcFromMicro(account.cashMicro),
  unsettled_usdc: usdcFromMicro(account.unsettledMicro),
  held_usdc: usdcFromMicro(account.heldMicro),
  buying_power_usdc: usdcFromMicro(account.buyingPowerMicro),
  equity_usdc: usdcFromMicro(account.equityMicro),
  positions: account.positions.map((position) => ({
    instrument_type: position.type,
    symbol: position.symbol,
    quantity: numberFromE8(position.quantityE8),
    cost_usdc: usdcFromMicro(position.costMicro),
    avg_price: numberFromE8(averagePriceE8(position.costMicro, position.quantityE8)),
    margin_usdc: usdcFromMicro(position.marginMicro),
    leverage: position.leverageE2 === null ? null : Number(position.leverageE2) / 100,
    liquidation_price: position.liquidationPriceE8 === null ? null : numberFromE8(position.liquidationPriceE8),
    locked_until: position.lockedUntil?.toISOString() ?? null,
  })),
})
