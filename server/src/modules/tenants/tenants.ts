import { createHash, timingSafeEqual } from 'node:crypto'
import { type Authenticate, type KeyScope, keyScopes, type TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Idempotency, IdempotentResponse } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Keys } from '../../platform/keys.ts'
import type { Notifications } from '../../platform/notifications.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { toPage } from '../../platform/paging.ts'
import { conflict, forbidden, invalid, notFound, unauthorized } from '../../platform/problem.ts'
import { generateApiKey, hashApiKey, isWellFormedApiKey } from './api-key.ts'
import { createCallerCache } from './caller-cache.ts'
import { defaultPlan, type Feature, getPlan } from './plans.ts'
import { createSessions } from './sessions.ts'
import * as store from './tenants.store.ts'

export type Usage = { runs: number; spend_usdc: number; webhook_subscriptions: number }

export type TenantsDeps = {
  db: Db
  clock: Clock
  ids: Ids
  keys: Pick<Keys, 'fingerprint'>
  notifications: Pick<Notifications, 'listen'>
  idempotency: Idempotency
  adminKey: string
  keyPerMinute: number
  publicUrl: () => string
  emit: Outbox['emit']
  audit: Outbox['audit']
  usage(tenantId: string, since: Date): Promise<Usage>
}

export type IdempotencyContext = { scope: string; idempotencyKey: string | undefined }
export type NewTenant = { org_name: string; email: string; use_case?: string; plan?: string }
export type NewKey = { name?: string; scopes?: KeyScope[]; expires_at?: string }

export type Tenants = ReturnType<typeof createTenants>

/** The scopes of an onboarded key; only the operator grants `admin`. */
const onboardedScopes: readonly KeyScope[] = keyScopes.filter((scope) => scope !== 'admin')
const OVERLAP_SECONDS = 24 * 60 * 60
const OPERATOR = 'operator'

