import { type Payer, readChallenge, signPayment } from '../../test/harness.ts'
import type { BenchService } from './bench-service.ts'
import type { LoadRequest } from './load.ts'

/** One tenant with one budget and one wallet that has `usdc`. Returns a wallet-paid run of the cheapest lane. */
export async function prepareWalletRuns(service: BenchService, usdc: number): Promise<LoadRequest> {
  const payer = await service.payer(usdc)
  return prepareTenant(service, payer, usdc)
}

const PARALLEL_TENANTS = 16
const TENANT_USDC = 100

/** Many tenants, each with a budget and a wallet of its own. Returns a run of each. */
export async function prepareTenants(service: BenchService, count: number): Promise<LoadRequest[]> {
  const requests: LoadRequest[] = []
  let started = 0
  await Promise.all(
    Array.from({ length: PARALLEL_TENANTS }, async () => {
      const payer = await service.payer(Math.ceil((count / PARALLEL_TENANTS) * 2) * TENANT_USDC)
      while (started < count) {
        started += 1
        requests.push(await prepareTenant(service, payer, TENANT_USDC))
      }
    }),
  )
  return requests
}

async function prepareTenant(service: BenchService, payer: Payer, usdc: number): Promise<LoadRequest> {
  const { headers, walletId } = await createTenantWithWallet(service, payer, usdc)
  return walletRun(headers, walletId)
}

/** A tenant with a budget and a wallet that has `usdc`. */
export async function createTenantWithWallet(
  service: Pick<BenchService, 'onboard' | 'post'>,
  payer: Payer,
  usdc: number,
) {
  const tenant = await service.onboard()
  const { body: wallet } = await service.post('/api/wallets', {}, tenant.headers)
  const walletId: string = wallet.wallet_id
  const path = `/api/wallets/${walletId}/topup`
  const topUp = { amount_usdc: usdc }
  // The official client refuses to sign more than 1 USDC, so this payment is signed by hand.
  const challenge = await service.post(path, topUp, tenant.headers)
  const payment = await signPayment(payer, readChallenge(challenge.headers))
  const { status, text } = await service.post(path, topUp, { ...tenant.headers, ...payment })
  if (status !== 200) throw new Error(`The top-up returned ${status}: ${text}`)
  const budget = { scope: { type: 'tenant' }, window: 'total', limit_usdc: 1_000_000, on_breach: 'block' }
  const created = await service.post('/api/budgets', budget, tenant.headers)
  if (created.status !== 200) throw new Error(`The budget returned ${created.status}: ${created.text}`)
  return { ...tenant, walletId }
}

export const walletRun = (headers: Record<string, string>, walletId: string): LoadRequest => ({
  method: 'POST',
  path: '/api/run',
  headers,
  body: JSON.stringify({ task: 'Say {n}.', agent_id: 'comedian-v1', payment: { wallet_id: walletId } }),
})
