import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Db } from '../../platform/db.ts'
import { notConfigured, notFound } from '../../platform/problem.ts'
import { readTenant } from './tenants.store.ts'

/** The billing provider's customer portal, which shows invoices and payment methods. */
export type BillingPortal = {
  /** The URL of a new portal session; undefined when the provider does not know the customer. */
  open(customerId: string, returnUrl: string): Promise<string | undefined>
}

export type BillingDeps = { db: Db; portal: BillingPortal | undefined; publicUrl: () => string }

export type Billing = ReturnType<typeof createBilling>

export function createBilling(deps: BillingDeps) {
  return {
    async openPortal(caller: TenantCaller) {
      const tenant = await readTenant(deps.db, caller.tenantId)
      if (!tenant?.billing_customer_id) throw notFound('billing customer')
      if (!deps.portal) throw notConfigured('No billing provider is configured: STRIPE_SECRET_KEY is missing.')
      const url = await deps.portal.open(tenant.billing_customer_id, deps.publicUrl())
      if (url === undefined) throw notFound('billing customer')
      return { url }
    },
  }
}
