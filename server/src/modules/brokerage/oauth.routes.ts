import type { FastifyContextConfig } from 'fastify'
import { Type } from 'typebox'
import type { App } from '../../platform/http-app.ts'
import { OauthCallback, OauthCallbackQuery, OauthRevoked, OauthRevokeRequest } from './brokerage.schema.ts'
import type { Oauth } from './oauth.ts'

const tags = ['Brokerage']

/** As the interface says by default; in strict mode the same addresses ask for a key and check what they are sent. */
export function oauthRoutes(app: App, oauth: Oauth) {
  const config: FastifyContextConfig = oauth.strict ? { auth: 'tenant', scope: 'control' } : { auth: 'none' }

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
    async (request, reply) => reply.redirect(await oauth.authorize(request.caller), 302),
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
    async (request) => oauth.callback(request.query.code, request.query.state),
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
    async (request) => oauth.revoke(request.caller, request.body.rh_account_id ?? undefined),
  )
}
