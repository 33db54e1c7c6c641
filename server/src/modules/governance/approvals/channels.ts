import { createHash } from 'node:crypto'
import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db.ts'
import type { Idempotency } from '../../../platform/idempotency.ts'
import type { Ids } from '../../../platform/ids.ts'
import type { Keys } from '../../../platform/keys.ts'
import type { Outbox } from '../../../platform/outbox.ts'
import { toPage } from '../../../platform/paging.ts'
import { conflict, invalid, notConfigured, notFound, Problem } from '../../../platform/problem.ts'
import { isStorableText } from '../../../platform/storable-text.ts'
import * as store from './channels.store.ts'

export const MAX_CHANNELS = 20
export const MAX_RECIPIENTS = 20

export type ChannelsDeps = {
  db: Db
  clock: Clock
  ids: Ids
  keys: Pick<Keys, 'encrypt' | 'decrypt'>
  idempotency: Idempotency
  outbox: Pick<Outbox, 'audit'>
  /** Refuses an address that leads into the operator's network; the rules are those of webhooks. */
  checkTargetUrl(url: string): string
  generateSigningSecret(): string
  /** Whether SMTP_URL and SMTP_FROM are set. */
  sendsMail: boolean
}

type NewRecipient = { email: string; name?: string }
export type NewChannel = { type: store.ChannelType; name?: string; url?: string; recipients?: NewRecipient[] }
export type ChannelPatch = { name?: string; is_active?: boolean; url?: string; recipients?: NewRecipient[] }

export type ApprovalChannels = ReturnType<typeof createApprovalChannels>

