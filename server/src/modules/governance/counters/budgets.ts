import { sql } from 'kysely'
import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db.ts'
import type { Idempotency, IdempotentResponse } from '../../../platform/idempotency.ts'
import type { Ids } from '../../../platform/ids.ts'
import { microFromUsdc, usdcFromMicro } from '../../../platform/money.ts'
import type { Outbox } from '../../../platform/outbox.ts'
import { invalid, notFound } from '../../../platform/problem.ts'
import { findMandate } from '../grants/grants.store.ts'
import { lockRules, requireRoomForBudget, withCounterLimit } from '../rules/rule-limits.ts'
import type { RulesCache } from '../rules/rules-cache.ts'
import { type BudgetRow, countBudgets, findBudget, listBudgets, removeBudget, writeBudget } from './budgets.store.ts'
import { type BudgetScope, budgetCounter, type OnBreach } from './evaluate-budget.ts'
import { defineLimit, lockCounter, markRulesChanged, readCounters, removeLimits } from './limit-counters.store.ts'
import { usedOf } from './limit-counters.ts'
import { type BudgetWindow, endOf, periodOf } from './windows.ts'

export type BudgetsDeps = {
  db: Db
  clock: Clock
  ids: Ids
  outbox: Outbox
  idempotency: Idempotency
  rulesCache: Pick<RulesCache, 'invalidate'>
}

export type BudgetInput = {
  budget_id?: string
  scope?: { type: BudgetScope; id?: string }
  window?: BudgetWindow
  limit_usdc?: number
  soft_limit_usdc?: number | null
  on_breach?: OnBreach
  alert_thresholds?: number[]
  currency?: string
  idempotency_key?: string
}

const counterWindow = (window: BudgetWindow) => (window === 'run' ? 'total' : window)

export type Budgets = ReturnType<typeof createBudgets>

export function createBudgets(deps: BudgetsDeps) {
  const readConfig = async (tx: Tx, tenantId: string) => {
    const now = deps.clock.now()
    const rows = await listBudgets(tx, tenantId)
    const states = await readCounters(
      tx,
      rows.map(({ scope, window }) => ({ scope, period: periodOf(counterWindow(window), now) })),
    )
    const byScope = new Map(states.map((state) => [state.scope, state]))
    return {
      tenant_id: tenantId,
      currency: 'USDC' as const,
      budgets: rows.flatMap((row) => {
        const counter = byScope.get(row.scope)
        // The budget was deleted between the two reads.
        if (!counter) return []
        const { spentMicro, reservedMicro } = counter
        return {
          budget_id: row.budget_id,
          scope: { type: row.scope_type, id: row.scope_id },
          window: row.window,
          limit_usdc: usdcFromMicro(row.limit_micro),
          soft_limit_usdc: row.soft_limit_micro === null ? null : usdcFromMicro(row.soft_limit_micro),
          spent_usdc: usdcFromMicro(spentMicro),
          reserved_usdc: usdcFromMicro(reservedMicro),
          remaining_usdc: usdcFromMicro(row.limit_micro - spentMicro - reservedMicro),
          resets_at: endOf(counterWindow(row.window), now)?.toISOString() ?? null,
          on_breach: row.on_breach,
          alert_thresholds: row.alert_thresholds,
          version: row.version,
          created_at: row.created_at.toISOString(),
          updated_at: row.updated_at.toISOString(),
        }
      }),
    }
  }

  return {
    config: (tenant: TenantCaller) => readConfig(deps.db, tenant.tenantId),

    /** Creates a budget or changes its limits. Its scope and window cannot be changed. */
    async put(
      tenant: TenantCaller,
      input: BudgetInput,
      idempotencyKey: string | undefined,
    ): Promise<IdempotentResponse> {
      const { tenantId } = tenant
      const request = { scope: `tenant:${tenantId}`, route: 'POST /api/budgets', key: idempotencyKey, body: input }
      const response = await deps.idempotency.once(request, async (tx) => {
        const at = deps.clock.now()
        const budgetId = input.budget_id ?? deps.ids.next('bud')
        const counter = budgetCounter(tenantId, budgetId)
        await lockRules(tx, tenantId)
        // While the counter is locked, nothing is held or settled in it until this commits.
        await lockCounter(tx, counter)
        const existingBudget = await findBudget(tx, tenantId, budgetId)
        if (!existingBudget) requireRoomForBudget(await countBudgets(tx, tenantId))
        const budget = await readBudget(tx, tenantId, input, existingBudget)
        await requireRoom(tx, counter, budget, at)
        const subject = {
          budget_id: budgetId,
          scope: { type: budget.scopeType, id: budget.scopeId },
          window: budget.window,
        }
        await defineLimit(tx, {
          scope: counter,
          tenantId,
          limitMicro: budget.limitMicro,
          softLimitMicro: budget.softLimitMicro,
          enforced: true,
          thresholdsMicro: budget.window === 'run' ? [] : toThresholds(budget),
          subject,
        })
        const version = (existingBudget?.version ?? 0) + 1
        await withCounterLimit(tx, tenantId, () =>
          writeBudget(tx, { tenantId, budgetId, counter, ...budget, version, at }),
        )
        await markRulesChanged(tx, tenantId)
        await deps.outbox.audit(tx, {
          tenantId,
          type: existingBudget ? 'budget.updated' : 'budget.created',
          actor: tenant.keyId,
          subject: budgetId,
          data: {
            ...subject,
            limit: budget.limitMicro.toString(),
            soft_limit: budget.softLimitMicro?.toString() ?? null,
            on_breach: budget.onBreach,
            version,
          },
          at,
        })
        return { status: 200, body: await readConfig(tx, tenantId) }
      })
      deps.rulesCache.invalidate(tenantId)
      return response
    },

    /** Open holds of the budget still settle; new payments are no longer counted. */
    async remove(tenant: TenantCaller, budgetId: string) {
      const { tenantId } = tenant
      const remainingConfig = await deps.db.transaction().execute(async (tx) => {
        const counter = budgetCounter(tenantId, budgetId)
        await lockCounter(tx, counter)
        if (!(await removeBudget(tx, tenantId, budgetId))) throw notFound('budget')
        await removeLimits(tx, [counter])
        await markRulesChanged(tx, tenantId)
        await deps.outbox.audit(tx, {
          tenantId,
          type: 'budget.deleted',
          actor: tenant.keyId,
          subject: budgetId,
          at: deps.clock.now(),
        })
        return readConfig(tx, tenantId)
      })
      deps.rulesCache.invalidate(tenantId)
      return remainingConfig
    },
  }
}

