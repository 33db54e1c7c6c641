import { useSyncExternalStore } from 'react'

/** What a wallet in the browser offers (EIP-1193). */
export type Provider = { request(call: { method: string; params?: unknown[] }): Promise<unknown> }

export type InjectedWallet = { id: string; name: string; icon: string | undefined; provider: Provider }

/** A page that announces wallets without end must not fill the list. */
const MAX_WALLETS = 20
const MAX_NAME_LENGTH = 60

let wallets: readonly InjectedWallet[] = []
const listeners = new Set<() => void>()

/** The wallets that have announced themselves to this page (EIP-6963). */
export const useInjectedWallets = () =>
  useSyncExternalStore(
    subscribe,
    () => wallets,
    () => wallets,
  )

function subscribe(onChange: () => void) {
  listeners.add(onChange)
  if (listeners.size === 1) {
    addEventListener('eip6963:announceProvider', handleAnnouncement)
    dispatchEvent(new Event('eip6963:requestProvider'))
  }
  return () => {
    listeners.delete(onChange)
    if (listeners.size === 0) removeEventListener('eip6963:announceProvider', handleAnnouncement)
  }
}

function handleAnnouncement(event: Event) {
  const wallet = parseAnnouncement((event as CustomEvent<unknown>).detail)
  if (!wallet || wallets.length >= MAX_WALLETS || wallets.some(({ id }) => id === wallet.id)) return
  wallets = [...wallets, wallet]
  for (const listener of listeners) listener()
}

/** Any script of the browser can announce anything, so only what has the right form is taken, and an icon only as data. */
export function parseAnnouncement(detail: unknown): InjectedWallet | undefined {
  const { info, provider } = (detail ?? {}) as { info?: Record<string, unknown>; provider?: Partial<Provider> }
  if (typeof info?.uuid !== 'string' || typeof info.name !== 'string' || info.name.trim() === '') return undefined
  if (typeof provider?.request !== 'function') return undefined
  const icon = typeof info.icon === 'string' && /^data:image\/[a-z+.-]+[;,]/i.test(info.icon) ? info.icon : undefined
  return { id: info.uuid, name: info.name.trim().slice(0, MAX_NAME_LENGTH), icon, provider: provider as Provider }
}
