import type { Selectable } from 'kysely'
import type { Tx } from '../../../platform/db.ts'
import type { Mandates, Policies } from '../../../platform/generated/db.ts'
import { type KeyLineage, type KeyOrigin, readLineage } from '../../tenants/key-lineage.ts'
import type { PaymentClass } from '../assess/payment-facts.ts'
import type { Budget, BudgetScope, OnBreach } from '../counters/evaluate-budget.ts'
import type { BudgetWindow } from '../counters/windows.ts'
import { compareMandates, type Mandate, type MandateConstraint } from '../mandates/evaluate-mandate.ts'
import type { IdentityType, Policy } from './evaluate-policy.ts'
import type { Constraints } from './policy-constraints.ts'
import type { Rule } from './policy-rules.ts'
import type { Mode } from './rule-result.ts'
import type { Selector } from './selector.ts'

/** A tenant has at most so many mandates that are active and have not expired. */
export const MAX_MANDATES = 2_000

/** A tenant's active policies, budgets and mandates at one rules version. */
export type TenantRules = {
  version: bigint
  policies: readonly Policy[]
  budgets: readonly Budget[]
  /** In the order in which they are tried. Those that have not begun or have expired are told apart by the time of the payment. */
  mandates: readonly Mandate[]
  /** The tenant's keys at that version. A newer key may have been made by the key that a policy is for, or replace it. */
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
  const [policies, budgets, mandates, keys] = await Promise.all([
    tx
      .selectFrom('policies')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('status', '=', 'active')
      .orderBy('id')
      .execute(),
    readBudgets(tx, tenantId),
    tx
      .selectFrom('mandates')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('status', '=', 'active')
      // At most so many have not expired.
      .orderBy('expires_at', 'desc')
      .limit(MAX_MANDATES)
      .execute(),
    readKeys(tx, tenantId),
  ])
  const lineage = readLineage(keys)
  return {
    version: version?.version ?? 0n,
    policies: policies.map((row) => toPolicy(row, lineage)),
    budgets: budgets.map((row) => toBudget(row, lineage)),
    mandates: mandates.map((row) => toMandate(row, keys)).sort(compareMandates),
    keyIds: new Set(keys.map((key) => key.id)),
    bytes:
      policies.reduce((sum, { constraints, rules }) => sum + JSON.stringify([constraints, rules]).length, 1_000) +
      mandates.reduce((sum, { constraints }) => sum + JSON.stringify(constraints).length, 0),
  }
}

export type KeyLink = KeyOrigin

export const readKeys = (tx: Tx, tenantId: string): Promise<KeyLink[]> =>
  tx.selectFrom('api_keys').select(['id', 'created_by', 'replaced_by']).where('tenant_id', '=', tenantId).execute()

/** The key and its rotated successors. */
export function keySuccessors(keyId: string, keys: readonly KeyLink[]): Set<string> {
  const next = new Map(keys.map((key) => [key.id, key.replaced_by]))
  const keyIds = new Set<string>()
  for (let id: string | null | undefined = keyId; id && !keyIds.has(id); id = next.get(id)) keyIds.add(id)
  return keyIds
}

/** The keys that a rule about a key binds: its rotations and the keys that it made, or making a key would be a way around the rule. */
export const keysBoundBy = (keyId: string, lineage: KeyLineage): Set<string> =>
  new Set([...lineage.rotationsOf(keyId), ...lineage.keysMadeBy(keyId)])

export function toPolicy(row: Selectable<Policies>, lineage: KeyLineage): Policy {
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
    ...(row.identity_id !== null && { identity_id: row.identity_id }),
    audit_trail_required,
    ...(row.selectable && { selectable: true }),
    constraints: row.constraints as Constraints,
    rules: row.rules as Rule[],
    keyIds: key_id === null ? new Set() : keysBoundBy(key_id, lineage),
  }
}

export function toMandate(row: Selectable<Mandates>, keys: readonly KeyLink[]): Mandate {
  const { id, name, agent_id, holder_key_id, starts_at, expires_at } = row
  return {
    id,
    name,
    agent_id,
    holderKeyIds: holder_key_id === null ? null : keySuccessors(holder_key_id, keys),
    constraints: row.constraints as MandateConstraint[],
    status: row.status as Mandate['status'],
    starts_at,
    expires_at,
  }
}

const readBudgets = (tx: Tx, tenantId: string) =>
  tx
    .selectFrom('budgets')
    .innerJoin('limit_definitions', 'limit_definitions.scope', 'budgets.scope')
    .select([
      'budgets.budget_id',
      'budgets.parent_id',
      'budgets.scope',
      'budgets.scope_type',
      'budgets.scope_id',
      'budgets.applies_to',
      'budgets.window',
      'budgets.on_breach',
      'limit_definitions.limit_micro',
      'limit_definitions.soft_limit_micro',
      'limit_definitions.thresholds_micro',
    ])
    .where('budgets.tenant_id', '=', tenantId)
    .orderBy('budgets.budget_id')
    .execute()

type BudgetRow = Awaited<ReturnType<typeof readBudgets>>[number]

const toBudget = (row: BudgetRow, lineage: KeyLineage): Budget => ({
  budgetId: row.budget_id,
  parentId: row.parent_id,
  scope: row.scope,
  scopeType: row.scope_type as BudgetScope,
  scopeId: row.scope_id,
  selector: toSelector(row.scope_type as BudgetScope, row.scope_id, lineage),
  appliesTo: row.applies_to as PaymentClass[],
  window: row.window as BudgetWindow,
  limitMicro: row.limit_micro,
  softLimitMicro: row.soft_limit_micro,
  onBreach: row.on_breach as OnBreach,
  emitsThresholdEvents: row.thresholds_micro.length > 0,
})

function toSelector(type: BudgetScope, id: string, lineage: KeyLineage): Selector {
  if (type === 'tenant') return { type }
  return type === 'key' ? { type, keyIds: keysBoundBy(id, lineage) } : { type, id }
}
