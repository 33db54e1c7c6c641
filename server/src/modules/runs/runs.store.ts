import { type Expression, expressionBuilder, type Selectable, type SqlBool, sql } from 'kysely'
import type pg from 'pg'
import { createSteps } from '../../platform/batch.ts'
import type { Db, Tx, WithNotNull } from '../../platform/db.ts'
import type { DB, OpenRuns, Runs, SettlementRecords } from '../../platform/generated/db.ts'
import { groupReads } from '../../platform/group-reads.ts'
import { endIdUntil, firstIdSince } from '../../platform/id-range.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { MAX_EXAMINED } from '../../platform/paging.ts'
import { noteUnknownStep } from '../payments/payments.steps.ts'
import { findRunsOfNonces, findSettlementOf, type SettlementRow } from '../payments/payments.ts'
import type { PaymentNonce } from '../payments/x402.ts'
import type { PartialOutput } from './lane.ts'
import type { RunProgress } from './runs.schema.ts'
import {
  abandonRunsStep,
  admitRunsStep,
  completeAtOnceStep,
  completeRunsStep,
  finishRefundStep,
  keepRunsStep,
  noteArrivalStep,
} from './runs.steps.ts'
import { withRetries } from './step-retries.ts'
import { insertReceipt, unpackAnswer } from './stored-answer.ts'

/** A run, open or ended. */
export type RunRow = WithNotNull<
  Selectable<Runs>,
  | 'tenant_id'
  | 'payer'
  | 'result'
  | 'answer_status'
  | 'answer_body'
  | 'answer'
  | 'answer_receipt_at'
  | 'receipt_id'
  | 'instance'
  | 'admission'
  | 'finished_at'
  | 'decided_seq'
  | 'ended_seq'
  | 'wallet_id'
>
export type OpenRunRow = Selectable<OpenRuns>
export { findSettlementOf, type SettlementRow }
export type SettlementRecord = Selectable<SettlementRecords>

/** The steps of a run as group-committed SQL functions; see `sql/runs.sql`. */
export type RunSteps = ReturnType<typeof createRunSteps>

export function createRunSteps(pool: Pick<pg.Pool, 'query'>, metrics: Metrics, maxBatch?: number) {
  const create = createSteps(pool, metrics, maxBatch)
  return {
    admit: withRetries(create(admitRunsStep)),
    keep: withRetries(create(keepRunsStep)),
    complete: withRetries(create(completeRunsStep)),
    completeAtOnce: withRetries(create(completeAtOnceStep)),
    abandon: withRetries(create(abandonRunsStep)),
    noteUnknown: withRetries(create(noteUnknownStep)),
    noteArrival: withRetries(create(noteArrivalStep)),
    finishRefund: withRetries(create(finishRefundStep)),
  }
}

/** What every payment asks before its run is admitted, for many callers in one query each. */
export type RunReads = ReturnType<typeof createRunReads>

export const createRunReads = (db: Db) => ({
  findRunOfNonce: groupReads((nonces: readonly PaymentNonce[]) => findRunsOfNonces(db, nonces)),
  findUnansweredRun: groupReads((requests: readonly UnansweredRequest[]) => findUnansweredRuns(db, requests)),
})

export async function findRunWithSettlement(tx: Tx, runId: string) {
  const [run, settlement] = await Promise.all([findRun(tx, runId), findSettlementOf(tx, runId)])
  return { run, settlement }
}

export async function findByKey(tx: Tx, scope: string, route: string, key: string, now: Date) {
  const keyRow = await tx
    .selectFrom('run_keys')
    .select(['run_id', 'body_hash'])
    .where('scope', '=', scope)
    .where('route', '=', route)
    .where('key', '=', key)
    .where('expires_at', '>', now)
    .executeTakeFirst()
  if (!keyRow) return undefined
  return { ...(await findRunWithSettlement(tx, keyRow.run_id)), bodyHash: keyRow.body_hash }
}

/** A tenant's run belongs to the tenant, a guest's to its payer. */
export type UnansweredRequest = { requestHash: string; owner: { tenantId: string } | { payer: string } }

