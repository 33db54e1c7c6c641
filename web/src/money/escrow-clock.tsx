import type { Escrow } from '@countersign/sdk'
import { Timestamp, type Tone } from '../components/ui.tsx'
import { describeClock, type EscrowSide } from './escrow-actions.ts'

export const escrowTones: Record<Escrow['status'], Tone> = {
  held: 'warning',
  released: 'success',
  refunded: 'neutral',
  disputed: 'error',
  expired: 'neutral',
}

export const sideNames: Record<EscrowSide, string> = { sent: 'you pay', received: 'you are paid', own: 'both sides' }

/** What happens next without anybody doing anything, and when. */
export function EscrowClock({ escrow }: { escrow: Escrow }) {
  const clock = describeClock(escrow)
  if (clock === 'stopped') return <span>stopped until one side gives way or the operator decides</span>
  if (clock === 'run') return <span>ends with its run</span>
  if (clock === 'returns')
    return (
      <span>
        goes back <Timestamp at={escrow.expires_at} />
      </span>
    )
  return escrow.ended_at ? (
    <span>
      ended <Timestamp at={escrow.ended_at} />
    </span>
  ) : (
    <span>ended</span>
  )
}
