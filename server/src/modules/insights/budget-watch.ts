import type { Db } from '../../platform/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { budgetWindows, endOf, periodOf } from '../governance/windows.ts'
import type { Finding } from './alerts.ts'
import { keepHistories, readWatchedBudgets, type WatchedBudget } from './budget-watch.store.ts'
import { addSample, type Forecast, forecastExhaustion } from './forecast.ts'

/** A budget as it stands, and when it will be used up if spending goes on as it did. */
export type BudgetOutlook = {
  budget: WatchedBudget
  takenMicro: bigint
  resetsAt: Date | null
  forecast: Forecast | undefined
}

const SAMPLE_EVERY_MS = 5_000
const MOST_BUDGETS = 20_000
// Beyond this nobody is warned: so much can change until then.
const HORIZON_MS = 7 * 24 * 3_600_000
const CRITICAL_MS = 3_600_000

export async function readOutlooks(db: Db, now: Date, tenantId?: string): Promise<BudgetOutlook[]> {
  const periods = Object.fromEntries(
    budgetWindows.flatMap((window) => (window === 'run' ? [] : [[window, periodOf(window, now)]])),
  )
  const budgets = await readWatchedBudgets(db, periods, MOST_BUDGETS, tenantId)
  return budgets.map((budget) => outlookOf(budget, now))
}

function outlookOf(budget: WatchedBudget, now: Date): BudgetOutlook {
  const takenMicro = budget.spent_micro + budget.reserved_micro
  const history = budget.history_period === budget.period ? budget.samples : []
  // The present moment counts too: an hour in which nothing was spent is part of the pace.
  const samples = [...history.filter(([at]) => at < now.getTime()), [now.getTime(), takenMicro] as const]
  return {
    budget,
    takenMicro,
    resetsAt: endOf(budget.window, now),
    forecast: forecastExhaustion(samples, budget.limit_micro, now),
  }
}

/** Writes down how the counters stand, where they moved: the history that the next forecasts rest on. */
export async function sampleBudgets(db: Db, outlooks: readonly BudgetOutlook[], now: Date) {
  const moved = outlooks.flatMap(({ budget, takenMicro }) => {
    const history = budget.history_period === budget.period ? budget.samples : []
    const last = history.at(-1)
    const still = last && (last[1] === takenMicro || now.getTime() - last[0] < SAMPLE_EVERY_MS)
    if (still) return []
    return [{ scope: budget.scope, period: budget.period, samples: addSample(history, [now.getTime(), takenMicro]) }]
  })
  if (moved.length > 0) await keepHistories(db, moved, now)
}

/** A warning when a budget is about to run out before its window ends; critical within the hour, or when it is gone. */
export function findingOf({ budget, takenMicro, resetsAt, forecast }: BudgetOutlook, now: Date): Finding | undefined {
  if (!forecast) return undefined
  const left = forecast.exhaustedAt.getTime() - now.getTime()
  if (resetsAt && forecast.exhaustedAt >= resetsAt) return undefined
  if (left > HORIZON_MS) return undefined
  const gone = takenMicro >= budget.limit_micro
  return {
    tenantId: budget.tenant_id,
    severity: left <= CRITICAL_MS ? 'critical' : 'warning',
    type: 'budget_exhaustion',
    message: gone
      ? `Budget '${budget.budget_id}' is used up.`
      : `Budget '${budget.budget_id}' will be used up at about ${forecast.exhaustedAt.toISOString()} at the present pace.`,
    data: { ...outlookRecord({ budget, takenMicro, resetsAt, forecast }) },
    cause: `budget_exhaustion:${budget.budget_id}:${budget.period}`,
  }
}

export const outlookRecord = ({ budget, takenMicro, resetsAt, forecast }: BudgetOutlook) => ({
  budget_id: budget.budget_id,
  scope: { type: budget.scope_type, id: budget.scope_id },
  window: budget.window,
  limit_usdc: usdcFromMicro(budget.limit_micro),
  spent_usdc: usdcFromMicro(budget.spent_micro),
  reserved_usdc: usdcFromMicro(budget.reserved_micro),
  remaining_usdc: usdcFromMicro(budget.limit_micro > takenMicro ? budget.limit_micro - takenMicro : 0n),
  resets_at: resetsAt?.toISOString() ?? null,
  forecast: forecast
    ? {
        rate_usdc_per_hour: usdcFromMicro(forecast.ratePerHourMicro),
        exhausted_at: forecast.exhaustedAt.toISOString(),
        earliest: forecast.earliest.toISOString(),
        latest: forecast.latest?.toISOString() ?? null,
        confidence: 0.9,
      }
    : null,
})
