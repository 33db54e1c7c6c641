import type { Escrow } from '@countersign/sdk'

export type EscrowAction = 'release' | 'refund' | 'dispute'
export type EscrowSide = 'sent' | 'received' | 'own'

/** On which side of an escrow the organisation with these wallets is. */
export function sideOf({ wallet_id, to_wallet_id }: Escrow, ownWalletIds: ReadonlySet<string>): EscrowSide {
  const isSender = ownWalletIds.has(wallet_id)
  const isRecipient = to_wallet_id !== null && ownWalletIds.has(to_wallet_id)
  return isSender && isRecipient ? 'own' : isSender ? 'sent' : 'received'
}

/**
 * What this organisation may do with an escrow now. The sender releases, the recipient gives back, either disputes; the
 * sender also takes back what is held for nobody but the service. What pays for a run ends with it.
 */
export function escrowActions(escrow: Escrow, side: EscrowSide, nowMs: number): EscrowAction[] {
  const isOver = escrow.status === 'held' && Date.parse(escrow.expires_at) <= nowMs
  if (escrow.run_id !== null || isOver || !['held', 'disputed'].includes(escrow.status)) return []
  return [
    ...(side === 'received' ? [] : (['release'] as const)),
    ...(side === 'sent' && escrow.to_wallet_id !== null ? [] : (['refund'] as const)),
    ...(escrow.status === 'held' ? (['dispute'] as const) : []),
  ]
}

/** What happens next without anybody doing anything. */
export function describeClock({ status, run_id }: Escrow): 'returns' | 'stopped' | 'run' | 'ended' {
  if (status === 'disputed') return 'stopped'
  if (status !== 'held') return 'ended'
  return run_id === null ? 'returns' : 'run'
}