export function createTenants(deps: TenantsDeps) {
  const callers = createCallerCache(deps)
  const sessions = createSessions({ ...deps, callers })
  const adminDigest = digest(deps.adminKey)

  const authenticate: Authenticate = {
    async key(apiKey) {
      // The checksum is verified only for a key that is not in the cache: a guess never reaches the database.
      return callers.findCaller(hashApiKey(deps.keys, apiKey), 'key', async (hash) =>
        isWellFormedApiKey(deps.keys, apiKey) ? store.findKeyByHash(deps.db, hash) : undefined,
      )
    },
    session: sessions.authenticate,
    admin: (adminKey) => timingSafeEqual(digest(adminKey), adminDigest),
  }

  const getTenantRow = async (tx: Tx, id: string) => {
    const row = await store.readTenant(tx, id)
    if (!row) throw notFound('tenant')
    return row
  }

  const addTenant = async (tx: Tx, input: NewTenant) => {
    const at = deps.clock.now()
    return store.insertTenant(tx, {
      id: deps.ids.next('ten'),
      org_name: input.org_name,
      email: input.email,
      use_case: input.use_case ?? null,
      plan: input.plan ?? defaultPlan,
      status: 'active',
      created_at: at,
      updated_at: at,
    })
  }

  const addKey = async (tx: Tx, tenantId: string, input: NewKey, actor: string) => {
    const at = deps.clock.now()
    const newKey = generateApiKey(deps.keys)
    const row = await store.insertKey(tx, {
      id: deps.ids.next('key'),
      tenant_id: tenantId,
      name: input.name ?? 'default',
      prefix: newKey.prefix,
      hash: newKey.hash,
      scopes: input.scopes ?? onboardedScopes,
      created_at: at,
      expires_at: parseExpiry(input, at),
    })
    await recordKeyEvent(tx, 'key.created', row, actor, at)
    return { ...toKeyResponse(row), api_key: newKey.apiKey }
  }

  const recordKeyEvent = async (
    tx: Tx,
    type: 'key.created' | 'key.revoked',
    key: store.KeyRow,
    actor: string,
    at: Date,
  ) => {
    const data = { key_id: key.id, key_prefix: key.prefix, name: key.name, scopes: key.scopes }
    await deps.emit(tx, { tenantId: key.tenant_id, type, data, at })
    await deps.audit(tx, { tenantId: key.tenant_id, type, actor, subject: key.id, data, at })
  }

  const once = (
    context: IdempotencyContext,
    route: string,
    body: unknown,
    work: (tx: Tx) => Promise<{ status: number; body: unknown }>,
  ): Promise<IdempotentResponse> =>
    deps.idempotency.once({ scope: context.scope, route, key: context.idempotencyKey, body }, work)

  return {
    authenticate,
    sessions,

    onboard: (context: IdempotencyContext, body: NewTenant) =>
      once(context, 'POST /api/onboard', body, async (tx) => {
        const { org_name, email, use_case } = body
        const tenant = await addTenant(tx, { org_name, email, use_case })
        const key = await addKey(tx, tenant.id, { name: 'onboarding' }, tenant.id)
        return {
          status: 201,
          body: {
            tenant_id: tenant.id,
            api_key: key.api_key,
            key_prefix: key.key_prefix,
            plan: tenant.plan,
            next_steps: nextSteps,
          },
        }
      }),

    async me(caller: TenantCaller) {
      const tenant = await getTenantRow(deps.db, caller.tenantId)
      return {
        orgId: tenant.id,
        org_name: tenant.org_name,
        email: tenant.email,
        plan: tenant.plan,
        tenant_id: tenant.id,
        role: roleOf(caller.scopes),
        auth: caller.auth,
        scopes: [...caller.scopes],
        key_id: caller.keyId,
      }
    },

    async myPlan(caller: TenantCaller) {
      const tenant = await getTenantRow(deps.db, caller.tenantId)
      const { features, limits } = getPlan(tenant.plan)
      const { since, until } = monthBounds(deps.clock.now())
      return {
        plan: tenant.plan,
        features,
        limits: { ...limits, requests_per_minute: deps.keyPerMinute },
        usage: {
          ...(await deps.usage(tenant.id, since)),
          api_keys: await store.countLiveKeys(deps.db, tenant.id, deps.clock.now()),
          since: since.toISOString(),
        },
        renews_at: until.toISOString(),
      }
    },

    /** Public to anyone who knows the tenant's id: the plan's name and features, nothing else. */
    async planById(tenantId: string) {
      const tenant = await store.readTenant(deps.db, tenantId)
      const { plan, features } = getPlan(tenant?.plan ?? defaultPlan)
      return { plan, features }
    },

    /** Throws 403 when the tenant's plan does not include the feature. */
    async requireFeature(caller: TenantCaller, feature: Feature) {
      const { plan } = await getTenantRow(deps.db, caller.tenantId)
      if (!getPlan(plan).features[feature]) throw forbidden(`The plan '${plan}' does not include ${feature}.`)
    },

    async hasFeature(caller: TenantCaller, feature: Feature) {
      const { plan } = await getTenantRow(deps.db, caller.tenantId)
      return getPlan(plan).features[feature]
    },

    /** The limit of the tenant's plan. Locks the tenant, so that a count made next is still valid at commit. */
    async planLimit(tx: Tx, tenantId: string, limit: 'webhook_subscriptions' | 'api_keys') {
      const tenant = await store.lockTenant(tx, tenantId)
      if (!tenant) throw notFound('tenant')
      return getPlan(tenant.plan).limits[limit]
    },

    createTenant: (context: IdempotencyContext, body: NewTenant) =>
      once(context, 'POST /api/admin/tenants', body, async (tx) => {
        const tenant = await addTenant(tx, body)
        const key = await addKey(tx, tenant.id, { name: 'first' }, OPERATOR)
        const { key_id, api_key, key_prefix } = key
        return { status: 201, body: { ...toTenantResponse(tenant), key_id, api_key, key_prefix } }
      }),

    async listTenants(filter: Omit<store.TenantFilter, 'limit'> & { limit?: number }) {
      const limit = filter.limit ?? 50
      const { rows, ...paging } = toPage(await store.listTenants(deps.db, { ...filter, limit }), limit)
      return { tenants: rows.map(toTenantResponse), ...paging }
    },

    getTenant: async (id: string) => toTenantResponse(await getTenantRow(deps.db, id)),

    async changeTenant(id: string, change: store.TenantChange) {
      const at = deps.clock.now()
      const row = await deps.db.transaction().execute(async (tx) => {
        const changedRow = await store.changeTenant(tx, id, change, at).catch(refuseTakenCustomer)
        if (!changedRow) throw notFound('tenant')
        await deps.audit(tx, {
          tenantId: id,
          type: 'tenant.updated',
          actor: OPERATOR,
          subject: id,
          data: { changed: Object.keys(change).sort(), plan: changedRow.plan, status: changedRow.status },
          at,
        })
        await store.notifyKeyChange(tx, id)
        return changedRow
      })
      callers.forget(id)
      return toTenantResponse(row)
    },

    createKey: (context: IdempotencyContext, tenantId: string, body: NewKey) =>
      once(context, `POST /api/admin/tenants/${tenantId}/keys`, body, async (tx) => {
        const tenant = await store.lockTenant(tx, tenantId)
        if (!tenant) throw notFound('tenant')
        const maxKeys = getPlan(tenant.plan).limits.api_keys
        if ((await store.countLiveKeys(tx, tenantId, deps.clock.now())) >= maxKeys)
          throw forbidden(`The plan '${tenant.plan}' allows ${maxKeys} live keys; revoke one first.`)
        return { status: 201, body: await addKey(tx, tenantId, body, OPERATOR) }
      }),

    async listKeys(tenantId: string, query: { cursor?: string; limit?: number }) {
      await getTenantRow(deps.db, tenantId)
      const limit = query.limit ?? 50
      const { rows, ...paging } = toPage(
        await store.listKeys(deps.db, tenantId, { cursor: query.cursor, limit }),
        limit,
      )
      return { keys: rows.map(toKeyResponse), ...paging }
    },

    /** Idempotent: revoking again keeps the first `revoked_at`. */
    async revokeKey(id: string) {
      const row = await deps.db.transaction().execute(async (tx) => {
        const key = await store.lockKey(tx, id)
        if (!key) throw notFound('key')
        if (key.revoked_at) return key
        const at = deps.clock.now()
        const revokedKey = await store.changeKey(tx, id, { revoked_at: at })
        await recordKeyEvent(tx, 'key.revoked', revokedKey, OPERATOR, at)
        await store.notifyKeyChange(tx, id)
        return revokedKey
      })
      callers.forget(id)
      return toKeyResponse(row)
    },

    /** Creates a key with the same scopes; the old key stays valid for the overlap, so that clients can switch without downtime. */
    async rotateKey(context: IdempotencyContext, id: string, body: { overlap_seconds?: number }) {
      const response = await once(context, `POST /api/admin/keys/${id}/rotate`, body, async (tx) => {
        const oldKey = await store.lockKey(tx, id)
        if (!oldKey) throw notFound('key')
        const at = deps.clock.now()
        if (oldKey.revoked_at || (oldKey.expires_at && oldKey.expires_at <= at))
          throw conflict('This key is no longer valid.')
        if (oldKey.replaced_by) throw conflict('This key has been rotated already.')
        const { name, expires_at } = oldKey
        const newKey = await addKey(
          tx,
          oldKey.tenant_id,
          { name, scopes: oldKey.scopes as KeyScope[], expires_at: expires_at?.toISOString() },
          OPERATOR,
        )
        const until = new Date(at.getTime() + (body.overlap_seconds ?? OVERLAP_SECONDS) * 1000)
        const replacedKey = await store.changeKey(tx, id, {
          expires_at: expires_at && expires_at < until ? expires_at : until,
          replaced_by: newKey.key_id,
        })
        await store.notifyKeyChange(tx, id)
        return { status: 201, body: { ...newKey, replaces: toKeyResponse(replacedKey) } }
      })
      callers.forget(id)
      return response
    },

    /** Refuses with the same message as the X-API-Key check, so that opening a session reveals no more about a key. */
    async authenticateKey(apiKey: string): Promise<TenantCaller> {
      const caller = await authenticate.key(apiKey)
      if (!caller) throw unauthorized('This API key is not valid.')
      return caller
    },
  }
}

