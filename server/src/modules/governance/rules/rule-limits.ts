import { sql } from 'kysely'
import type { Tx } from '../../../platform/db.ts'
import { firstIdAt } from '../../../platform/ids.ts'
import { conflict, Problem } from '../../../platform/problem.ts'
import { normalizePayee } from './payee-names.ts'
import type { Constraints } from './policy-constraints.ts'
import type { Rule } from './policy-rules.ts'
import { MAX_MANDATES } from './rules-cache.store.ts'

/** All policies of a tenant are read, kept in memory and evaluated together, so their number and size are limited together. */
const MAX_POLICIES = 200
const MAX_POLICY_BYTES = 1024 * 1024
const MAX_RULES = 2_000
const MAX_MANDATE_BYTES = 4 * 1024 * 1024
const MAX_BUDGETS = 200
/** Every version of a policy and every mandate is kept, because receipts name their hashes, so what is written in a day is limited. */
const MAX_CHANGES_A_DAY = 2_000
const MAX_CHANGED_BYTES_A_DAY = 32 * 1024 * 1024
const DAY_MS = 86_400_000
/** Each counter is a lock and an update in the transaction that admits the action. */
export const MAX_COUNTERS_PER_ACTION = 64

/** Rules of a tenant are changed one after the other, so that two changes cannot pass a limit together. */
export const lockRules = (tx: Tx, tenantId: string) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`rules:${tenantId}`}, 0))`.execute(tx)

/** Refuses a change when the policies and mandates that the tenant has written in the last day are too many or too large. */
export async function requireChangesLeft(tx: Tx, tenantId: string, at: Date): Promise<void> {
  const since = new Date(at.getTime() - DAY_MS)
  const { rows } = await sql<{ changes: number; bytes: number }>`
    select count(*)::int as changes, coalesce(sum(size), 0)::int as bytes from (
      select pg_column_size(version.content) as size from policies join policy_versions version on version.policy_id = policies.id
      where policies.tenant_id = ${tenantId} and policies.updated_at > ${since} and version.created_at > ${since}
      union all
      select pg_column_size(constraints) from mandates where tenant_id = ${tenantId} and id > ${firstIdAt('man', since)}
    ) written
  `.execute(tx)
  const { changes, bytes } = rows[0]!
  if (changes < MAX_CHANGES_A_DAY && bytes < MAX_CHANGED_BYTES_A_DAY) return
  throw new Problem(
    'error',
    `A tenant writes at most ${MAX_CHANGES_A_DAY} versions of policies and mandates of at most ${MAX_CHANGED_BYTES_A_DAY} bytes in 24 hours; there were ${changes} of ${bytes} bytes. Nothing was changed. Policies can still be deleted and mandates revoked.`,
    { status: 429, code: 'rate_limited', retryable: true, retryAfterSeconds: 3600 },
  )
}

type PolicySize = { policies: number; bytes: number; rules: number }

/** Refuses a policy that would make the rules of the tenant too many or too large. A change that makes them smaller is allowed. */
export async function requireRoomForPolicy(
  tx: Tx,
  tenantId: string,
  { id, constraints, rules }: { id: string; constraints: Constraints; rules: readonly Rule[] },
): Promise<void> {
  const others = await readPolicySize(tx, tenantId, sql`id <> ${id}`)
  const before = await readPolicySize(tx, tenantId, sql`id = ${id}`)
  const added = {
    bytes: Buffer.byteLength(JSON.stringify(constraints)) + Buffer.byteLength(JSON.stringify(rules)),
    rules: Object.keys(constraints).length + rules.length,
  }
  if (before.policies === 0 && others.policies >= MAX_POLICIES)
    throw conflict(`A tenant has at most ${MAX_POLICIES} policies; delete one first.`)
  if (others.bytes + added.bytes > MAX_POLICY_BYTES && added.bytes > before.bytes)
    throw conflict(
      `The constraints and rules of all policies may have at most ${MAX_POLICY_BYTES} bytes; the other policies have ${others.bytes} and this one ${added.bytes}. Delete policies or shorten their lists.`,
    )
  if (others.rules + added.rules > MAX_RULES && added.rules > before.rules)
    throw conflict(
      `All policies together may have at most ${MAX_RULES} rules and constraints; with this policy there would be ${others.rules + added.rules}. Delete policies or rules, or put values into one list.`,
    )
}

async function readPolicySize(tx: Tx, tenantId: string, which: ReturnType<typeof sql>): Promise<PolicySize> {
  const { rows } = await sql<PolicySize>`
    select count(*)::int as policies, coalesce(sum(octet_length(constraints::text) + octet_length(rules::text)), 0)::int as bytes,
           coalesce(sum(jsonb_array_length(rules) + (select count(*) from jsonb_object_keys(constraints))), 0)::int as rules
    from policies where tenant_id = ${tenantId} and status <> 'deleted' and ${which}
  `.execute(tx)
  return rows[0]!
}

/** Refuses a mandate when those in force are already too many or too large. */
export async function requireRoomForMandate(tx: Tx, tenantId: string, constraints: unknown, at: Date): Promise<void> {
  const { rows } = await sql<{ mandates: number; bytes: number }>`
    select count(*)::int as mandates, coalesce(sum(octet_length(constraints::text)), 0)::int as bytes
    from mandates where tenant_id = ${tenantId} and status = 'active' and expires_at > ${at}
  `.execute(tx)
  const { mandates, bytes } = rows[0]!
  if (mandates >= MAX_MANDATES)
    throw conflict(`A tenant has at most ${MAX_MANDATES} active mandates; revoke one first.`)
  const added = Buffer.byteLength(JSON.stringify(constraints))
  if (bytes + added > MAX_MANDATE_BYTES)
    throw conflict(
      `The constraints of all active mandates may have at most ${MAX_MANDATE_BYTES} bytes; they have ${bytes} and this one ${added}. Revoke mandates or shorten their lists.`,
    )
}

export function requireRoomForBudget(existingBudgets: number): void {
  if (existingBudgets >= MAX_BUDGETS) throw conflict(`A tenant has at most ${MAX_BUDGETS} budgets; delete one first.`)
}

/** A rule with counters, by what selects the actions that count in it. */
type CountingRule = { selector: string; id: string; counters: number; name: string | null; parent: string | null }

/** An action has one of each, and at most this many tags and names of agents and merchants. */
const SELECTIONS: Record<string, number> = { tag: 8, agent: 2, merchant: 5 }

/**
 * The most counters that one action can touch: those of the tenant, and of one spender, team, key, session and mandate, two
 * agents, eight tags and five names of a merchant (id and host with and without a port, address), each with the parents of its budgets.
 */
async function readMostCounters(tx: Tx, tenantId: string): Promise<number> {
  const { rows } = await sql<CountingRule>`
    select case identity_type when 'api_key' then 'key' else identity_type end as selector, coalesce(agent_id, key_id, identity_id, '') as id,
           ((constraints ? 'max_per_day_usdc')::int + (constraints ? 'max_per_month_usdc')::int + (constraints ? 'max_runs_per_minute')::int) as counters,
           null as name, null as parent
    from policies where tenant_id = ${tenantId} and status = 'active'
    union all
    select scope_type, case scope_type when 'tenant' then '' else scope_id end, ("window" <> 'run')::int, budget_id, parent_id from budgets where tenant_id = ${tenantId}
  `.execute(tx)
  const budgets = new Map(rows.flatMap((row) => (row.name === null ? [] : [[row.name, row]])))
  const most = new Map<string, Map<string, number>>()
  for (const row of rows) {
    const counts = most.get(row.selector) ?? new Map<string, number>()
    let counters = row.counters
    for (let parent = row.parent; parent !== null; parent = budgets.get(parent)?.parent ?? null)
      counters += budgets.get(parent)?.counters ?? 0
    const id = row.selector === 'merchant' ? normalizePayee(row.id) : row.id
    counts.set(id, (counts.get(id) ?? 0) + counters)
    most.set(row.selector, counts)
  }
  const largest = (counts: Map<string, number>, times: number) =>
    [...counts.values()]
      .sort((a, b) => b - a)
      .slice(0, times)
      .reduce((sum, count) => sum + count, 0)
  return [...most].reduce((sum, [selector, counts]) => sum + largest(counts, SELECTIONS[selector] ?? 1), 0)
}

/** Runs a change of rules, and undoes it if it makes one action touch more counters than are allowed. */
export async function withCounterLimit<Result>(
  tx: Tx,
  tenantId: string,
  change: () => Promise<Result>,
): Promise<Result> {
  const before = await readMostCounters(tx, tenantId)
  const result = await change()
  const after = await readMostCounters(tx, tenantId)
  if (after > MAX_COUNTERS_PER_ACTION && after > before)
    throw conflict(
      `One action may count in at most ${MAX_COUNTERS_PER_ACTION} budgets and limits per day, month or minute; with this change it would be ${after}, now it is ${before}. Delete some, or make them for one agent, key or session.`,
    )
  return result
}
