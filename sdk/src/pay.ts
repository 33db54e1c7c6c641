/** A `fetch` that pays: the official x402 client with one account, for `createClient({ fetch })` or on its own. */
export type PayingAccount = {
  address: `0x${string}`
  signTypedData(message: {
    domain: Record<string, unknown>
    types: Record<string, unknown>
    primaryType: string
    message: Record<string, unknown>
  }): Promise<`0x${string}`>
}

/** The libraries are loaded when first used, so that reading and verifying need none of them. */
export async function payingFetch(account: PayingAccount, base: typeof fetch = fetch): Promise<typeof fetch> {
  const [{ wrapFetchWithPaymentFromConfig }, { ExactEvmScheme }] = await Promise.all([
    import('@x402/fetch'),
    import('@x402/evm'),
  ])
  return wrapFetchWithPaymentFromConfig(base, {
    schemes: [{ network: 'eip155:8453', client: new ExactEvmScheme(account) }],
  }) as typeof fetch
}

export async function accountFromKey(privateKey: `0x${string}`): Promise<PayingAccount> {
  const { privateKeyToAccount } = await import('viem/accounts')
  return privateKeyToAccount(privateKey) as unknown as PayingAccount
}
