import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Idempotency } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Keys } from '../../platform/keys.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { toPage } from '../../platform/paging.ts'
import { conflict, forbidden, invalid, notFound } from '../../platform/problem.ts'
import { didYouMean } from '../../platform/suggest.ts'
import type { Tenants } from '../tenants/tenants.ts'
import { composeBody } from './compose-body.ts'
import {
  type DeliveryAttempt,
  type DeliveryDetailRow,
  type DeliveryRow,
  deleteOldDeliveries,
  exhaustStoppedDeliveries,
  listDeliveries,
  listWaitingDeliveries,
  readBacklog,
  readDelivery,
  replayDelivery,
} from './deliveries.store.ts'
import { eventDescriptions, eventTypes, TEST_EVENT } from './event-types.ts'
import { describeHeaders } from './send.ts'
import { generateSigningSecret } from './sign.ts'
import { checkTargetUrl, type TargetRules } from './target-url.ts'
import * as store from './webhooks.store.ts'

export type WebhooksDeps = {
  db: Db
  clock: Clock
  ids: Ids
  keys: Pick<Keys, 'encrypt'>
  idempotency: Idempotency
  audit: Outbox['audit']
  planLimit: Tenants['planLimit']
  target: TargetRules
}

export type Webhooks = ReturnType<typeof createWebhooks>
export type NewSubscription = { url: string; events: string[] }
export type SubscriptionPatch = { url?: string; events?: string[]; is_active?: boolean }

const OVERLAP_SECONDS = 24 * 60 * 60
const RETENTION_DAYS = 30
const SWEEP_LIMIT = 5_000
const subscribableEvents = new Set<string>(['*', ...eventTypes])

