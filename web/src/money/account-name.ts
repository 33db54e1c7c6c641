import type { Wallet } from '@countersign/sdk'

/** An account as people call it: a wallet by its name, any other without the kind that it is listed under. */
export function accountName(account: string, wallets: readonly Pick<Wallet, 'wallet_id' | 'name'>[]): string {
  const [kind = '', group = '', ...rest] = account.split(':')
  const id = rest.join(':')
  const wallet = wallets.find(({ wallet_id }) => wallet_id === id)
  if (kind === 'liabilities' && (group === 'wallet' || group === 'escrow') && id !== '')
    return `${group === 'wallet' ? 'wallet' : 'escrow of'} ${wallet?.name ?? id}`
  return [group, ...rest].join(' ') || account
}
