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
    select s.id as subscription_id, s.tenant_id, e.id as event_id,
           s.last_seq + row_number() over (partition by s.id order by e.id) as seq
    from events e
    join webhook_subscriptions s on s.tenant_id = e.tenant_id and s.is_active and s.deleted_at is null
      and case when e.only_for is null then s.events && array[e.type, '*'] else s.id = e.only_for end
    where e.id = any(${eventIds}::text[])
    order by e.id limit ${limit ?? null}
  `.execute(tx)
  return rows
}

async function insertDeliveries(tx: Tx, deliveries: NewDelivery[], ids: Ids, now: Date) {
  const rows = deliveries.map((row) => ({ id: ids.next('dlv'), ...row, seq: row.seq.toString() }))
  await sql`
    insert into webhook_deliveries (id, subscription_id, tenant_id, event_id, seq, next_attempt_at, created_at)
    select id, subscription_id, tenant_id, event_id, seq, ${now}, ${now}
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as r(id text, subscription_id text, tenant_id text, event_id text, seq bigint)
  `.execute(tx)
  await sql`
    update webhook_subscriptions s set last_seq = n.last
    from (select subscription_id, max(seq) as last
          from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r(subscription_id text, seq bigint)
          group by subscription_id) n
    where s.id = n.subscription_id
  `.execute(tx)
  await sql`select pg_notify(${DELIVERIES_CHANNEL}, '')`.execute(tx)
}
