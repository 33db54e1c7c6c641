/** One authorisation is settled once: who asks meanwhile waits for the same answer, who asks later gets it again. */
import type { SettleResult } from '../../modules/payments/facilitator.ts'

const MAX_REMEMBERED = 10_000

export type SettleOnce = (digest: string, work: () => Promise<SettleResult>) => Promise<SettleResult>

/**
 * Only `settled` is remembered: it is the one answer that cannot change. And only when it is our own: what somebody else
 * claims may turn out false, and then asking again must ask them again.
 */
export function createSettleOnce({ remember }: { remember: boolean }): SettleOnce {
  const underWay = new Map<string, Promise<SettleResult>>()
  const settled = new Map<string, SettleResult>()

  return async (digest, work) => {
    const known = settled.get(digest) ?? underWay.get(digest)
    if (known) return known
    const started = work()
    underWay.set(digest, started)
    try {
      const result = await started
      if (remember && result.state === 'settled') {
        if (settled.size >= MAX_REMEMBERED) settled.delete(settled.keys().next().value!)
        settled.set(digest, result)
      }
      return result
    } finally {
      underWay.delete(digest)
    }
  }
}
