import type { Wallet } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { ACCOUNT_KEY, api } from '../api.ts'

export type { Wallet } from '@countersign/sdk'

export const useWallets = (isSignedIn: boolean) =>
  useQuery({
    queryKey: [ACCOUNT_KEY, 'wallets'],
    // A tenant has at most 100.
    queryFn: () => api.get('/api/wallets', { query: { limit: 100 } }),
    enabled: isSignedIn,
  })

/** How this service takes new tenants, and whether its chain has a faucet. */
export const useOnboardingGuide = () =>
  useQuery({
    queryKey: ['onboarding'],
    queryFn: () => api.get('/api/onboard'),
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
  })

export const createWallet = (idempotencyKey: string, name = 'First wallet'): Promise<Wallet> =>
  api.post('/api/wallets', { body: { name }, headers: { 'idempotency-key': idempotencyKey } })
