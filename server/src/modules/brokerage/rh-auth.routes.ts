import type { FastifyContextConfig } from 'fastify'
import { Type } from 'typebox'
import type { App } from '../../platform/http-app.ts'
import { OauthCallback, OauthCallbackQuery, OauthRevoked, OauthRevokeRequest } from './brokerage.schema.ts'
import type { RhAuth } from './rh-auth.ts'

const tags = ['Brokerage']

/** `/api/rh/auth…`: open by default; in strict mode they require a key with the scope `control`. */
export function rhAuthRoutes(app: App, rhAuth: RhAuth) {
  const config: FastifyContextConfig = rhAuth.strict ? { auth: 'tenant', scope: 'control' } : { auth: 'none' }

  app.get(
    '/api/rh/auth',
    {
      schema: {
        operationId: 'rhAuth',
        tags,
        summary: 'Redirect to the broker to link an account',
        response: { 302: Type.Null({ description: 'Redirect to the configured authorisation address.' }) },
      },
      config,
    },
    async (request, reply) => reply.redirect(await rhAuth.authorize(request.caller), 302),
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
    async (request) => rhAuth.callback(request.query.code, request.query.state),
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
