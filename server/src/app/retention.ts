import { sql } from 'kysely'
import { pruneInBatches } from '../platform/prune.ts'
import type { AppContext } from './context.ts'

const PRUNE_MS = 60_000

/** How old the oldest row of each table may become, by a column with an index. docs/operations.md lists the same. */
const retentions: [table: string, oldest: string, keep: string][] = [
  ['idempotency_answers', 'min(expires_at) from idempotency_answers', '0'],
  ['run_keys', 'min(expires_at) from run_keys', '0'],
  ['rh_run_keys', 'min(expires_at) from rh_run_keys', '0'],
  ['sessions', 'min(expires_at) from sessions', '0'],
  ['memories', 'min(expires_at) from memories', '0'],
  ['webhook_deliveries', 'min(created_at) from webhook_deliveries', '30 days'],
  ['approval_messages', 'min(created_at) from approval_messages', '30 days'],
  ['approval_links', 'min(expires_at) from approval_links', '30 days'],
  ['basis_fetches', 'min(fetched_at) from basis_fetches', '30 days'],
  ['basis_bodies', 'min(stored_at) from basis_bodies', '30 days'],
  ['basis_readings', 'min(as_of) from basis_readings', '400 days'],
  [
    'limits',
    `(substr(min(period collate "C"), 5) || 'Z')::timestamptz + interval '1 day' from limits where period collate "C" >= 'day:' and period collate "C" < 'day;'`,
    '35 days',
  ],
]

/** Deletes what is kept no longer, in one process at a time: the one that holds the sequencer's lease. */
export function createPruning({ jobs }: Pick<AppContext, 'jobs'>, sequencer: { isLeader(): boolean }) {
  return {
    every: (name: string, deleteBatch: () => Promise<number>, milliseconds = PRUNE_MS) =>
      jobs.every(name, milliseconds, async () => (sequencer.isLeader() ? pruneInBatches(deleteBatch) : 0)),
  }
}

export type Pruning = ReturnType<typeof createPruning>

/** For how many seconds the oldest row of each table has been kept beyond its time: 0 while pruning keeps up. */
export async function readRetentionOverdue(db: AppContext['db']): Promise<Record<string, number>> {
  const columns = retentions.map(
    ([table, oldest, keep]) =>
      `greatest(0, coalesce(extract(epoch from now() - (select ${oldest}) - interval '${keep}'), 0)) as ${table}`,
  )
  const { rows } = await sql.raw<Record<string, string>>(`select ${columns.join(', ')}`).execute(db)
  return Object.fromEntries(Object.entries(rows[0]!).map(([table, seconds]) => [table, Number(seconds)]))
}
