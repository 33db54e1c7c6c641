import { createHash, timingSafeEqual } from 'node:crypto'
import type { Authenticate, KeyScope, TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Idempotency, IdempotentResponse } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Keys } from '../../platform/keys.ts'
import type { Notifications } from '../../platform/notifications.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { toPage } from '../../platform/paging.ts'
import { forbidden, invalid, notFound, unauthorized } from '../../platform/problem.ts'
import { outsideTenantReads } from '../../platform/tenant-reads.ts'
import { cellOfApiKey, hashApiKey, isWellFormedApiKey } from './api-key.ts'
import { createCallerCache, toCaller } from './caller-cache.ts'
import { type ApiKeysDeps, createApiKeys, OPERATOR } from './keys.ts'
import type { OnboardingRules } from './onboarding-gate.ts'
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
  /** The name of this cell, where there are several. */
  cell?: string | undefined
  keyPerMinute: number
  publicUrl: () => string
  emit: Outbox['emit']
  audit: Outbox['audit']
  usage(tenantId: string, since: Date): Promise<Usage>
  findMandateIds: ApiKeysDeps['findMandateIds']
}

export type IdempotencyContext = { scope: string; idempotencyKey: string | undefined }
export type NewTenant = { org_name: string; email: string; use_case?: string; plan?: string }

export type Tenants = ReturnType<typeof createTenants>

export function createTenants(deps: TenantsDeps) {
  const callers = createCallerCache({
    ...deps,
    // The next use records it when this one could not.
    recordUse: (keyId, at) =>
      void outsideTenantReads(() => store.recordKeyUse(deps.db, keyId, at)).catch(() => undefined),
  })
  const sessions = createSessions({ ...deps, callers })
  const apiKeys = createApiKeys({ ...deps, callers })
  const adminDigest = digest(deps.adminKey)

  const explainRefusal = (apiKey: string) => {
    const cell = cellOfApiKey(apiKey)
    return cell === undefined || cell === deps.cell
      ? 'This API key is not valid: it is wrong, or it was revoked or has expired.'
      : `This API key is of the cell '${cell}', and this service is not: send the request there.`
  }
  const authenticate: Authenticate = {
    async key(apiKey) {
      // The checksum is verified only for a key that is not in the cache: a guess never reaches the database.
      return callers.findCaller(hashApiKey(deps.keys, apiKey), 'key', async (hash) =>
        isWellFormedApiKey(deps.keys, apiKey) ? store.findKeyByHash(deps.db, hash) : undefined,
      )
    },
    explainRefusal,
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
    apiKeys,

    onboard: (context: IdempotencyContext, body: NewTenant) =>
      once(context, 'POST /api/onboard', body, async (tx) => {
        const { org_name, email, use_case } = body
        const tenant = await addTenant(tx, { org_name, email, use_case })
        const key = await apiKeys.addFirst(tx, tenant.id, 'onboarding', tenant.id)
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

    /**
     * The caller of a stored request: the key that made it, with what it may do now. Undefined when the key and its
     * rotated successors are revoked or expired; 403 when the tenant is suspended.
     */
    async findCaller(tenantId: string, keyId: string): Promise<TenantCaller | undefined> {
      const row = await store.findKeyOrSuccessor(deps.db, tenantId, keyId)
      const caller = row && toCaller(row, 'key', deps.clock.now())
      return caller && { ...caller, keyId }
    },

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
        spender: caller.spender,
        team: caller.team,
        mandate_ids: caller.mandateIds === null ? null : [...caller.mandateIds],
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
        const key = await apiKeys.addFirst(tx, tenant.id, 'first', OPERATOR)
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

    async listKeys(tenantId: string, query: { cursor?: string; limit?: number }) {
      await getTenantRow(deps.db, tenantId)
      return apiKeys.list(tenantId, query)
    },

    async settings(caller: TenantCaller) {
      const { self_approval } = await getTenantRow(deps.db, caller.tenantId)
      return { self_approval }
    },

    /** Audited with the key that changed it, because a key may profit from the change. */
    async changeSettings(caller: TenantCaller, change: { self_approval: store.SelfApproval }) {
      const { tenantId, keyId } = caller
      const at = deps.clock.now()
      return deps.db.transaction().execute(async (tx) => {
        const before = (await store.lockTenant(tx, tenantId))!.self_approval
        const { self_approval } = (await store.changeTenant(tx, tenantId, change, at))!
        const data = { self_approval, before: { self_approval: before } }
        await deps.audit(tx, { tenantId, type: 'settings.updated', actor: keyId, subject: tenantId, data, at })
        return { self_approval }
      })
    },

    /** Refuses with the same message as the X-API-Key check, so that opening a session reveals no more about a key. */
    async authenticateKey(apiKey: string): Promise<TenantCaller> {
      const caller = await authenticate.key(apiKey)
      if (!caller) throw unauthorized(explainRefusal(apiKey))
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

export const describeOnboarding = ({ invitation, faucet }: OnboardingRules) => ({
  endpoint: 'POST /api/onboard',
  required: ['org_name', 'email', ...(invitation === undefined ? [] : ['invitation'])],
  optional: ['use_case'],
  steps: ['POST /api/onboard with org_name and email; the answer holds your key.', ...nextSteps],
  faucet: faucet ?? null,
})

// Compared as digests, so that timing shows neither the length nor the position of the first difference.
const digest = (text: string) => createHash('sha256').update(text).digest()

function roleOf(scopes: readonly KeyScope[]): string {
  if (scopes.includes('admin')) return 'admin'
  if (scopes.includes('mandate')) return 'owner'
  if (scopes.includes('control')) return 'operator'
  return scopes.includes('run') ? 'agent' : 'viewer'
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
