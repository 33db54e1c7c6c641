import type { Db } from '../../platform/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { budgetWindows, endOf, periodOf } from '../governance/counters/windows.ts'
import type { Finding } from './alerts.ts'
import { readWatchedBudgets, saveHistories, type WatchedBudget } from './budget-watch.store.ts'
import { addSample, type Forecast, forecastExhaustion } from './forecast.ts'

/** A budget's current use, and when it will be exhausted at the present pace. */
export type BudgetOutlook = {
  budget: WatchedBudget
  usedMicro: bigint
  resetsAt: Date | null
  forecast: Forecast | undefined
  prospect: BudgetProspect
}

export const budgetProspects = [
  'used_up',
  'below_one_run',
  'runs_out',
  'may_run_out',
  'lasts',
  'no_spending',
  'too_little_history',
] as const
export type BudgetProspect = (typeof budgetProspects)[number]

const SAMPLE_INTERVAL_MS = 5_000
const MAX_BUDGETS = 20_000
// A forecast further ahead than this raises no alert, because too much can change until then.
const HORIZON_MS = 7 * 24 * 3_600_000
const CRITICAL_MS = 3_600_000

// A budget used to this share is at risk, whatever the pace.
const AT_RISK_PERCENT = 80n

/** All budgets of a tenant, or those of all tenants that are being used. */
export async function readOutlooks(
  db: Db,
  now: Date,
  { tenantId, cheapestRunMicro = 0n }: { tenantId?: string; cheapestRunMicro?: bigint } = {},
): Promise<BudgetOutlook[]> {
  const periods = Object.fromEntries(
    budgetWindows.flatMap((window) => (window === 'run' ? [] : [[window, periodOf(window, now)]])),
  )
  const budgets = await readWatchedBudgets(db, periods, MAX_BUDGETS, tenantId)
  return budgets.map((budget) => toOutlook(budget, now, cheapestRunMicro))
}

function toOutlook(budget: WatchedBudget, now: Date, cheapestRunMicro: bigint): BudgetOutlook {
  const usedMicro = budget.spent_micro + budget.reserved_micro
  const history = budget.history_period === budget.period ? budget.samples : []
  // The present moment is a sample too: an hour without spending is part of the pace.
  const samples = [...history.filter(([at]) => at < now.getTime()), [now.getTime(), usedMicro] as const]
  const resetsAt = endOf(budget.window, now)
  const forecast = forecastExhaustion(samples, budget.limit_micro, now)
  const prospect = findProspect({ budget, usedMicro, resetsAt, forecast, cheapestRunMicro })
  return { budget, usedMicro, resetsAt, forecast, prospect }
}

/** What can be said of a budget in one word. A forecast whose interval reaches past the reset is no certainty. */
export function findProspect({
  budget,
  usedMicro,
  resetsAt,
  forecast,
  cheapestRunMicro,
}: Omit<BudgetOutlook, 'prospect'> & { cheapestRunMicro: bigint }): BudgetProspect {
  const remainingMicro = budget.limit_micro - usedMicro
  if (remainingMicro <= 0n) return 'used_up'
  if (budget.applies_to.includes('runs') && remainingMicro < cheapestRunMicro) return 'below_one_run'
  if (!forecast) return usedMicro === 0n ? 'no_spending' : 'too_little_history'
  const isBeforeReset = (at: Date | null) => at !== null && (resetsAt === null || at < resetsAt)
  if (isBeforeReset(forecast.latest)) return 'runs_out'
  return isBeforeReset(forecast.exhaustedAt) || isBeforeReset(forecast.earliest) ? 'may_run_out' : 'lasts'
}

export function isAtRisk({ budget, usedMicro, resetsAt, forecast, prospect }: BudgetOutlook): boolean {
  if (prospect === 'used_up' || prospect === 'below_one_run') return true
  if (usedMicro * 100n >= budget.limit_micro * AT_RISK_PERCENT) return true
  return forecast !== undefined && (resetsAt === null || forecast.exhaustedAt < resetsAt)
}

/** Saves a sample of each counter that changed; later forecasts are computed from these samples. */
export async function sampleBudgets(db: Db, outlooks: readonly BudgetOutlook[], now: Date) {
  const histories = outlooks.flatMap(({ budget, usedMicro }) => {
    const history = budget.history_period === budget.period ? budget.samples : []
    const lastSample = history.at(-1)
    const unchanged = lastSample && (lastSample[1] === usedMicro || now.getTime() - lastSample[0] < SAMPLE_INTERVAL_MS)
    if (unchanged) return []
    return [{ scope: budget.scope, period: budget.period, samples: addSample(history, [now.getTime(), usedMicro]) }]
  })
  if (histories.length > 0) await saveHistories(db, histories, now)
}

/** A warning when the budget will be exhausted before its window ends; critical within an hour, or when it is exhausted. */
export function toBudgetFinding(outlook: BudgetOutlook, now: Date): Finding | undefined {
  const { budget, usedMicro, resetsAt, forecast } = outlook
  if (!forecast) return undefined
  const msUntilExhausted = forecast.exhaustedAt.getTime() - now.getTime()
  if (resetsAt && forecast.exhaustedAt >= resetsAt) return undefined
  if (msUntilExhausted > HORIZON_MS) return undefined
  const exhausted = usedMicro >= budget.limit_micro
  return {
    tenantId: budget.tenant_id,
    severity: msUntilExhausted <= CRITICAL_MS ? 'critical' : 'warning',
    type: 'budget_exhaustion',
    message: exhausted
      ? `Budget '${budget.budget_id}' is used up.`
      : `Budget '${budget.budget_id}' will be used up at about ${forecast.exhaustedAt.toISOString()} at the present pace.`,
    data: { ...toOutlookRecord(outlook) },
    cause: `budget_exhaustion:${budget.budget_id}:${budget.period}`,
  }
}

export const toOutlookRecord = (outlook: BudgetOutlook) => {
  const { budget, usedMicro, resetsAt, forecast, prospect } = outlook
  return {
    budget_id: budget.budget_id,
    scope: { type: budget.scope_type, id: budget.scope_id },
    window: budget.window,
    limit_usdc: usdcFromMicro(budget.limit_micro),
    spent_usdc: usdcFromMicro(budget.spent_micro),
    reserved_usdc: usdcFromMicro(budget.reserved_micro),
    remaining_usdc: usdcFromMicro(budget.limit_micro > usedMicro ? budget.limit_micro - usedMicro : 0n),
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
    at_risk: isAtRisk(outlook),
    prospect,
  }
}
