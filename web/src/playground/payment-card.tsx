import type { FormEvent, ReactNode } from 'react'
import { Badge, Card, DescriptionList, Id, MutedText, TextBlock } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'
import { DevelopmentConsent } from '../wallet/development-consent.tsx'
import { type InjectedWallet, useInjectedWallets } from '../wallet/injected-wallets.ts'
import type { Wallet } from '../wallet/wallet-queries.ts'
import type { PaymentMethod } from './paid-run.ts'
import type { Terms } from './terms.ts'

const TEST_ACCOUNT = 'test_account'

type PaymentCardProps = {
  terms: Terms
  wallets: Wallet[]
  isSignedIn: boolean
  hasFaucet: boolean
  isPaying: boolean
  isPaid: boolean
  /** The method that is chosen, for the examples beside it. */
  selected: string | undefined
  onSelect(option: string): void
  onPay(option: string, method: PaymentMethod): void
}

/** The ways to pay that this visitor has, the cheapest in effort first. */
export const paymentOptions = (
  wallets: Wallet[],
  hasFaucet: boolean,
  injected: readonly InjectedWallet[],
): string[] => [
  ...wallets.map(({ wallet_id }) => wallet_id),
  ...injected.map(({ id }) => id),
  ...(hasFaucet ? [TEST_ACCOUNT] : []),
]

/** The 402: what the service asks for, and who pays it. */
export function PaymentCard(props: PaymentCardProps) {
  const { terms, wallets, isSignedIn, hasFaucet, isPaying, isPaid, onSelect, onPay } = props
  const injected = useInjectedWallets()
  const options = paymentOptions(wallets, hasFaucet, injected)
  const [selectedOption = options[0]] = [props.selected].filter((option) => option && options.includes(option))
  const wallet = wallets.find(({ wallet_id }) => wallet_id === selectedOption)
  const browserWallet = injected.find(({ id }) => id === selectedOption)
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const isDevelopmentAllowed = new FormData(event.currentTarget).get('development') === 'on'
    if (wallet) onPay(wallet.wallet_id, { kind: 'wallet', walletId: wallet.wallet_id })
    else if (browserWallet)
      onPay(browserWallet.id, { kind: 'browser_wallet', wallet: browserWallet, isDevelopmentAllowed })
    else onPay(TEST_ACCOUNT, { kind: 'test_account' })
  }
  const option = (value: string, content: ReactNode) => (
    <label key={value} className="choice">
      <input
        type="radio"
        name="method"
        value={value}
        checked={value === selectedOption}
        onChange={() => onSelect(value)}
      />
      <span>{content}</span>
    </label>
  )
  return (
    <Card title="402 Payment Required" note={isPaid ? 'Paid' : 'Nothing was charged yet'}>
      <TermsList terms={terms} />
      {options.length === 0 ? (
        <NoWayToPay isSignedIn={isSignedIn} />
      ) : (
        <form onSubmit={submit} aria-label="Pay">
          <fieldset className="payment-methods">
            <legend>Pay with</legend>
            {wallets.map(({ wallet_id, name, balance_usdc }) =>
              option(
                wallet_id,
                <>
                  {name}, {formatUsdc(balance_usdc.available)} available{' '}
                  {balance_usdc.available < terms.priceUsdc && <Badge tone="warning">too little</Badge>}
                </>,
              ),
            )}
            {injected.map(({ id, name, icon }) =>
              option(
                id,
                <>
                  {icon && <img src={icon} alt="" width="20" height="20" />} {name}, in this browser; it asks you to
                  sign
                </>,
              ),
            )}
            {hasFaucet && option(TEST_ACCOUNT, <>A test account of this page, filled from the faucet</>)}
          </fieldset>
          {terms.isDevelopment && browserWallet && <DevelopmentConsent />}
          <button type="submit" disabled={isPaying}>
            {isPaying ? 'Running…' : `Pay ${formatUsdc(terms.priceUsdc)} and run${isPaid ? ' again' : ''}`}
          </button>
        </form>
      )}
    </Card>
  )
}

const TermsList = ({ terms }: { terms: Terms }) => (
  <>
    <DescriptionList
      items={[
        ['Price', <strong key="price">{formatUsdc(terms.priceUsdc)}</strong>],
        ['Network', terms.isDevelopment ? `${terms.network}, a development chain with test money` : terms.network],
        ['Token', <Id key="asset" value={terms.asset} full />],
        ['Paid to', <Id key="payTo" value={terms.payTo} full />],
        ['A payment is valid', terms.validSeconds === undefined ? undefined : `for ${terms.validSeconds} seconds`],
        ['If the run fails', 'nothing is charged'],
      ]}
    />
    <details>
      <summary>The whole answer</summary>
      <TextBlock label="The 402 as JSON">{JSON.stringify(terms.challenge, null, 2)}</TextBlock>
    </details>
  </>
)

const NoWayToPay = ({ isSignedIn }: { isSignedIn: boolean }) => (
  <MutedText>
    {isSignedIn ? (
      <>
        Your organisation has no wallet yet. <a href={routeHref(['start'])}>Create and fill one</a>, or open this page
        in a browser with a wallet that holds USDC on Base.
      </>
    ) : (
      <>
        Open this page in a browser with a wallet that holds USDC on Base, or{' '}
        <a href={routeHref(['start'])}>create an organisation</a> and fill its wallet.
      </>
    )}
  </MutedText>
)
