import type { Selectable } from 'kysely'
import type { Caller } from '../../platform/auth-context.ts'
import type { Db } from '../../platform/db.ts'
import type { Settlements } from '../../platform/generated/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { invalid, notFound } from '../../platform/problem.ts'

export type SettlementRow = Selectable<Settlements>

export type SettlementsDeps = {
  db: Db
  /** Finishes an unfinished settlement through the run's own door; the runs module provides it. */
  drive(settlement: SettlementRow): Promise<void>
}

type Named = { settlement_id?: string; run_id?: string }
type ListQuery = { limit?: number; cursor?: string; state?: string; run_id?: string }

export function createSettlements({ db, drive }: SettlementsDeps) {
  /** A guest's settlement is found by its unguessable id alone; a tenant's only by that tenant. */
  const find = async (caller: Caller, named: Named): Promise<SettlementRow> => {
    let select = db.selectFrom('settlements').selectAll()
    if (named.settlement_id !== undefined) select = select.where('id', '=', named.settlement_id)
    if (named.run_id !== undefined) select = select.where('run_id', '=', named.run_id)
    const row = await select.executeTakeFirst()
    const visible = row && (row.tenant_id === null || (caller.kind === 'tenant' && caller.tenantId === row.tenant_id))
    if (!visible) throw notFound('settlement')
    return row
  }

  return {
    get: async (caller: Caller, id: string) => record(await find(caller, { settlement_id: id })),

    async settle(caller: Caller, named: Named) {
      if (named.settlement_id === undefined && named.run_id === undefined)
        throw invalid('Name a settlement_id or a run_id.')
      const row = await find(caller, named)
      if (row.state === 'pending' || row.state === 'unknown') await drive(row)
      return record(await find(caller, { settlement_id: row.id }))
    },

    async list(caller: Caller, query: ListQuery) {
      if (caller.kind === 'guest') return { settlements: [], has_more: false, next_cursor: null }
      const limit = query.limit ?? 20
      let select = db.selectFrom('settlements').selectAll().where('tenant_id', '=', caller.tenantId)
      if (query.state !== undefined) select = select.where('state', '=', query.state)
      if (query.run_id !== undefined) select = select.where('run_id', '=', query.run_id)
      if (query.cursor !== undefined) select = select.where('id', '<', query.cursor)
      const rows = await select
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute()
      const settlements = rows.slice(0, limit).map(record)
      const has_more = rows.length > limit
      return { settlements, has_more, next_cursor: has_more ? settlements.at(-1)!.settlement_id : null }
    },
  }
}

export type SettlementsFace = ReturnType<typeof createSettlements>

const record = (row: SettlementRow) => ({
  settlement_id: row.id,
  run_id: row.run_id,
  status: row.state,
  method: row.method,
  network: row.network,
  asset: row.asset,
  payer: row.payer,
  pay_to: row.pay_to,
  amount: row.amount_micro.toString(),
  amount_usdc: usdcFromMicro(row.amount_micro),
  nonce: row.nonce,
  transaction: row.transaction,
  block: row.block === null ? null : Number(row.block),
  reason: row.reason,
  attempts: row.attempts,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})
