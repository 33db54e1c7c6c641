/** A `fetch` that pays with the official x402 client and one account, for `createClient({ fetch })` or on its own. */
export type PayingAccount = {
  address: `0x${string}`
  signTypedData(message: {
    domain: Record<string, unknown>
    types: Record<string, unknown>
    primaryType: string
    message: Record<string, unknown>
  }): Promise<`0x${string}`>
}

export type PayOptions = {
  fetch?: typeof fetch
  /** Maximum price of a single call. Without it, the official client's own cap of one dollar applies. */
  maxUsdc?: number
}

const NETWORK = 'eip155:8453'

/** The payment libraries are loaded on first use, so that reading and verifying do not need them. */
export async function payingFetch(account: PayingAccount, options: PayOptions = {}): Promise<typeof fetch> {
  const [{ wrapFetchWithPaymentFromConfig }, { ExactEvmScheme }] = await Promise.all([
    import('@x402/fetch'),
    import('@x402/evm'),
  ])
  return wrapFetchWithPaymentFromConfig(options.fetch ?? fetch, {
    schemes: [{ network: NETWORK, client: new ExactEvmScheme(account) }],
    ...(options.maxUsdc !== undefined && { spendControls: { maxAmountPerPayment: `$${options.maxUsdc}` } }),
  }) as typeof fetch
}

export async function accountFromKey(privateKey: `0x${string}`): Promise<PayingAccount> {
  const { privateKeyToAccount } = await import('viem/accounts')
  return privateKeyToAccount(privateKey) as unknown as PayingAccount
}
