import { sql } from 'kysely'
import type { Db, Tx } from '../../../platform/db.ts'
import { outsideTenantReads } from '../../../platform/tenant-reads.ts'
import { type AccountDraft, type PaperAccount, type PaperOrder, revivePaperJson, toPaperJson } from './paper-account.ts'

/**
 * Stores the paper accounts. An account is one row, locked while it changes, and a client order id is unique for the
 * venue: two processes with the same order, or a crash in the middle of one, leave one order.
 */
export type PaperStore = {
  read(accountId: string): Promise<PaperAccount | undefined>
  findOrder(clientOrderId: string): Promise<{ accountId: string; order: PaperOrder } | undefined>
  /** Creates the account if there is none yet; of two concurrent calls one creates it. */
  open(draft: AccountDraft, at: Date): Promise<void>
  /**
   * Applies `change` to the locked account and stores its draft; undefined changes nothing.
   * `clientOrderId` is looked up under the same lock, so that `change` can see that its order exists already.
   */
  change(
    accountId: string,
    at: Date,
    change: (account: PaperAccount, existingOrder: PaperOrder | undefined) => AccountDraft | undefined,
    clientOrderId?: string,
  ): Promise<void>
  /** Accounts that change with time and have not been advanced since `before`, oldest first. */
  listIdleAccounts(before: Date, limit: number): Promise<string[]>
  list(limit: number): Promise<PaperAccount[]>
}

const MAX_STORED_FILLS = 5000

export function createPaperStore(db: Db, venue: string): PaperStore {
  const findOrder = async (tx: Tx, clientOrderId: string) => {
    const { rows } = await sql<{ account_id: string; body: unknown }>`
      select account_id, body from paper_orders where venue = ${venue} and client_order_id = ${clientOrderId}
    `.execute(tx)
    const row = rows[0]
    return row && { accountId: row.account_id, order: reviveOrder(row.body) }
  }

  return {
    async read(accountId) {
      const { rows } = await sql<{ book: unknown }>`
        select book from paper_accounts where venue = ${venue} and account_id = ${accountId}
      `.execute(db)
      return rows[0] && reviveAccount(rows[0].book)
    },

    findOrder: (clientOrderId) => findOrder(db, clientOrderId),

    // A paper broker is a party of its own: its book moves with time also when a tenant only looks at it.
    async open(draft, at) {
      const openBook = async (tx: Tx) => {
        const { rows } = await sql`
          insert into paper_accounts (venue, account_id, book, active, looked_at)
          values (${venue}, ${draft.account.accountId}, ${toPaperJson(draft.account)}::jsonb, false, ${at})
          on conflict do nothing returning account_id
        `.execute(tx)
        if (rows.length === 1) await writeEffects(tx, venue, draft)
      }
      await outsideTenantReads(() => db.transaction().execute(openBook))
    },

    async change(accountId, at, step, clientOrderId) {
      const changeBook = async (tx: Tx) => {
        const { rows } = await sql<{ book: unknown }>`
          select book from paper_accounts where venue = ${venue} and account_id = ${accountId} for update
        `.execute(tx)
        if (!rows[0]) throw new Error(`There is no paper account ${accountId} at ${venue}.`)
        const existingOrder = clientOrderId === undefined ? undefined : await findOrder(tx, clientOrderId)
        const draft = step(reviveAccount(rows[0].book), existingOrder?.order)
        if (!draft) return
        await sql`
          update paper_accounts
          set book = ${toPaperJson(draft.account)}::jsonb, active = ${isActive(draft.account)}, looked_at = ${at}
          where venue = ${venue} and account_id = ${accountId}
        `.execute(tx)
        await writeEffects(tx, venue, draft)
      }
      await outsideTenantReads(() => db.transaction().execute(changeBook))
    },

    async listIdleAccounts(before, limit) {
      const { rows } = await sql<{ account_id: string }>`
        select account_id from paper_accounts where venue = ${venue} and active and looked_at < ${before}
        order by looked_at limit ${limit}
      `.execute(db)
      return rows.map((row) => row.account_id)
    },

    async list(limit) {
      const { rows } = await sql<{ book: unknown }>`
        select book from paper_accounts where venue = ${venue} order by account_id limit ${limit}
      `.execute(db)
      return rows.map((row) => reviveAccount(row.book))
    },
  }
}

async function writeEffects(tx: Tx, venue: string, { account, effects }: AccountDraft) {
  // An order may have changed more than once; only its last state is stored.
  const orders = new Map(effects.orders.map((order) => [order.clientOrderId, order]))
  for (const order of orders.values()) {
    if (order.fills.length > MAX_STORED_FILLS) throw new Error(`Order ${order.clientOrderId} has too many fills.`)
    await sql`
      insert into paper_orders (venue, client_order_id, account_id, status, body, placed_at)
      values (${venue}, ${order.clientOrderId}, ${account.accountId}, ${order.status}, ${toPaperJson(order)}::jsonb, ${new Date(order.placedAt)})
      on conflict (venue, client_order_id) do update set status = excluded.status, body = excluded.body
    `.execute(tx)
  }
  if (effects.journal.length === 0) return
  const lines = effects.journal.map((line, index) => ({ ...line, line: index, amount: `${line.amount}` }))
  await sql`
    insert into paper_journal (venue, account_id, tx, line, account, asset, amount, code, ref, at)
    select ${venue}, ${account.accountId}, tx, line, account, asset, amount, code, ref, to_timestamp(at / 1000.0)
    from jsonb_to_recordset(${JSON.stringify(lines)}::jsonb)
      as l(tx bigint, line int, account text, asset text, amount numeric, code text, ref text, at bigint)
  `.execute(tx)
}

/** Settlement, yield and dividends are applied whenever the account is read. Working orders and perps have to be advanced in time. */
const isActive = (account: PaperAccount) =>
  account.orders.length > 0 || Object.values(account.positions).some((position) => position.type === 'perp')

/** The time of a fill is a Date in memory and text in JSON. */
const reviveOrder = (json: unknown): PaperOrder => {
  const order = revivePaperJson<PaperOrder>(json)
  return { ...order, fills: order.fills.map((fill) => ({ ...fill, at: new Date(fill.at) })) }
}

const reviveAccount = (json: unknown): PaperAccount => {
  const account = revivePaperJson<PaperAccount>(json)
  return { ...account, orders: account.orders.map(reviveOrder) }
}
