import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import { stringifyWithBigints } from '../../platform/json.ts'
import type { Fill, InstrumentType } from './broker.ts'
import { notionalMicro } from './broker.ts'
import { reviveStoredJson } from './stored-json.ts'
import type { DefaultConstraints } from './trade-policies.ts'
import type { RhReceipt } from './trade-receipt.ts'
import { type ExecutionQuote, type RunState, spenderOf, type TradeRun } from './trade-run-record.ts'

type RunRow = {
  id: string
  tenant_id: string
  key_id: string
  agent_id: string | null
  spender: string | null
  team: string | null
  tags: unknown
  named_mandate_id: string | null
  mandate_id: string | null
  policy_results: unknown
  holds: unknown
  broker: string
  mode: 'paper' | 'live'
  state: RunState
  reason: string | null
  client_order_id: string | null
  terms: unknown
  instrument: unknown
  policy: unknown
  approval: unknown
  content: string | null
  votes: unknown
  expires_at: Date | null
  execute_by: Date
  approved_at: Date | null
  approved_by: string | null
  approved_by_claimed: string | null
  self_approved: boolean
  lease_until: Date | null
  attempts: number
  sent_at: Date | null
  next_attempt_at: Date | null
  broker_order_id: string | null
  stop_reason: string | null
  execution_quote: unknown
  answer_status: number | null
  answer_body: string | null
  created_at: Date
  updated_at: Date
  finished_at: Date | null
  ended_by: string | null
}

/** Locks the tenant's row, so that its runs are admitted one at a time, and reads its kill switch. */
export async function lockTenant(tx: Tx, tenantId: string): Promise<KillSwitch> {
  await sql`insert into rh_tenants (tenant_id) values (${tenantId}) on conflict do nothing`.execute(tx)
  const { rows } = await sql<KillSwitchRow>`
    select killed_at, killed_by, kill_reason from rh_tenants where tenant_id = ${tenantId} for update
  `.execute(tx)
  return toKillSwitch(rows[0])
}

export type KillSwitch = { engagedAt: Date | null; engagedBy: string | null; reason: string | null }
type KillSwitchRow = { killed_at: Date | null; killed_by: string | null; kill_reason: string | null }

export async function readKillSwitch(tx: Tx, tenantId: string): Promise<KillSwitch> {
  const { rows } = await sql<KillSwitchRow>`
    select killed_at, killed_by, kill_reason from rh_tenants where tenant_id = ${tenantId}
  `.execute(tx)
  return toKillSwitch(rows[0])
}

export async function writeKillSwitch(tx: Tx, tenantId: string, killSwitch: KillSwitch): Promise<void> {
  await sql`
    update rh_tenants set killed_at = ${killSwitch.engagedAt}, killed_by = ${killSwitch.engagedBy}, kill_reason = ${killSwitch.reason}
    where tenant_id = ${tenantId}
  `.execute(tx)
}

/** Takes the locks of counters in the order of every transaction. */
export const lockNames = (tx: Tx, names: readonly string[]) => sql`select lock_names(${names}::text[])`.execute(tx)

export type TenantDefaultRow = {
  type: InstrumentType
  version: number
  constraints: DefaultConstraints
  contentHash: string
  changedBy: string
  createdAt: Date
}

/** The newest version of each default policy that the tenant has set. */
export async function findTenantDefaults(tx: Tx, tenantId: string): Promise<TenantDefaultRow[]> {
  const { rows } = await sql<TenantDefaultRow>`
    select distinct on (instrument_type) instrument_type as type, version, constraints, content_hash as "contentHash",
      changed_by as "changedBy", created_at as "createdAt"
    from rh_policies where tenant_id = ${tenantId} order by instrument_type, version desc
  `.execute(tx)
  return rows
}

export async function insertTenantDefault(tx: Tx, tenantId: string, row: TenantDefaultRow): Promise<void> {
  await sql`
    insert into rh_policies (tenant_id, instrument_type, version, constraints, content_hash, changed_by, created_at)
    values (${tenantId}, ${row.type}, ${row.version}, ${JSON.stringify(row.constraints)}::jsonb, ${row.contentHash}, ${row.changedBy}, ${row.createdAt})
  `.execute(tx)
}

export async function readCommittedMicro(tx: Tx, tenantId: string, type: InstrumentType, since: Date): Promise<bigint> {
  const { rows } = await sql<{
    micro: bigint
  }>`select rh_committed_micro(${tenantId}, ${type}, ${since}) as micro`.execute(tx)
  return rows[0]!.micro
}