/** The run of each request whose caller has not had the answer: it was not known whether the payment arrived. */
async function findUnansweredRuns(tx: Tx, requests: readonly UnansweredRequest[]): Promise<(string | undefined)[]> {
  const tenantIds = requests.map(({ owner }) => ('tenantId' in owner ? owner.tenantId : null))
  const payers = requests.map(({ owner }) => ('payer' in owner ? owner.payer : null))
  const { rows } = await sql<{ place: number; run_id: string }>`
    select asked.place::int as place, first.run_id
    from unnest(${requests.map(({ requestHash }) => requestHash)}::text[], ${tenantIds}::text[], ${payers}::text[])
      with ordinality as asked(request_hash, tenant_id, payer, place)
    cross join lateral (
      select run_id from unanswered_payments unanswered
      where unanswered.request_hash = asked.request_hash and unanswered.tenant_id is not distinct from asked.tenant_id
        and (asked.tenant_id is not null or unanswered.payer = asked.payer)
      order by created_at limit 1
    ) first`.execute(tx)
  const runIds = new Map(rows.map((row) => [row.place, row.run_id]))
  return requests.map((_, index) => runIds.get(index + 1))
}

/** The callers of runs that x402 pays may not have their answers. Nothing is noted for one that has ended without a charge. */
export async function noteUnanswered(tx: Tx, runIds: readonly string[], at: Date): Promise<void> {
  await sql`
    insert into unanswered_payments (run_id, tenant_id, payer, request_hash, created_at)
    select id, tenant_id, payer, request_hash, ${at} from runs where id = any(${runIds}::text[]) and wallet_id is null and state <> 'failed'
    on conflict do nothing`.execute(tx)
}

/** The caller has the answer, or needs none because nothing was charged. */
export const forgetUnanswered = (tx: Tx, runId: string) =>
  tx.deleteFrom('unanswered_payments').where('run_id', '=', runId).execute()

/** As long as an idempotency key lives; one whose run is still open is kept. */
export async function deleteOldUnanswered(tx: Tx, before: Date, maxRows: number): Promise<number> {
  const { rows } = await sql`
    delete from unanswered_payments where run_id in (
      select run_id from unanswered_payments where created_at <= ${before}
        and not exists (select 1 from open_runs where open_runs.id = run_id) order by created_at limit ${maxRows})
    returning run_id
  `.execute(tx)
  return rows.length
}

/** An expired key may be used again; the run and its payment's nonce stay. */
export async function deleteExpiredKeys(tx: Tx, now: Date, maxRows: number): Promise<number> {
  const { rows } = await sql`
    delete from run_keys where (scope, route, key) in (
      select scope, route, key from run_keys where expires_at <= ${now} order by expires_at limit ${maxRows})
    returning key
  `.execute(tx)
  return rows.length
}

export async function findRun(tx: Tx, id: string): Promise<RunRow> {
  // One statement, so that a run which ends meanwhile is seen in one of the two tables.
  const row = await tx.selectFrom('runs').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  return row as RunRow
}