type BudgetSettings = {
  scopeType: BudgetScope
  scopeId: string
  window: BudgetWindow
  limitMicro: bigint
  softLimitMicro: bigint | null
  onBreach: OnBreach
  alertThresholds: number[]
}

async function readBudget(
  tx: Tx,
  tenantId: string,
  input: BudgetInput,
  existingBudget: BudgetRow | undefined,
): Promise<BudgetSettings> {
  if (input.currency !== undefined && input.currency !== 'USDC')
    throw invalid(`body/currency must be USDC, not '${input.currency}'.`)
  const scopeType = input.scope?.type ?? existingBudget?.scope_type ?? 'tenant'
  const scopeId =
    input.scope?.id ??
    (input.scope === undefined || input.scope.type === existingBudget?.scope_type
      ? existingBudget?.scope_id
      : undefined) ??
    (scopeType === 'tenant' ? tenantId : undefined)
  if (scopeId === undefined) throw invalid(`body/scope/id is required for the scope type '${scopeType}'.`)
  if (scopeType === 'tenant' && scopeId !== tenantId) throw invalid('body/scope/id is not this tenant.')
  if (scopeType === 'mandate' && !(await findMandate(tx, tenantId, scopeId)))
    throw invalid(`There is no mandate '${scopeId}'.`)
  const window = input.window ?? existingBudget?.window ?? 'month'
  if (
    existingBudget &&
    (existingBudget.scope_type !== scopeType || existingBudget.scope_id !== scopeId || existingBudget.window !== window)
  )
    throw invalid(
      `The budget '${existingBudget.budget_id}' counts by ${existingBudget.window} for the ${existingBudget.scope_type} '${existingBudget.scope_id}'; for another scope or window make another budget.`,
    )
  const limitMicro =
    input.limit_usdc === undefined ? existingBudget?.limit_micro : toMicro('limit_usdc', input.limit_usdc)
  if (limitMicro === undefined) throw invalid('body must have limit_usdc.')
  const softLimitMicro =
    input.soft_limit_usdc === undefined
      ? (existingBudget?.soft_limit_micro ?? null)
      : input.soft_limit_usdc === null
        ? null
        : toMicro('soft_limit_usdc', input.soft_limit_usdc)
  if (softLimitMicro !== null && softLimitMicro > limitMicro) throw invalid('body/soft_limit_usdc is above limit_usdc.')
  return {
    scopeType,
    scopeId,
    window,
    limitMicro,
    softLimitMicro,
    onBreach: input.on_breach ?? existingBudget?.on_breach ?? 'block',
    alertThresholds: input.alert_thresholds ?? existingBudget?.alert_thresholds ?? [],
  }
}

async function requireRoom(tx: Tx, counter: string, budget: BudgetSettings, at: Date): Promise<void> {
  const { rows } = await sql<{ spent_micro: bigint; reserved_micro: bigint }>`
    select spent_micro, reserved_micro from limits where scope = ${counter} and period = ${periodOf(counterWindow(budget.window), at)}
  `.execute(tx)
  const usedMicro = rows[0] ? usedOf({ spentMicro: rows[0].spent_micro, reservedMicro: rows[0].reserved_micro }) : 0n
  if (budget.limitMicro < usedMicro)
    throw invalid(
      `body/limit_usdc ${usdcFromMicro(budget.limitMicro)} is below what is spent and reserved already, ${usdcFromMicro(usedMicro)} USDC.`,
    )
}

/** Alert thresholds are shares of the limit: 0.8 and 80 both mean 80 %. The soft limit is a threshold too. */
function toThresholds({ limitMicro, softLimitMicro, alertThresholds }: BudgetSettings): bigint[] {
  const shares = alertThresholds.map((share) => BigInt(Math.round((share > 1 ? share / 100 : share) * 1_000_000)))
  const amounts = shares.map((millionths) => (limitMicro * millionths + 999_999n) / 1_000_000n)
  const all = new Set([...amounts, ...(softLimitMicro === null ? [] : [softLimitMicro])])
  return [...all].filter((amount) => amount > 0n).sort((a, b) => (a < b ? -1 : 1))
}

function toMicro(name: string, usdc: number): bigint {
  const value = microFromUsdc(usdc)
  if (value === undefined) throw invalid(`body/${name} must be a non-negative amount with at most six decimals.`)
  return value
}
