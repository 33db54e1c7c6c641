import type Stripe from 'stripe'
import type { BillingPortal } from '../../modules/tenants/billing.ts'
import { unavailable } from '../../platform/problem.ts'

const TIMEOUT_MS = 10_000
const MAX_RETRIES = 1

/** Stripe's billing portal. The library is large, so it is loaded with the first request for the portal. */
export function createStripePortal(options: { secretKey: string; apiUrl?: string }): BillingPortal {
  let loading: Promise<Stripe> | undefined
  const load = async () => {
    const { default: StripeClient } = await import('stripe')
    return new StripeClient(options.secretKey, {
      ...(options.apiUrl && parseApiUrl(options.apiUrl)),
      timeout: TIMEOUT_MS,
      maxNetworkRetries: MAX_RETRIES,
      telemetry: false,
    })
  }

  return {
    async open(customer, returnUrl) {
      loading ??= load()
      const stripe = await loading
      try {
        const session = await stripe.billingPortal.sessions.create({ customer, return_url: returnUrl })
        return session.url
      } catch (error) {
        if ((error as { code?: unknown }).code === 'resource_missing') return undefined
        throw unavailable('The billing provider cannot be reached at the moment.', 5, error)
      }
    },
  }
}

function parseApiUrl(apiUrl: string): Pick<Stripe.StripeConfig, 'protocol' | 'host' | 'port'> {
  const { protocol, hostname, port } = new URL(apiUrl)
  return {
    protocol: protocol === 'http:' ? 'http' : 'https',
    host: hostname,
    ...(port && { port: Number(port) }),
  }
}
