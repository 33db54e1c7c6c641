import type { Selectable } from 'kysely'
import type { Tx } from '../../../platform/db.ts'
import type { Policies } from '../../../platform/generated/db.ts'
import type { Budget, BudgetScope, OnBreach } from '../counters/evaluate-budget.ts'
import type { BudgetWindow } from '../counters/windows.ts'
import type { IdentityType, Policy } from './evaluate-policy.ts'
import type { Constraints } from './policy-constraints.ts'
import type { Rule } from './policy-rules.ts'
import type { Mode } from './rule-result.ts'

/** A tenant's active policies and budgets at one rules version. */
export type TenantRules = {
  version: bigint
  policies: readonly Policy[]
  budgets: readonly Budget[]
  /** The tenant's keys at that version. A newer key may be the rotated successor of a key that a policy is for. */
  keyIds: ReadonlySet<string>
  /** About how much memory they take. */
  bytes: number
}

/** The version is read first: if the rules change in between, the stale version makes admission fail and retry. */
export async function readRules(tx: Tx, tenantId: string): Promise<TenantRules> {
  const version = await tx
    .selectFrom('governance_versions')
    .select('version')
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst()
  const [policies, budgets, keys] = await Promise.all([
    tx
      .selectFrom('policies')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('status', '=', 'active')
      .orderBy('id')
      .execute(),
    readBudgets(tx, tenantId),
    readKeys(tx, tenantId),
  ])
  return {
    version: version?.version ?? 0n,
    policies: policies.map((row) => toPolicy(row, keys)),
    budgets,
    keyIds: new Set(keys.map((key) => key.id)),
    bytes: policies.reduce((sum, { constraints, rules }) => sum + JSON.stringify([constraints, rules]).length, 1_000),
  }
}

export type KeyLink = { id: string; replaced_by: string | null }

export const readKeys = (tx: Tx, tenantId: string): Promise<KeyLink[]> =>
  tx.selectFrom('api_keys').select(['id', 'replaced_by']).where('tenant_id', '=', tenantId).execute()

/** The key and its rotated successors. */
export function keySuccessors(keyId: string, keys: readonly KeyLink[]): Set<string> {
  const next = new Map(keys.map((key) => [key.id, key.replaced_by]))
  const keyIds = new Set<string>()
  for (let id: string | null | undefined = keyId; id && !keyIds.has(id); id = next.get(id)) keyIds.add(id)
  return keyIds
}

export function toPolicy(row: Selectable<Policies>, keys: readonly KeyLink[]): Policy {
  const { id, version, content_hash, name, agent_id, key_id, key_prefix, audit_trail_required } = row
  return {
    id,
    version,
    content_hash,
    name,
    mode: row.mode as Mode,
    identity_type: row.identity_type as IdentityType,
    agent_id,
    key_id,
    key_prefix,
    audit_trail_required,
    constraints: row.constraints as Constraints,
    rules: row.rules as Rule[],
    keyIds: key_id === null ? new Set() : keySuccessors(key_id, keys),
  }
}

async function readBudgets(tx: Tx, tenantId: string): Promise<Budget[]> {
  const rows = await tx
    .selectFrom('budgets')
    .innerJoin('limit_definitions', 'limit_definitions.scope', 'budgets.scope')
    .select([
      'budgets.budget_id',
      'budgets.scope',
      'budgets.scope_type',
      'budgets.scope_id',
      'budgets.window',
      'budgets.on_breach',
      'limit_definitions.limit_micro',
      'limit_definitions.soft_limit_micro',
      'limit_definitions.thresholds_micro',
    ])
    .where('budgets.tenant_id', '=', tenantId)
    .orderBy('budgets.budget_id')
    .execute()
  return rows.map((row) => ({
    budgetId: row.budget_id,
    scope: row.scope,
    scopeType: row.scope_type as BudgetScope,
    scopeId: row.scope_id,
    window: row.window as BudgetWindow,
    limitMicro: row.limit_micro,
    softLimitMicro: row.soft_limit_micro,
    onBreach: row.on_breach as OnBreach,
    emitsThresholdEvents: row.thresholds_micro.length > 0,
  }))
}
