import { type Selectable, sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import type { WebhookSubscriptions } from '../../platform/generated/db.ts'

export type SubscriptionRow = Selectable<WebhookSubscriptions>

export async function insertSubscription(
  tx: Tx,
  row: Pick<SubscriptionRow, 'id' | 'tenant_id' | 'url' | 'events' | 'secret' | 'created_at' | 'updated_at'>,
): Promise<SubscriptionRow> {
  return tx.insertInto('webhook_subscriptions').values(row).returningAll().executeTakeFirstOrThrow()
}

export async function countSubscriptions(tx: Tx, tenantId: string): Promise<number> {
  const { count } = await tx
    .selectFrom('webhook_subscriptions')
    .select((on) => on.fn.countAll<bigint>().as('count'))
    .where('tenant_id', '=', tenantId)
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function listSubscriptions(
  tx: Tx,
  tenantId: string,
  page: { cursor?: string; limit: number; status?: 'active' | 'failing' },
): Promise<SubscriptionRow[]> {
  let query = tx
    .selectFrom('webhook_subscriptions')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('deleted_at', 'is', null)
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
  if (page.cursor) query = query.where('id', '<', page.cursor)
  if (page.status) {
    const column = page.status === 'active' ? 'is_active' : 'is_failing'
    const states = tx
      .selectFrom('webhook_states')
      .select('id')
      .where('tenant_id', '=', tenantId)
      .where(column, '=', true)
    query = query.where('id', 'in', states)
  }
  return query.execute()
}

export async function readSubscription(tx: Tx, tenantId: string, id: string): Promise<SubscriptionRow | undefined> {
  return tx
    .selectFrom('webhook_subscriptions')
    .selectAll()
    .where('id', '=', id)
    .where('tenant_id', '=', tenantId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
}

export type SubscriptionChange = Partial<
  Omit<SubscriptionRow, 'id' | 'tenant_id' | 'created_at' | 'updated_at' | 'last_seq'>
>

export async function changeSubscription(
  tx: Tx,
  tenantId: string,
  id: string,
  change: SubscriptionChange,
  at: Date,
): Promise<SubscriptionRow | undefined> {
  return tx
    .updateTable('webhook_subscriptions')
    .set({ ...change, updated_at: at })
    .where('id', '=', id)
    .where('tenant_id', '=', tenantId)
    .where('deleted_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
}

/** An event for one subscription only, whatever events it subscribes to. */
export async function insertTestEvent(
  tx: Tx,
  event: { id: string; tenantId: string; type: string; data: unknown; subscriptionId: string; at: Date },
) {
  const { id, type, data, subscriptionId } = event
  await sql`
    insert into journal (tenant_id, at, events)
    values (${event.tenantId}, ${event.at}, ${JSON.stringify([{ id, type, data, only_for: subscriptionId }])}::jsonb)
  `.execute(tx)
}

/** How many receivers of all tenants have not taken their last delivery, and how many there are. */
export async function countFailingReceivers(tx: Tx): Promise<{ failing: number; active: number }> {
  const { rows } = await sql<{ failing: bigint; active: bigint }>`
    select count(*) filter (where failing_since is not null) as failing, count(*) as active
    from webhook_subscriptions where is_active and deleted_at is null
  `.execute(tx)
  return { failing: Number(rows[0]!.failing), active: Number(rows[0]!.active) }
}
