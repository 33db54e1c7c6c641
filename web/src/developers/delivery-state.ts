import type { ApiResponse } from '@countersign/sdk'
import type { Tone } from '../components/ui.tsx'

export type Delivery = ApiResponse<'/api/webhooks/{id}/deliveries', 'get'>['deliveries'][number]

export const deliveryStates = ['pending', 'delivered', 'exhausted'] as const satisfies readonly Delivery['state'][]

/** A pending delivery that was tried has failed, and is tried again. */
export function describeDeliveryState({ state, attempts }: Pick<Delivery, 'state' | 'attempts'>): {
  tone: Tone
  label: string
} {
  if (state === 'delivered') return { tone: 'success', label: 'delivered' }
  if (state === 'exhausted') return { tone: 'error', label: 'given up' }
  return attempts > 0 ? { tone: 'warning', label: 'failed, tried again' } : { tone: 'neutral', label: 'waiting' }
}

/** Whether its last attempt failed: it was given up, or waits for another attempt. */
export const hasFailed = ({ state, last_attempt_at, last_error }: Delivery): boolean =>
  state === 'exhausted' || (state === 'pending' && last_attempt_at !== null && last_error !== null)

export type DeliveryPageReader = (
  state: Delivery['state'],
  cursor: string | undefined,
) => Promise<{ deliveries: Delivery[]; next_cursor: string | null }>

/** The failed deliveries since a time, oldest first and at most `limit`; lists are newest first, so reading stops there. */
export async function findFailedSince(readPage: DeliveryPageReader, sinceMs: number, limit: number) {
  const failed: Delivery[] = []
  for (const state of ['exhausted', 'pending'] as const) {
    let cursor: string | undefined
    do {
      const { deliveries, next_cursor } = await readPage(state, cursor)
      const recent = deliveries.filter(({ created_at }) => Date.parse(created_at) >= sinceMs)
      failed.push(...recent.filter(hasFailed))
      cursor = recent.length === deliveries.length ? (next_cursor ?? undefined) : undefined
    } while (cursor !== undefined && failed.length < limit)
  }
  return failed.sort((left, right) => left.seq - right.seq).slice(0, limit)
}
