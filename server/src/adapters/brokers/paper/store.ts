import { sql } from 'kysely'
import type { Db, Tx } from '../../../platform/db.ts'
import { type Book, bookToJson, type Draft, type PaperOrder, reviveBook } from './book.ts'

/**
 * Where the books live. An account is one row, locked while it changes, and a client order id is unique for the venue:
 * two processes with the same order, or a crash in the middle of one, leave one order.
 */
export type PaperStore = {
  read(accountId: string): Promise<Book | undefined>
  findOrder(clientOrderId: string): Promise<{ accountId: string; order: PaperOrder } | undefined>
  /** Makes the account if there is none yet; of two at once, one wins. */
  open(draft: Draft, at: Date): Promise<void>
  /**
   * Runs the step on the locked book and keeps what it gives. A step that answers undefined changes nothing.
   * `clientOrderId` is looked up under the same lock, so that a step can see that it has happened already.
   */
  change(
    accountId: string,
    at: Date,
    step: (book: Book, earlier: PaperOrder | undefined) => Draft | undefined,
    clientOrderId?: string,
  ): Promise<void>
  /** Accounts that time alone can change and that nobody has looked at since, longest neglected first. */
  neglected(before: Date, limit: number): Promise<string[]>
  list(limit: number): Promise<Book[]>
}

const MAX_FILLS_KEPT = 5000

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
      return rows[0] && reviveLiveBook(rows[0].book)
    },

    findOrder: (clientOrderId) => findOrder(db, clientOrderId),

    async open(draft, at) {
      await db.transaction().execute(async (tx) => {
        const { rows } = await sql`
          insert into paper_accounts (venue, account_id, book, active, looked_at)
          values (${venue}, ${draft.book.accountId}, ${bookToJson(draft.book)}::jsonb, false, ${at})
          on conflict do nothing returning account_id
        `.execute(tx)
        if (rows.length === 1) await writeEffects(tx, venue, draft)
      })
    },

    async change(accountId, at, step, clientOrderId) {
      await db.transaction().execute(async (tx) => {
        const { rows } = await sql<{ book: unknown }>`
          select book from paper_accounts where venue = ${venue} and account_id = ${accountId} for update
        `.execute(tx)
        if (!rows[0]) throw new Error(`There is no paper account ${accountId} at ${venue}.`)
        const earlier = clientOrderId === undefined ? undefined : await findOrder(tx, clientOrderId)
        const draft = step(reviveLiveBook(rows[0].book), earlier?.order)
        if (!draft) return
        await sql`
          update paper_accounts
          set book = ${bookToJson(draft.book)}::jsonb, active = ${isActive(draft.book)}, looked_at = ${at}
          where venue = ${venue} and account_id = ${accountId}
        `.execute(tx)
        await writeEffects(tx, venue, draft)
      })
    },

    async neglected(before, limit) {
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
      return rows.map((row) => reviveLiveBook(row.book))
    },
  }
}

async function writeEffects(tx: Tx, venue: string, { book, effects }: Draft) {
  // An order may have changed more than once in a step; its last state is the one to keep.
  const orders = new Map(effects.orders.map((order) => [order.clientOrderId, order]))
  for (const order of orders.values()) {
    if (order.fills.length > MAX_FILLS_KEPT) throw new Error(`Order ${order.clientOrderId} has too many fills.`)
    await sql`
      insert into paper_orders (venue, client_order_id, account_id, status, body, placed_at)
      values (${venue}, ${order.clientOrderId}, ${book.accountId}, ${order.status}, ${bookToJson(order)}::jsonb, ${new Date(order.placedAt)})
      on conflict (venue, client_order_id) do update set status = excluded.status, body = excluded.body
    `.execute(tx)
  }
  if (effects.journal.length === 0) return
  const lines = effects.journal.map((line, index) => ({ ...line, line: index, amount: `${line.amount}` }))
  await sql`
    insert into paper_journal (venue, account_id, tx, line, account, asset, amount, code, ref, at)
    select ${venue}, ${book.accountId}, tx, line, account, asset, amount, code, ref, to_timestamp(at / 1000.0)
    from jsonb_to_recordset(${JSON.stringify(lines)}::jsonb)
      as l(tx bigint, line int, account text, asset text, amount numeric, code text, ref text, at bigint)
  `.execute(tx)
}

/** Settlement, yield and dividends are caught up with whenever somebody looks; these two cannot wait. */
const isActive = (book: Book) =>
  book.orders.length > 0 || Object.values(book.positions).some((position) => position.type === 'perp')

/** A fill's moment is a Date in the program and text in JSON. */
const reviveOrder = (json: unknown): PaperOrder => {
  const order = reviveBook<PaperOrder>(json)
  return { ...order, fills: order.fills.map((fill) => ({ ...fill, at: new Date(fill.at) })) }
}

const reviveLiveBook = (json: unknown): Book => {
  const book = reviveBook<Book>(json)
  return { ...book, orders: book.orders.map(reviveOrder) }
}
