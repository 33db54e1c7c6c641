import type { TenantCaller } from '../../../platform/auth-context.ts'
import { requireTenant } from '../../../platform/auth-context.ts'
import type { App } from '../../../platform/http-app.ts'
import { ErrorResponse } from '../../../platform/http-openapi.ts'
import { type IdempotentResponse, readIdempotencyKey } from '../../../platform/idempotency.ts'
import { sendStoredResponse, withReplayHeader } from '../../../platform/stored-response.ts'
import * as schema from './authorize.schema.ts'
import type { AuthorizeInput } from './authorize.ts'

const tags = ['Control']

type Authorize = (
  tenant: TenantCaller,
  input: AuthorizeInput,
  idempotencyKey: string | undefined,
) => Promise<IdempotentResponse>

export function authorizeRoutes(app: App, authorize: Authorize) {
  app.post(
    '/api/authorize',
    {
      schema: {
        operationId: 'authorize',
        tags,
        summary: 'Override one denial: once, in time, for one agent, amount and merchant',
        description:
          'Only what a policy denied can be overridden; budgets, mandates and frozen agents cannot. It holds for the merchant as it was denied: the same id at another address or host is another merchant. For mandate holders and admins. Whoever was denied cannot override, and whoever issued an override cannot use it (403); the only active key with scope `control` may do both, and then `self_approved` is true. A key with `mandate_ids` overrides only what was denied under one of these mandates.',
        body: schema.AuthorizeRequest,
        response: { 200: schema.AuthorizeResponse, 403: ErrorResponse, 409: ErrorResponse },
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
}
