import { type Selectable, sql } from 'kysely'
import { callStep } from '../../platform/batch.ts'
import type { Tx } from '../../platform/db.ts'
import type { Escrows, Payouts, Wallets } from '../../platform/generated/db.ts'
import type { StepInput } from '../../platform/sql-step.ts'
import { endEscrowStep, endPayoutStep, holdEscrowStep, requestPayoutStep } from './ledger.steps.ts'

export type WalletRow = Selectable<Wallets>
export type WalletBalance = Pick<WalletRow, 'id' | 'tenant_id' | 'available_micro'>
export type EscrowRow = Selectable<Escrows>
export type PayoutRow = Selectable<Payouts>

export const findWallet = (tx: Tx, id: string): Promise<WalletRow | undefined> =>
  tx.selectFrom('wallets').selectAll().where('id', '=', id).executeTakeFirst()

/** The owner and the balance of each of these wallets, in their order; undefined where there is no such wallet. */
export async function readWalletBalances(tx: Tx, ids: readonly string[]): Promise<(WalletBalance | undefined)[]> {
  const { rows } = await sql<WalletBalance>`
    select id, tenant_id, available_micro from wallets where id = any(${[...new Set(ids)]}::text[])
  `.execute(tx)
  const balances = new Map(rows.map((row) => [row.id, row]))
  return ids.map((id) => balances.get(id))
}

export async function listWallets(
  tx: Tx,
  tenantId: string,
  page: { limit: number; cursor?: string },
): Promise<WalletRow[]> {
  let select = tx.selectFrom('wallets').selectAll().where('tenant_id', '=', tenantId)
  if (page.cursor !== undefined) select = select.where('id', '<', page.cursor)
  return select.orderBy('id', 'desc').limit(page.limit).execute()
}

export async function countWallets(tx: Tx, tenantId: string): Promise<number> {
  const { n } = await tx
    .selectFrom('wallets')
    .select((on) => on.fn.countAll().as('n'))
    .where('tenant_id', '=', tenantId)
    .executeTakeFirstOrThrow()
  return Number(n)
}

export const insertWallet = (
  tx: Tx,
  row: Pick<WalletRow, 'id' | 'tenant_id' | 'name' | 'created_at'>,
): Promise<WalletRow> => tx.insertInto('wallets').values(row).returningAll().executeTakeFirstOrThrow()

export const findEscrow = (tx: Tx, id: string): Promise<EscrowRow | undefined> =>
  tx.selectFrom('escrows').selectAll().where('id', '=', id).executeTakeFirst()

export async function listEscrows(
  tx: Tx,
  walletId: string,
  page: { limit: number; cursor?: string; state?: string },
): Promise<EscrowRow[]> {
  let select = tx.selectFrom('escrows').selectAll().where('wallet_id', '=', walletId)
  if (page.state !== undefined) select = select.where('state', '=', page.state)
  if (page.cursor !== undefined) select = select.where('id', '<', page.cursor)
  return select.orderBy('id', 'desc').limit(page.limit).execute()
}

/** The escrows of a tenant on either side, each by its own index. */
export async function listTenantEscrows(
  tx: Tx,
  tenantId: string,
  page: { limit: number; cursor?: string; state?: string; side?: 'sent' | 'received' },
): Promise<EscrowRow[]> {
  const rows = (own: ReturnType<typeof sql>) => sql`
    (select * from escrows where ${own}
       and ${page.state === undefined ? sql`true` : sql`state = ${page.state}`}
       and ${page.cursor === undefined ? sql`true` : sql`id < ${page.cursor}`}
     order by id desc limit ${page.limit})`
  const parts = [
    ...(page.side === 'received' ? [] : [rows(sql`tenant_id = ${tenantId}`)]),
    ...(page.side === 'sent'
      ? []
      : [
          rows(
            page.side === undefined
              ? sql`to_tenant_id = ${tenantId} and tenant_id <> ${tenantId}`
              : sql`to_tenant_id = ${tenantId}`,
          ),
        ]),
  ]
  const { rows: escrows } = await sql<EscrowRow>`
    select * from (${sql.join(parts, sql` union all `)}) escrow order by id desc limit ${page.limit}`.execute(tx)
  return escrows
}

export const listExpiredEscrows = (tx: Tx, at: Date, maxRows: number): Promise<EscrowRow[]> =>
  tx
    .selectFrom('escrows')
    .selectAll()
    .where('state', '=', 'held')
    .where('run_id', 'is', null)
    .where('expires_at', '<=', at)
    .orderBy('expires_at')
    .limit(maxRows)
    .execute()

/** The same locks, in the same order, as the steps of runs. */
export const lock = (tx: Tx, names: readonly string[]) => sql`select lock_names(${names}::text[])`.execute(tx)

export const holdEscrow = (tx: Tx, item: StepInput<typeof holdEscrowStep>) => callStep(tx, holdEscrowStep, item)
export const endEscrow = (tx: Tx, item: StepInput<typeof endEscrowStep>) => callStep(tx, endEscrowStep, item)

export const markDisputed = (tx: Tx, id: string, reason: string) =>
  tx
    .updateTable('escrows')
    .set({ state: 'disputed', reason })
    .where('id', '=', id)
    .where('state', '=', 'held')
    .returningAll()
    .executeTakeFirst()

export const requestPayout = (tx: Tx, item: StepInput<typeof requestPayoutStep>) =>
  callStep(tx, requestPayoutStep, item)

export const endPayout = (tx: Tx, item: StepInput<typeof endPayoutStep>): Promise<boolean> =>
  callStep(tx, endPayoutStep, item)

export const findPayout = (tx: Tx, id: string): Promise<PayoutRow | undefined> =>
  tx.selectFrom('payouts').selectAll().where('id', '=', id).executeTakeFirst()

export async function listPayouts(
  tx: Tx,
  page: { limit: number; cursor?: string; state?: string },
): Promise<PayoutRow[]> {
  let select = tx.selectFrom('payouts').selectAll()
  if (page.state !== undefined) select = select.where('state', '=', page.state)
  if (page.cursor !== undefined) select = select.where('id', '<', page.cursor)
  return select.orderBy('id', 'desc').limit(page.limit).execute()
}

export async function claimPayouts(tx: Tx, at: Date, maxRows: number): Promise<PayoutRow[]> {
  const { rows } = await sql<PayoutRow>`select * from claim_payouts(${at}, interval '60 seconds', ${maxRows})`.execute(
    tx,
  )
  return rows
}

export const notePayout = (tx: Tx, id: string, reason: string, refusedUntil: bigint | null, at: Date) =>
  sql`select note_payout(${id}, ${reason}, ${refusedUntil}, ${at})`.execute(tx)
