import { sql } from 'kysely'
import type { Clock } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import { BatchTooLargeError, type JournalConsumer, type JournalEvent } from '../../platform/journal.ts'

const DELIVERIES_PER_BATCH = 10_000

/** NOTIFY channel that wakes the delivery workers of every process. */
export const DELIVERIES_CHANNEL = 'webhook_deliveries'

export type DispatchDeps = { clock: Clock; ids: Ids }

type Subscription = { id: string; tenant_id: string; events: string[]; last_seq: bigint }
type NewEvent = { id: string; tenant_id: string; type: string; data: unknown; created_at: Date }
type NewDelivery = { id: string; subscription_id: string; tenant_id: string; event_id: string; seq: string }

/**
 * Creates a delivery for every subscription of each committed event, numbered per subscription. As a consumer under the
 * one fenced sequencer it is the only writer of `last_seq`, so the numbers have neither gaps nor duplicates. An event
 * without a delivery is not stored: nothing would ever read it.
 */
export function createDispatcher({ clock, ids }: DispatchDeps): JournalConsumer {
  return {
    name: 'webhooks',
    column: 'events',
    // Most tenants have no subscription; their events are not even read.
    read: sql`case when exists (
      select 1 from webhook_subscriptions subscription
      where subscription.tenant_id = journal.tenant_id and subscription.is_active and subscription.deleted_at is null
    ) then journal.events end`,

    async process(tx, rows) {
      const tenantIds = [...new Set(rows.map((row) => row.tenant_id!))]
      const subscriptions = Map.groupBy(await readSubscriptions(tx, tenantIds), ({ tenant_id }) => tenant_id)
      const events: NewEvent[] = []
      const deliveries: NewDelivery[] = []
      for (const [index, { tenant_id, at, events: rowEvents }] of rows.entries()) {
        for (const event of rowEvents!) {
          const subscribers = (subscriptions.get(tenant_id!) ?? []).filter((subscription) => wants(subscription, event))
          if (subscribers.length === 0) continue
          events.push({ id: event.id, tenant_id: tenant_id!, type: event.type, data: event.data, created_at: at })
          for (const subscription of subscribers) {
            subscription.last_seq += 1n
            deliveries.push({
              id: ids.next('dlv'),
              subscription_id: subscription.id,
              tenant_id: tenant_id!,
              event_id: event.id,
              seq: subscription.last_seq.toString(),
            })
          }
        }
        if (deliveries.length > DELIVERIES_PER_BATCH && index > 0) throw new BatchTooLargeError(index)
      }
      if (deliveries.length > 0) await insertDeliveries(tx, events, deliveries, clock.now())
    },
  }
}

/** A test event is for one subscription, whatever events that one subscribes to. */
const wants = (subscription: Subscription, { type, only_for }: JournalEvent): boolean =>
  only_for === undefined
    ? subscription.events.includes(type) || subscription.events.includes('*')
    : subscription.id === only_for

async function readSubscriptions(tx: Tx, tenantIds: readonly string[]): Promise<Subscription[]> {
  return tx
    .selectFrom('webhook_subscriptions')
    .select(['id', 'tenant_id', 'events', 'last_seq'])
    .where(sql<boolean>`tenant_id = any(${tenantIds}::text[])`)
    .where('is_active', '=', true)
    .where('deleted_at', 'is', null)
    .orderBy('id')
    .execute()
}

async function insertDeliveries(tx: Tx, events: readonly NewEvent[], deliveries: readonly NewDelivery[], now: Date) {
  await sql`
    with stored as (
      insert into events (id, tenant_id, type, data, created_at)
      select id, tenant_id, type, data, created_at
      from jsonb_to_recordset(${JSON.stringify(events)}::jsonb) as event (id text, tenant_id text, type text, data jsonb, created_at timestamptz)
    ), delivery as (
      select * from jsonb_to_recordset(${JSON.stringify(deliveries)}::jsonb)
        as delivery (id text, subscription_id text, tenant_id text, event_id text, seq bigint)
    ), created as (
      insert into webhook_deliveries (id, subscription_id, tenant_id, event_id, seq, next_attempt_at, created_at)
      select id, subscription_id, tenant_id, event_id, seq, ${now}::timestamptz, ${now}::timestamptz from delivery
    ), numbered as (
      update webhook_subscriptions subscription set last_seq = newest.seq
      from (select subscription_id, max(seq) as seq from delivery group by subscription_id) newest
      where subscription.id = newest.subscription_id
    )
    select pg_notify(${DELIVERIES_CHANNEL}, '')
  `.execute(tx)
}
