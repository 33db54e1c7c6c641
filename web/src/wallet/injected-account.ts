import type { PayingAccount } from '@countersign/sdk'
import type { Provider } from './injected-wallets.ts'

export const BASE_CHAIN_ID = 8453
const BASE_CHAIN_HEX = `0x${BASE_CHAIN_ID.toString(16)}`
const USDC_ON_BASE = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'
/** `balanceOf(address)` */
const BALANCE_OF = '0x70a08231'

/** Why a browser wallet did not pay. Nothing was signed, so nothing can be charged. */
export class WalletRefused extends Error {
  override name = 'WalletRefused'
  readonly reason: 'not_connected' | 'wrong_network' | 'declined' | 'too_little' | 'failed'
  /** The account that has too little money. */
  readonly address: string | undefined
  constructor(reason: WalletRefused['reason'], message: string, address?: string) {
    super(message)
    this.reason = reason
    this.address = address
  }
}

type TypedData = Parameters<PayingAccount['signTypedData']>[0]

/** Asks the wallet for an account on Base. What it signs is decided by the SDK. */
export async function connectAccount({ name, provider }: { name: string; provider: Provider }): Promise<PayingAccount> {
  const accounts = await provider.request({ method: 'eth_requestAccounts' }).catch((error: unknown) => {
    throw new WalletRefused(
      'not_connected',
      isDeclined(error)
        ? `${name} was not connected, because you declined. Nothing was charged. Try again and allow this page to see an account.`
        : `${name} could not be connected. Nothing was charged. Unlock it and try again.`,
    )
  })
  const address = Array.isArray(accounts) ? accounts[0] : undefined
  if (typeof address !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(address))
    throw new WalletRefused(
      'not_connected',
      `${name} has no account for this page. Nothing was charged. Choose an account in it and try again.`,
    )
  await requireBase(name, provider)
  return {
    address: address as `0x${string}`,
    signTypedData: async (data) => {
      await requireBase(name, provider)
      const request = { method: 'eth_signTypedData_v4', params: [address, serializeTypedData(data)] }
      const signature = await provider.request(request).catch((error: unknown) => {
        throw new WalletRefused(
          isDeclined(error) ? 'declined' : 'failed',
          isDeclined(error)
            ? `You declined the signature in ${name}. Nothing was charged. Press the button again to be asked once more.`
            : `${name} could not sign. Nothing was charged. Look at the wallet for the reason, then try again.`,
        )
      })
      if (typeof signature !== 'string' || !/^0x[0-9a-fA-F]{130,}$/.test(signature))
        throw new WalletRefused('failed', `${name} answered without a signature. Nothing was charged. Try again.`)
      return signature as `0x${string}`
    },
  }
}

/** A payment for Base that is signed on another network would be refused by some wallets and worthless in others. */
async function requireBase(name: string, provider: Provider) {
  if ((await readChainId(provider)) === BASE_CHAIN_ID) return
  await provider
    .request({ method: 'wallet_switchEthereumChain', params: [{ chainId: BASE_CHAIN_HEX }] })
    .catch(() => undefined)
  const chainId = await readChainId(provider)
  if (chainId === BASE_CHAIN_ID) return
  throw new WalletRefused(
    'wrong_network',
    `${name} is on another network${chainId === undefined ? '' : ` (chain ${chainId})`}, and payments are on Base (chain ${BASE_CHAIN_ID}). Nothing was charged. Switch the network in the wallet and press the button again.`,
  )
}

async function readChainId(provider: Provider): Promise<number | undefined> {
  const chainId = await provider.request({ method: 'eth_chainId' }).catch(() => undefined)
  const value = Number(chainId)
  return Number.isSafeInteger(value) && value > 0 ? value : undefined
}

/** EIP-1193: the person in front of the wallet said no. */
const isDeclined = (error: unknown) => (error as { code?: unknown } | null)?.code === 4001

/** Typed data as wallets read it: JSON with the type of the domain, and whole numbers as text. */
export function serializeTypedData({ domain, types, primaryType, message }: TypedData): string {
  const domainTypes: [name: string, type: string][] = [
    ['name', 'string'],
    ['version', 'string'],
    ['chainId', 'uint256'],
    ['verifyingContract', 'address'],
    ['salt', 'bytes32'],
  ]
  const EIP712Domain = domainTypes
    .filter(([name]) => domain[name] !== undefined)
    .map(([name, type]) => ({ name, type }))
  return JSON.stringify({ domain, types: { EIP712Domain, ...types }, primaryType, message }, (_, value) =>
    typeof value === 'bigint' ? value.toString() : value,
  )
}

/** USDC of an account in millionths, by `eth_call`; undefined when it cannot be read. */
export async function readUsdcMicro(call: Provider['request'], address: string): Promise<bigint | undefined> {
  const data = `${BALANCE_OF}${address.slice(2).toLowerCase().padStart(64, '0')}`
  try {
    const result = await call({ method: 'eth_call', params: [{ to: USDC_ON_BASE, data }, 'latest'] })
    return typeof result === 'string' && /^0x[0-9a-fA-F]{64}$/.test(result) ? BigInt(result) : undefined
  } catch {
    return undefined
  }
}
