import type { FastifyContextConfig } from 'fastify'
import { Type } from 'typebox'
import type { App } from '../../platform/http-app.ts'
import { OauthCallback, OauthCallbackQuery, OauthRevoked, OauthRevokeRequest } from './brokerage.schema.ts'
import type { RhAuth } from './rh-auth.ts'

const tags = ['Brokerage']

/** `/api/rh/auth…`: open by default; in strict mode they require a key with the scope `control`. */
export function rhAuthRoutes(app: App, rhAuth: RhAuth) {
  const config: FastifyContextConfig = {
    writes: true,
    ...(rhAuth.strict ? { auth: 'tenant', scope: 'control' } : { auth: 'none' }),
  }

  app.get(
    '/api/rh/auth',
    {
      schema: {
        operationId: 'rhAuth',
        tags,
        summary: 'Redirect to the broker to link an account',
        ...(rhAuth.strict && {
          description:
            'Sets a cookie for ten minutes. The callback is accepted only from the browser that has it, so the address cannot be sent to somebody else.',
        }),
        response: { 302: Type.Null({ description: 'Redirect to the configured authorisation address.' }) },
      },
      config,
    },
    async (request, reply) => {
      const { location, cookie } = await rhAuth.authorize(request.caller)
      if (cookie) reply.header('set-cookie', cookie)
      return reply.redirect(location, 302)
    },
  )

  app.get(
    '/api/rh/auth/callback',
    {
      schema: {
        operationId: 'rhAuthCallback',
        tags,
        summary: 'Where the broker sends the user back',
        querystring: OauthCallbackQuery,
        response: { 200: OauthCallback },
      },
    },
    async (request, reply) => {
      const { code, state } = request.query
      const { body, cookie } = await rhAuth.callback(code, state, request.headers.cookie)
      if (cookie) reply.header('set-cookie', cookie).header('cache-control', 'no-store')
      return body
    },
  )

  app.post(
    '/api/rh/auth/revoke',
    {
      schema: {
        operationId: 'rhAuthRevoke',
        tags,
        summary: 'Mark a linked account as revoked',
        body: OauthRevokeRequest,
        response: { 200: OauthRevoked },
      },
      config,
    },
    async (request) => rhAuth.revoke(request.caller, request.body.rh_account_id ?? undefined),
  )
}