/** The channels through which approvals of a tenant reach people. */
export function createApprovalChannels(deps: ChannelsDeps) {
  const getChannel = async (tx: Tx, caller: TenantCaller, id: string, forUpdate = false) => {
    const row = await store.readChannel(tx, caller.tenantId, id, forUpdate)
    if (!row) throw notFound('approval channel')
    return row
  }

  const toResponse = (row: store.ChannelRow, recipients: readonly store.RecipientRow[]) => ({
    id: row.id,
    type: row.type,
    name: row.name,
    is_active: row.is_active,
    url: row.url === null ? null : showUrl(row.type, deps.keys.decrypt(row.url)),
    recipients: recipients
      .filter((recipient) => recipient.channel_id === row.id)
      .map(({ id, email, name, added_by, created_at }) => ({
        id,
        email,
        name,
        added_by,
        created_at: created_at.toISOString(),
      })),
    created_by: row.created_by,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  })

  const readResponse = async (tx: Tx, row: store.ChannelRow) =>
    toResponse(row, await store.readRecipients(tx, [row.id]))

  const recordAudit = async (tx: Tx, caller: TenantCaller, row: store.ChannelRow, type: string, at: Date) => {
    const recipients = await store.readRecipients(tx, [row.id])
    await deps.outbox.audit(tx, {
      tenantId: caller.tenantId,
      type: `approval_channel.${type}`,
      actor: caller.keyId,
      subject: row.id,
      at,
      data: {
        type: row.type,
        name: row.name,
        is_active: row.is_active,
        recipients: recipients.map(({ id, added_by, email }) => ({
          recipient_id: id,
          added_by,
          ...(email !== null && { email: maskEmail(email) }),
        })),
      },
    })
  }

  const addRecipients = (
    tx: Tx,
    caller: TenantCaller,
    channelId: string,
    recipients: readonly (NewRecipient | { url: string })[],
    at: Date,
  ) =>
    store.insertRecipients(
      tx,
      recipients.map((recipient) => ({
        id: deps.ids.next('rcp'),
        tenant_id: caller.tenantId,
        channel_id: channelId,
        email: 'email' in recipient ? recipient.email : null,
        name: ('email' in recipient && recipient.name) || null,
        address_hash: hashAddress('email' in recipient ? recipient.email : recipient.url),
        added_by: caller.keyId,
        created_at: at,
      })),
    )

  /** Who stays keeps the key that added them; otherwise a key could take over a recipient that another one added. */
  const replaceRecipients = async (
    tx: Tx,
    caller: TenantCaller,
    channelId: string,
    recipients: readonly NewRecipient[],
    at: Date,
  ) => {
    const current = await store.readRecipients(tx, [channelId])
    const isListed = (row: store.RecipientRow) =>
      recipients.some((recipient) => hashAddress(recipient.email) === row.address_hash)
    const removed = current.filter((row) => !isListed(row))
    const added = recipients.filter(
      (recipient) => !current.some((row) => row.address_hash === hashAddress(recipient.email)),
    )
    await store.removeRecipients(
      tx,
      removed.map((row) => row.id),
      at,
    )
    await addRecipients(tx, caller, channelId, added, at)
  }

  const once = (
    caller: TenantCaller,
    route: string,
    key: string | undefined,
    body: unknown,
    work: (tx: Tx) => Promise<{ status: number; body: unknown }>,
  ) => deps.idempotency.once({ scope: `tenant:${caller.tenantId}`, route, key, body }, work)

  return {
    async list(caller: TenantCaller, query: { cursor?: string; limit?: number }) {
      const limit = query.limit ?? 50
      const { rows, ...paging } = toPage(
        await store.listChannels(deps.db, caller.tenantId, { cursor: query.cursor, limit }),
        limit,
      )
      const recipients = await store.readRecipients(
        deps.db,
        rows.map((row) => row.id),
      )
      return { channels: rows.map((row) => toResponse(row, recipients)), ...paging }
    },

    get: async (caller: TenantCaller, id: string) => readResponse(deps.db, await getChannel(deps.db, caller, id)),

    create: (caller: TenantCaller, key: string | undefined, body: NewChannel) =>
      once(caller, 'POST /api/approval-channels', key, body, async (tx) => {
        const { type } = body
        const recipients = checkRecipients(type, body.recipients)
        const url = checkUrl(deps, type, body.url)
        const name = checkName(body.name) ?? type
        if (type === 'email' && !deps.sendsMail)
          throw notConfigured('No mail server is configured: SMTP_URL and SMTP_FROM are missing.')
        await store.lockChannels(tx, caller.tenantId)
        if ((await store.countChannels(tx, caller.tenantId)) >= MAX_CHANNELS)
          throw conflict(`A tenant has at most ${MAX_CHANNELS} approval channels; delete one first.`)
        const at = deps.clock.now()
        const signingSecret = type === 'webhook' ? deps.generateSigningSecret() : undefined
        const row = await store.insertChannel(tx, {
          id: deps.ids.next('chn'),
          tenant_id: caller.tenantId,
          type,
          name,
          url: url === undefined ? null : deps.keys.encrypt(url),
          secret: signingSecret === undefined ? null : deps.keys.encrypt(signingSecret),
          created_by: caller.keyId,
          created_at: at,
        })
        await addRecipients(tx, caller, row.id, recipients ?? [{ url: url! }], at)
        await recordAudit(tx, caller, row, 'created', at)
        return { status: 201, body: { ...(await readResponse(tx, row)), ...(signingSecret && { signingSecret }) } }
      }),

    async update(caller: TenantCaller, id: string, patch: ChannelPatch) {
      return deps.db.transaction().execute(async (tx) => {
        const current = await getChannel(tx, caller, id, true)
        const type = current.type as store.ChannelType
        const at = deps.clock.now()
        const recipients = patch.recipients && checkRecipients(type, patch.recipients)
        const url = patch.url === undefined ? undefined : checkUrl(deps, type, patch.url)
        const row = await store.updateChannel(
          tx,
          id,
          {
            name: checkName(patch.name),
            is_active: patch.is_active,
            ...(url !== undefined && { url: deps.keys.encrypt(url) }),
          },
          at,
        )
        if (recipients) await replaceRecipients(tx, caller, id, recipients, at)
        // Whoever redirects a channel is the one who reads its links from now on.
        if (url !== undefined && url !== deps.keys.decrypt(current.url!)) {
          const former = await store.readRecipients(tx, [id])
          await store.removeRecipients(
            tx,
            former.map((recipient) => recipient.id),
            at,
          )
          await addRecipients(tx, caller, id, [{ url }], at)
        }
        await recordAudit(tx, caller, row, 'updated', at)
        return readResponse(tx, row)
      })
    },

    async remove(caller: TenantCaller, id: string) {
      await deps.db.transaction().execute(async (tx) => {
        await getChannel(tx, caller, id, true)
        const at = deps.clock.now()
        // The row stays, because votes name its recipients; its credentials do not.
        const change = { is_active: false, deleted_at: at, url: null, secret: null }
        await recordAudit(tx, caller, await store.updateChannel(tx, id, change, at), 'deleted', at)
        const recipients = await store.readRecipients(tx, [id])
        await store.removeRecipients(
          tx,
          recipients.map((recipient) => recipient.id),
          at,
        )
      })
      return { id, deleted: true }
    },

    test: (caller: TenantCaller, key: string | undefined, id: string) =>
      once(caller, `POST /api/approval-channels/${id}/test`, key, {}, async (tx) => {
        const channel = await getChannel(tx, caller, id)
        if (!channel.is_active) throw conflict('This approval channel is switched off; switch it on first.')
        const at = deps.clock.now()
        await store.lockChannels(tx, caller.tenantId)
        const messages = (await store.readRecipients(tx, [id])).map((recipient) => ({
          id: deps.ids.next('msg'),
          tenant_id: caller.tenantId,
          channel_id: id,
          recipient_id: recipient.id,
        }))
        if ((await store.messagesLeft(tx, caller.tenantId, at)) < messages.length)
          throw new Problem('error', 'Too many messages in this hour; nothing was sent.', {
            status: 429,
            code: 'rate_limited',
            retryable: true,
            retryAfterSeconds: 600,
          })
        await store.insertTestMessages(tx, messages, at)
        return { status: 202, body: { message_ids: messages.map((message) => message.id) } }
      }),

    async messages(
      caller: TenantCaller,
      id: string,
      query: { state?: string; approval_id?: string; cursor?: string; limit?: number },
    ) {
      await getChannel(deps.db, caller, id)
      const limit = query.limit ?? 50
      const { rows, ...paging } = toPage(
        await store.listMessages(deps.db, caller.tenantId, { ...query, channelId: id, limit }),
        limit,
      )
      return { messages: rows.map(toMessageResponse), ...paging }
    },
  }
}

