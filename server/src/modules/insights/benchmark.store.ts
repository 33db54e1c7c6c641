import { type Selectable, sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import type { BenchmarkResults } from '../../platform/generated/db.ts'

export type BenchmarkRow = Selectable<BenchmarkResults>

const KEPT = 20

export async function insertBenchmark(
  tx: Tx,
  benchmark: { id: string; suite_version: string; as_of: Date },
  results: readonly Omit<BenchmarkRow, 'benchmark_id'>[],
) {
  await tx.insertInto('benchmarks').values(benchmark).execute()
  const rows = results.map((result) => ({ ...result, price_micro: result.price_micro.toString() }))
  await sql`
    insert into benchmark_results (benchmark_id, agent_id, task_id, completed, verified, score, latency_ms, price_micro, provider, model, mode)
    select ${benchmark.id}, r.* from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as r(agent_id text, task_id text, completed boolean, verified boolean, score float8, latency_ms float8, price_micro bigint,
           provider text, model text, mode text)`.execute(tx)
  await sql`delete from benchmarks where id in (select id from benchmarks order by id desc offset ${KEPT})`.execute(tx)
}

export const readNewest = (tx: Tx) =>
  tx.selectFrom('benchmarks').selectAll().orderBy('id', 'desc').limit(1).executeTakeFirst()

export const readResults = (tx: Tx, benchmarkId: string): Promise<BenchmarkRow[]> =>
  tx
    .selectFrom('benchmark_results')
    .selectAll()
    .where('benchmark_id', '=', benchmarkId)
    .orderBy('agent_id')
    .orderBy('task_id')
    .execute()