export function createWebhooks(deps: WebhooksDeps) {
  const getSubscription = async (tx: Tx, caller: TenantCaller, id: string) => {
    const row = await store.readSubscription(tx, caller.tenantId, id)
    if (!row) throw notFound('webhook')
    return row
  }

  const getActiveSubscription = async (tx: Tx, caller: TenantCaller, id: string) => {
    const row = await getSubscription(tx, caller, id)
    if (!row.is_active) throw conflict('This webhook is switched off; switch it on first.')
    return row
  }

  const changeSubscription = async (
    tx: Tx,
    caller: TenantCaller,
    id: string,
    change: store.SubscriptionChange,
    type: string,
  ) => {
    const at = deps.clock.now()
    const row = await store.changeSubscription(tx, caller.tenantId, id, change, at)
    if (!row) throw notFound('webhook')
    await recordAudit(tx, caller, row, type, at)
    return row
  }

  const recordAudit = (tx: Tx, caller: TenantCaller, row: store.SubscriptionRow, type: string, at: Date) =>
    deps.audit(tx, {
      tenantId: caller.tenantId,
      type,
      actor: caller.keyId,
      subject: row.id,
      at,
      data: { url: row.url, events: row.events, is_active: row.is_active },
    })

  const once = (
    caller: TenantCaller,
    route: string,
    key: string | undefined,
    body: unknown,
    work: (tx: Tx) => Promise<{ status: number; body: unknown }>,
  ) => deps.idempotency.once({ scope: `tenant:${caller.tenantId}`, route, key, body }, work)

  return {
    /** For `/api/health`: how many receivers do not take their deliveries. */
    async findProblem(): Promise<string | undefined> {
      const { failing, active } = await store.countFailingReceivers(deps.db)
      return failing === 0
        ? undefined
        : `${failing} of ${active} webhook receivers did not take their last delivery; it is tried again.`
    },

    async list(caller: TenantCaller, query: { cursor?: string; limit?: number; status?: 'active' | 'failing' }) {
      const limit = query.limit ?? 100
      const rows = await store.listSubscriptions(deps.db, caller.tenantId, { ...query, limit })
      const { rows: subscriptions, ...paging } = toPage(rows, limit)
      return { subscriptions: subscriptions.map(toSubscriptionResponse), ...paging }
    },

    get: async (caller: TenantCaller, id: string) => toSubscriptionResponse(await getSubscription(deps.db, caller, id)),

    create: (caller: TenantCaller, key: string | undefined, body: NewSubscription) =>
      once(caller, 'POST /api/webhooks', key, body, async (tx) => {
        const url = checkTargetUrl(body.url, deps.target)
        const events = checkEvents(body.events)
        const maxSubscriptions = await deps.planLimit(tx, caller.tenantId, 'webhook_subscriptions')
        if ((await store.countSubscriptions(tx, caller.tenantId)) >= maxSubscriptions)
          throw forbidden(`The plan allows ${maxSubscriptions} webhooks; delete one first.`)
        const at = deps.clock.now()
        const signingSecret = generateSigningSecret()
        const row = await store.insertSubscription(tx, {
          id: deps.ids.next('whk'),
          tenant_id: caller.tenantId,
          url,
          events,
          secret: deps.keys.encrypt(signingSecret),
          created_at: at,
          updated_at: at,
        })
        await recordAudit(tx, caller, row, 'webhook.created', at)
        return { status: 201, body: { ...toSubscriptionResponse(row), signingSecret } }
      }),

    /** Reads only the changeable fields of the patch, and validates them as at creation. */
    async update(caller: TenantCaller, id: string, patch: SubscriptionPatch) {
      const { url, events, is_active } = patch
      const change: store.SubscriptionChange = {
        ...(url !== undefined && { url: checkTargetUrl(url, deps.target) }),
        ...(events !== undefined && { events: checkEvents(events) }),
        ...(is_active !== undefined && { is_active }),
        // The tenant has intervened, so the failure state is cleared.
        ...((is_active === true || url !== undefined) && clearedFailures),
      }
      const row = await deps.db
        .transaction()
        .execute((tx) => changeSubscription(tx, caller, id, change, 'webhook.updated'))
      return toSubscriptionResponse(row)
    },

    async remove(caller: TenantCaller, id: string) {
      const change = { is_active: false, deleted_at: deps.clock.now(), secret: '', earlier_secret: null }
      await deps.db.transaction().execute((tx) => changeSubscription(tx, caller, id, change, 'webhook.deleted'))
      return { id, deleted: true }
    },

    /** Messages are signed with both secrets during the overlap, so that receivers can switch without losing one. */
    rotateSecret: (caller: TenantCaller, key: string | undefined, id: string, body: { overlap_seconds?: number }) =>
      once(caller, `POST /api/webhooks/${id}/rotate-secret`, key, body, async (tx) => {
        const { secret } = await getSubscription(tx, caller, id)
        const until = new Date(deps.clock.now().getTime() + (body.overlap_seconds ?? OVERLAP_SECONDS) * 1000)
        const signingSecret = generateSigningSecret()
        const change = {
          secret: deps.keys.encrypt(signingSecret),
          earlier_secret: secret,
          earlier_secret_until: until,
        }
        const row = await changeSubscription(tx, caller, id, change, 'webhook.secret_rotated')
        const overlap = { earlier_secret_valid_until: until.toISOString() }
        return { status: 200, body: { ...toSubscriptionResponse(row), signingSecret, ...overlap } }
      }),

    test: (caller: TenantCaller, key: string | undefined, id: string) =>
      once(caller, `POST /api/webhooks/${id}/test`, key, {}, async (tx) => {
        await getActiveSubscription(tx, caller, id)
        const event = {
          id: deps.ids.next('evt'),
          tenantId: caller.tenantId,
          type: TEST_EVENT,
          data: { webhook_id: id, message: 'A test: your webhook works.' },
          subscriptionId: id,
          at: deps.clock.now(),
        }
        await store.insertTestEvent(tx, event)
        return { status: 202, body: { event_id: event.id, type: TEST_EVENT } }
      }),

    async deliveries(caller: TenantCaller, id: string, query: { state?: string; cursor?: string; limit?: number }) {
      await getSubscription(deps.db, caller, id)
      const limit = query.limit ?? 50
      const rows = await listDeliveries(deps.db, { ...query, subscriptionId: id, limit })
      const { rows: deliveries, ...paging } = toPage(rows, limit)
      return { deliveries: deliveries.map(toDeliveryResponse), ...paging }
    },

    async waitingDeliveries(caller: TenantCaller, query: { cursor?: string; limit?: number }) {
      const limit = query.limit ?? 50
      const rows = await listWaitingDeliveries(deps.db, caller.tenantId, { ...query, limit })
      const { rows: deliveries, ...paging } = toPage(rows, limit)
      return {
        deliveries: deliveries.map(({ subscription_id, ...row }) => ({
          webhook_id: subscription_id,
          ...toDeliveryResponse(row),
        })),
        ...paging,
      }
    },

    async delivery(caller: TenantCaller, id: string, deliveryId: string) {
      await getSubscription(deps.db, caller, id)
      const row = await readDelivery(deps.db, id, deliveryId)
      if (!row) throw notFound('delivery')
      return { ...toDeliveryResponse(row), request: describeRequest(row) }
    },

    eventTypes: () => ({ event_types: eventTypes.map((type) => ({ type, description: eventDescriptions[type] })) }),

    replay: (caller: TenantCaller, key: string | undefined, id: string, deliveryId: string) =>
      once(caller, `POST /api/webhooks/${id}/deliveries/${deliveryId}/replay`, key, {}, async (tx) => {
        await getActiveSubscription(tx, caller, id)
        const row = await replayDelivery(tx, id, deliveryId, deps.clock.now())
        if (!row) throw notFound('delivery')
        return { status: 202, body: toDeliveryResponse(row) }
      }),

    /** In seconds: how long the oldest event has waited for dispatch, and the oldest due delivery for its attempt. */
    async backlog(now: Date) {
      const { undispatched_since, due_since, overdue_subscriptions } = await readBacklog(deps.db, now)
      const age = (since: Date | null) => (since ? Math.max(0, (now.getTime() - since.getTime()) / 1000) : 0)
      return { undispatched_age_s: age(undispatched_since), due_age_s: age(due_since), overdue_subscriptions }
    },

    /** Marks deliveries that will not be sent any more, and deletes those older than the retention period. */
    async sweep(now: Date) {
      const given_up = await exhaustStoppedDeliveries(deps.db, SWEEP_LIMIT)
      const cutoff = new Date(now.getTime() - RETENTION_DAYS * 24 * 60 * 60 * 1000)
      return { given_up, forgotten: await deleteOldDeliveries(deps.db, cutoff, SWEEP_LIMIT) }
    },
  }
}

