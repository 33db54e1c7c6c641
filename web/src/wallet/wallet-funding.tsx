import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useRef, useState } from 'react'
import { ACCOUNT_KEY, queryClient } from '../api.ts'
import { CopyButton } from '../components/copy-button.tsx'
import { Field } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { ErrorMessage, Id, MutedText } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'
import { describePaymentError, findCause } from './describe-payment-error.ts'
import { DevelopmentConsent } from './development-consent.tsx'
import { WalletRefused } from './injected-account.ts'
import { type InjectedWallet, useInjectedWallets } from './injected-wallets.ts'
import { connectPayer, fundedTestAccount, makePaidCall, payingClient } from './paying-client.ts'
import { TestMoneyButton } from './test-money-button.tsx'
import { createWallet, useOnboardingGuide, useWallets, type Wallet } from './wallet-queries.ts'

const FAUCET = 'faucet'
/** What a person is likely to try out with. */
const DEFAULT_USDC = '1'
const MAX_USDC = 1000

/** The wallets of the tenant, a way to make the first one, and the ways to fill it. */
export function WalletFunding({ tenantId }: { tenantId: string }) {
  const wallets = useWallets(true)
  const guide = useOnboardingGuide()
  return (
    <QueryResult query={wallets}>
      {({ wallets: list }) => (
        <QueryResult query={guide}>
          {({ faucet }) =>
            list.length === 0 ? (
              <NewWallet tenantId={tenantId} hasFaucet={faucet !== null} />
            ) : (
              <FundingForm key={list[0]!.wallet_id} tenantId={tenantId} wallets={list} hasFaucet={faucet !== null} />
            )
          }
        </QueryResult>
      )}
    </QueryResult>
  )
}

const refreshMoney = () =>
  Promise.all(
    ['wallets', 'ledger', 'settlements'].map((topic) =>
      queryClient.invalidateQueries({ queryKey: [ACCOUNT_KEY, topic] }),
    ),
  )

type TopUp = { tenantId: string; walletId: string; amountUsdc: number; idempotencyKey: string }

async function topUpFromFaucet({ tenantId, walletId, amountUsdc, idempotencyKey }: TopUp) {
  const account = await fundedTestAccount(amountUsdc)
  const client = payingClient(tenantId, { account, maxUsdc: amountUsdc })
  return makePaidCall(tenantId, idempotencyKey, () =>
    client.topUp(walletId, { amount_usdc: amountUsdc }, { idempotencyKey }),
  )
}

async function topUpFromBrowserWallet(
  { tenantId, walletId, amountUsdc, idempotencyKey }: TopUp,
  wallet: InjectedWallet,
  { hasFaucet, isDevelopmentAllowed }: { hasFaucet: boolean; isDevelopmentAllowed: boolean },
) {
  const amountMicro = BigInt(Math.round(amountUsdc * 1e6))
  const account = await connectPayer(wallet, { amountMicro, hasFaucet })
  const client = payingClient(tenantId, {
    account,
    maxUsdc: amountUsdc,
    allowDevelopmentChain: isDevelopmentAllowed,
  })
  return makePaidCall(tenantId, idempotencyKey, () =>
    client.topUp(walletId, { amount_usdc: amountUsdc }, { idempotencyKey }),
  )
}

function NewWallet({ tenantId, hasFaucet }: { tenantId: string; hasFaucet: boolean }) {
  // The same key for every attempt: a wallet whose answer was lost is not made twice.
  const keys = useRef({ create: crypto.randomUUID(), topUp: crypto.randomUUID() })
  const create = useMutation({
    mutationFn: async () => {
      const { wallet_id: walletId } = await createWallet(keys.current.create)
      if (hasFaucet)
        await topUpFromFaucet({
          tenantId,
          walletId,
          amountUsdc: Number(DEFAULT_USDC),
          idempotencyKey: keys.current.topUp,
        })
    },
    onSettled: refreshMoney,
  })
  return (
    <>
      <p>
        A wallet is money your organisation has with this service. Runs are paid from it without a signature, within
        your budgets and policies.
      </p>
      <button type="button" disabled={create.isPending} onClick={() => create.mutate()}>
        {create.isPending
          ? 'Working…'
          : hasFaucet
            ? `Create a wallet with ${DEFAULT_USDC} test USDC`
            : 'Create a wallet'}
      </button>
      {create.error && <ErrorMessage>{describePaymentError(create.error)}</ErrorMessage>}
    </>
  )
}

