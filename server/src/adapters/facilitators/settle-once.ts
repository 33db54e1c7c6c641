/** Settles an authorisation once: concurrent calls share one attempt, and later calls get its result. */
import type { SettleResult } from '../../modules/payments/facilitator.ts'

const MAX_REMEMBERED = 10_000

export type SettleOnce = (digest: string, work: () => Promise<SettleResult>) => Promise<SettleResult>

/**
 * Only `settled` is remembered, since it is the only result that cannot change, and only by the local facilitator: a
 * remote facilitator may wrongly report a settlement, and then a retry must reach it again.
 */
export function createSettleOnce({ remember }: { remember: boolean }): SettleOnce {
  const inFlight = new Map<string, Promise<SettleResult>>()
  const settled = new Map<string, SettleResult>()

  return async (digest, work) => {
    const existingResult = settled.get(digest) ?? inFlight.get(digest)
    if (existingResult) return existingResult
    const settlement = work()
    inFlight.set(digest, settlement)
    try {
      const result = await settlement
      if (remember && result.state === 'settled') {
        if (settled.size >= MAX_REMEMBERED) settled.delete(settled.keys().next().value!)
        settled.set(digest, result)
      }
      return result
    } finally {
      inFlight.delete(digest)
    }
  }
}
