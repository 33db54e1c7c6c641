import type { PayingAccount } from './client-types.ts'
import { DevelopmentChainRefused } from './errors.ts'

export type { PayingAccount } from './client-types.ts'
export { DevelopmentChainRefused } from './errors.ts'

export type PayOptions = {
  fetch?: typeof fetch
  /** Maximum price of a single call. Without it, the official client's own cap of one dollar applies. */
  maxUsdc?: number
  /**
   * Also sign for a development chain with a key that `createDevelopmentAccount` did not make. Such a chain has the id and
   * the USDC address of Base, so whoever runs it could use the signature on Base if the key has money there.
   */
  allowDevelopmentChain?: boolean
}

const NETWORK = 'eip155:8453'

/**
 * A `fetch` that pays with the official x402 client and one account, for `createClient({ fetch })` or on its own.
 * The payment libraries are loaded on first use, so that reading and verifying do not need them.
 */
export async function payingFetch(account: PayingAccount, options: PayOptions = {}): Promise<typeof fetch> {
  const [{ wrapFetchWithPaymentFromConfig }, { ExactEvmScheme }] = await Promise.all([
    import('@x402/fetch'),
    import('@x402/evm'),
  ])
  const send = options.fetch ?? fetch
  const isAllowed = options.allowDevelopmentChain === true || developmentAccounts.has(account)
  const checkedFetch: typeof fetch = async (input, init) => {
    const response = await send(input, init)
    if (response.status === 402 && !isAllowed && (await isDevelopmentChain(response)))
      throw new DevelopmentChainRefused()
    return response
  }
  return wrapFetchWithPaymentFromConfig(checkedFetch, {
    schemes: [{ network: NETWORK, client: new ExactEvmScheme(account) }],
    ...(options.maxUsdc !== undefined && { spendControls: { maxAmountPerPayment: `$${options.maxUsdc}` } }),
  }) as typeof fetch
}

export async function accountFromKey(privateKey: `0x${string}`): Promise<PayingAccount> {
  const { privateKeyToAccount } = await import('viem/accounts')
  return privateKeyToAccount(privateKey) as unknown as PayingAccount
}

const developmentAccounts = new WeakSet<PayingAccount>()

/** An account with a new key, which has no money anywhere but on the development chain that funds it. */
export async function createDevelopmentAccount(): Promise<PayingAccount> {
  const { generatePrivateKey } = await import('viem/accounts')
  const account = await accountFromKey(generatePrivateKey())
  developmentAccounts.add(account)
  return account
}

type Challenge = { accepts?: { extra?: { development?: unknown } }[] }

/** The terms stand in a header for version 2 of x402 and in the body for version 1. */
async function isDevelopmentChain(response: Response): Promise<boolean> {
  const header = response.headers.get('payment-required')
  const challenges: Challenge[] = []
  if (header) challenges.push(parseChallenge(new TextDecoder().decode(Uint8Array.from(atob(header), toCode))))
  challenges.push(parseChallenge(await response.clone().text()))
  return challenges.some(({ accepts }) => accepts?.some?.(({ extra }) => extra?.development === true))
}

const toCode = (character: string) => character.charCodeAt(0)

function parseChallenge(text: string): Challenge {
  try {
    return (JSON.parse(text) as Challenge | null) ?? {}
  } catch {
    return {}
  }
}