/** Whether a payment of this payer is being settled: the chain may show it before its run has ended. */
export async function isSettling(tx: Tx, payer: string): Promise<boolean> {
  const row = await tx
    .selectFrom('open_runs')
    .select('id')
    .where('payment_state', '=', 'pending')
    .where('next_attempt_at', 'is not', null)
    .where('state', '=', 'settling')
    .where('payer', '=', payer)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

export const findOpenRun = (tx: Tx, id: string): Promise<OpenRunRow | undefined> =>
  tx.selectFrom('open_runs').selectAll().where('id', '=', id).executeTakeFirst()

export const findSettlementRecord = (tx: Tx, id: string): Promise<SettlementRecord> =>
  tx.selectFrom('settlement_records').selectAll().where('id', '=', id).executeTakeFirstOrThrow()

/** The stored body with its receipt, which is kept once, among the receipts. */
export async function readAnswerBody(
  tx: Tx,
  run: Pick<RunRow, 'answer_body' | 'answer' | 'answer_receipt_at' | 'receipt_id'>,
): Promise<string | null> {
  if (run.answer === null || run.answer_receipt_at === null || run.receipt_id === null) return run.answer_body
  const { body } = await tx
    .selectFrom('receipts')
    .select('body')
    .where('id', '=', run.receipt_id)
    .executeTakeFirstOrThrow()
  return insertReceipt({ text: unpackAnswer(run.answer), receiptAt: run.answer_receipt_at }, body)
}

/** Claims for this process: the others leave these runs to it for 30 seconds, or until it is seen dead. */
export async function claimDueSettlements(tx: Tx, instance: string, at: Date, maxRows: number): Promise<OpenRunRow[]> {
  const { rows } =
    await sql<OpenRunRow>`select * from claim_settlements(${instance}, ${at}, interval '30 seconds', ${maxRows})`.execute(
      tx,
    )
  return rows
}

/** Failed settlements whose payment may have arrived since. */
export async function claimFailedSettlements(tx: Tx, at: Date, maxRows: number): Promise<SettlementRecord[]> {
  const { rows } =
    await sql<SettlementRecord>`select * from claim_failed_settlements(${at}, interval '60 seconds', ${maxRows})`.execute(
      tx,
    )
  return rows
}

export const scheduleChainCheck = (tx: Tx, settlementId: string, at: Date | null) =>
  tx
    .updateTable('settlement_records')
    .set({ next_attempt_at: at })
    .where('id', '=', settlementId)
    .where('state', '=', 'failed')
    .execute()

/** The processes with open runs, dead or alive. */
export async function findInstancesOfOpenRuns(tx: Tx): Promise<string[]> {
  const { rows } = await sql<{ instance: string }>`
    select distinct instance from open_runs where state in ('executing', 'settling')`.execute(tx)
  return rows.map((row) => row.instance)
}

/** Runs without a stored result that are past their deadline, or whose process has died. */
export async function findOrphanedRuns(
  tx: Tx,
  deadInstances: readonly string[],
  at: Date,
  maxRows: number,
): Promise<OpenRunRow[]> {
  const { rows } = await sql<OpenRunRow>`
    select * from open_runs where state = 'executing' and (instance = any(${deadInstances}) or deadline_at < ${at})
    order by id limit ${maxRows}`.execute(tx)
  return rows
}

/** Stores what a lane has written so far. False when the run has ended or belongs to another process. */
export async function storeShownText(
  tx: Tx,
  { id, admission }: { id: string; admission: string },
  shownAdmission: string,
  part: PartialOutput,
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    update open_runs set result = ${JSON.stringify(part)}::jsonb, admission = ${shownAdmission}
    where id = ${id} and admission in (${admission}, ${shownAdmission}) and state = 'executing'`.execute(tx)
  return numAffectedRows === 1n
}

export async function readAdmission(tx: Tx, id: string): Promise<string | undefined> {
  const { rows } = await sql<{ admission: string }>`select admission from open_runs where id = ${id}`.execute(tx)
  return rows[0]?.admission
}

/** Gives an open run to this process. The admission is new, so that no step of the process before it counts any more. */
export async function takeOverRun(
  tx: Tx,
  { id, admission: before }: Pick<OpenRunRow, 'id' | 'admission'>,
  { instance, admission }: { instance: string; admission: string },
): Promise<OpenRunRow | undefined> {
  const { rows } = await sql<OpenRunRow>`
    update open_runs set instance = ${instance}, admission = ${admission},
      terms = jsonb_set(terms, '{async,takeovers}', to_jsonb((terms#>>'{async,takeovers}')::int + 1))
    where id = ${id} and admission = ${before} and state = 'executing' returning *`.execute(tx)
  return rows[0]
}

/**
 * Makes settlements that died with their process due now, once: the run then belongs to this process, and later attempts
 * follow its lease and back-off. One whose outcome is already known to be unknown keeps its back-off. Their callers have no answer.
 */
export async function releaseOrphanedSettlements(
  tx: Tx,
  instance: string,
  deadInstances: readonly string[],
  at: Date,
  maxRows: number,
): Promise<void> {
  await sql`
    with released as (
      update open_runs set instance = ${instance}, next_attempt_at = ${at}
      where id in (
        select id from open_runs
        where state = 'settling' and payment_state = 'pending' and next_attempt_at > ${at} and instance = any(${deadInstances})
        order by id limit ${maxRows} for update skip locked)
      returning id, tenant_id, payer, request_hash)
    insert into unanswered_payments (run_id, tenant_id, payer, request_hash, created_at)
    select id, tenant_id, payer, request_hash, ${at} from released on conflict do nothing`.execute(tx)
}

export async function listLoops(
  tx: Tx,
  tenantId: string,
  query: { limit: number; session_id?: string; since?: number },
) {
  let select = tx
    .selectFrom('runs')
    .select(['loop_id', 'id', 'agent_id', 'session_id', 'created_at', 'state', 'price_micro', 'result'])
    .where('tenant_id', '=', tenantId)
    .where('kind', '<>', 'topup')
    .where('state', 'in', ['executing', 'settling', 'completed', 'failed'])
  if (query.since !== undefined) select = select.where('created_at', '>=', new Date(query.since))
  const { session_id: sessionId } = query
  if (sessionId === undefined) return toLoopRows(await select.orderBy('id', 'desc').limit(query.limit).execute())
  // Sessions that a caller named have an index; a run's own session is found by the id of the run.
  const inSession = select.where('session_id', '=', sessionId)
  const [named, own] = await Promise.all([
    inSession
      .where(sql<boolean>`session_id <> 'ses_' || substr(id, 5)`)
      .orderBy('id', 'desc')
      .limit(query.limit)
      .execute(),
    inSession.where('id', '=', sessionId.replace(/^ses_/, 'run_')).execute(),
  ])
  const rows = new Map([...named, ...own].map((row) => [row.id, row]))
  return toLoopRows([...rows.values()].sort((a, b) => (a.id! < b.id! ? 1 : -1)).slice(0, query.limit))
}

type LoopColumn = 'loop_id' | 'id' | 'agent_id' | 'session_id' | 'created_at' | 'state' | 'price_micro' | 'result'
const toLoopRows = (rows: readonly unknown[]) => rows as Pick<RunRow, LoopColumn>[]

/** Outcomes have an index, so that a search for what has not ended reads nothing of what has. */
const outcomesOf: Partial<Record<RunProgress, string[]>> = {
  waiting: ['pending', 'approved'],
  executing: ['pending', 'approved'],
  escalated: ['escalated'],
}

export type RunsQuery = {
  limit: number
  after?: string
  outcome?: string
  action?: string
  agent_id?: string
  since?: string
  until?: string
  spender?: string
  team?: string
  tag?: string
  min_usdc?: number
  max_usdc?: number
  mandate_id?: string
  spent?: boolean
  progress?: RunProgress
}

/** A bound that lies between two prices includes neither more nor less than what it says. */
const roundMicro = (usdc: number, round: (value: number) => number) => BigInt(round(Number((usdc * 1e6).toFixed(3))))

/** `name` or `name:value`; a name has no colon. */
function hasTag(tag: string) {
  const colon = tag.indexOf(':')
  if (colon < 0) return sql<boolean>`jsonb_exists(tags, ${tag})`
  return sql<boolean>`tags->>${tag.slice(0, colon)}::text = ${tag.slice(colon + 1)}`
}

const listedColumns = [
  'id',
  'kind',
  'action',
  'outcome',
  'agent_id',
  'price_micro',
  'created_at',
  'receipt_id',
  'spender',
  'team',
  'tags',
  'finished_at',
  'progress',
] as const

/**
 * Up to `limit + 1` rows. `examinedTo` is the last row that was looked at, when there may be more behind it. Both are of one
 * statement: between two, rows may come and go, and the page after this one would have some again or miss some.
 */
export async function listRuns(tx: Tx, tenantId: string, query: RunsQuery, maxExamined = MAX_EXAMINED) {
  const { limit, since, until, outcome, progress } = query
  let listed = tx.selectFrom('run_history').where('tenant_id', '=', tenantId).orderBy('id', 'desc')
  if (query.after !== undefined) listed = listed.where('id', '<', query.after)
  if (since !== undefined) listed = listed.where('id', '>=', await firstIdSince(tx, 'run', tenantId, since, until))
  if (until !== undefined) listed = listed.where('id', '<', endIdUntil('run', until))
  if (outcome !== undefined && outcome !== 'completed') listed = listed.where('outcome', '=', outcome)
  const outcomes = progress && outcomesOf[progress]
  if (outcomes) listed = listed.where('outcome', 'in', outcomes)

  const filters: Expression<SqlBool>[] = []
  const eb = expressionBuilder<Pick<DB, 'run_history'>, 'run_history'>()
  if (since !== undefined) filters.push(eb('created_at', '>=', new Date(since)))
  if (until !== undefined) filters.push(eb('created_at', '<=', new Date(until)))
  if (outcome === 'completed') filters.push(eb('outcome', '=', outcome))
  if (query.action !== undefined) filters.push(eb('action', '=', query.action))
  if (query.agent_id !== undefined) filters.push(eb('agent_id', '=', query.agent_id))
  if (query.spender !== undefined) filters.push(eb('spender', '=', query.spender))
  if (query.team !== undefined) filters.push(eb('team', '=', query.team))
  if (query.tag !== undefined) filters.push(hasTag(query.tag))
  if (query.min_usdc !== undefined) filters.push(eb('price_micro', '>=', roundMicro(query.min_usdc, Math.ceil)))
  if (query.max_usdc !== undefined) filters.push(eb('price_micro', '<=', roundMicro(query.max_usdc, Math.floor)))
  if (query.mandate_id !== undefined) filters.push(eb('mandate_id', '=', query.mandate_id))
  // As the runs of `spend_entries`.
  if (query.spent) filters.push(eb('outcome', '=', 'completed'), eb('kind', 'in', ['run', 'loop']))
  if (progress !== undefined) filters.push(eb('progress', '=', progress))

  if (filters.length === 0)
    return {
      rows: await listed
        .select(listedColumns)
        .limit(limit + 1)
        .execute(),
    }
  const matches = tx
    .selectFrom(listed.selectAll().limit(maxExamined).as('run_history'))
    .select(listedColumns)
    .where((every) => every.and(filters))
    .orderBy('id', 'desc')
    .limit(limit + 1)
  const examinedTo = listed
    .select('id')
    .offset(maxExamined - 1)
    .limit(1)
  const rows = await tx
    .with(
      (cte) => cte('matches').materialized(),
      () => matches,
    )
    .selectFrom(sql`(select)`.as('one'))
    .leftJoin('matches', (join) => join.onTrue())
    .selectAll('matches')
    .select(
      sql<string | null>`case when (select count(*) from matches) <= ${limit} then (${examinedTo}) end`.as(
        'examined_to',
      ),
    )
    .orderBy('matches.id', 'desc')
    .execute()
  return { rows: rows.filter(({ id }) => id !== null), examinedTo: rows[0]?.examined_to ?? undefined }
}

/** A guest's asynchronous run. Any other run of a guest is found by its payment alone. */
export async function findGuestRun(tx: Tx, id: string): Promise<RunRow | undefined> {
  const row = await tx
    .selectFrom('runs')
    .selectAll()
    .where('id', '=', id)
    .where('tenant_id', 'is', null)
    .where(sql<boolean>`terms ? 'async'`)
    .executeTakeFirst()
  return row as RunRow | undefined
}

export async function findTenantRun(tx: Tx, tenantId: string, id: string): Promise<RunRow | undefined> {
  const row = await tx
    .selectFrom('runs')
    .selectAll()
    .where('id', '=', id)
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst()
  return row as RunRow | undefined
}

/** The list also contains pre-authorised payments, which have no stored response. */
export async function findRunRecord(tx: Tx, tenantId: string, id: string) {
  return tx
    .selectFrom('run_history')
    .leftJoin('runs', 'runs.id', 'run_history.id')
    .selectAll('run_history')
    .select(['runs.answer_status', 'runs.answer_body', 'runs.answer', 'runs.answer_receipt_at'])
    .where('run_history.id', '=', id)
    .where('run_history.tenant_id', '=', tenantId)
    .executeTakeFirst()
}
