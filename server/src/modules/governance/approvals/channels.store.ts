import { type Selectable, sql } from 'kysely'
import type { Tx } from '../../../platform/db.ts'
import type { ApprovalChannels, ApprovalMessages, ApprovalRecipients } from '../../../platform/generated/db.ts'

export type ChannelType = 'email' | 'slack' | 'webhook'
export type ChannelRow = Selectable<ApprovalChannels>
export type RecipientRow = Selectable<ApprovalRecipients>
export type MessageRow = Selectable<ApprovalMessages>

/** Two requests that each see room for one more channel must not both add it. */
export const lockChannels = (tx: Tx, tenantId: string) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`approval-channels:${tenantId}`}, 0))`.execute(tx)

export async function countChannels(tx: Tx, tenantId: string): Promise<number> {
  const { count } = await tx
    .selectFrom('approval_channels')
    .select((on) => on.fn.countAll<bigint>().as('count'))
    .where('tenant_id', '=', tenantId)
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function listChannels(
  tx: Tx,
  tenantId: string,
  page: { cursor?: string; limit: number },
): Promise<ChannelRow[]> {
  let query = tx
    .selectFrom('approval_channels')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('deleted_at', 'is', null)
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
  if (page.cursor) query = query.where('id', '<', page.cursor)
  return query.execute()
}

export async function readChannel(tx: Tx, tenantId: string, id: string, forUpdate = false) {
  const query = tx
    .selectFrom('approval_channels')
    .selectAll()
    .where('id', '=', id)
    .where('tenant_id', '=', tenantId)
    .where('deleted_at', 'is', null)
  return (forUpdate ? query.forUpdate() : query).executeTakeFirst()
}

export const insertChannel = (
  tx: Tx,
  row: Omit<ChannelRow, 'is_active' | 'deleted_at' | 'updated_at'>,
): Promise<ChannelRow> =>
  tx
    .insertInto('approval_channels')
    .values({ ...row, updated_at: row.created_at })
    .returningAll()
    .executeTakeFirstOrThrow()

export const updateChannel = (
  tx: Tx,
  id: string,
  change: Partial<Pick<ChannelRow, 'name' | 'is_active' | 'url' | 'secret' | 'deleted_at'>>,
  at: Date,
): Promise<ChannelRow> =>
  tx
    .updateTable('approval_channels')
    .set({ ...change, updated_at: at })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()

export const readRecipients = async (tx: Tx, channelIds: readonly string[]): Promise<RecipientRow[]> =>
  channelIds.length === 0
    ? []
    : tx
        .selectFrom('approval_recipients')
        .selectAll()
        .where('channel_id', 'in', channelIds)
        .where('removed_at', 'is', null)
        .orderBy('id')
        .execute()

export async function insertRecipients(tx: Tx, rows: readonly Omit<RecipientRow, 'removed_at'>[]) {
  if (rows.length > 0)
    await tx
      .insertInto('approval_recipients')
      .values([...rows])
      .execute()
}

export async function removeRecipients(tx: Tx, ids: readonly string[], at: Date) {
  if (ids.length > 0)
    await tx.updateTable('approval_recipients').set({ removed_at: at }).where('id', 'in', ids).execute()
}

/** How many more messages the tenant may cause in this hour. */
export async function messagesLeft(tx: Tx, tenantId: string, at: Date): Promise<number> {
  const { rows } = await sql<{ left: number }>`select approval_messages_left(${tenantId}, ${at}) as left`.execute(tx)
  return rows[0]!.left
}

export const insertTestMessages = (
  tx: Tx,
  rows: readonly Pick<MessageRow, 'id' | 'tenant_id' | 'channel_id' | 'recipient_id'>[],
  at: Date,
) =>
  tx
    .insertInto('approval_messages')
    .values(rows.map((row) => ({ ...row, state: 'pending', next_attempt_at: at, created_at: at })))
    .execute()

export type MessageFilter = {
  channelId: string
  state?: string
  approval_id?: string
  cursor?: string
  limit: number
}

export async function listMessages(tx: Tx, tenantId: string, filter: MessageFilter): Promise<MessageRow[]> {
  let query = tx
    .selectFrom('approval_messages')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('channel_id', '=', filter.channelId)
    .orderBy('id', 'desc')
    .limit(filter.limit + 1)
  if (filter.state) query = query.where('state', '=', filter.state)
  if (filter.approval_id) query = query.where('approval_id', '=', filter.approval_id)
  if (filter.cursor) query = query.where('id', '<', filter.cursor)
  return query.execute()
}
