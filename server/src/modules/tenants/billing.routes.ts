import { Type } from 'typebox'
import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import type { Billing } from './billing.ts'
import { PlanResponse } from './tenants.schema.ts'
import type { Tenants } from './tenants.ts'

const PlanHeaders = Type.Object({ 'x-tenant-id': Type.String({ minLength: 1, maxLength: 64 }) })

export function billingRoutes(
  app: App,
  { billing, tenants }: { billing: Billing; tenants: Pick<Tenants, 'planById'> },
) {
  app.get(
    '/api/billing/plan',
    {
      schema: {
        operationId: 'getBillingPlan',
        tags: ['Billing'],
        summary: "A tenant's plan and its features",
        description: 'Nothing else of the tenant is shown, and an unknown tenant reads as the default plan.',
        headers: PlanHeaders,
        response: { 200: PlanResponse, 400: ErrorResponse },
      },
    },
    async (request) => tenants.planById(request.headers['x-tenant-id']),
  )
  app.post(
    '/api/billing/portal',
    {
      schema: {
        operationId: 'openBillingPortal',
        tags: ['Billing'],
        summary: 'Open the billing portal',
        response: {
          200: Type.Object({ url: Type.String({ format: 'uri' }) }, { title: 'BillingPortal' }),
          404: { ...ErrorResponse, description: 'No billing customer is on record.' },
        },
      },
      config: { auth: 'tenant', scope: 'control' },
    },
    async (request, reply) => {
      // The portal URL grants access to whoever holds it, so it must not be cached.
      reply.header('cache-control', 'no-store')
      return billing.openPortal(requireTenant(request.caller))
    },
  )
}
