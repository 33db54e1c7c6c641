import { requireTenant } from '../../../platform/auth-context.ts'
import type { App } from '../../../platform/http-app.ts'
import { ErrorResponse } from '../../../platform/http-openapi.ts'
import { readIdempotencyKey } from '../../../platform/idempotency.ts'
import { sendStoredResponse, withReplayHeader } from '../../../platform/stored-response.ts'
import * as schema from './approvals.schema.ts'
import type { ApprovalsQuery } from './approvals.store.ts'
import type { Approvals, Resolution } from './approvals.ts'

const tags = ['Control']

export function approvalsRoutes(app: App, approvals: Approvals) {
  app.get(
    '/api/approvals',
    {
      schema: {
        operationId: 'listApprovals',
        tags,
        summary: 'Approval requests, pending or resolved',
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
        summary: 'Approve or reject a pending request',
        description:
          'Whoever asked cannot decide (403): neither the key that asked, nor a key that made it, was made by it, replaced it or is bound to the same spender. The only active key with scope `control` may, and then `self_approved` is true, unless the tenant has set `self_approval` to `never`. Votes of one identity count once.',
        body: schema.ApprovalResolutionRequest,
        response: {
          200: schema.ApprovalResolutionResponse,
          403: ErrorResponse,
          404: ErrorResponse,
          409: ErrorResponse,
        },
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
        response: { 200: schema.Approval },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => approvals.get(requireTenant(request.caller), request.params.id),
  )
}
