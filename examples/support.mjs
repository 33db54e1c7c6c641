// What the examples share: a new organisation with a key, and a wallet filled with test money of the development chain.
import { createClient, createDevelopmentAccount } from '@countersign/sdk'

export const baseUrl = process.env.COUNTERSIGN_URL ?? 'http://127.0.0.1:4020'

/** A client of a new organisation whose wallet has `usdc`. */
export async function createOrganisation(usdc) {
  const account = await createDevelopmentAccount()
  const guest = createClient({ baseUrl })
  await guest.post('/api/dev/faucet', { body: { address: account.address, amount_usdc: usdc } })
  const { api_key: apiKey } = await guest.post('/api/onboard', {
    body: { org_name: 'Examples', email: 'examples@example.com' },
  })
  const client = createClient({ baseUrl, apiKey, account, maxUsdc: usdc })
  const { wallet_id: walletId } = await client.post('/api/wallets', { body: {} })
  await client.topUp(walletId, { amount_usdc: usdc })
  return { apiKey, account, walletId, client: createClient({ baseUrl, apiKey, walletId }) }
}
