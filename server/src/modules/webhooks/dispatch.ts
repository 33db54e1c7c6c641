import { sql } from 'kysely'
import type { Clock } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { SequencedTask } from '../../platform/sequencer.ts'

const EVENTS_A_PASS = 500
const DELIVERIES_A_PASS = 10_000

/** Heard by every process when there is something to deliver. */
export const DELIVERIES_CHANNEL = 'webhook_deliveries'

export type DispatchDeps = {
  clock: Clock
  ids: Ids
  /** For those inside the service who count what happened: each event comes once, in the transaction that numbers it. */
  heard?: (tx: Tx, eventIds: readonly string[]) => Promise<void>
}

type Wanted = { subscription_id: string; tenant_id: string; event_id: string; seq: bigint }

/**
 * Gives committed events to the subscriptions that asked for them, each with the next number of its subscription.
 * It runs as a task of the one fenced sequencer: nobody else writes `last_seq`, so the numbers have no gap and no twin.
 */
export function createDispatch(deps: DispatchDeps): SequencedTask {
  return {
    name: 'webhooks',
    hasWork: async (db) => (await readUndispatched(db, 1)).length > 0,
    async processBatch(tx) {
      const now = deps.clock.now()
      const { eventIds, wanted } = await readBatch(tx)
      if (wanted.length > 0) await addDeliveries(tx, wanted, deps.ids, now)
      await deps.heard?.(tx, eventIds)
      await sql`update events set dispatched_at = ${now} where id = any(${eventIds}::text[])`.execute(tx)
    },
  }
}

async function readUndispatched(tx: Tx, most: number): Promise<string[]> {
  const rows = await tx
    .selectFrom('events')
    .select('id')
    .where('dispatched_at', 'is', null)
    .orderBy('id')
    .limit(most)
    .execute()
  return rows.map(({ id }) => id)
}

/** As many events as make no more deliveries than a pass may write; one event at least, whoever wants it. */
async function readBatch(tx: Tx): Promise<{ eventIds: string[]; wanted: Wanted[] }> {
  const eventIds = await readUndispatched(tx, EVENTS_A_PASS)
  const wanted = await readWanted(tx, eventIds, DELIVERIES_A_PASS + 1)
  if (wanted.length <= DELIVERIES_A_PASS) return { eventIds, wanted }
  // The last event was not read to its end: it and those behind it wait for the next pass.
  const cut = wanted.at(-1)!.event_id
  const whole = eventIds.slice(0, Math.max(1, eventIds.indexOf(cut)))
  if (whole.at(-1) === cut) return { eventIds: whole, wanted: await readWanted(tx, whole) }
  return { eventIds: whole, wanted: wanted.filter(({ event_id }) => whole.includes(event_id)) }
}

async function readWanted(tx: Tx, eventIds: string[], most?: number): Promise<Wanted[]> {
  const { rows } = await sql<Wanted>`
    select s.id as subscription_id, s.tenant_id, e.id as event_id,
           s.last_seq + row_number() over (partition by s.id order by e.id) as seq
    from events e
    join webhook_subscriptions s on s.tenant_id = e.tenant_id and s.is_active and s.deleted_at is null
      and case when e.only_for is null then s.events && array[e.type, '*'] else s.id = e.only_for end
    where e.id = any(${eventIds}::text[])
    order by e.id limit ${most ?? null}
  `.execute(tx)
  return rows
}

async function addDeliveries(tx: Tx, wanted: Wanted[], ids: Ids, now: Date) {
  const rows = wanted.map((row) => ({ id: ids.next('dlv'), ...row, seq: row.seq.toString() }))
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
