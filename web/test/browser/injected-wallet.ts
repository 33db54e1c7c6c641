import type { Page } from 'playwright-core'
import { privateKeyToAccount } from 'viem/accounts'

export type WalletBehaviour = {
  name?: string
  icon?: string
  chainId?: number
  /** Whether a request to switch to Base is granted. */
  switches?: boolean
  declinesConnection?: boolean
  declinesSignature?: boolean
}

/**
 * Announces a wallet to the page by EIP-6963, as an extension does. It signs with a real key, which the page never sees.
 * Returns the requests that the page made to it.
 */
export async function injectWallet(page: Page, key: `0x${string}`, behaviour: WalletBehaviour = {}) {
  const account = privateKeyToAccount(key)
  const requests: { method: string; params: unknown[] }[] = []
  let chainId = behaviour.chainId ?? 8453
  const refuse = (code: number, message: string) => ({ error: { code, message } })
  const answer = async (method: string, params: unknown[]) => {
    requests.push({ method, params })
    switch (method) {
      case 'eth_requestAccounts':
        return behaviour.declinesConnection ? refuse(4001, 'User rejected') : { result: [account.address] }
      case 'eth_chainId':
        return { result: `0x${chainId.toString(16)}` }
      case 'wallet_switchEthereumChain':
        if (!behaviour.switches) return refuse(4001, 'User rejected')
        chainId = Number((params[0] as { chainId: string }).chainId)
        return { result: null }
      case 'eth_signTypedData_v4': {
        if (behaviour.declinesSignature) return refuse(4001, 'User rejected')
        const { EIP712Domain, ...types } = JSON.parse(String(params[1])).types
        const { domain, primaryType, message } = JSON.parse(String(params[1]))
        if (!EIP712Domain || params[0] !== account.address) return refuse(-32602, 'Invalid params')
        return { result: await account.signTypedData({ domain, types, primaryType, message }) }
      }
      default:
        return refuse(4200, `Unsupported method ${method}`)
    }
  }
  await page.exposeFunction('answerWalletRequest', answer)
  await page.addInitScript(
    ({ name, icon }) => {
      const { answerWalletRequest } = globalThis as unknown as {
        answerWalletRequest(method: string, params: unknown[]): Promise<{ result?: unknown; error?: object }>
      }
      const provider = Object.freeze({
        async request({ method, params = [] }: { method: string; params?: unknown[] }) {
          const { result, error } = await answerWalletRequest(method, params)
          if (error) throw Object.assign(new Error('The wallet refused.'), error)
          return result
        },
      })
      const info = { uuid: '350670db-19fa-4704-a166-e52e178b59d2', name, icon, rdns: 'test.wallet' }
      const announce = () =>
        dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }))
      addEventListener('eip6963:requestProvider', announce)
      announce()
    },
    {
      name: behaviour.name ?? 'Test Wallet',
      icon: behaviour.icon ?? 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"/>',
    },
  )
  return { account, requests, methods: () => requests.map(({ method }) => method) }
}
