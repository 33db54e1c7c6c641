import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import { firstIdAt } from '../../platform/ids.ts'

export type Standing = 'good' | 'poor'

/** A delivery that a worker has claimed, with all that an attempt needs. */
export type ClaimedDelivery = {
  id: string
  subscription_id: string
  event_id: string
  seq: bigint
  claim: string
  round_attempts: number
  type: string
  data: unknown
  event_at: Date
  url: string
  secret: string
  earlier_secret: string | null
  earlier_secret_until: Date | null
}

export type ClaimOptions = {
  at: Date
  leaseSeconds: number
  limit: number
  perSubscription: number
  standing: Standing
  attemptsBySubscription: Record<string, number>
  worker: string
}

export async function claimDeliveries(tx: Tx, options: ClaimOptions): Promise<ClaimedDelivery[]> {
  const { rows } = await sql<ClaimedDelivery>`
    select delivery.id, delivery.subscription_id, delivery.event_id, delivery.seq, delivery.claim, delivery.round_attempts,
           event.type, event.data, event.created_at as event_at, subscription.url, subscription.secret, subscription.earlier_secret, subscription.earlier_secret_until
    from claim_deliveries(${options.at}, make_interval(secs => ${options.leaseSeconds}), ${options.limit}, ${options.perSubscription},
                          ${options.standing}, ${JSON.stringify(options.attemptsBySubscription)}::jsonb, ${options.worker}) delivery
    join events event on event.id = delivery.event_id
    join webhook_subscriptions subscription on subscription.id = delivery.subscription_id
    order by delivery.seq
  `.execute(tx)
  return rows
}

/** Makes the deliveries that a worker had claimed when it was stopped due again at once. */
export async function releaseDeliveries(tx: Tx, worker: string, ids: readonly string[], at: Date) {
  await tx
    .updateTable('webhook_deliveries')
    .set({ claim: null, next_attempt_at: at })
    .where('id', 'in', [...ids])
    .where('claim', '=', worker)
    .where('state', '=', 'pending')
    .execute()
}

/** Attempts of earlier versions lack the last three. */
export type DeliveryAttempt = {
  at: string
  status: number | null
  error: string | null
  ms: number
  timestamp?: number | null
  signature?: string | null
  answer?: string | null
}

export type DeliveryRow = {
  id: string
  event_id: string
  type: string
  seq: bigint
  state: 'pending' | 'delivered' | 'exhausted'
  attempts: number
  last_status: number | null
  last_error: string | null
  last_ms: number | null
  last_attempt_at: Date | null
  next_attempt_at: Date | null
  history: DeliveryAttempt[]
  created_at: Date
  delivered_at: Date | null
}

/** With what is needed to compose the request again. */
export type DeliveryDetailRow = DeliveryRow & { data: unknown; event_at: Date; url: string }

export type DeliveryFilter = { subscriptionId: string; state?: string; cursor?: string; limit: number }

const deliveriesWithType = (tx: Tx) =>
  tx
    .selectFrom('webhook_deliveries')
    .innerJoin('events', 'events.id', 'webhook_deliveries.event_id')
    .select([
      'webhook_deliveries.id',
      'event_id',
      'events.type',
      'seq',
      sql<DeliveryRow['state']>`webhook_deliveries.state`.as('state'),
      'attempts',
      'last_status',
      'last_error',
      'last_ms',
      'last_attempt_at',
      'next_attempt_at',
      sql<DeliveryAttempt[]>`history`.as('history'),
      'webhook_deliveries.created_at',
      'delivered_at',
    ])

export async function listDeliveries(tx: Tx, filter: DeliveryFilter): Promise<DeliveryRow[]> {
  let query = deliveriesWithType(tx)
    .where('subscription_id', '=', filter.subscriptionId)
    .orderBy('webhook_deliveries.id', 'desc')
    .limit(filter.limit + 1)
  if (filter.state) query = query.where('state', '=', filter.state)
  if (filter.cursor) query = query.where('webhook_deliveries.id', '<', filter.cursor)
  return query.execute()
}

/** Deliveries of all active subscriptions of a tenant that will still be tried. */
export async function listWaitingDeliveries(
  tx: Tx,
  tenantId: string,
  page: { cursor?: string; limit: number },
): Promise<(DeliveryRow & { subscription_id: string })[]> {
  let query = deliveriesWithType(tx)
    .innerJoin('waiting_deliveries', 'waiting_deliveries.id', 'webhook_deliveries.id')
    .select('webhook_deliveries.subscription_id')
    .where('waiting_deliveries.tenant_id', '=', tenantId)
    .orderBy('webhook_deliveries.id', 'desc')
    .limit(page.limit + 1)
  if (page.cursor) query = query.where('webhook_deliveries.id', '<', page.cursor)
  return query.execute()
}

