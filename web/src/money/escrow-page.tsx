import type { Escrow, Wallet } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import { mayControl } from '../account/permissions.ts'
import type { Me } from '../account/sign-in.ts'
import { ACCOUNT_KEY, api, hasStatus } from '../api.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { CopyButton } from '../components/copy-button.tsx'
import { Field } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Badge, Card, DescriptionList, Id, MutedText, Timestamp } from '../components/ui.tsx'
import { useNow } from '../now.ts'
import { routeHref } from '../route.ts'
import { formatMicroUsdc } from '../usdc-sum.ts'
import { useWallets } from '../wallet/wallet-queries.ts'
import { type EscrowAction, escrowActions, sideOf } from './escrow-actions.ts'
import { EscrowClock, escrowTones, sideNames } from './escrow-clock.tsx'
import { RefLink } from './money-links.tsx'

export function EscrowPage({ me, id }: { me: Me; id: string }) {
  const wallets = useWallets(true)
  const escrow = useQuery({
    queryKey: [ACCOUNT_KEY, 'escrow', id],
    queryFn: () => api.get('/api/escrow/{id}', { path: { id } }),
    refetchInterval: 5_000,
  })
  if (hasStatus(escrow.error, 404) && !escrow.data)
    return (
      <Card title="Not found">
        <MutedText>
          There is no escrow {id} of this organisation. <a href={routeHref(['account', 'escrow'])}>All escrows</a>
        </MutedText>
      </Card>
    )
  return (
    <QueryResult query={wallets}>
      {({ wallets: rows }) => (
        <QueryResult query={escrow}>{(data) => <Details me={me} escrow={data} wallets={rows} />}</QueryResult>
      )}
    </QueryResult>
  )
}

function Details({ me, escrow, wallets }: { me: Me; escrow: Escrow; wallets: Wallet[] }) {
  const now = useNow()
  const side = sideOf(escrow, new Set(wallets.map(({ wallet_id }) => wallet_id)))
  const actions = escrowActions(escrow, side, now)
  return (
    <Card title="Escrow" note={<a href={routeHref(['account', 'escrow'])}>All escrows</a>}>
      <p>
        <Badge tone={escrowTones[escrow.status]}>{escrow.status}</Badge>{' '}
        <strong>{formatMicroUsdc(BigInt(escrow.amount))}</strong>, {sideNames[side]}
      </p>
      <DescriptionList
        items={[
          [
            'Escrow',
            <span key="id">
              <Id value={escrow.escrow_id} full /> <CopyButton text={escrow.escrow_id} label="the escrow id" />
            </span>,
          ],
          ['From', <WalletName key="from" id={escrow.wallet_id} wallets={wallets} />],
          [
            'To',
            escrow.to_wallet_id === null ? (
              'this service'
            ) : (
              <WalletName key="to" id={escrow.to_wallet_id} wallets={wallets} />
            ),
          ],
          ['Memo', escrow.memo],
          ['Clock', <EscrowClock key="clock" escrow={escrow} />],
          ['Reason', escrow.reason],
          ['Run', escrow.run_id && <RefLink value={escrow.run_id} />],
          ['Since', <Timestamp key="since" at={escrow.created_at} />],
          [
            'Entries',
            <a key="ledger" href={routeHref(['account', 'ledger'], { ref: escrow.escrow_id })}>
              In the ledger
            </a>,
          ],
        ]}
      />
      {actions.length > 0 &&
        (mayControl(me) ? (
          <div className="row">
            {actions.map((action) => (
              <ActionDialog key={action} action={action} escrow={escrow} />
            ))}
          </div>
        ) : (
          <MutedText>This key cannot decide about it: it lacks the scope control.</MutedText>
        ))}
      {escrow.status === 'held' && side === 'sent' && !actions.includes('refund') && (
        <MutedText>Only the recipient can give it back. Without a dispute it returns when the clock ends.</MutedText>
      )}
    </Card>
  )
}

/** A wallet of this organisation by its name, any other by its id. */
function WalletName({ id, wallets }: { id: string; wallets: Wallet[] }) {
  const own = wallets.find(({ wallet_id }) => wallet_id === id)
  return own ? (
    <a href={routeHref(['account', 'wallets', id])}>{own.name}</a>
  ) : (
    <span>
      <Id value={id} /> of another organisation
    </span>
  )
}

const dialogs: Record<EscrowAction, { button: string; className: string; text: (to: string) => string }> = {
  release: { button: 'Release', className: '', text: (to) => `It is paid to ${to}. This cannot be undone.` },
  refund: {
    button: 'Give back',
    className: 'secondary',
    text: () => 'It returns to the wallet that it came from. This cannot be undone.',
  },
  dispute: {
    button: 'Dispute',
    className: 'danger',
    text: () => 'The clock stops until one side gives way or the operator of this service decides.',
  },
}

function ActionDialog({ action, escrow }: { action: EscrowAction; escrow: Escrow }) {
  const reason = useRef<HTMLInputElement>(null)
  const { button, className, text } = dialogs[action]
  const act = async () => {
    const path = { id: escrow.escrow_id }
    const note = reason.current?.value.trim()
    if (action === 'dispute') {
      if (!note) throw new Error('Say why, for the other side and the operator.')
      return api.post('/api/escrow/{id}/dispute', { path, body: { reason: note } })
    }
    const body = note ? { reason: note } : {}
    return action === 'release'
      ? api.post('/api/escrow/{id}/release', { path, body })
      : api.post('/api/escrow/{id}/refund', { path, body })
  }
  return (
    <ConfirmButton
      action={act}
      title={`${button} ${formatMicroUsdc(BigInt(escrow.amount))}?`}
      text={
        <>
          <p>{text(escrow.to_wallet_id === null ? 'this service' : 'the recipient')}</p>
          <Field label="Reason">{(id) => <input id={id} ref={reason} maxLength={500} />}</Field>
        </>
      }
      confirmLabel={button}
      className={className}
    >
      {button}
    </ConfirmButton>
  )
}