export async function clientOrderIdExists(tx: Tx, tenantId: string, clientOrderId: string): Promise<boolean> {
  const { rows } = await sql`
    select 1 from rh_runs where tenant_id = ${tenantId} and client_order_id = ${clientOrderId} and state <> 'rejected'
  `.execute(tx)
  return rows.length > 0
}

export async function findIdempotencyKey(tx: Tx, tenantId: string, key: string, now: Date) {
  const { rows } = await sql<{ body_hash: string; run_id: string }>`
    select body_hash, run_id from rh_run_keys where tenant_id = ${tenantId} and key = ${key} and expires_at > ${now}
  `.execute(tx)
  return rows[0] && { bodyHash: rows[0].body_hash, runId: rows[0].run_id }
}

export async function saveIdempotencyKey(
  tx: Tx,
  idempotencyKey: { tenantId: string; key: string; bodyHash: string; runId: string; expiresAt: Date },
): Promise<void> {
  await sql`
    insert into rh_run_keys (tenant_id, key, body_hash, run_id, expires_at)
    values (${idempotencyKey.tenantId}, ${idempotencyKey.key}, ${idempotencyKey.bodyHash}, ${idempotencyKey.runId}, ${idempotencyKey.expiresAt})
    on conflict (tenant_id, key) do update
      set body_hash = excluded.body_hash, run_id = excluded.run_id, expires_at = excluded.expires_at
  `.execute(tx)
}

export async function insertRun(tx: Tx, run: TradeRun): Promise<void> {
  const { terms } = run
  await sql`
    insert into rh_runs (
      id, tenant_id, key_id, agent_id, spender, team, tags, named_mandate_id, mandate_id, policy_results, instrument_type, symbol, broker, mode, state, reason, client_order_id,
      notional_micro, terms, instrument, policy, approval, content, expires_at, execute_by, lease_until, attempts,
      next_attempt_at, answer_status, answer_body, created_at, updated_at, finished_at)
    values (
      ${run.id}, ${run.tenantId}, ${run.keyId}, ${run.agentId}, ${spenderOf(run)}, ${run.team}, ${JSON.stringify(run.tags)}::jsonb,
      ${run.namedMandateId}, ${run.mandateId}, ${JSON.stringify(run.policyResults)}::jsonb, ${terms.type}, ${terms.symbol}, ${run.broker}, ${run.mode},
      ${run.state}, ${run.reason}, ${run.clientOrderId}, ${terms.notionalMicro}, ${stringifyWithBigints(terms)}::jsonb,
      ${stringifyWithBigints(run.instrument)}::jsonb, ${stringifyWithBigints(run.policy)}::jsonb,
      ${run.approval && stringifyWithBigints(run.approval)}::jsonb, ${run.content}, ${run.expiresAt}, ${run.executeBy}, ${run.leaseUntil}, ${run.attempts},
      ${run.nextAttemptAt}, ${run.answerStatus}, ${run.answerBody}, ${run.createdAt}, ${run.updatedAt}, ${run.finishedAt})
  `.execute(tx)
}

export async function findRun(tx: Tx, tenantId: string, id: string): Promise<TradeRun | undefined> {
  const { rows } = await sql<RunRow>`select * from rh_runs where id = ${id} and tenant_id = ${tenantId}`.execute(tx)
  return rows[0] && toTradeRun(rows[0])
}

export type RunFilters = {
  status?: RunState
  /** Only runs that a person was asked about, by what was decided. */
  approval?: 'pending' | 'approved' | 'rejected' | 'all'
  spender?: string
}

const approvalConditions = {
  pending: sql`approval is not null and state = 'pending_approval'`,
  approved: sql`approval is not null and approved_at is not null`,
  rejected: sql`approval is not null and approved_at is null and state <> 'pending_approval'`,
  all: sql`approval is not null`,
}

/** A page of the tenant's runs, newest first. */
export async function listRuns(
  tx: Tx,
  tenantId: string,
  page: RunFilters & { limit: number; before?: string },
): Promise<TradeRun[]> {
  const conditions = [
    sql`tenant_id = ${tenantId}`,
    ...(page.status === undefined ? [] : [sql`state = ${page.status}`]),
    ...(page.approval === undefined ? [] : [approvalConditions[page.approval]]),
    ...(page.spender === undefined ? [] : [sql`spender = ${page.spender}`]),
    ...(page.before === undefined ? [] : [sql`id < ${page.before}`]),
  ]
  const { rows } = await sql<RunRow>`
    select * from rh_runs where ${sql.join(conditions, sql` and `)} order by id desc limit ${page.limit}
  `.execute(tx)
  return rows.map(toTradeRun)
}

