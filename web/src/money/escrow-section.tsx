import type { ApiRequest, Escrow } from '@countersign/sdk'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import type { Me } from '../account/sign-in.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { Field, FilterForm, Select } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import type { Column } from '../components/table.tsx'
import { Badge, Card, MutedText, Timestamp } from '../components/ui.tsx'
import { useCursorPages } from '../components/use-cursor-pages.ts'
import { VirtualTable } from '../components/virtual-table.tsx'
import { formatCount, NO_VALUE } from '../format.ts'
import { navigate, routeHref } from '../route.ts'
import { formatMicroUsdc } from '../usdc-sum.ts'
import { useWallets } from '../wallet/wallet-queries.ts'
import { sideOf } from './escrow-actions.ts'
import { EscrowClock, escrowTones, sideNames } from './escrow-clock.tsx'
import { EscrowForm } from './escrow-form.tsx'
import { EscrowPage } from './escrow-page.tsx'
import { RefLink } from './money-links.tsx'

type Query = NonNullable<ApiRequest<'/api/escrow', 'get'>['query']>

const states = ['held', 'released', 'refunded', 'disputed', 'expired'] as const satisfies readonly Query['state'][]
const sides = ['sent', 'received'] as const satisfies readonly Query['side'][]
const PAGE_SIZE = 100

export function EscrowSection({ me, route }: SectionProps) {
  const [, id] = route.segments
  return id === undefined ? <EscrowList me={me} query={route.query} /> : <EscrowPage me={me} id={id} />
}

function EscrowList({ me, query }: { me: Me; query: URLSearchParams }) {
  const wallets = useWallets(true)
  const state = states.find((name) => name === query.get('state'))
  const side = sides.find((name) => name === query.get('side'))
  const wallet = query.get('wallet') || undefined
  const readPage = (cursor: string | undefined) =>
    wallet === undefined
      ? api.get('/api/escrow', { query: { state, side, limit: PAGE_SIZE, cursor } })
      : api.get('/api/wallets/{id}/escrow', { path: { id: wallet }, query: { state, limit: PAGE_SIZE, cursor } })
  const pages = useCursorPages([ACCOUNT_KEY, 'escrow', { state, side, wallet }], readPage)
  const own = wallets.data?.wallets ?? []
  const isFiltered = (state ?? side ?? wallet) !== undefined
  return (
    <>
      <Card title="Escrow" note="Money that is set aside for somebody, newest first">
        <FilterForm key={query.toString()} onApply={(values) => navigate(routeHref(['account', 'escrow'], values))}>
          <Select label="State" name="state" value={state} options={states} emptyLabel="any state" />
          <Field label="Side">
            {(id) => (
              <select id={id} name="side" defaultValue={side ?? ''}>
                <option value="">either side</option>
                {sides.map((name) => (
                  <option key={name} value={name}>
                    {sideNames[name]}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="From wallet">
            {(id) => (
              <select id={id} name="wallet" key={own.length} defaultValue={wallet ?? ''}>
                <option value="">any wallet</option>
                {own.map(({ wallet_id, name }) => (
                  <option key={wallet_id} value={wallet_id}>
                    {name}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </FilterForm>
        <QueryResult query={wallets}>
          {({ wallets: rows }) => (
            <QueryResult query={pages.query}>
              {(data) => {
                const escrows = data.pages.flatMap((page) => page.escrows)
                return (
                  <>
                    <VirtualTable
                      label="Escrows"
                      columns={columnsFor(new Set(rows.map(({ wallet_id }) => wallet_id)))}
                      rows={escrows}
                      rowKey={({ escrow_id }) => escrow_id}
                      empty={
                        isFiltered
                          ? 'No escrow fits these filters.'
                          : 'Nothing is in escrow. Put money aside for a delivery below: it is paid when you release it, and comes back otherwise.'
                      }
                      onEndNear={pages.readOn}
                    />
                    {escrows.length > 0 && (
                      <p className="muted">
                        {formatCount(escrows.length)} {escrows.length === 1 ? 'escrow' : 'escrows'}
                        {pages.hasMore ? ' so far; scroll for more' : ''}
                      </p>
                    )}
                  </>
                )
              }}
            </QueryResult>
          )}
        </QueryResult>
      </Card>
      <Card title="Put money in escrow">
        {mayControl(me) ? (
          <QueryResult query={wallets}>{({ wallets: rows }) => <EscrowForm wallets={rows} />}</QueryResult>
        ) : (
          <MutedText>This key cannot move money into escrow: it lacks the scope control.</MutedText>
        )}
      </Card>
    </>
  )
}

const columnsFor = (ownWalletIds: ReadonlySet<string>): Column<Escrow>[] => [
  { name: 'Escrow', render: ({ escrow_id }) => <RefLink value={escrow_id} /> },
  { name: 'State', render: ({ status }) => <Badge tone={escrowTones[status]}>{status}</Badge> },
  { name: 'Amount', render: ({ amount }) => formatMicroUsdc(BigInt(amount)), numeric: true },
  { name: 'Side', render: (escrow) => sideNames[sideOf(escrow, ownWalletIds)] },
  { name: 'Memo', render: ({ memo }) => memo ?? NO_VALUE, wide: true },
  { name: 'Clock', render: (escrow) => <EscrowClock escrow={escrow} />, wide: true },
  { name: 'Since', render: ({ created_at }) => <Timestamp at={created_at} /> },
]
