import type { Settlement } from '@countersign/sdk'
import type { Tone } from '../components/ui.tsx'

export const settlementTones: Record<Settlement['status'], Tone> = {
  settled: 'success',
  failed: 'error',
  unknown: 'warning',
  pending: 'warning',
  refunded: 'neutral',
}

export const isUnfinished = ({ status }: Pick<Settlement, 'status'>) => status === 'pending' || status === 'unknown'
