import {
  type CallStore,
  type ClientOptions,
  CountersignError,
  createClient,
  createDevelopmentAccount,
  type PayingAccount,
  type ResumedCall,
  SettlementUnknown,
} from '@countersign/sdk'
import { api } from '../api.ts'
import { readCsrfToken } from '../session.ts'
import { browserStore } from './call-store.ts'
import { connectAccount, readUsdcMicro, WalletRefused } from './injected-account.ts'
import type { InjectedWallet, Provider } from './injected-wallets.ts'

/** The owner of calls that are made without a session. */
export const GUEST = 'guest'

const stores = new Map<string, CallStore>()

export function storeOf(owner: string): CallStore {
  const store = stores.get(owner) ?? browserStore(owner)
  stores.set(owner, store)
  return store
}

/** The SDK makes, keeps and repeats payments; the page only chooses who pays. */
export const payingClient = (owner: string, options: Partial<ClientOptions> = {}) =>
  createClient({ baseUrl: '', csrfToken: readCsrfToken, store: storeOf(owner), ...options })

const REFUSED = ' refused'

/**
 * Makes a call that pays. A call that the service refused stays refused when the page is opened again: the person was told
 * that nothing was charged, so money that arrives later must not pay for it.
 */
export async function makePaidCall<T>(owner: string, idempotencyKey: string, call: () => Promise<T>): Promise<T> {
  const store = storeOf(owner)
  const mark = `${idempotencyKey}${REFUSED}`
  await store.remove(mark)
  try {
    return await call()
  } catch (error) {
    if (isRefusal(error)) await store.create(mark, '')
    throw error
  }
}

const isRefusal = (error: unknown) =>
  error instanceof CountersignError &&
  !(error instanceof SettlementUnknown) &&
  error.status >= 400 &&
  error.status < 500

/** Finishes the calls that were open when the page was closed, and forgets those that were refused. */
export async function resumeCalls(owner: string): Promise<ResumedCall[]> {
  const store = storeOf(owner)
  const names = await store.names()
  const refusedKeys = names.filter((name) => name.endsWith(REFUSED)).map((name) => name.slice(0, -REFUSED.length))
  for (const key of refusedKeys)
    for (const name of names.filter((entry) => entry.startsWith(`${key} `))) await store.remove(name)
  return payingClient(owner).resume()
}

let testAccount: Promise<PayingAccount> | undefined

/** An account with a new key that lives as long as the page, filled from the faucet of a development chain. */
export async function fundedTestAccount(amountUsdc: number): Promise<PayingAccount> {
  testAccount ??= createDevelopmentAccount()
  const account = await testAccount
  await requestTestMoney(account.address, amountUsdc)
  return account
}

export const requestTestMoney = (address: string, amountUsdc: number) =>
  api.post('/api/dev/faucet', { body: { address, amount_usdc: amountUsdc } })

/** The account of a browser wallet, once it is known to have the money. */
export async function connectPayer(
  wallet: InjectedWallet,
  { amountMicro, hasFaucet }: { amountMicro: bigint; hasFaucet: boolean },
): Promise<PayingAccount> {
  const account = await connectAccount(wallet)
  const balanceMicro = await readUsdcMicro(
    hasFaucet ? callDevelopmentChain : (call) => wallet.provider.request(call),
    account.address,
  )
  if (balanceMicro !== undefined && balanceMicro < amountMicro)
    throw new WalletRefused(
      'too_little',
      `The account ${account.address} has ${Number(balanceMicro) / 1e6} USDC, and ${Number(amountMicro) / 1e6} are needed. Nothing was charged. ${hasFaucet ? 'Get test USDC for it, or pay another way.' : 'Send USDC on Base to it, or pay another way.'}`,
      account.address,
    )
  return account
}

/** The wallet itself would ask Base, which knows nothing of a development chain. */
const callDevelopmentChain: Provider['request'] = async ({ method, params }) => {
  const answer = await api.post('/api/dev/rpc', { body: { jsonrpc: '2.0', id: 1, method, params } })
  return (answer as { result?: unknown }).result
}
