import { requireTenant } from '../../../platform/auth-context.ts'
import type { App } from '../../../platform/http-app.ts'
import { ErrorResponse } from '../../../platform/http-openapi.ts'
import { readIdempotencyKey } from '../../../platform/idempotency.ts'
import { sendStoredResponse, withReplayHeader } from '../../../platform/stored-response.ts'
import type { Governance } from '../governance.ts'
import * as schema from './policies.schema.ts'
import type { PolicyChange, PolicyInput } from './policies.ts'
import type { SimulateInput } from './simulate.ts'

const tags = ['Control']

export function policiesRoutes(app: App, { policies, simulate }: Pick<Governance, 'policies' | 'simulate'>) {
  app.get(
    '/api/policies',
    {
      schema: {
        operationId: 'listPolicies',
        tags,
        summary: 'The tenant’s policies, newest first',
        querystring: schema.PageQuery,
        response: { 200: schema.PoliciesResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => policies.list(requireTenant(request.caller), request.query),
  )
  app.post(
    '/api/policies',
    {
      schema: {
        operationId: 'createPolicy',
        tags,
        summary: 'Create a policy, in the legacy or the spend-policy shape',
        description:
          'Deny wins over review, review over allow. `warn` lets pass and warns, `shadow` only records. It is in force for everything admitted after the answer. 409 when all policies together would have more than 2,000 rules and constraints, 1 MiB of JSON, or more than 64 counters for one action.',
        body: schema.PolicyCreate,
        response: { 201: schema.Policy, 409: ErrorResponse },
      },
      config: { auth: 'tenant', scope: 'control' },
    },
    async (request, reply) => {
      const key = readIdempotencyKey(request.headers['idempotency-key'], request.body)
      return sendStoredResponse(
        reply,
        withReplayHeader(await policies.create(requireTenant(request.caller), request.body as PolicyInput, key)),
      )
    },
  )
  app.post(
    '/api/policies/simulate',
    {
      schema: {
        operationId: 'simulatePolicy',
        tags,
        summary: 'Replay a draft policy over past runs: what would have changed, in money too',
        body: schema.SimulateRequest,
        response: { 200: schema.SimulateResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => simulate(requireTenant(request.caller), request.body as SimulateInput),
  )
  app.get(
    '/api/policies/:id',
    {
      schema: {
        operationId: 'getPolicy',
        tags,
        summary: 'One policy',
        params: schema.PolicyParams,
        response: { 200: schema.Policy },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => policies.get(requireTenant(request.caller), request.params.id),
  )
  app.get(
    '/api/policies/:id/versions',
    {
      schema: {
        operationId: 'listPolicyVersions',
        tags,
        summary: 'The versions of a policy, newest first',
        params: schema.PolicyParams,
        querystring: schema.VersionsQuery,
        response: { 200: schema.VersionsResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => policies.versions(requireTenant(request.caller), request.params.id, request.query),
  )
  app.patch(
    '/api/policies/:id',
    {
      schema: {
        operationId: 'updatePolicy',
        tags,
        summary: 'Change a policy; the change is a new version',
        params: schema.PolicyParams,
        body: schema.PolicyUpdate,
        response: { 200: schema.Policy, 409: ErrorResponse },
      },
      config: { auth: 'tenant', scope: 'control' },
    },
    async (request) => policies.change(requireTenant(request.caller), request.params.id, request.body as PolicyChange),
  )
  app.delete(
    '/api/policies/:id',
    {
      schema: {
        operationId: 'deletePolicy',
        tags,
        summary: 'Delete a policy; its versions stay on record',
        params: schema.PolicyParams,
        response: { 200: schema.Policy },
      },
      config: { auth: 'tenant', scope: 'control' },
    },
    async (request) => policies.remove(requireTenant(request.caller), request.params.id),
  )
}
