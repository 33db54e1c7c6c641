/**
 * Fills a database with runs that have ended, by SQL: the rows that a run leaves in `ended_runs`, `ledger` and `receipts`,
 * and of a fifth also an x402 settlement with its nonce, are copies of real ones with ids and times of their own.
 * The journal gets what the steps of a run write into it, so that the service itself writes the log, the audit chain and
 * the sums. Stored answers are shortened.
 */
import type { BenchService } from './bench-service.ts'
import { waitForDrain } from './writes.ts'

/** Small, because a statement of seconds keeps old row versions of the service's own tables from being removed. */
const CHUNK = 2_000
/** The runs are of the past days: two a second of them all. */
export const MS_BETWEEN_RUNS = 500
/** Rows of the journal that wait for the sequencer at the same time. */
const MAX_WAITING = 200_000

/** Ids of a run's rows are a prefix and a UUIDv7, which begins with the milliseconds. */
const id = (prefix: string) =>
  `'${prefix}_' || left(hex, 8) || '-' || right(hex, 4) || '-7000-8000-' || lpad(to_hex(n), 12, '0')`

const NUMBERED = `
  select n, at, lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') as hex
  from (select n, $2::timestamptz - (($1::bigint - n) * ${MS_BETWEEN_RUNS}) * interval '1 millisecond' as at from unnest($3::bigint[]) as n) series`

/** `template` is a row of the table; columns that are not named keep its values. */
const copy = (table: string, template: string, columns: string, where = '') => `
  insert into ${table}
  select made.* from (select source from ${table} source where ${template} limit 1) origin
  cross join (select *, ${id('run')} as run_id, ${id('rcpt')} as receipt_id, ${id('ltx')} as ledger_id, ${id('stl')} as settlement_id from (${NUMBERED}) numbered) made_ids
  cross join lateral jsonb_populate_record(origin.source, jsonb_build_object(${columns})) as made
  ${where}`

/**
 * Adds those of `total` runs whose number is wanted to the tenant that has made a wallet-paid run and an x402 payment. Few
 * and many are of the same days, so that what is counted by the hour has as many hours.
 */
export async function seedRuns(
  service: BenchService,
  tenantId: string,
  total: number,
  isWanted: (number: number) => boolean,
) {
  const { query } = service
  const [{ now }] = (await query<{ now: Date }>(`select now() - interval '1 minute' as now`)) as [{ now: Date }]
  const [sample] = await query<{ id: string; receipt_id: string }>(
    `select id, receipt_id from ended_runs where tenant_id = $1 and kind = 'run' and state = 'completed' limit 1`,
    [tenantId],
  )
  if (!sample) throw new Error('The tenant has no run to copy.')
  const statements = [
    copy(
      'ended_runs',
      `id = '${sample.id}'`,
      `'id', run_id, 'loop_id', ${id('loop')}, 'session_id', ${id('ses')}, 'receipt_id', receipt_id, 'created_at', at, 'finished_at', at,
       'deadline_at', at, 'decided_seq', nextval('decision_order'), 'ended_seq', nextval('decision_order'), 'answer_body', '{}', 'answer_receipt_at', 1`,
    ),
    copy('ledger', `ref = '${sample.id}'`, `'id', ledger_id, 'ref', run_id, 'created_at', at`),
    copy(
      'receipts',
      `id = '${sample.receipt_id}'`,
      `'id', receipt_id, 'run_id', run_id, 'issued_at', at, 'hash', 'sha256:' || encode(sha256(receipt_id::bytea), 'hex'),
       'body', replace(replace((origin.source).body, '${sample.receipt_id}', receipt_id), '${sample.id}', run_id)`,
    ),
    copy(
      'settlement_records',
      `tenant_id = '${tenantId}' and method = 'x402'`,
      `'id', settlement_id, 'run_id', run_id, 'nonce', '0x' || encode(sha256(run_id::bytea), 'hex'), 'created_at', at, 'updated_at', at, 'shared_transaction', true`,
      'where hashint8(n) % 5 = 0',
    ),
    copy(
      'nonces',
      'true',
      `'run_id', run_id, 'nonce', '0x' || encode(sha256(run_id::bytea), 'hex')`,
      'where hashint8(n) % 5 = 0',
    ),
    `insert into journal (tenant_id, at, audits, receipt_id, ledger_id, ended)
     select '${tenantId}', at,
       jsonb_build_array(jsonb_build_object('id', ${id('aud')}, 'type', 'run.completed', 'occurred_at', at, 'actor', 'countersign', 'subject', ${id('run')},
         'decision', 'completed', 'policy_ids', jsonb_build_array(), 'data', jsonb_build_object('amount', '10000', 'agent_id', 'comedian-v1'))),
       ${id('rcpt')}, ${id('ltx')},
       jsonb_build_object('run_id', ${id('run')}, 'kind', 'run', 'agent_id', 'comedian-v1', 'state', 'completed', 'created_at', at, 'price_micro', 10000,
         'cost_usd', 0, 'latency_ms', 1,
         'spend', (select spend_names(state, spender, team, key_id, wallet_id, tags) from ended_runs where id = '${sample.id}'))
     from (${NUMBERED}) numbered`,
  ]
  const numbers = Array.from({ length: total }, (_, number) => number).filter(isWanted)
  for (let start = 0; start < numbers.length; start += CHUNK) {
    const values = [total, now, numbers.slice(start, start + CHUNK)]
    for (const statement of statements) await query(statement, values)
    await waitForJournal(service, MAX_WAITING)
  }
  await waitForJournal(service, 0)
  await waitForDrain(query)
  await query('vacuum (analyze)')
  await query('checkpoint')
}

async function waitForJournal({ query }: BenchService, waiting: number) {
  for (;;) {
    const [row] = await query<{ count: string }>('select count(*) from (select from journal limit $1) waiting', [
      waiting + 1,
    ])
    if (Number(row!.count) <= waiting) return
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}
