import type { RunEvent, RunRequest, RunResult } from '@countersign/sdk'
import type { InjectedWallet } from '../wallet/injected-wallets.ts'
import { connectPayer, fundedTestAccount, makePaidCall, payingClient } from '../wallet/paying-client.ts'
import type { Terms } from './terms.ts'

/** Who pays for a run. */
export type PaymentMethod =
  | { kind: 'wallet'; walletId: string }
  | { kind: 'test_account' }
  | { kind: 'browser_wallet'; wallet: InjectedWallet; isDevelopmentAllowed: boolean }

export type PaidRun = {
  owner: string
  request: RunRequest
  /** The lane and price that the router promised. A wallet pays without a 402, so this is what holds the price for it. */
  quote: RunRequest['quote']
  terms: Terms
  method: PaymentMethod
  hasFaucet: boolean
  /** The same for every attempt to pay the price that was shown in the same way. */
  idempotencyKey: string
}

export type RunListener = {
  onStarted(runId: string, cancel: () => Promise<unknown>): void
  onEvent(event: RunEvent): void
  onStreamLost(): void
}

/** Pays, follows the run and returns its answer with the verified receipt. It is never paid above the price shown. */
export async function executePaidRun(run: PaidRun, listener: RunListener): Promise<RunResult> {
  const { request, idempotencyKey } = run
  const { client, body } = await openClient(run)
  const started = await makePaidCall(run.owner, idempotencyKey, () =>
    client.startRun({ ...request, ...body }, { idempotencyKey }),
  )
  listener.onStarted(started.runId, () => started.cancel())
  try {
    for await (const event of started.events()) listener.onEvent(event)
  } catch {
    listener.onStreamLost()
  }
  return started.result()
}

async function openClient({ owner, terms, quote, method, hasFaucet }: PaidRun) {
  const { priceUsdc, amountMicro } = terms
  if (method.kind === 'wallet') {
    const body: Partial<RunRequest> = quote ? { quote } : {}
    return { client: payingClient(owner, { walletId: method.walletId }), body }
  }
  if (method.kind === 'test_account') {
    const account = await fundedTestAccount(priceUsdc)
    return { client: payingClient(owner, { account, maxUsdc: priceUsdc }), body: {} }
  }
  const account = await connectPayer(method.wallet, { amountMicro, hasFaucet })
  const allowDevelopmentChain = method.isDevelopmentAllowed
  return { client: payingClient(owner, { account, maxUsdc: priceUsdc, allowDevelopmentChain }), body: {} }
}
