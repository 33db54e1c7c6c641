import { sql } from 'kysely'
import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db.ts'
import type { Idempotency, IdempotentResponse } from '../../../platform/idempotency.ts'
import type { Ids } from '../../../platform/ids.ts'
import { microFromUsdc, roundingHint, usdcFromMicro } from '../../../platform/money.ts'
import type { Outbox } from '../../../platform/outbox.ts'
import { conflict, invalid, notFound } from '../../../platform/problem.ts'
import type { PaymentClass } from '../assess/payment-facts.ts'
import { findMandate } from '../grants/grants.store.ts'
import { lockRules, requireRoomForBudget, withCounterLimit } from '../rules/rule-limits.ts'
import { readKeys } from '../rules/rules-cache.store.ts'
import type { RulesCache } from '../rules/rules-cache.ts'
import { requireTag } from '../rules/selector.ts'
import {
  type BudgetRow,
  countBudgets,
  findBudget,
  listBudgets,
  listChildren,
  removeBudget,
  writeBudget,
} from './budgets.store.ts'
import { type BudgetScope, budgetCounter, type OnBreach } from './evaluate-budget.ts'
import { defineLimit, lockCounter, markRulesChanged, readCounters, removeLimits } from './limit-counters.store.ts'
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
  applies_to?: PaymentClass[]
  parent_id?: string
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
      now,
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
          applies_to: row.applies_to,
          parent_id: row.parent_id,
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
          ...(budget.parentId !== null && { parent_id: budget.parentId }),
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
            applies_to: budget.appliesTo,
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
        await lockRules(tx, tenantId)
        await lockCounter(tx, counter)
        const children = await listChildren(tx, tenantId, budgetId)
        if (children.length > 0)
          throw conflict(
            `The budget '${budgetId}' is the parent of ${children.slice(0, 5).join(', ')}; delete them first.`,
          )
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
  appliesTo: PaymentClass[]
  parentId: string | null
}

/** A budget and its parents are at most so many levels. */
const MAX_LEVELS = 4
const defaultAppliesTo: PaymentClass[] = ['runs', 'payments', 'spend']

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
  if (scopeType === 'tag') requireTag('body/scope/id', scopeId)
  if (scopeType === 'spender' && scopeId.startsWith('key:'))
    throw invalid("body/scope/id must not begin with 'key:'; use the scope type 'key'.")
  if (scopeType === 'key' && !(await readKeys(tx, tenantId)).some((key) => key.id === scopeId))
    throw invalid('body/scope/id is not a key of this tenant.')
  const parentId = existingBudget ? existingBudget.parent_id : (input.parent_id ?? null)
  if (input.parent_id !== undefined && input.parent_id !== parentId)
    throw invalid(`The parent of the budget '${input.budget_id}' cannot be changed; make another budget.`)
  if (parentId !== null && !existingBudget) await requireParent(tx, tenantId, parentId)
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
    appliesTo: input.applies_to ?? existingBudget?.applies_to ?? defaultAppliesTo,
    parentId,
  }
}

async function requireParent(tx: Tx, tenantId: string, parentId: string): Promise<void> {
  let levels = 1
  for (let id: string | null = parentId; id !== null; levels += 1) {
    const parent = await findBudget(tx, tenantId, id)
    if (!parent) throw invalid(`There is no budget '${id}' to be the parent.`)
    id = parent.parent_id
  }
  if (levels > MAX_LEVELS)
    throw invalid(`body/parent_id: a budget and its parents may be ${MAX_LEVELS} levels at most.`)
}

/** The limit cannot be lower than what is spent and reserved in the window that lasts. */
async function requireRoom(tx: Tx, counter: string, budget: BudgetSettings, at: Date): Promise<void> {
  const period = periodOf(counterWindow(budget.window), at)
  const { rows } = await sql<{ used: bigint }>`select counter_use(${counter}, ${period}, ${at}) as used`.execute(tx)
  const usedMicro = rows[0]!.used
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
  if (value === undefined)
    throw invalid(`body/${name} must be a non-negative amount with at most six decimals.${roundingHint(usdc)}`)
  return value
}