export function FundingForm({
  tenantId,
  wallets,
  hasFaucet,
  hasList = true,
}: {
  tenantId: string
  wallets: Wallet[]
  hasFaucet: boolean
  /** Whether the balances are listed above the form. */
  hasList?: boolean
}) {
  const injected = useInjectedWallets()
  const [source, setSource] = useState<string>()
  const chosenSource = source ?? (hasFaucet ? FAUCET : injected[0]?.id)
  const browserWallet = injected.find(({ id }) => id === chosenSource)
  const attempt = useRef<{ request: string; idempotencyKey: string }>(undefined)

  const fill = useMutation({
    mutationFn: async (input: { walletId: string; amountUsdc: number; isDevelopmentAllowed: boolean }) => {
      // A repeated attempt is the same call, so that it is paid once.
      const request = JSON.stringify([input.walletId, input.amountUsdc, chosenSource])
      if (attempt.current?.request !== request) attempt.current = { request, idempotencyKey: crypto.randomUUID() }
      const topUp = { tenantId, ...input, idempotencyKey: attempt.current.idempotencyKey }
      const { topUp: answer } = browserWallet
        ? await topUpFromBrowserWallet(topUp, browserWallet, { hasFaucet, ...input })
        : await topUpFromFaucet(topUp)
      attempt.current = undefined
      return answer
    },
    onSettled: refreshMoney,
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const data = new FormData(event.currentTarget)
    fill.mutate({
      walletId: String(data.get('wallet_id') ?? wallets[0]!.wallet_id),
      amountUsdc: Number(data.get('amount')),
      isDevelopmentAllowed: data.get('development') === 'on',
    })
  }
  const poorAddress = findCause(fill.error, WalletRefused)?.address
  return (
    <>
      {hasList && (
        <ul className="plain-list wallet-list" aria-label="Wallets">
          {wallets.map(({ wallet_id, name, balance_usdc }) => (
            <li key={wallet_id}>
              <strong>{formatUsdc(balance_usdc.available)}</strong> in {name} <Id value={wallet_id} full />{' '}
              <CopyButton text={wallet_id} label="the wallet id" />
            </li>
          ))}
        </ul>
      )}
      {chosenSource === undefined ? (
        <MutedText>
          To fill it, open this page in a browser with a wallet that holds USDC on Base, or have an agent pay{' '}
          <a href="/docs/operations/topUpWallet">the top-up call</a>.
        </MutedText>
      ) : (
        <form className="filters" onSubmit={submit} aria-label="Fill a wallet">
          {wallets.length > 1 && (
            <Field label="Wallet">
              {(id) => (
                <select id={id} name="wallet_id">
                  {wallets.map(({ wallet_id, name }) => (
                    <option key={wallet_id} value={wallet_id}>
                      {name}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          )}
          <Field label="Amount (USDC)">
            {(id) => (
              <input
                id={id}
                name="amount"
                type="number"
                min="0.000001"
                max={MAX_USDC}
                step="0.000001"
                defaultValue={DEFAULT_USDC}
                required
              />
            )}
          </Field>
          <Field label="From">
            {(id) => (
              <select id={id} value={chosenSource} onChange={(event) => setSource(event.target.value)}>
                {hasFaucet && <option value={FAUCET}>Faucet (test USDC)</option>}
                {injected.map((wallet) => (
                  <option key={wallet.id} value={wallet.id}>
                    {wallet.name}
                  </option>
                ))}
              </select>
            )}
          </Field>
          {hasFaucet && browserWallet && <DevelopmentConsent />}
          <button type="submit" disabled={fill.isPending}>
            {fill.isPending ? 'Paying in…' : 'Fill the wallet'}
          </button>
        </form>
      )}
      {fill.data !== undefined && !fill.isPending && (
        <p role="status" className="success-text">
          {formatUsdc(fill.data.amount_usdc)} paid in.{' '}
          <a href={routeHref(['receipts', fill.data.receipt_url.split('/').at(-1)!])}>Its receipt</a>
        </p>
      )}
      {fill.error && <ErrorMessage>{describePaymentError(fill.error)}</ErrorMessage>}
      {fill.error && hasFaucet && poorAddress && <TestMoneyButton address={poorAddress} />}
    </>
  )
}
