import type { Wallet } from '@countersign/sdk'
import { type FormEvent, useRef } from 'react'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import type { Me } from '../account/sign-in.ts'
import { useAction } from '../components/action-button.tsx'
import { CopyButton } from '../components/copy-button.tsx'
import { Field } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Card, ErrorMessage, Id, MutedText, StatList } from '../components/ui.tsx'
import { navigate, routeHref } from '../route.ts'
import { formatMicroUsdc, toMicro } from '../usdc-sum.ts'
import { createWallet, useWallets } from '../wallet/wallet-queries.ts'
import { balanceNames, balanceStats } from './wallet-balances.ts'
import { WalletPage } from './wallet-page.tsx'

export function WalletsSection({ me, route }: SectionProps) {
  const [, id] = route.segments
  return id === undefined ? <WalletList me={me} /> : <WalletPage me={me} id={id} />
}

function WalletList({ me }: { me: Me }) {
  const wallets = useWallets(true)
  return (
    <>
      <Card title="Wallets" note="Money your organisation has with this service">
        <QueryResult query={wallets}>
          {({ wallets: rows }) => (
            <>
              {rows.length > 1 && <Totals wallets={rows} />}
              <Table
                label="Wallets"
                columns={columns}
                rows={rows}
                rowKey={({ wallet_id }) => wallet_id}
                empty={
                  mayControl(me)
                    ? 'No wallet yet. Open one below, then fill it: runs are paid from it without a signature, within your budgets and policies.'
                    : 'No wallet yet. A key with the scope control can open one.'
                }
              />
            </>
          )}
        </QueryResult>
      </Card>
      <Card title="Open a wallet">
        {mayControl(me) ? (
          <NewWalletForm />
        ) : (
          <MutedText>This key cannot open wallets: it lacks the scope control.</MutedText>
        )}
      </Card>
    </>
  )
}

const Totals = ({ wallets }: { wallets: readonly Wallet[] }) => <StatList stats={balanceStats(wallets)} />

const columns: Column<Wallet>[] = [
  {
    name: 'Wallet',
    render: ({ wallet_id, name }) => <a href={routeHref(['account', 'wallets', wallet_id])}>{name}</a>,
    wide: true,
  },
  ...balanceNames.map(([key, name]) => ({
    name,
    render: ({ balance }: Wallet) => formatMicroUsdc(toMicro(balance[key])),
    numeric: true,
  })),
  {
    name: 'Id',
    render: ({ wallet_id }) => (
      <span>
        <Id value={wallet_id} /> <CopyButton text={wallet_id} label="the wallet id" />
      </span>
    ),
  },
]

function NewWalletForm() {
  // The same key for every attempt: a wallet whose answer was lost is not opened twice.
  const idempotencyKey = useRef(crypto.randomUUID())
  const create = useAction<string>(async (name) => {
    const { wallet_id } = await createWallet(idempotencyKey.current, name)
    idempotencyKey.current = crypto.randomUUID()
    navigate(routeHref(['account', 'wallets', wallet_id]))
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    create.mutate(String(new FormData(event.currentTarget).get('name')).trim())
  }
  return (
    <form className="filters" onSubmit={submit} aria-label="Open a wallet">
      <Field label="Name">
        {(id) => <input id={id} name="name" maxLength={120} pattern=".*\S.*" placeholder="Agents" required />}
      </Field>
      <button type="submit" disabled={create.isPending}>
        Open
      </button>
      {create.error && <ErrorMessage>{create.error.message}</ErrorMessage>}
    </form>
  )
}
