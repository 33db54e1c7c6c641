import type { Selectable } from 'kysely'
import type { Caller } from '../../platform/auth-context.ts'
import type { Db } from '../../platform/db.ts'
import type { Settlements } from '../../platform/generated/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { toPage } from '../../platform/paging.ts'
import { conflict, invalid, notFound } from '../../platform/problem.ts'
import { readPayload } from './x402.ts'

export type SettlementRow = Selectable<Settlements>
type Row = SettlementRow & {
  payout_id: string | null
  payout_state: string | null
  payout_transaction: string | null
}

export type SettlementsDeps = {
  db: Db
  /** Finishes an unfinished settlement through the run's own door; the runs module provides it. */
  drive(settlement: SettlementRow): Promise<void>
  /** The run that a tenant's pre-authorisation was used for; governance knows it. */
  runOfPreauth(tenantId: string, preauthId: string): Promise<string | undefined>
}

type Named = {
  settlement_id?: string
  run_id?: string
  preauth_id?: string
  payment_payload?: object
}
type ListQuery = { limit?: number; cursor?: string; state?: string; run_id?: string }

export function createSettlements({ db, drive, runOfPreauth }: SettlementsDeps) {
  const select = () =>
    db
      .selectFrom('settlements as s')
      .leftJoin('payouts as o', 'o.settlement_id', 's.id')
      .selectAll('s')
      .select(['o.id as payout_id', 'o.state as payout_state', 'o.transaction as payout_transaction'])

  /** A guest's settlement is found by its unguessable id alone; a tenant's only by that tenant. */
  const find = async (caller: Caller, named: Named): Promise<Row> => {
    let query = select()
    if (named.settlement_id !== undefined) query = query.where('s.id', '=', named.settlement_id)
    if (named.run_id !== undefined) query = query.where('s.run_id', '=', named.run_id)
    if (named.preauth_id !== undefined) query = query.where('s.run_id', '=', await runOf(caller, named.preauth_id))
    const paid = named.payment_payload && readPayload(named.payment_payload)?.payment
    if (named.payment_payload && !paid)
      throw invalid('body/payment_payload is not an x402 payment of the scheme exact.')
    const alone = Object.keys(named).every((name) => name === 'payment_payload')
    if (paid && alone)
      query = query.where('s.payer', '=', paid.authorization.from).where('s.nonce', '=', paid.authorization.nonce)
    const row = await query.executeTakeFirst()
    const visible = row && (row.tenant_id === null || (caller.kind === 'tenant' && caller.tenantId === row.tenant_id))
    if (!visible) throw notFound('settlement')
    if (paid && (row.payment as { signature?: string } | null)?.signature !== paid.signature)
      throw conflict('This is not the payment of that settlement. It was not used.')
    return row
  }

  const runOf = async (caller: Caller, preauthId: string): Promise<string> => {
    const runId = caller.kind === 'tenant' ? await runOfPreauth(caller.tenantId, preauthId) : undefined
    if (runId === undefined) throw notFound('settlement')
    return runId
  }

  return {
    get: async (caller: Caller, id: string) => record(await find(caller, { settlement_id: id })),

    async settle(caller: Caller, { settlement_id, run_id, preauth_id, payment_payload }: Named) {
      const named = Object.fromEntries(
        Object.entries({ settlement_id, run_id, preauth_id, payment_payload }).filter(
          ([, value]) => value !== undefined,
        ),
      )
      if (Object.keys(named).length === 0)
        throw invalid('Name a settlement_id, a run_id or a preauth_id, or send the payment_payload.')
      const row = await find(caller, named)
      if (row.state === 'pending' || row.state === 'unknown') await drive(row)
      return record(await find(caller, { settlement_id: row.id }))
    },

    async list(caller: Caller, query: ListQuery) {
      if (caller.kind === 'guest') return { settlements: [], has_more: false, next_cursor: null }
      const limit = query.limit ?? 20
      let page = select().where('s.tenant_id', '=', caller.tenantId)
      if (query.state !== undefined) page = page.where('s.state', '=', query.state)
      if (query.run_id !== undefined) page = page.where('s.run_id', '=', query.run_id)
      if (query.cursor !== undefined) page = page.where('s.id', '<', query.cursor)
      const rows = await page
        .orderBy('s.id', 'desc')
        .limit(limit + 1)
        .execute()
      const { rows: settlements, ...paging } = toPage(rows, limit)
      return { settlements: settlements.map(record), ...paging }
    },
  }
}

export type SettlementsFace = ReturnType<typeof createSettlements>

const record = (row: Row) => ({
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
  wallet_id: row.wallet_id,
  refund: row.payout_id && {
    payout_id: row.payout_id,
    status: row.payout_state,
    transaction: row.payout_transaction,
  },
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})
