import type { Settlement } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import type { Me } from '../account/sign-in.ts'
import { ACCOUNT_KEY, api, hasStatus } from '../api.ts'
import { useAction } from '../components/action-button.tsx'
import { CopyButton } from '../components/copy-button.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Badge, Card, DescriptionList, ErrorMessage, Id, MutedText, Timestamp } from '../components/ui.tsx'
import { routeHref } from '../route.ts'
import { formatMicroUsdc } from '../usdc-sum.ts'
import { mayPay } from './may-pay.ts'
import { RefLink } from './money-links.tsx'
import { isUnfinished, settlementTones } from './settlement-tones.ts'

export function SettlementPage({ me, id }: { me: Me; id: string }) {
  const settlement = useQuery({
    queryKey: [ACCOUNT_KEY, 'settlements', id],
    queryFn: () => api.get('/api/settle/{id}', { path: { id } }),
    refetchInterval: ({ state }) => (!state.data || isUnfinished(state.data) ? 2_000 : 15_000),
  })
  if (hasStatus(settlement.error, 404) && !settlement.data)
    return (
      <Card title="Not found">
        <MutedText>
          There is no settlement {id} in this organisation.{' '}
          <a href={routeHref(['account', 'settlements'])}>All settlements</a>
        </MutedText>
      </Card>
    )
  return <QueryResult query={settlement}>{(data) => <Details me={me} settlement={data} />}</QueryResult>
}

/** Where a payment goes when nobody touches it. */
const sentences: Record<Settlement['status'], string> = {
  pending: 'The work is being done, or the payment has been sent and is not confirmed yet.',
  settled: 'The money has arrived.',
  failed: 'Nothing was charged.',
  unknown:
    'The service does not know yet whether the payment arrived. It asks the chain again by itself, and never charges twice.',
  refunded: 'The payment arrived after its run had failed and was sent back.',
}

function Details({ me, settlement }: { me: Me; settlement: Settlement }) {
  const run = useQuery({
    queryKey: [ACCOUNT_KEY, 'runs', 'one', settlement.run_id],
    queryFn: () => api.get('/api/runs/{id}', { path: { id: settlement.run_id } }),
    retry: false,
  })
  const receiptId = run.data?.receipt_url?.split('/').at(-1)
  const { status, transaction, refund } = settlement
  return (
    <Card title="Settlement" note={<a href={routeHref(['account', 'settlements'])}>All settlements</a>}>
      <p>
        <Badge tone={settlementTones[status]}>{status}</Badge>{' '}
        <strong>{formatMicroUsdc(BigInt(settlement.amount))}</strong> {sentences[status]}
      </p>
      {isUnfinished(settlement) && <DriveButton me={me} settlement={settlement} />}
      <DescriptionList
        items={[
          ['Settlement', <Copied key="id" value={settlement.settlement_id} label="the settlement id" />],
          ['Run', <RefLink key="run" value={settlement.run_id} />],
          [
            'Receipt',
            receiptId && (
              <a href={routeHref(['receipts', receiptId])}>
                <Id value={receiptId} />
              </a>
            ),
          ],
          ['Paid by', settlement.method === 'wallet' ? 'a wallet of this organisation' : settlement.method],
          ['Wallet', settlement.wallet_id && <RefLink value={settlement.wallet_id} />],
          ['Payer', <Copied key="payer" value={settlement.payer} label="the payer" />],
          ['Paid to', <Copied key="payee" value={settlement.pay_to} label="the address that was paid" />],
          ['Network', settlement.network],
          [
            'Transaction',
            transaction ? (
              <Copied key="transaction" value={transaction} label="the transaction" />
            ) : settlement.method === 'wallet' ? (
              'none: a wallet pays in the ledger'
            ) : (
              'none yet'
            ),
          ],
          ['Block', settlement.block],
          ['Attempts', settlement.attempts],
          ['Reason', settlement.reason],
          [
            'Refund',
            refund && (
              <>
                <Id value={refund.payout_id} /> {refund.status}{' '}
                {refund.transaction && <Id value={refund.transaction} />}
              </>
            ),
          ],
          ['Entries', <LedgerLink key="ledger" reference={settlement.run_id} />],
          ['Began', <Timestamp key="began" at={settlement.created_at} />],
          ['Last change', <Timestamp key="changed" at={settlement.updated_at} />],
        ]}
      />
    </Card>
  )
}

const Copied = ({ value, label }: { value: string; label: string }) => (
  <>
    <Id value={value} full /> <CopyButton text={value} label={label} />
  </>
)

const LedgerLink = ({ reference }: { reference: string }) => (
  <a href={routeHref(['account', 'ledger'], { ref: reference })}>In the ledger</a>
)

function DriveButton({ me, settlement: { settlement_id } }: { me: Me; settlement: Settlement }) {
  const drive = useAction<void>(() => api.post('/api/settle', { body: { settlement_id } }))
  if (!mayPay(me))
    return <MutedText>A key with the scope run can ask the chain now instead of at the next sweep.</MutedText>
  const outcome = drive.data as Settlement | undefined
  return (
    <>
      <button type="button" disabled={drive.isPending} onClick={() => drive.mutate()}>
        {drive.isPending ? 'Asking the chain…' : 'Ask the chain now'}
      </button>
      {outcome && (
        <p role="status">
          The settlement is {outcome.status}
          {outcome.reason ? `: ${outcome.reason}` : '.'}
        </p>
      )}
      {drive.error && <ErrorMessage>{drive.error.message}</ErrorMessage>}
    </>
  )
}