const hashAddress = (address: string) => createHash('sha256').update(address.toLowerCase()).digest('hex')

// One plain address: no display name, no quotes, no comments, no second address, nothing that could end a header line.
const EMAIL = /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$/

function checkRecipients(
  type: store.ChannelType,
  recipients: readonly NewRecipient[] | undefined,
): NewRecipient[] | undefined {
  if (type !== 'email') {
    if (recipients !== undefined) throw invalid(`body/recipients is only for channels of the type 'email'.`)
    return undefined
  }
  if (recipients === undefined) throw invalid(`body/recipients is missing: an 'email' channel needs at least one.`)
  const addresses = new Set<string>()
  return recipients.map(({ email, name }, index) => {
    if (!EMAIL.test(email)) throw invalid(`body/recipients/${index}/email is not an e-mail address.`)
    if (addresses.has(email.toLowerCase())) throw invalid(`body/recipients/${index}/email is listed twice.`)
    addresses.add(email.toLowerCase())
    const checkedName = checkName(name, `body/recipients/${index}/name`)
    return { email, ...(checkedName !== undefined && { name: checkedName }) }
  })
}

function checkUrl(
  deps: Pick<ChannelsDeps, 'checkTargetUrl'>,
  type: store.ChannelType,
  url: string | undefined,
): string | undefined {
  if (type === 'email') {
    if (url !== undefined) throw invalid(`body/url is only for channels of the types 'slack' and 'webhook'.`)
    return undefined
  }
  if (url === undefined) throw invalid(`body/url is missing: a '${type}' channel needs an address.`)
  return deps.checkTargetUrl(url)
}

function checkName(name: string | undefined, path = 'body/name'): string | undefined {
  if (name === undefined) return undefined
  if (/\p{Cc}/u.test(name) || !isStorableText(name)) throw invalid(`${path} contains a control character.`)
  return name.trim() === '' ? invalidName(path) : name.trim()
}

const invalidName = (path: string): never => {
  throw invalid(`${path} is empty.`)
}

/** Whoever has the path of a Slack address can post to it. */
const showUrl = (type: string, url: string) => (type === 'slack' ? `${new URL(url).origin}/…` : url)

/** For audit events and the page: enough for people who know the address. */
export const maskEmail = (email: string) => email.replace(/^(.).*@/, '$1***@')

const toMessageResponse = (row: store.MessageRow) => ({
  id: row.id,
  approval_id: row.approval_id,
  domain: row.domain,
  recipient_id: row.recipient_id,
  state: row.state,
  attempts: row.attempts,
  last_error: row.last_error,
  last_attempt_at: row.last_attempt_at?.toISOString() ?? null,
  next_attempt_at: row.next_attempt_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
  sent_at: row.sent_at?.toISOString() ?? null,
})
