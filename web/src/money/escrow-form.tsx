import type { Wallet } from '@countersign/sdk'
import { type FormEvent, useRef } from 'react'
import { api } from '../api.ts'
import { useAction } from '../components/action-button.tsx'
import { Field } from '../components/form-fields.tsx'
import { ErrorMessage, MutedText } from '../components/ui.tsx'
import { navigate, routeHref } from '../route.ts'
import { formatMicroUsdc, toMicro } from '../usdc-sum.ts'

const lives: [seconds: number, name: string][] = [
  [3_600, 'an hour'],
  [86_400, 'a day'],
  [7 * 86_400, 'a week'],
  [30 * 86_400, '30 days'],
  [90 * 86_400, '90 days'],
]
const DEFAULT_LIFE = 7 * 86_400

type Request = {
  walletId: string
  body: { amount: string; to_wallet_id?: string; memo?: string; expires_in_seconds: number }
}

export function EscrowForm({ wallets }: { wallets: Wallet[] }) {
  const attempt = useRef<{ request: string; idempotencyKey: string }>(undefined)
  const hold = useAction<Request>(async ({ walletId, body }) => {
    // A repeated attempt is the same call: money whose answer was lost is not put aside twice.
    const request = JSON.stringify([walletId, body])
    if (attempt.current?.request !== request) attempt.current = { request, idempotencyKey: crypto.randomUUID() }
    const { escrow_id } = await api.post('/api/wallets/{id}/escrow', {
      path: { id: walletId },
      body,
      headers: { 'idempotency-key': attempt.current.idempotencyKey },
    })
    attempt.current = undefined
    navigate(routeHref(['account', 'escrow', escrow_id]))
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const data = new FormData(event.currentTarget)
    const text = (name: string) => String(data.get(name) ?? '').trim()
    hold.mutate({
      walletId: text('wallet'),
      body: {
        amount: toMicro(Number(text('amount'))).toString(),
        ...(text('to') && { to_wallet_id: text('to') }),
        ...(text('memo') && { memo: text('memo') }),
        expires_in_seconds: Number(text('life')),
      },
    })
  }
  if (wallets.length === 0)
    return (
      <MutedText>
        Money comes from a wallet. <a href={routeHref(['account', 'wallets'])}>Open one and fill it</a>.
      </MutedText>
    )
  return (
    <form className="filters" onSubmit={submit} aria-label="Put money in escrow">
      <Field label="Pay from">
        {(id) => (
          <select id={id} name="wallet">
            {wallets.map(({ wallet_id, name, balance }) => (
              <option key={wallet_id} value={wallet_id}>
                {name}: {formatMicroUsdc(toMicro(balance.available))} available
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Amount (USDC)">
        {(id) => <input id={id} name="amount" type="number" min="0.000001" step="0.000001" required />}
      </Field>
      <Field label="To wallet (none: this service)">
        {(id) => <input id={id} name="to" maxLength={80} placeholder="wal_…" />}
      </Field>
      <Field label="Memo">{(id) => <input id={id} name="memo" maxLength={500} placeholder="What it is for" />}</Field>
      <Field label="Goes back after">
        {(id) => (
          <select id={id} name="life" defaultValue={DEFAULT_LIFE}>
            {lives.map(([seconds, name]) => (
              <option key={seconds} value={seconds}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <button type="submit" disabled={hold.isPending}>
        Put in escrow
      </button>
      {hold.error && <ErrorMessage>{hold.error.message}</ErrorMessage>}
    </form>
  )
}
