import { readChallenge, signPayment } from '../../test/harness.ts'
import type { BenchService } from './bench-service.ts'
import type { LoadRequest } from './load.ts'

/** One tenant with one budget and one wallet that has `usdc`. Returns a wallet-paid run of the cheapest lane. */
export async function prepareWalletRuns(service: BenchService, usdc: number): Promise<LoadRequest> {
  const tenant = await service.onboard()
  const { body: wallet } = await service.post('/api/wallets', {}, tenant.headers)
  const payer = await service.payer(usdc)
  const path = `/api/wallets/${wallet.wallet_id}/topup`
  const topUp = { amount_usdc: usdc }
  // The official client refuses to sign more than 1 USDC, so this payment is signed by hand.
  const challenge = await service.post(path, topUp, tenant.headers)
  const payment = await signPayment(payer, readChallenge(challenge.headers))
  const { status, text } = await service.post(path, topUp, { ...tenant.headers, ...payment })
  if (status !== 200) throw new Error(`The top-up returned ${status}: ${text}`)
  await service.post(
    '/api/budgets',
    { scope: { type: 'tenant' }, window: 'total', limit_usdc: 1_000_000, on_breach: 'block' },
    tenant.headers,
  )
  return walletRun(tenant.headers, wallet.wallet_id)
}

export const walletRun = (headers: Record<string, string>, walletId: string): LoadRequest => ({
  method: 'POST',
  path: '/api/run',
  headers,
  body: JSON.stringify({ task: 'Say {n}.', agent_id: 'comedian-v1', payment: { wallet_id: walletId } }),
})
