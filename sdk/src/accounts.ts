import type { PayingAccount } from './client-types.ts'

const developmentAccounts = new WeakSet<PayingAccount>()

/** Whether `createDevelopmentAccount` made it. */
export const isDevelopmentAccount = (account: PayingAccount): boolean => developmentAccounts.has(account)

export async function accountFromKey(privateKey: `0x${string}`): Promise<PayingAccount> {
  const { privateKeyToAccount } = await import('viem/accounts')
  return privateKeyToAccount(privateKey.trim() as `0x${string}`) as unknown as PayingAccount
}

/** An account with a new key, which has no money anywhere but on the development chain that funds it. */
export async function createDevelopmentAccount(): Promise<PayingAccount> {
  const { generatePrivateKey } = await import('viem/accounts')
  const account = await accountFromKey(generatePrivateKey())
  developmentAccounts.add(account)
  return account
}
