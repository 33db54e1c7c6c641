import type { TenantCaller } from '../../../platform/auth-context.ts'
import { requireTenant } from '../../../platform/auth-context.ts'
import type { App } from '../../../platform/http-app.ts'
import { ErrorResponse } from '../../../platform/http-openapi.ts'
import { type IdempotentResponse, readIdempotencyKey } from '../../../platform/idempotency.ts'
import { sendStoredResponse, withReplayHeader } from '../../../platform/stored-response.ts'
import type { CloseInput } from './close-preauth.ts'
import type { PreauthInput } from './preauth-terms.ts'
import * as schema from './preauths.schema.ts'
import type { Preauths } from './preauths.ts'

const tags = ['Governance']

type Routes = {
  preauths: Preauths
  closePreauth(tenant: TenantCaller, input: CloseInput, idempotencyKey: string | undefined): Promise<IdempotentResponse>
}

export function preauthsRoutes(app: App, { preauths, closePreauth }: Routes) {
  app.post(
    '/api/pre-auth',
    {
      schema: {
        operationId: 'createPreauth',
        tags,
        summary: 'Ask whether an agent may make a payment; a signed token and a hold if so',
        description:
          'A pre-authorisation that is not closed within ten minutes is escalated; its hold stays counted until it is closed.',
        body: schema.PreauthCreate,
        response: { 201: schema.PreauthCreated, 409: ErrorResponse, 410: ErrorResponse, 422: schema.PreauthRejected },
      },
      config: { auth: 'tenant', scope: 'run' },
    },
    async (request, reply) => {
      const key = readIdempotencyKey(request.headers['idempotency-key'], request.body)
      return sendStoredResponse(
        reply,
        withReplayHeader(await preauths.create(requireTenant(request.caller), request.body as PreauthInput, key)),
      )
    },
  )
  app.post(
    '/api/pre-auth/close',
    {
      schema: {
        operationId: 'closePreauth',
        tags,
        summary: 'Report what came of a pre-authorised payment',
        body: schema.PreauthClose,
        response: { 200: schema.PreauthClosed, 404: ErrorResponse, 409: ErrorResponse },
      },
      config: { auth: 'tenant', scope: 'run', slow: true },
    },
    async (request, reply) => {
      const key = readIdempotencyKey(request.headers['idempotency-key'], request.body)
      return sendStoredResponse(
        reply,
        withReplayHeader(await closePreauth(requireTenant(request.caller), request.body as CloseInput, key)),
      )
    },
  )
  app.get(
    '/api/pre-auth',
    {
      schema: {
        operationId: 'listPreauths',
        tags,
        summary: 'Pre-authorisations, newest first',
        querystring: schema.PreauthsQuery,
        response: { 200: schema.PreauthsResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) =>
      preauths.list(
        requireTenant(request.caller),
        request.query as { limit?: number; cursor?: string; status?: string; agent_id?: string },
      ),
  )
  app.get(
    '/api/pre-auth/:id',
    {
      schema: {
        operationId: 'getPreauth',
        tags,
        summary: 'One pre-authorisation; its token while it can be used',
        params: schema.PreauthParams,
        response: { 200: schema.Preauth },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => preauths.get(requireTenant(request.caller), request.params.id),
  )
}
