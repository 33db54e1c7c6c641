import { type Selectable, sql } from 'kysely'
import type { Tx, WithNotNull } from '../../platform/db.ts'
import type { Settlements } from '../../platform/generated/db.ts'
import { endIdUntil, firstIdSince } from '../../platform/id-range.ts'
import type { PaymentNonce } from './x402.ts'

export type SettlementRow = WithNotNull<
  Selectable<Settlements>,
  'tenant_id' | 'payment' | 'transaction' | 'block' | 'reason' | 'next_attempt_at' | 'wallet_id'
>
export type SettlementWithPayout = SettlementRow & {
  payout_id: string | null
  payout_state: string | null
  payout_transaction: string | null
}

export async function findSettlementOf(tx: Tx, runId: string): Promise<SettlementRow> {
  const row = await tx
    .selectFrom('settlements')
    .selectAll()
    .where('run_id', '=', runId)
    .limit(1)
    .executeTakeFirstOrThrow()
  return row as SettlementRow
}

export async function findSettlementWithPayout(tx: Tx, runId: string): Promise<SettlementWithPayout | undefined> {
  const row = await tx
    .selectFrom('settlements as settlement')
    .leftJoin('payouts as payout', 'payout.settlement_id', 'settlement.id')
    .selectAll('settlement')
    .select(['payout.id as payout_id', 'payout.state as payout_state', 'payout.transaction as payout_transaction'])
    .where('settlement.run_id', '=', runId)
    .limit(1)
    .executeTakeFirst()
  return row as SettlementWithPayout | undefined
}

/** The run of a settlement: it has a record, its run is open, or it was paid from a wallet and the ids agree. */
export async function findRunOfSettlement(tx: Tx, settlementId: string): Promise<string | undefined> {
  const { rows } = await sql<{ run_id: string }>`
    select run_id from settlement_records where id = ${settlementId}
    union all
    select id from open_runs where terms->>'settlement_id' = ${settlementId}
    union all
    select id from ended_runs where id = ${settlementId.replace(/^stl_/, 'run_')} and terms->>'settlement_id' = ${settlementId}
    limit 1`.execute(tx)
  return rows[0]?.run_id
}

/** The run that used each of these nonces. */
export async function findRunsOfNonces(tx: Tx, nonces: readonly PaymentNonce[]): Promise<(string | undefined)[]> {
  const column = (read: (nonce: PaymentNonce) => string) => nonces.map(read)
  // The address of a token may be written in either case.
  const { rows } = await sql<{ place: number; run_id: string }>`
    select asked.place::int as place, used.run_id
    from unnest(${column(({ payer }) => payer)}::text[], ${column(({ nonce }) => nonce)}::text[],
        ${column(({ network }) => network)}::text[], ${column(({ asset }) => asset.toLowerCase())}::text[])
      with ordinality as asked(payer, nonce, network, asset, place)
    join nonces used on used.payer = asked.payer and used.nonce = asked.nonce and used.network = asked.network
      and lower(used.asset) = asked.asset`.execute(tx)
  const runIds = new Map(rows.map((row) => [row.place, row.run_id]))
  return nonces.map((_, index) => runIds.get(index + 1))
}

export async function listSettlements(
  tx: Tx,
  tenantId: string,
  query: { limit: number; cursor?: string; state?: string; method?: string; since?: string; until?: string },
): Promise<SettlementWithPayout[]> {
  const { cursor = null, state = null, method = null, since, until } = query
  const firstId = since === undefined ? null : await firstIdSince(tx, 'stl', tenantId, since, until)
  const { rows } = await sql<SettlementWithPayout>`
    select settlement.*, payout.id as payout_id, payout.state as payout_state, payout.transaction as payout_transaction
    from tenant_settlements(${tenantId}, ${cursor}, ${state}, ${query.limit}, ${method}, ${since ? new Date(since) : null}, ${until ? new Date(until) : null},
      ${firstId}, ${until ? endIdUntil('stl', until) : null}) settlement
    left join payouts payout on payout.settlement_id = settlement.id
    order by settlement.id desc`.execute(tx)
  return rows
}

/** Every x402 settlement in the order of its id. */
export async function listX402Settlements(tx: Tx, after: string, limit: number): Promise<SettlementRow[]> {
  const rows = await tx
    .selectFrom('settlements')
    .selectAll()
    .where('method', '=', 'x402')
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows as SettlementRow[]
}

export async function listOpenX402Settlements(tx: Tx): Promise<SettlementRow[]> {
  const rows = await tx
    .selectFrom('settlements')
    .selectAll()
    .where('method', '=', 'x402')
    .where('state', 'in', ['pending', 'unknown'])
    .execute()
  return rows as SettlementRow[]
}
