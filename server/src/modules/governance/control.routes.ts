import type { TenantCaller } from '../../platform/auth-context.ts'
import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import { type IdempotentResponse, readIdempotencyKey } from '../../platform/idempotency.ts'
import { sendStoredResponse, withReplayHeader } from '../../platform/stored-response.ts'
import type { ApprovalsQuery } from './approvals.store.ts'
import type { Approvals, Resolution } from './approvals.ts'
import * as schema from './control.schema.ts'
import type { Decisions, DecisionsQuery } from './decisions.ts'
import type { AuthorizeInput } from './overrides.ts'

const tags = ['Control']

type Routes = {
  approvals: Approvals
  decisions: Decisions
  authorize(
    tenant: TenantCaller,
    input: AuthorizeInput,
    idempotencyKey: string | undefined,
  ): Promise<IdempotentResponse>
}

export function controlRoutes(app: App, { approvals, authorize, decisions }: Routes) {
  app.post(
    '/api/authorize',
    {
      schema: {
        operationId: 'authorize',
        tags,
        summary: 'Override one denial: once, in time, for one agent, amount and merchant',
        description:
          'Only what a policy denied can be overridden; budgets, mandates and frozen agents cannot. It holds for the merchant as it was denied: the same id at another address or host is another merchant. For mandate holders and admins.',
        body: schema.AuthorizeRequest,
        response: { 200: schema.AuthorizeResponse, 409: ErrorResponse },
      },
      config: { auth: 'tenant', scope: ['mandate', 'admin'] },
    },
    async (request, reply) => {
      const key = readIdempotencyKey(request.headers['idempotency-key'], request.body)
      return sendStoredResponse(
        reply,
        withReplayHeader(await authorize(requireTenant(request.caller), request.body as AuthorizeInput, key)),
      )
    },
  )
  app.get(
    '/api/approvals',
    {
      schema: {
        operationId: 'listApprovals',
        tags,
        summary: 'What waits for a person, or waited',
        description:
          'Only core approvals are listed; for `rh` and `cb` the list is empty and `see` says where to look.',
        querystring: schema.ApprovalsQuery,
        response: { 200: schema.ApprovalsListResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) =>
      approvals.list(
        requireTenant(request.caller),
        request.query as Partial<ApprovalsQuery> & { domain?: 'core' | 'rh' | 'cb' },
      ),
  )
  app.post(
    '/api/approvals',
    {
      schema: {
        operationId: 'resolveApproval',
        tags,
        summary: 'Approve or reject what waits',
        body: schema.ApprovalResolutionRequest,
        response: { 200: schema.ApprovalResolutionResponse, 404: ErrorResponse, 409: ErrorResponse },
      },
      config: { auth: 'tenant', scope: 'control' },
    },
    async (request, reply) => {
      const key = readIdempotencyKey(request.headers['idempotency-key'], request.body)
      return sendStoredResponse(
        reply,
        withReplayHeader(await approvals.resolve(requireTenant(request.caller), request.body as Resolution, key)),
      )
    },
  )
  app.get(
    '/api/approvals/:id',
    {
      schema: {
        operationId: 'getApproval',
        tags,
        summary: 'One approval',
        params: schema.ApprovalParams,
        response: { 200: schema.ApprovalRecord },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => approvals.get(requireTenant(request.caller), request.params.id),
  )
  app.get(
    '/api/decisions',
    {
      schema: {
        operationId: 'listDecisions',
        tags,
        summary: 'What was refused or wanted a person, and why, newest first',
        querystring: schema.DecisionsQuery,
        response: { 200: schema.DecisionsResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => decisions.list(requireTenant(request.caller), request.query as DecisionsQuery),
  )
  app.get(
    '/api/decisions/:id',
    {
      schema: {
        operationId: 'getDecision',
        tags,
        summary: 'Why one thing was refused, rule by rule',
        params: schema.ApprovalParams,
        response: { 200: schema.DecisionRecord },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => decisions.get(requireTenant(request.caller), request.params.id),
  )
}