export async function readDelivery(tx: Tx, subscriptionId: string, id: string): Promise<DeliveryDetailRow | undefined> {
  return deliveriesWithType(tx)
    .innerJoin('webhook_subscriptions', 'webhook_subscriptions.id', 'webhook_deliveries.subscription_id')
    .select(['events.data', 'events.created_at as event_at', 'webhook_subscriptions.url'])
    .where('webhook_deliveries.id', '=', id)
    .where('subscription_id', '=', subscriptionId)
    .executeTakeFirst()
}

/** Restarts the delivery's schedule with the same `webhook-id`; the result of a running attempt is ignored. */
export async function replayDelivery(
  tx: Tx,
  subscriptionId: string,
  id: string,
  at: Date,
): Promise<DeliveryRow | undefined> {
  const { rows } = await sql`
    update webhook_deliveries set state = 'pending', round_attempts = 0, next_attempt_at = ${at}, claim = null
    where id = ${id} and subscription_id = ${subscriptionId}
    returning id
  `.execute(tx)
  if (rows.length === 0) return undefined
  return deliveriesWithType(tx).where('webhook_deliveries.id', '=', id).executeTakeFirst()
}

/** Marks pending deliveries of switched-off or deleted subscriptions as exhausted. */
export async function exhaustStoppedDeliveries(tx: Tx, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    update webhook_deliveries set state = 'exhausted', next_attempt_at = null, claim = null,
      last_error = coalesce(last_error, 'the subscription was switched off')
    where id in (
      select delivery.id from webhook_subscriptions subscription
      join webhook_deliveries delivery on delivery.subscription_id = subscription.id and delivery.state = 'pending'
      where (subscription.disabled_reason is not null or subscription.deleted_at is not null) and not subscription.is_active
      limit ${limit}
    )
  `.execute(tx)
  return Number(numAffectedRows ?? 0n)
}

/** Deletes finished deliveries and events older than `before`; pending deliveries and their events stay. */
export async function deleteOldDeliveries(tx: Tx, before: Date, limit: number): Promise<number> {
  const deliveries = await sql`
    delete from webhook_deliveries where id in (
      select id from webhook_deliveries where created_at < ${before} and state <> 'pending' order by created_at limit ${limit})
  `.execute(tx)
  const events = await sql`
    delete from events where id in (
      select id from events event where id < ${firstIdAt('evt', before)}
        and not exists (select 1 from webhook_deliveries delivery where delivery.event_id = event.id)
      order by id limit ${limit})
  `.execute(tx)
  return Number((deliveries.numAffectedRows ?? 0n) + (events.numAffectedRows ?? 0n))
}

export type Backlog = { undispatched_since: Date | null; overdue_subscriptions: number; due_since: Date | null }

/** How far deliveries are behind. It steps from one waiting subscription to the next instead of scanning the backlog. */
export async function readBacklog(tx: Tx, at: Date): Promise<Backlog> {
  const { rows } = await sql<Backlog>`
    with recursive waiting as (
      (select subscription_id from webhook_deliveries where state = 'pending' order by subscription_id limit 1)
      union all
      select (select delivery.subscription_id from webhook_deliveries delivery
              where delivery.state = 'pending' and delivery.subscription_id > waiting.subscription_id order by delivery.subscription_id limit 1)
      from waiting where waiting.subscription_id is not null
    ), due as (
      select earliest.next_attempt_at
      from waiting
      join webhook_subscriptions subscription on subscription.id = waiting.subscription_id and subscription.is_active and subscription.deleted_at is null
      cross join lateral (
        select delivery.next_attempt_at from webhook_deliveries delivery
        where delivery.subscription_id = subscription.id and delivery.state = 'pending' order by delivery.next_attempt_at limit 1
      ) as earliest
      where earliest.next_attempt_at <= ${at}
    )
    select (select at from journal where events is not null order by id limit 1) as undispatched_since,
           (select count(*)::int from due) as overdue_subscriptions,
           (select min(next_attempt_at) from due) as due_since
  `.execute(tx)
  return rows[0]!
}
