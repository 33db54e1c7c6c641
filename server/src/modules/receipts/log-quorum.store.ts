import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import type { DueCondition } from '../../platform/jobs.ts'

/** How the newest checkpoint stands with the quorum of LOG_POLICY. */
export type QuorumRow = { size: number; published_size: number; behind_since: Date | null }

export async function readQuorum(tx: Tx): Promise<QuorumRow> {
  const { rows } = await sql<{ size: bigint; published_size: bigint; behind_since: Date | null }>`
    select coalesce(head.size, 0) as size, quorum.published_size,
           case when head.size > quorum.published_size then coalesce(quorum.behind_since, head.updated_at) end as behind_since
    from log_quorum quorum left join log_head head on true
  `.execute(tx)
  const { size, published_size, behind_since } = rows[0]!
  return { size: Number(size), published_size: Number(published_size), behind_since }
}

/** A tree that not every witness with an address has cosigned, a witness that may be asked, and nobody who asks already. */
export const witnessesDue =
  (witnesses: readonly string[]): DueCondition =>
  (now) =>
    sql`exists (
    select 1 from log_quorum quorum cross join log_head head
    cross join unnest(${witnesses}::text[]) as named (witness) left join log_witnesses known using (witness)
    where quorum.expires_at < clock_timestamp() and head.size > 0 and coalesce(known.next_attempt_at, '-infinity') <= ${now}
      and not exists (select 1 from log_cosignatures given where given.size = head.size and given.witness = named.witness)
  )`

export type WitnessToAsk = { witness: string; size: number; failures: number }

/**
 * Takes the turn to send and writes down what is sent to whom: after a crash the turn ends by itself, and the next process
 * learns from the witnesses how far they are. Undefined when another process has the turn or nobody is to be asked.
 */
export async function takeTurn(
  tx: Tx,
  { holder, witnesses, now, leaseMs }: { holder: string; witnesses: readonly string[]; now: Date; leaseMs: number },
): Promise<{ size: number; ask: WitnessToAsk[] } | undefined> {
  const { rows } = await sql<{ size: bigint }>`
    update log_quorum set holder = ${holder}, sent_size = head.size,
      expires_at = clock_timestamp() + ${leaseMs} * interval '1 millisecond',
      behind_since = case when head.size > published_size then coalesce(behind_since, ${now}) end
    from log_head head
    where log_quorum.id = 1 and head.size > 0 and log_quorum.expires_at < clock_timestamp()
    returning head.size
  `.execute(tx)
  if (!rows[0]) return undefined
  const size = Number(rows[0].size)
  const { rows: asked } = await sql<{ witness: string; size: bigint; failures: number }>`
    insert into log_witnesses (witness, asked_at)
    select witness, ${now} from unnest(${witnesses}::text[]) as named (witness)
    where not exists (select 1 from log_cosignatures given where given.size = ${size} and given.witness = named.witness)
    on conflict (witness) do update set asked_at = excluded.asked_at where log_witnesses.next_attempt_at <= ${now}
    returning witness, size, failures
  `.execute(tx)
  return { size, ask: asked.map((row) => ({ ...row, size: Number(row.size) })) }
}

export async function endTurn(tx: Tx, holder: string) {
  await sql`update log_quorum set expires_at = '-infinity' where id = 1 and holder = ${holder}`.execute(tx)
}

export async function recordAnswer(tx: Tx, witness: string, size: number, now: Date) {
  await sql`
    update log_witnesses set size = ${size}, answered_at = ${now}, failures = 0, next_attempt_at = '-infinity', problem = null
    where witness = ${witness}
  `.execute(tx)
}

export async function recordFailure(
  tx: Tx,
  failure: { witness: string; size: number; problem: string; nextAttemptAt: Date },
) {
  await sql`
    update log_witnesses set size = ${failure.size}, failures = failures + 1, problem = ${failure.problem},
      next_attempt_at = ${failure.nextAttemptAt}
    where witness = ${failure.witness}
  `.execute(tx)
}

/** Trees only become published in order; a larger one with its quorum makes the smaller ones history. */
export async function publishSize(tx: Tx, size: number, now: Date) {
  await sql`
    update log_quorum set published_size = ${size},
      behind_since = case when (select max(size) from log_head) > ${size} then ${now}::timestamptz end
    where id = 1 and published_size < ${size}
  `.execute(tx)
}

/** Another policy may not be met by the tree that the one before it was met by. */
export async function resetPublishedSize(tx: Tx, size: number) {
  await sql`update log_quorum set published_size = ${size} where id = 1 and published_size <> ${size}`.execute(tx)
}

/** The sizes that have cosignatures, largest first. */
export async function cosignedSizes(tx: Tx): Promise<number[]> {
  const { rows } = await sql<{ size: bigint }>`
    select size from log_cosignatures group by size order by size desc
  `.execute(tx)
  return rows.map(({ size }) => Number(size))
}

/** How often each witness has failed in a row. */
export async function readWitnessFailures(tx: Tx): Promise<Record<string, number>> {
  const { rows } = await sql<{ witness: string; failures: number }>`
    select witness, failures from log_witnesses
  `.execute(tx)
  return Object.fromEntries(rows.map(({ witness, failures }) => [witness, failures]))
}
