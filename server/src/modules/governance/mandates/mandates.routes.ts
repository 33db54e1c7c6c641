import { requireTenant } from '../../../platform/auth-context.ts'
import type { App } from '../../../platform/http-app.ts'
import { ErrorResponse } from '../../../platform/http-openapi.ts'
import { readIdempotencyKey } from '../../../platform/idempotency.ts'
import { sendStoredResponse, withReplayHeader } from '../../../platform/stored-response.ts'
import * as schema from './mandates.schema.ts'
import type { MandateInput, Mandates } from './mandates.ts'

const tags = ['Governance']

export function mandatesRoutes(app: App, mandates: Mandates) {
  app.get(
    '/api/mandates',
    {
      schema: {
        operationId: 'listMandates',
        tags,
        summary: 'The tenant’s mandates, newest first',
        querystring: schema.MandatesQuery,
        response: { 200: schema.MandatesResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) =>
      mandates.list(
        requireTenant(request.caller),
        request.query as { limit?: number; cursor?: string; status?: string },
      ),
  )
  app.post(
    '/api/mandates',
    {
      schema: {
        operationId: 'createMandate',
        tags,
        summary: 'Create a mandate: who may spend, how much, where and how long',
        body: schema.MandateCreate,
        response: { 201: schema.Mandate, 409: ErrorResponse },
      },
      config: { auth: 'tenant', scope: ['mandate', 'admin'] },
    },
    async (request, reply) => {
      const key = readIdempotencyKey(request.headers['idempotency-key'], request.body)
      return sendStoredResponse(
        reply,
        withReplayHeader(await mandates.create(requireTenant(request.caller), request.body as MandateInput, key)),
      )
    },
  )
  app.get(
    '/api/mandates/:id',
    {
      schema: {
        operationId: 'getMandate',
        tags,
        summary: 'One mandate',
        params: schema.MandateParams,
        response: { 200: schema.Mandate },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => mandates.get(requireTenant(request.caller), request.params.id),
  )
  app.get(
    '/api/mandates/:id/remaining',
    {
      schema: {
        operationId: 'getMandateRemaining',
        tags,
        summary: 'What is left of a mandate over all merchants, as a signed statement',
        params: schema.MandateParams,
        response: { 200: schema.RemainingStatement },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => mandates.remaining(requireTenant(request.caller), request.params.id),
  )
  app.post(
    '/api/mandates/:id/revoke',
    {
      schema: {
        operationId: 'revokeMandate',
        tags,
        summary: 'End a mandate now',
        params: schema.MandateParams,
        body: schema.MandateRevoke,
        response: { 200: schema.Mandate, 409: ErrorResponse },
      },
      config: { auth: 'tenant', scope: ['mandate', 'admin'] },
    },
    async (request) => mandates.revoke(requireTenant(request.caller), request.params.id, request.body.reason),
  )
}