const nextSteps = [
  'Keep api_key in a secret store: it is shown only now.',
  'GET /api/pricing shows every lane with its price.',
  'POST /api/run with X-API-Key and an x402 payment runs a task for this tenant.',
  'POST /api/budgets and POST /api/policies set what your agents may spend.',
  'POST /api/webhooks tells your systems what happened.',
]

export const describeOnboarding = (takesInvitation: boolean) => ({
  endpoint: 'POST /api/onboard',
  required: ['org_name', 'email', ...(takesInvitation ? ['invitation'] : [])],
  optional: ['use_case'],
  steps: ['POST /api/onboard with org_name and email; the answer holds your key.', ...nextSteps],
})

// Compared as digests, so that timing shows neither the length nor the position of the first difference.
const digest = (text: string) => createHash('sha256').update(text).digest()

function roleOf(scopes: readonly KeyScope[]): string {
  if (scopes.includes('admin')) return 'admin'
  if (scopes.includes('mandate')) return 'owner'
  if (scopes.includes('control')) return 'operator'
  return scopes.includes('run') ? 'agent' : 'viewer'
}

function parseExpiry(input: NewKey, now: Date): Date | null {
  if (!input.expires_at) return null
  const at = new Date(input.expires_at)
  if (at <= now) throw invalid('expires_at is in the past.')
  return at
}

function monthBounds(now: Date) {
  const at = (months: number) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, 1))
  return { since: at(0), until: at(1) }
}

/** Two tenants with one billing customer would see each other's portal; the column is unique. */
function refuseTakenCustomer(error: unknown): never {
  if ((error as { code?: string }).code === '23505')
    throw invalid('body/billing_customer_id belongs to another tenant.')
  throw error
}

const toTenantResponse = (row: store.TenantRow) => ({
  tenant_id: row.id,
  org_name: row.org_name,
  email: row.email,
  use_case: row.use_case,
  plan: row.plan,
  status: row.status,
  billing_customer_id: row.billing_customer_id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

const toKeyResponse = (row: store.KeyRow) => ({
  key_id: row.id,
  tenant_id: row.tenant_id,
  name: row.name,
  key_prefix: row.prefix,
  scopes: row.scopes,
  created_at: row.created_at.toISOString(),
  expires_at: row.expires_at?.toISOString() ?? null,
  revoked_at: row.revoked_at?.toISOString() ?? null,
  replaced_by: row.replaced_by,
})