const clearedFailures = {
  disabled_reason: null,
  disabled_at: null,
  failures: 0,
  failing_since: null,
  standing: 'good',
} satisfies store.SubscriptionChange

function checkEvents(events: string[]): string[] {
  const unknownEvent = events.find((event) => !subscribableEvents.has(event))
  if (unknownEvent !== undefined)
    throw invalid(
      `'${unknownEvent.slice(0, 80)}' is not an event type; use '*' for all of them.${didYouMean(unknownEvent, [...subscribableEvents])}`,
    )
  return [...new Set(events)]
}

const toSubscriptionResponse = (row: store.SubscriptionRow) => ({
  id: row.id,
  url: row.url,
  events: row.events,
  is_active: row.is_active,
  disabled_reason: row.disabled_reason,
  disabled_at: row.disabled_at?.toISOString() ?? null,
  failing_since: row.failing_since?.toISOString() ?? null,
  last_seq: Number(row.last_seq),
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

const toDeliveryResponse = (row: DeliveryRow) => ({
  id: row.id,
  event_id: row.event_id,
  type: row.type,
  seq: Number(row.seq),
  state: row.state,
  attempts: row.attempts,
  last_status: row.last_status,
  last_error: row.last_error,
  last_ms: row.last_ms,
  last_attempt_at: row.last_attempt_at?.toISOString() ?? null,
  next_attempt_at: row.state === 'pending' ? (row.next_attempt_at?.toISOString() ?? null) : null,
  history: row.history.map(toAttemptResponse),
  created_at: row.created_at.toISOString(),
  delivered_at: row.delivered_at?.toISOString() ?? null,
})

const toAttemptResponse = ({ at, status, error, ms, timestamp, signature, answer }: DeliveryAttempt) => ({
  at,
  status,
  error,
  ms,
  timestamp: timestamp ?? null,
  signature: signature ?? null,
  answer: answer ?? null,
})

/** What the target gets, with the headers of the last attempt. */
function describeRequest(row: DeliveryDetailRow) {
  const { timestamp = null, signature = null } = row.history.at(-1) ?? {}
  const headers = describeHeaders(row.event_id, timestamp, signature)
  return { method: 'POST' as const, url: row.url, headers, body: composeBody(row) }
}
