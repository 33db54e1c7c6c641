import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import { readIdempotencyKey } from '../../platform/idempotency.ts'
import { sendStoredResponse, withNoStore } from '../../platform/stored-response.ts'
import type { ApiKeys } from './keys.ts'
import { admitOnboarding, type OnboardingRules, openOnboarding } from './onboarding-gate.ts'
import { sessionRoutes } from './sessions.routes.ts'
import * as schema from './tenants.schema.ts'
import { describeOnboarding, type Tenants } from './tenants.ts'

export function tenantsRoutes(app: App, tenants: Tenants, onboarding: OnboardingRules = openOnboarding) {
  app.get(
    '/api/onboard',
    {
      schema: {
        operationId: 'describeOnboarding',
        tags: ['Onboarding'],
        summary: 'How to become a tenant, step by step',
        response: { 200: schema.OnboardingGuide },
      },
    },
    async () => describeOnboarding(onboarding),
  )
  app.post(
    '/api/onboard',
    {
      schema: {
        operationId: 'onboard',
        tags: ['Onboarding'],
        summary: 'Become a tenant',
        description:
          'The key is shown once. An Idempotency-Key belongs to the address it came from, since no tenant exists yet. An address, and the network it is in, may make a limited number of tenants an hour (429). Where the operator asks for an invitation, a request without it is 403.',
        body: schema.OnboardRequest,
        response: { 201: schema.OnboardResponse, 403: ErrorResponse, 409: ErrorResponse },
      },
    },
    async (request, reply) => {
      await admitOnboarding(onboarding, request, request.body)
      const context = {
        scope: `address:${request.ip}`,
        idempotencyKey: readIdempotencyKey(request.headers['idempotency-key'], request.body),
      }
      return sendStoredResponse(reply, withNoStore(await tenants.onboard(context, request.body)))
    },
  )
  app.get(
    '/api/me',
    {
      schema: {
        operationId: 'getMe',
        tags: ['Identity'],
        summary: 'Who the caller is',
        description: 'A key of a suspended tenant answers 403 here and everywhere.',
        response: { 200: schema.MeResponse },
      },
      config: { auth: 'tenant' },
    },
    async (request) => tenants.me(requireTenant(request.caller)),
  )
  app.get(
    '/api/me/plan',
    {
      schema: {
        operationId: 'getMyPlan',
        tags: ['Identity'],
        summary: "The plan's features and limits, and this month's usage",
        response: { 200: schema.MyPlanResponse },
      },
      config: { auth: 'tenant' },
    },
    async (request) => tenants.myPlan(requireTenant(request.caller)),
  )
  settingsRoutes(app, tenants)
  ownKeyRoutes(app, tenants.apiKeys)
  sessionRoutes(app, tenants)
  adminRoutes(app, tenants)
}

type KeyedRequest = { headers: Record<string, string | string[] | undefined>; body: unknown }
const readKeyOf = (request: KeyedRequest) => readIdempotencyKey(request.headers['idempotency-key'], request.body)

