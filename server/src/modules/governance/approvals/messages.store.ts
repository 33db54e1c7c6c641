import { type Selectable, sql } from 'kysely'
import type { Tx } from '../../../platform/db.ts'
import type { ApprovalLinks } from '../../../platform/generated/db.ts'
import type { ChannelType } from './channels.store.ts'

export type ApprovalDomain = 'core' | 'rh'

/** A message that a worker has claimed, with all that an attempt needs. */
export type ClaimedMessage = {
  id: string
  tenant_id: string
  org_name: string
  attempts: number
  domain: ApprovalDomain
  approval_id: string | null
  created_at: Date
  channel_name: string
  type: ChannelType
  url: string | null
  secret: string | null
  /** Whether the channel is on and still has this recipient. */
  is_reachable: boolean
  recipient_id: string
  email: string | null
  recipient_name: string | null
}

export type ClaimOptions = {
  at: Date
  leaseSeconds: number
  limit: number
  perTenant: number
  /** How many attempts of each tenant this worker has under way. */
  underWay: Record<string, number>
  worker: string
}

/** Tenants take turns, so that one whose receivers hang does not delay the others. Attempts are counted here: a crash counts. */
export async function claimMessages(tx: Tx, options: ClaimOptions): Promise<ClaimedMessage[]> {
  const { at, leaseSeconds, limit, perTenant, underWay, worker } = options
  const { rows } = await sql<ClaimedMessage>`
    with due as (
      select id, row_number() over (partition by tenant_id order by next_attempt_at, id)
               + coalesce((${JSON.stringify(underWay)}::jsonb->>tenant_id)::int, 0) as turn
      from approval_messages where state = 'pending' and next_attempt_at <= ${at}
    ), picked as (
      select message.id from approval_messages message join due on due.id = message.id
      where due.turn <= ${perTenant} and message.state = 'pending' and message.next_attempt_at <= ${at}
      order by due.turn, message.id limit ${limit} for update of message skip locked
    ), claimed as (
      update approval_messages message
      set claim = ${worker}, attempts = attempts + 1, last_attempt_at = ${at}, next_attempt_at = ${at}::timestamptz + make_interval(secs => ${leaseSeconds})
      from picked where message.id = picked.id returning message.*
    )
    select message.id, message.tenant_id, tenant.org_name, message.attempts, message.domain, message.approval_id, message.created_at,
           channel.name as channel_name, channel.type, channel.url, channel.secret,
           channel.is_active and channel.deleted_at is null and recipient.removed_at is null as is_reachable,
           recipient.id as recipient_id, recipient.email, recipient.name as recipient_name
    from claimed message
    join tenants tenant on tenant.id = message.tenant_id
    join approval_channels channel on channel.id = message.channel_id
    join approval_recipients recipient on recipient.id = message.recipient_id
    order by message.id
  `.execute(tx)
  return rows
}

/** What an attempt came to: `next_attempt_at` is null when there is no further one. */
export type MessageOutcome = { id: string; ok: boolean; error: string | null; next_attempt_at: Date | null; at: Date }

/** Another worker may have taken over a message whose lease ended; then its outcome counts, not this one. */
export async function finishMessage(tx: Tx, worker: string, { id, ok, error, next_attempt_at, at }: MessageOutcome) {
  await tx
    .updateTable('approval_messages')
    .set({
      state: ok ? 'sent' : next_attempt_at ? 'pending' : 'failed',
      last_error: error,
      next_attempt_at: ok ? null : next_attempt_at,
      sent_at: ok ? at : null,
      claim: null,
    })
    .where('id', '=', id)
    .where('claim', '=', worker)
    .where('state', '=', 'pending')
    .execute()
}

/** Writes the intent to tell every recipient about an approval, in the transaction that records it. */
export async function queueApprovalMessages(tx: Tx, tenantId: string, domain: ApprovalDomain, id: string, at: Date) {
  await sql`select queue_approval_messages(${tenantId}, ${domain}, ${id}, ${at})`.execute(tx)
}

export type LinkRow = Selectable<ApprovalLinks>

export async function insertLinks(tx: Tx, rows: readonly Omit<LinkRow, 'used_at'>[]) {
  if (rows.length > 0)
    await tx
      .insertInto('approval_links')
      .values([...rows])
      .execute()
}

export const findLink = (tx: Tx, hash: string) =>
  tx
    .selectFrom('approval_links as link')
    .innerJoin('approval_recipients as recipient', 'recipient.id', 'link.recipient_id')
    .innerJoin('approval_channels as channel', 'channel.id', 'recipient.channel_id')
    .innerJoin('tenants as tenant', 'tenant.id', 'link.tenant_id')
    .selectAll('link')
    .select([
      'recipient.email',
      'recipient.name as recipient_name',
      'recipient.added_by',
      'recipient.removed_at',
      'recipient.address_hash',
      'channel.id as channel_id',
      'channel.type as channel_type',
      'channel.name as channel_name',
      'channel.is_active',
      'channel.deleted_at',
      'tenant.org_name',
      'tenant.status as tenant_status',
    ])
    .where('link.hash', '=', hash)
    .executeTakeFirst()

export type FoundLink = NonNullable<Awaited<ReturnType<typeof findLink>>>

/** Uses the link, once. False when it was used, has expired, or its channel or recipient is gone by now. */
export async function useLink(tx: Tx, hash: string, actionHash: string, at: Date): Promise<boolean> {
  const { rows } = await sql`
    update approval_links link set used_at = ${at}
    from approval_recipients recipient join approval_channels channel on channel.id = recipient.channel_id
    where link.hash = ${hash} and link.used_at is null and link.expires_at > ${at} and link.action_hash = ${actionHash}
      and recipient.id = link.recipient_id and recipient.removed_at is null and channel.is_active and channel.deleted_at is null
    returning link.hash
  `.execute(tx)
  return rows.length === 1
}

/** As the votes of recipients are recorded. */
export const recipientVoterId = (recipientId: string) => `recipient:${recipientId}`

/** The recipients that these keys added, as voters: whoever adds a recipient counts as the same identity. */
export async function recipientsAddedBy(tx: Tx, tenantId: string, keyIds: readonly string[]): Promise<string[]> {
  const rows = await tx
    .selectFrom('approval_recipients')
    .select('id')
    .where('tenant_id', '=', tenantId)
    .where('added_by', 'in', keyIds)
    .execute()
  return rows.map((row) => recipientVoterId(row.id))
}

/** The recipients at one address, also removed ones, as voters: they are one person. */
export async function recipientsAtAddress(tx: Tx, tenantId: string, addressHash: string): Promise<string[]> {
  const rows = await tx
    .selectFrom('approval_recipients')
    .select('id')
    .where('tenant_id', '=', tenantId)
    .where('address_hash', '=', addressHash)
    .execute()
  return rows.map((row) => recipientVoterId(row.id))
}

/** Deletes what is over and older than `before`; recipients and channels stay, because votes name them. */
export async function deleteOldMessages(tx: Tx, before: Date, limit: number): Promise<number> {
  const messages = await sql`
    delete from approval_messages where id in (
      select id from approval_messages where created_at < ${before} and state <> 'pending' order by created_at limit ${limit})
  `.execute(tx)
  const links = await sql`
    delete from approval_links where hash in (
      select hash from approval_links where expires_at < ${before} order by expires_at limit ${limit})
  `.execute(tx)
  return Number((messages.numAffectedRows ?? 0n) + (links.numAffectedRows ?? 0n))
}
