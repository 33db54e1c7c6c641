import { sql } from 'kysely'
import type { Db } from '../../src/platform/db.ts'

/**
 * Puts receipts of typical length into the journal, from which they get into the log. They are not signed, because only the log is tested here and
 * a million signatures would take a minute.
 */
export async function queueReceipts(db: Db, from: number, count: number) {
  await sql`
    with issued as (
      insert into receipts (id, run_id, kind, agent_id, payer, issued_at, body, hash)
      select 'rcpt_' || lpad(n::text, 12, '0'), 'run_' || n, 'run', 'analyst-v1', '0x' || md5((n % 1000)::text),
             '2026-11-16T15:00:00Z'::timestamptz + n * interval '1 millisecond',
             (select '{"n":' || n || ',"filler":"' || string_agg(md5(n || ':' || part), '') || '"}' from generate_series(1, 35) as part),
             'sha256:' || md5(n::text) || md5('-' || n)
      from generate_series(${from}::int, ${from + count - 1}::int) as n
      returning id
    )
    insert into journal (at, receipt_id) select now(), id from issued order by id
  `.execute(db)
}

/** How long each of several appends of `leaves` leaves takes, in milliseconds, shortest first. */
export async function timeAppends(
  db: Db,
  append: () => Promise<unknown>,
  size: number,
  leaves: number,
  rounds: number,
) {
  const times: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    await queueReceipts(db, size + round * leaves, leaves)
    const before = performance.now()
    await append()
    times.push(performance.now() - before)
  }
  return times.sort((a, b) => a - b)
}

/** How long proofs of leaves from all over the log take, in milliseconds, shortest first; and the longest proof. */
export async function timeProofs(
  log: { places(indexes: number[]): Promise<Map<number, { inclusion_proof: string[] }>> },
  size: number,
  count: number,
) {
  const times: number[] = []
  let hashes = 0
  for (let i = 0; i < count; i += 1) {
    const index = Math.floor((i * size) / count)
    const before = performance.now()
    const places = await log.places([index])
    times.push(performance.now() - before)
    hashes = Math.max(hashes, places.get(index)!.inclusion_proof.length)
  }
  return { times: times.sort((a, b) => a - b), hashes }
}

export const percentile = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