export async function lockRun(tx: Tx, id: string, tenantId?: string): Promise<TradeRun | undefined> {
  const tenantCondition = tenantId === undefined ? sql`` : sql` and tenant_id = ${tenantId}`
  const { rows } = await sql<RunRow>`select * from rh_runs where id = ${id}${tenantCondition} for update`.execute(tx)
  return rows[0] && toTradeRun(rows[0])
}

export async function claimDueRuns(tx: Tx, now: Date, leaseSeconds: number, limit: number): Promise<TradeRun[]> {
  const { rows } = await sql<RunRow>`
    select * from claim_rh_runs(${now}, make_interval(secs => ${leaseSeconds}), ${limit})
  `.execute(tx)
  return rows.map(toTradeRun)
}

export async function lockExpiredRuns(tx: Tx, now: Date, limit: number): Promise<TradeRun[]> {
  const { rows } = await sql<RunRow>`select * from expired_rh_runs(${now}, ${limit})`.execute(tx)
  return rows.map(toTradeRun)
}

/** Locks the runs a kill switch stops, oldest first, so that two requests cannot deadlock. */
export async function lockUnfinishedRuns(tx: Tx, tenantId: string): Promise<TradeRun[]> {
  const { rows } = await sql<RunRow>`
    select * from rh_runs where tenant_id = ${tenantId} and state in ('pending_approval', 'approved', 'executing')
    order by id for update
  `.execute(tx)
  return rows.map(toTradeRun)
}

export async function saveVotes(
  tx: Tx,
  run: Pick<TradeRun, 'id' | 'votes' | 'policy' | 'selfApproved' | 'updatedAt'>,
): Promise<void> {
  await sql`
    update rh_runs set votes = ${JSON.stringify(run.votes)}::jsonb, policy = ${stringifyWithBigints(run.policy)}::jsonb,
      self_approved = ${run.selfApproved}, updated_at = ${run.updatedAt}
    where id = ${run.id}
  `.execute(tx)
}

/** How many of a spender's trades are looked at; one with more of them sees the newest. */
const MAX_TRADES = 10_000

/** All that a spender has traded, where `symbol` is null, or what it traded in one symbol. */
export type NormalTrades = {
  spender: string
  symbol: string | null
  count: number
  median_micro: bigint
  max_micro: bigint
}

/** What each of these spenders has traded since a time, in all and in each of these symbols. */
export async function readNormalTrades(
  tx: Tx,
  tenantId: string,
  spenders: readonly string[],
  symbols: readonly string[],
  since: Date,
): Promise<NormalTrades[]> {
  const { rows } = await sql<NormalTrades>`
    select spender, symbol, count(*)::int as count, percentile_disc(0.5) within group (order by notional_micro) as median_micro, max(notional_micro) as max_micro
    from (
      select spender, symbol, notional_micro from rh_runs
      where tenant_id = ${tenantId} and state = 'executed' and created_at >= ${since} and spender = any(${spenders})
      order by created_at desc limit ${MAX_TRADES}
    ) traded
    group by grouping sets ((spender), (spender, symbol)) having grouping(symbol) = 1 or symbol = any(${symbols})
  `.execute(tx)
  return rows
}

/** Deletes the requests of runs that ended before a time. */
export async function deleteOldContent(tx: Tx, endedBefore: Date, maxRows: number): Promise<number> {
  const { numAffectedRows } = await sql`
    update rh_runs set content = null where id in (
      select id from rh_runs where content is not null and finished_at <= ${endedBefore} order by finished_at limit ${maxRows})
  `.execute(tx)
  return Number(numAffectedRows)
}

export async function markApproved(tx: Tx, run: TradeRun): Promise<void> {
  await sql`
    update rh_runs set state = 'approved', approved_at = ${run.approvedAt}, approved_by = ${run.approvedBy},
      approved_by_claimed = ${run.approvedByClaimed}, self_approved = ${run.selfApproved}, next_attempt_at = ${run.nextAttemptAt}, updated_at = ${run.updatedAt}
    where id = ${run.id}
  `.execute(tx)
}

/**
 * Records the intent before the broker is called. `stopped` when somebody has asked for a stop since the run was claimed,
 * `taken_over` when another worker has the run: in both cases this worker must not call.
 */
