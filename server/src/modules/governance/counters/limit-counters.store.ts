import { sql } from 'kysely'
import { callStep } from '../../../platform/batch.ts'
import type { Db, Tx } from '../../../platform/db.ts'
import { groupReads } from '../../../platform/group-reads.ts'
import { defineLimitStep } from '../governance.steps.ts'
import type { CounterDemand, CounterState } from './limit-counters.ts'
import { exposureScope } from './limit-hold-item.ts'

export type CounterRow = CounterState & { scope: string; period: string }

type CounterKeys = readonly Pick<CounterDemand, 'scope' | 'period'>[]
/** `at` tells which slices of a rolling window still count. */
export type ReadCounters = (counters: CounterKeys, at: Date) => Promise<CounterRow[]>

/** The current state of these counters. A counter that is no longer defined is left out. */
export async function readCounters(tx: Tx, counters: CounterKeys, at: Date): Promise<CounterRow[]> {
  if (counters.length === 0) return []
  const scopes = counters.map((counter) => counter.scope)
  const periods = counters.map((counter) => counter.period)
  const { rows } = await sql<
    Record<'limit_micro' | 'spent_micro' | 'reserved_micro', bigint> & {
      scope: string
      period: string
      soft_limit_micro: bigint | null
    }
  >`
    select scope, period, limit_micro, soft_limit_micro, spent_micro, reserved_micro from counters(${scopes}::text[], ${periods}::text[], ${at})
  `.execute(tx)
  return rows.map((row) => ({
    scope: row.scope,
    period: row.period,
    limitMicro: row.limit_micro,
    softLimitMicro: row.soft_limit_micro,
    spentMicro: row.spent_micro,
    reservedMicro: row.reserved_micro,
  }))
}

/** Reads the counters of many assessments in one query. */
export function groupCounterReads(db: Db): ReadCounters {
  const readCounterSets = groupReads(async (sets: readonly { counters: CounterKeys; at: Date }[]) => {
    const keys = new Map(sets.flatMap(({ counters }) => counters).map((counter) => [counterKey(counter), counter]))
    const latest = new Date(Math.max(...sets.map(({ at }) => at.getTime())))
    const rows = new Map((await readCounters(db, [...keys.values()], latest)).map((row) => [counterKey(row), row]))
    return sets.map(({ counters }) => counters.flatMap((counter) => rows.get(counterKey(counter)) ?? []))
  })
  return async (counters, at) => (counters.length === 0 ? [] : (await readCounterSets({ counters, at }))!)
}

const counterKey = ({ scope, period }: CounterKeys[number]) => JSON.stringify([scope, period])

export async function defineLimit(
  tx: Tx,
  definition: {
    scope: string
    tenantId: string
    limitMicro: bigint
    softLimitMicro?: bigint | null
    enforced: boolean
    thresholdsMicro?: readonly bigint[]
    subject: Record<string, unknown>
  },
) {
  const { scope, tenantId, limitMicro, softLimitMicro = null, enforced, thresholdsMicro = [], subject } = definition
  const item = {
    scope,
    tenant_id: tenantId,
    limit_micro: limitMicro.toString(),
    soft_limit_micro: softLimitMicro?.toString() ?? null,
    enforced,
    thresholds_micro: thresholdsMicro.map(String),
    subject,
  }
  await callStep(tx, defineLimitStep, item)
}

export const removeLimits = (tx: Tx, scopes: readonly string[]) =>
  scopes.length === 0
    ? Promise.resolve()
    : tx
        .deleteFrom('limit_definitions')
        .where('scope', 'in', scopes)
        .execute()
        .then(() => {})

/** Increments the tenant's rules version; called in the transaction that changes the rules. */
export const markRulesChanged = (tx: Tx, tenantId: string) => sql`select rules_changed(${tenantId})`.execute(tx)

/** What the runs of a payer have settled so far; zero when it has had none for a while. Many payers are read in one query. */
export function groupSettledReads(db: Db): (payer: string) => Promise<bigint> {
  const readSettled = groupReads(async (payers: readonly string[]) => {
    const rows = await db
      .selectFrom('limits')
      .select(['scope', 'spent_micro'])
      .where('scope', 'in', [...new Set(payers)].map(exposureScope))
      .where('period', '=', 'open')
      .execute()
    const settled = new Map(rows.map((row) => [row.scope, row.spent_micro]))
    return payers.map((payer) => settled.get(exposureScope(payer)))
  })
  return async (payer) => (await readSettled(payer)) ?? 0n
}

/** Takes the lock that every step takes before it changes this counter. */
export const lockCounter = (tx: Tx, scope: string) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`limit:${scope}`}, 0))`.execute(tx)

export async function pruneEndedLimits(tx: Tx, endedBefore: Date, maxRows: number): Promise<number> {
  const { rows } = await sql<{ deleted: number }>`
    select prune_ended_limits(${endedBefore}, ${maxRows}) as deleted`.execute(tx)
  return rows[0]!.deleted
}

export async function pruneExposureLimits(tx: Tx, maxRows: number): Promise<number> {
  const { rows } = await sql<{ deleted: number }>`select prune_exposure_limits(${maxRows}) as deleted`.execute(tx)
  return rows[0]!.deleted
}
