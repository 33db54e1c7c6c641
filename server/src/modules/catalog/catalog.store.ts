import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import type { LaneChange } from './price-list.ts'

export async function readLaneChanges(tx: Tx): Promise<LaneChange[]> {
  const rows = await tx.selectFrom('lanes').select('record').orderBy('agent_id').execute()
  return rows.map((row) => row.record as LaneChange)
}

/** When an operator last changed a lane; null when all are as shipped. */
export async function readLastLaneChange(tx: Tx): Promise<Date | null> {
  const row = await tx
    .selectFrom('lanes')
    .select(({ fn }) => fn.max('updated_at').as('updated_at'))
    .executeTakeFirst()
  return row?.updated_at ?? null
}

export async function changeLane(tx: Tx, change: LaneChange, at: Date) {
  await sql`
    insert into lanes (agent_id, record, updated_at) values (${change.agent_id}, ${JSON.stringify(change)}::jsonb, ${at})
    on conflict (agent_id) do update set record = lanes.record || excluded.record, updated_at = excluded.updated_at
  `.execute(tx)
  await sql`notify catalog`.execute(tx)
}

type LaneStats = {
  agent_id: string
  runs: bigint
  success_rate: number | null
  p50_ms: number | null
  p95_ms: number | null
}

export async function readLaneStats(tx: Tx) {
  const { rows } = await sql<LaneStats>`select agent_id, runs, success_rate, p50_ms, p95_ms from lane_stats()`.execute(
    tx,
  )
  return rows.map((row) => ({ ...row, runs: Number(row.runs) }))
}

export async function readLaneTrust(tx: Tx) {
  const rows = await tx.selectFrom('lane_trust').selectAll().execute()
  return rows.map((row) => ({
    agent_id: row.agent_id!,
    receipts: Number(row.receipts),
    succeeded: Number(row.succeeded),
    last_seen_at: row.last_seen_at!,
  }))
}