export async function markSent(
  tx: Tx,
  run: TradeRun,
  at: Date,
  quote: ExecutionQuote,
): Promise<{ result: 'sent' | 'taken_over' } | { result: 'stopped'; reason: string }> {
  const { rows } = await sql<{ stop_reason: string | null }>`
    update rh_runs set
      sent_at = case when stop_reason is null then ${at} else sent_at end,
      execution_quote = case when stop_reason is null then ${stringifyWithBigints(quote)}::jsonb else execution_quote end,
      updated_at = ${at}
    where id = ${run.id} and attempts = ${run.attempts} and state = 'executing' returning stop_reason
  `.execute(tx)
  const row = rows[0]
  if (!row) return { result: 'taken_over' }
  return row.stop_reason === null ? { result: 'sent' } : { result: 'stopped', reason: row.stop_reason }
}

/** Releases the run until `release.at`. `sentAt` is set when an order may still be on its way to the broker. */
export async function releaseRun(
  tx: Tx,
  run: TradeRun,
  release: { at: Date; sentAt: Date | null; now: Date },
): Promise<void> {
  await sql`
    update rh_runs set lease_until = null, next_attempt_at = ${release.at}, sent_at = ${release.sentAt}, updated_at = ${release.now},
      state = case when approved_at is not null and ${release.sentAt}::timestamptz is null then 'approved' else state end
    where id = ${run.id} and attempts = ${run.attempts} and state = 'executing'
  `.execute(tx)
}

export async function requestStop(tx: Tx, runId: string, reason: string, now: Date): Promise<void> {
  await sql`
    update rh_runs set stop_reason = ${reason}, next_attempt_at = ${now}, updated_at = ${now} where id = ${runId}
  `.execute(tx)
}

export async function markFinished(
  tx: Tx,
  run: Pick<TradeRun, 'id' | 'state' | 'reason' | 'brokerOrderId' | 'answerStatus' | 'answerBody' | 'endedBy'>,
  now: Date,
): Promise<void> {
  await sql`
    update rh_runs set state = ${run.state}, reason = ${run.reason}, broker_order_id = ${run.brokerOrderId},
      answer_status = ${run.answerStatus}, answer_body = ${run.answerBody},
      lease_until = null, next_attempt_at = null, updated_at = ${now}, finished_at = ${now}, ended_by = ${run.endedBy}
    where id = ${run.id}
  `.execute(tx)
}

export async function insertFills(tx: Tx, runId: string, fills: readonly Fill[]): Promise<void> {
  for (const fill of fills) {
    const gross = notionalMicro(fill.priceE8, fill.quantityE8)
    await sql`
      insert into rh_fills (run_id, fill_id, quantity_e8, price_e8, gross_micro, fee_micro, filled_at)
      values (${runId}, ${fill.fillId}, ${fill.quantityE8}, ${fill.priceE8}, ${gross}, ${fill.feeMicro}, ${fill.at})
    `.execute(tx)
  }
}

export const listFills = async (tx: Tx, runId: string): Promise<Fill[]> =>
  (await listFillsOfRuns(tx, [runId])).get(runId) ?? []

export async function listFillsOfRuns(tx: Tx, runIds: readonly string[]): Promise<Map<string, Fill[]>> {
  const { rows } = await sql<{
    run_id: string
    fill_id: string
    quantity_e8: bigint
    price_e8: bigint
    fee_micro: bigint
    filled_at: Date
  }>`
    select run_id, fill_id, quantity_e8, price_e8, fee_micro, filled_at from rh_fills
    where run_id = any(${runIds}::uuid[]) order by run_id, filled_at, fill_id
  `.execute(tx)
  const fills = new Map<string, Fill[]>()
  for (const row of rows) {
    const { fill_id: fillId, quantity_e8: quantityE8, price_e8: priceE8, fee_micro: feeMicro, filled_at: at } = row
    fills.set(row.run_id, [...(fills.get(row.run_id) ?? []), { fillId, quantityE8, priceE8, feeMicro, at }])
  }
  return fills
}

/** Stores the receipt and marks the run's previous one as superseded. */
export async function insertReceipt(tx: Tx, receipt: RhReceipt, broker: string, at: Date): Promise<void> {
  const { hash, prev_hash } = receipt.attestation
  await sql`update rh_receipts set superseded_at = ${at} where run_id = ${receipt.run_id} and superseded_at is null`.execute(
    tx,
  )
  await sql`
    insert into rh_receipts (id, run_id, tenant_id, instrument_type, broker, status, body, hash, prev_hash, created_at)
    values (${receipt.id}, ${receipt.run_id}, ${receipt.tenant_id}, ${receipt.instrument_type}, ${broker}, ${receipt.status},
      ${JSON.stringify(receipt)}::jsonb, ${hash}, ${prev_hash}, ${at})
  `.execute(tx)
}

