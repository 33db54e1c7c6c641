import { Type } from 'typebox'
import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import type { Tenants } from './tenants.ts'

const SessionRequestBody = Type.Object(
  { api_key: Type.String({ minLength: 1, maxLength: 200 }) },
  { title: 'SessionRequest', additionalProperties: false },
)
const SessionResponse = Type.Object(
  {
    csrf_token: Type.String({ description: 'Send it back as x-csrf-token with every write.' }),
    tenant_id: Type.String(),
    expires_at: Type.Optional(Type.String({ format: 'date-time' })),
  },
  { title: 'SessionResponse' },
)

export function sessionRoutes(app: App, tenants: Tenants) {
  const { sessions } = tenants
  const tags = ['Identity']
  app.post(
    '/api/session',
    {
      schema: {
        operationId: 'openSession',
        tags,
        summary: 'Exchange a key for a browser session',
        description:
          'Sets an HttpOnly, SameSite=Lax cookie. Writes with it need the header x-csrf-token and our own origin; the session ends with its key.',
        body: SessionRequestBody,
        response: { 200: SessionResponse, 401: ErrorResponse, 403: ErrorResponse },
      },
    },
    async (request, reply) => {
      // Login CSRF: otherwise another site could sign a visitor in to the attacker's tenant and see what they do there.
      sessions.checkOrigin(request)
      const { setCookie, body } = await sessions.open(await tenants.authenticateKey(request.body.api_key))
      return reply.header('set-cookie', setCookie).header('cache-control', 'no-store').send(body)
    },
  )
  app.get(
    '/api/session',
    {
      schema: {
        operationId: 'getSession',
        tags,
        summary: 'The token of the session in use, for a page that was loaded again',
        response: { 200: SessionResponse, 404: ErrorResponse },
      },
      config: { auth: 'tenant' },
    },
    async (request, reply) => {
      reply.header('cache-control', 'no-store')
      return sessions.getCsrfToken(request, requireTenant(request.caller))
    },
  )
  app.delete(
    '/api/session',
    {
      schema: {
        operationId: 'endSession',
        tags,
        summary: 'End the session',
        response: { 200: Type.Object({ ended: Type.Boolean() }, { title: 'SessionEnded' }), 404: ErrorResponse },
      },
      config: { auth: 'tenant' },
    },
    async (request, reply) => {
      const { setCookie, body } = await sessions.end(request, requireTenant(request.caller))
      return reply.header('set-cookie', setCookie).send(body)
    },
  )
}
