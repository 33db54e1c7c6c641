import type { Wallet } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import type { Me } from '../account/sign-in.ts'
import { ACCOUNT_KEY, api, hasStatus } from '../api.ts'
import { CopyButton } from '../components/copy-button.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Table } from '../components/table.tsx'
import { Card, DescriptionList, Id, MutedText, StatList, Timestamp } from '../components/ui.tsx'
import { routeHref } from '../route.ts'
import { useOnboardingGuide } from '../wallet/wallet-queries.ts'
import { ledgerColumns } from './ledger-columns.tsx'
import { mayPay } from './may-pay.ts'
import { walletAccount } from './money-links.tsx'
import { balanceStats } from './wallet-balances.ts'

// Payments are loaded with the page that needs them.
const FundingForm = lazy(async () => ({ default: (await import('../wallet/wallet-funding.tsx')).FundingForm }))

const SHOWN_ENTRIES = 20

export function WalletPage({ me, id }: { me: Me; id: string }) {
  const wallet = useQuery({
    queryKey: [ACCOUNT_KEY, 'wallets', id],
    queryFn: () => api.get('/api/wallets/{id}', { path: { id } }),
    refetchInterval: 5_000,
  })
  if (hasStatus(wallet.error, 404) && !wallet.data)
    return (
      <Card title="Not found">
        <MutedText>
          There is no wallet {id} in this organisation. <a href={routeHref(['account', 'wallets'])}>All wallets</a>
        </MutedText>
      </Card>
    )
  return (
    <QueryResult query={wallet}>
      {(data) => (
        <>
          <WalletCard wallet={data} />
          <FundingCard me={me} wallet={data} />
          <EntriesCard wallet={data} />
        </>
      )}
    </QueryResult>
  )
}

const WalletCard = ({ wallet }: { wallet: Wallet }) => (
  <Card title={wallet.name} note={<a href={routeHref(['account', 'wallets'])}>All wallets</a>}>
    <StatList stats={balanceStats([wallet])} />
    <MutedText>
      Reserved is held for runs and withdrawals that are not finished. On its way is a top-up that has not settled yet.
    </MutedText>
    <DescriptionList
      items={[
        [
          'Wallet id',
          <span key="id">
            <Id value={wallet.wallet_id} full /> <CopyButton text={wallet.wallet_id} label="the wallet id" />
          </span>,
        ],
        ['Pay with it', <code key="use">{`"payment": {"wallet_id": "${wallet.wallet_id}"}`}</code>],
        [
          'Held at',
          <span key="address">
            <Id value={wallet.address} full /> on {wallet.network}. It belongs to the service: a plain transfer to it is
            not credited to any wallet.
          </span>,
        ],
        [
          'Limits',
          <span key="limits">
            A wallet has none of its own. <a href={routeHref(['account', 'budgets'])}>Budgets</a> and{' '}
            <a href={routeHref(['account', 'policies'])}>policies</a> bind every payment from it.
          </span>,
        ],
        [
          'Escrow',
          <a key="escrow" href={routeHref(['account', 'escrow'], { wallet: wallet.wallet_id })}>
            What it has put in escrow
          </a>,
        ],
        ['Opened', <Timestamp key="opened" at={wallet.created_at} />],
      ]}
    />
  </Card>
)

function FundingCard({ me, wallet }: { me: Me; wallet: Wallet }) {
  const guide = useOnboardingGuide()
  return (
    <Card title="Top up">
      {mayPay(me) ? (
        <QueryResult query={guide}>
          {({ faucet }) => (
            <Suspense fallback={<MutedText>Loading…</MutedText>}>
              <FundingForm tenantId={me.tenant_id} wallets={[wallet]} hasFaucet={faucet !== null} hasList={false} />
            </Suspense>
          )}
        </QueryResult>
      ) : (
        <MutedText>This key cannot top up: it lacks the scope run.</MutedText>
      )}
    </Card>
  )
}

function EntriesCard({ wallet: { wallet_id } }: { wallet: Wallet }) {
  const account = walletAccount(wallet_id)
  const ledger = useQuery({
    queryKey: [ACCOUNT_KEY, 'ledger', 'wallet', account],
    queryFn: () => api.get('/api/ledger', { query: { account, limit: SHOWN_ENTRIES } }),
    refetchInterval: 5_000,
  })
  return (
    <Card
      title="Entries"
      note={<a href={routeHref(['account', 'ledger'], { account })}>All of them, with their check</a>}
    >
      <MutedText>A credit is money that came in, a debit money that went out.</MutedText>
      <QueryResult query={ledger}>
        {({ entries }) => (
          <Table
            label="Entries of the wallet"
            columns={ledgerColumns}
            rows={entries}
            rowKey={({ id }) => id}
            empty="No money has moved yet. Top it up above."
          />
        )}
      </QueryResult>
    </Card>
  )
}