export async function findNewestReceiptHash(tx: Tx, runId: string): Promise<string | null> {
  const { rows } = await sql<{ hash: string }>`
    select hash from rh_receipts where run_id = ${runId} and superseded_at is null
  `.execute(tx)
  return rows[0]?.hash ?? null
}

export type ReceiptFilter = {
  tenantId?: string
  runId?: string
  type?: InstrumentType
  brokers?: readonly string[]
  status?: 'pending' | 'history'
}

export async function listReceipts(tx: Tx, filter: ReceiptFilter, limit: number): Promise<RhReceipt[]> {
  const conditions = [
    sql`superseded_at is null`,
    ...(filter.tenantId === undefined ? [] : [sql`tenant_id = ${filter.tenantId}`]),
    ...(filter.runId === undefined ? [] : [sql`run_id = ${filter.runId}`]),
    ...(filter.type === undefined ? [] : [sql`instrument_type = ${filter.type}`]),
    ...(filter.brokers === undefined ? [] : [sql`broker = any(${[...filter.brokers]}::text[])`]),
    ...(filter.status === 'pending' ? [sql`status = 'pending_approval'`] : []),
    ...(filter.status === 'history' ? [sql`status <> 'pending_approval'`] : []),
  ]
  const { rows } = await sql<{ body: RhReceipt }>`
    select body from rh_receipts where ${sql.join(conditions, sql` and `)} order by id desc limit ${limit}
  `.execute(tx)
  return rows.map((row) => row.body)
}

export async function findReceipt(tx: Tx, tenantId: string, id: string): Promise<RhReceipt | undefined> {
  const { rows } = await sql<{ body: RhReceipt }>`
    select body from rh_receipts where id = ${id} and tenant_id = ${tenantId}
  `.execute(tx)
  return rows[0]?.body
}

export const listReceiptIds = async (tx: Tx, runId: string): Promise<string[]> =>
  (await listReceiptIdsOfRuns(tx, [runId])).get(runId) ?? []

export async function listReceiptIdsOfRuns(tx: Tx, runIds: readonly string[]): Promise<Map<string, string[]>> {
  const { rows } = await sql<{ run_id: string; ids: string[] }>`
    select run_id, array_agg(id::text order by id) as ids from rh_receipts where run_id = any(${runIds}::uuid[]) group by run_id
  `.execute(tx)
  return new Map(rows.map((row) => [row.run_id, row.ids]))
}

export async function deleteExpiredIdempotencyKeys(tx: Tx, now: Date, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from rh_run_keys where (tenant_id, key) in (
      select tenant_id, key from rh_run_keys where expires_at <= ${now} order by expires_at limit ${limit})
  `.execute(tx)
  return Number(numAffectedRows)
}

const toKillSwitch = (row: KillSwitchRow | undefined): KillSwitch => ({
  engagedAt: row?.killed_at ?? null,
  engagedBy: row?.killed_by ?? null,
  reason: row?.kill_reason ?? null,
})

const toTradeRun = (row: RunRow): TradeRun => ({
  id: row.id,
  tenantId: row.tenant_id,
  keyId: row.key_id,
  agentId: row.agent_id,
  // A run that names no spender is its key's in records, and for rules it has none.
  spender: row.spender === `key:${row.key_id}` ? null : row.spender,
  team: row.team,
  tags: (row.tags ?? {}) as TradeRun['tags'],
  namedMandateId: row.named_mandate_id,
  mandateId: row.mandate_id,
  policyResults: row.policy_results as TradeRun['policyResults'],
  holds: row.holds as TradeRun['holds'],
  broker: row.broker,
  mode: row.mode,
  state: row.state,
  reason: row.reason,
  clientOrderId: row.client_order_id,
  terms: reviveStoredJson(row.terms),
  instrument: reviveStoredJson(row.instrument),
  policy: reviveStoredJson(row.policy),
  approval: row.approval as TradeRun['approval'],
  content: row.content,
  votes: row.votes as TradeRun['votes'],
  expiresAt: row.expires_at,
  executeBy: row.execute_by,
  approvedAt: row.approved_at,
  approvedBy: row.approved_by,
  approvedByClaimed: row.approved_by_claimed,
  selfApproved: row.self_approved,
  leaseUntil: row.lease_until,
  attempts: row.attempts,
  sentAt: row.sent_at,
  nextAttemptAt: row.next_attempt_at,
  brokerOrderId: row.broker_order_id,
  stopReason: row.stop_reason,
  executionQuote: row.execution_quote === null ? null : reviveStoredJson(row.execution_quote),
  answerStatus: row.answer_status,
  answerBody: row.answer_body,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  finishedAt: row.finished_at,
  endedBy: row.ended_by,
})
