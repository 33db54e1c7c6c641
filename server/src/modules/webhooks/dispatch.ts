import { sql } from 'kysely'
import type { Clock } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { SequencedTask } from '../../platform/sequencer.ts'

const EVENTS_PER_BATCH = 500
const DELIVERIES_PER_BATCH = 10_000

/** NOTIFY channel that wakes the delivery workers of every process. */
export const DELIVERIES_CHANNEL = 'webhook_deliveries'

export type DispatchDeps = {
  clock: Clock
  ids: Ids
  /** Called once for each event, in the transaction that dispatches it; analytics counts runs here. */
  onDispatch?: (tx: Tx, eventIds: readonly string[]) => Promise<void>
}

type NewDelivery = { subscription_id: string; tenant_id: string; event_id: string; seq: bigint }

/**
 * Creates a delivery for every subscription of each committed event, numbered per subscription. As a task of the one
 * fenced sequencer it is the only writer of `last_seq`, so the numbers have neither gaps nor duplicates.
 */
export function createDispatchTask(deps: DispatchDeps): SequencedTask {
  return {
    name: 'webhooks',
    hasWork: async (db) => (await readUndispatched(db, 1)).length > 0,
    async processBatch(tx) {
      const now = deps.clock.now()
      const { eventIds, deliveries } = await readBatch(tx)
      if (deliveries.length > 0) await insertDeliveries(tx, deliveries, deps.ids, now)
      await deps.onDispatch?.(tx, eventIds)
      await sql`update events set dispatched_at = ${now} where id = any(${eventIds}::text[])`.execute(tx)
    },
  }
}

async function readUndispatched(tx: Tx, limit: number): Promise<string[]> {
  const rows = await tx
    .selectFrom('events')
    .select('id')
    .where('dispatched_at', 'is', null)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/** As many events as fit into one batch of deliveries, but at least one event. */
async function readBatch(tx: Tx): Promise<{ eventIds: string[]; deliveries: NewDelivery[] }> {
  const eventIds = await readUndispatched(tx, EVENTS_PER_BATCH)
  const deliveries = await matchSubscriptions(tx, eventIds, DELIVERIES_PER_BATCH + 1)
  if (deliveries.length <= DELIVERIES_PER_BATCH) return { eventIds, deliveries }
  // The last event's deliveries are incomplete: it and the events after it wait for the next batch.
  const lastEventId = deliveries.at(-1)!.event_id
  const completeIds = eventIds.slice(0, Math.max(1, eventIds.indexOf(lastEventId)))
  if (completeIds.at(-1) === lastEventId)
    return { eventIds: completeIds, deliveries: await matchSubscriptions(tx, completeIds) }
  return { eventIds: completeIds, deliveries: deliveries.filter(({ event_id }) => completeIds.includes(event_id)) }
}

async function matchSubscriptions(tx: Tx, eventIds: string[], limit?: number): Promise<NewDelivery[]> {
  const { rows } = await sql<NewDelivery>`
    select subscription.id as subscription_id, subscription.tenant_id, event.id as event_id,
           subscription.last_seq + row_number() over (partition by subscription.id order by event.id) as seq
    from events event
    join webhook_subscriptions subscription on subscription.tenant_id = event.tenant_id and subscription.is_active and subscription.deleted_at is null
      and case when event.only_for is null then subscription.events && array[event.type, '*'] else subscription.id = event.only_for end
    where event.id = any(${eventIds}::text[])
    order by event.id limit ${limit ?? null}
  `.execute(tx)
  return rows
}

async function insertDeliveries(tx: Tx, deliveries: NewDelivery[], ids: Ids, now: Date) {
  const rows = deliveries.map((row) => ({ id: ids.next('dlv'), ...row, seq: row.seq.toString() }))
  await sql`
    insert into webhook_deliveries (id, subscription_id, tenant_id, event_id, seq, next_attempt_at, created_at)
    select id, subscription_id, tenant_id, event_id, seq, ${now}, ${now}
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as item(id text, subscription_id text, tenant_id text, event_id text, seq bigint)
  `.execute(tx)
  await sql`
    update webhook_subscriptions subscription set last_seq = numbered.last
    from (select subscription_id, max(seq) as last
          from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as item(subscription_id text, seq bigint)
          group by subscription_id) numbered
    where subscription.id = numbered.subscription_id
  `.execute(tx)
  await sql`select pg_notify(${DELIVERIES_CHANNEL}, '')`.execute(tx)
}