function settingsRoutes(app: App, tenants: Tenants) {
  const tags = ['Control']
  app.get(
    '/api/settings',
    {
      schema: {
        operationId: 'getSettings',
        tags,
        summary: 'The settings of the tenant',
        response: { 200: schema.Settings },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => tenants.settings(requireTenant(request.caller)),
  )
  app.put(
    '/api/settings',
    {
      schema: {
        operationId: 'changeSettings',
        tags,
        summary: 'Change the settings of the tenant',
        description:
          '`self_approval` says whether the only active key with scope `control` may decide about what it asked for itself. A change is in the audit trail with the key that made it.',
        body: schema.Settings,
        response: { 200: schema.Settings },
      },
      config: { auth: 'tenant', scope: 'control' },
    },
    async (request) => tenants.changeSettings(requireTenant(request.caller), request.body),
  )
}

function ownKeyRoutes(app: App, apiKeys: ApiKeys) {
  const config = { auth: 'tenant', scope: 'keys' } as const
  const tags = ['Identity']
  app.post(
    '/api/keys',
    {
      schema: {
        operationId: 'createOwnKey',
        tags,
        summary: 'Make a key of the tenant',
        description:
          'Nobody gives a scope that he lacks. A key that is bound to a spender, a team or mandates makes only keys with the same bonds or narrower ones, and has them made with its own when the request leaves them out. A key does not outlive its maker by its expiry. The key is shown once.',
        body: schema.OwnKeyCreate,
        response: { 201: schema.KeyCreated, 403: ErrorResponse, 409: ErrorResponse, 429: ErrorResponse },
      },
      config,
    },
    async (request, reply) =>
      sendStoredResponse(
        reply,
        withNoStore(await apiKeys.create(requireTenant(request.caller), readKeyOf(request), request.body)),
      ),
  )
  app.get(
    '/api/keys',
    {
      schema: {
        operationId: 'listOwnKeys',
        tags,
        summary: "The tenant's keys, newest first; never the keys themselves",
        querystring: schema.KeysQuery,
        response: { 200: schema.KeysResponse },
      },
      config,
    },
    async (request) => apiKeys.list(requireTenant(request.caller).tenantId, request.query),
  )
  app.get(
    '/api/keys/:key_id',
    {
      schema: {
        operationId: 'getOwnKey',
        tags,
        summary: 'One key of the tenant',
        params: schema.KeyParams,
        response: { 200: schema.ApiKey },
      },
      config,
    },
    async (request) => apiKeys.get(requireTenant(request.caller), request.params.key_id),
  )
  app.post(
    '/api/keys/:key_id/rotate',
    {
      schema: {
        operationId: 'rotateOwnKey',
        tags,
        summary: 'Replace a key; the old one stays valid for an overlap',
        description:
          'A key rotates itself and the keys that it made, directly or through others. The new key keeps scopes, bonds, maker and identity.',
        params: schema.KeyParams,
        body: schema.KeyRotate,
        response: { 201: schema.KeyRotated, 403: ErrorResponse, 409: ErrorResponse, 429: ErrorResponse },
      },
      config,
    },
    async (request, reply) =>
      sendStoredResponse(
        reply,
        withNoStore(
          await apiKeys.rotate(requireTenant(request.caller), readKeyOf(request), request.params.key_id, request.body),
        ),
      ),
  )
  app.delete(
    '/api/keys/:key_id',
    {
      schema: {
        operationId: 'revokeOwnKey',
        tags,
        summary: 'Revoke a key at once, on every node',
        description: 'A key revokes itself, and every key without more rights than its own except those that made it.',
        params: schema.KeyParams,
        response: { 200: schema.KeyRevoked, 403: ErrorResponse },
      },
      config,
    },
    async (request) => apiKeys.revoke(requireTenant(request.caller), request.params.key_id),
  )
}

function adminRoutes(app: App, tenants: Tenants) {
  const config = { auth: 'admin' } as const
  const tags = ['Admin']
  const adminContext = (request: KeyedRequest) => ({ scope: 'operator', idempotencyKey: readKeyOf(request) })

  app.post(
    '/api/admin/tenants',
    {
      schema: {
        operationId: 'createTenant',
        tags,
        summary: 'Create a tenant with its first key',
        body: schema.TenantCreate,
        response: { 201: schema.TenantCreated, 409: ErrorResponse },
      },
      config,
    },
    async (request, reply) =>
      sendStoredResponse(reply, withNoStore(await tenants.createTenant(adminContext(request), request.body))),
  )
  app.get(
    '/api/admin/tenants',
    {
      schema: {
        operationId: 'listTenants',
        tags,
        summary: 'Tenants, newest first',
        querystring: schema.TenantsQuery,
        response: { 200: schema.TenantsResponse },
      },
      config,
    },
    async (request) => tenants.listTenants(request.query),
  )
  app.get(
    '/api/admin/tenants/:id',
    {
      schema: {
        operationId: 'getTenant',
        tags,
        summary: 'One tenant',
        params: schema.TenantParams,
        response: { 200: schema.Tenant },
      },
      config,
    },
    async (request) => tenants.getTenant(request.params.id),
  )
  app.patch(
    '/api/admin/tenants/:id',
    {
      schema: {
        operationId: 'updateTenant',
        tags,
        summary: 'Change plan, status or particulars of a tenant',
        description: 'A suspended tenant is refused with 403 on every node at once.',
        params: schema.TenantParams,
        body: schema.TenantUpdate,
        response: { 200: schema.Tenant },
      },
      config,
    },
    async (request) => tenants.changeTenant(request.params.id, request.body),
  )
  app.post(
    '/api/admin/tenants/:id/keys',
    {
      schema: {
        operationId: 'createKey',
        tags,
        summary: 'Create a key for a tenant',
        description: 'Without scopes the key has those of an onboarded one: read, run, control, mandate, keys.',
        params: schema.TenantParams,
        body: schema.KeyCreate,
        response: { 201: schema.KeyCreated, 403: ErrorResponse, 409: ErrorResponse },
      },
      config,
    },
    async (request, reply) =>
      sendStoredResponse(
        reply,
        withNoStore(await tenants.apiKeys.createByOperator(readKeyOf(request), request.params.id, request.body)),
      ),
  )
  app.get(
    '/api/admin/tenants/:id/keys',
    {
      schema: {
        operationId: 'listKeys',
        tags,
        summary: "A tenant's keys, newest first; never the keys themselves",
        params: schema.TenantParams,
        querystring: schema.KeysQuery,
        response: { 200: schema.KeysResponse },
      },
      config,
    },
    async (request) => tenants.listKeys(request.params.id, request.query),
  )
  app.delete(
    '/api/admin/keys/:key_id',
    {
      schema: {
        operationId: 'revokeKey',
        tags,
        summary: 'Revoke a key at once, on every node',
        params: schema.KeyParams,
        response: { 200: schema.KeyRevoked },
      },
      config,
    },
    async (request) => tenants.apiKeys.revokeByOperator(request.params.key_id),
  )
  app.post(
    '/api/admin/keys/:key_id/rotate',
    {
      schema: {
        operationId: 'rotateKey',
        tags,
        summary: 'Replace a key; the old one stays valid for an overlap',
        params: schema.KeyParams,
        body: schema.KeyRotate,
        response: { 201: schema.KeyRotated, 409: ErrorResponse },
      },
      config,
    },
    async (request, reply) =>
      sendStoredResponse(
        reply,
        withNoStore(await tenants.apiKeys.rotateByOperator(readKeyOf(request), request.params.key_id, request.body)),
      ),
  )
}
