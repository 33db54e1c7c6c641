import type { Clock } from './clock.ts'
import type { Supervised } from './supervised.ts'

/** The limiter's decision about one request; the numbers become the IETF `RateLimit` headers. */
export type Allowance = { allowed: boolean; limit: number; remaining: number; resetSeconds: number }

export type RateLimiter = { take(subject: string, perMinute: number): Promise<Allowance> | Allowance }

export type LocalRateLimiter = {
  take(subject: string, perMinute: number): Allowance
  /** Counts requests that another process has admitted already. */
  deduct(subject: string, perMinute: number, count: number): void
}

const WINDOW_MS = 60_000
const MAX_SUBJECTS = 100_000

/** One token bucket per subject: `perMinute` at once, refilled evenly. The least recently used subjects are evicted. */
export function createRateLimiter(clock: Clock): LocalRateLimiter {
  const buckets = new Map<string, { tokens: number; at: number }>()

  const refillBucket = (subject: string, perMinute: number) => {
    const now = clock.now().getTime()
    const bucket = buckets.get(subject) ?? { tokens: perMinute, at: now }
    const refill = (Math.max(0, now - bucket.at) / WINDOW_MS) * perMinute
    bucket.tokens = Math.min(perMinute, bucket.tokens + refill)
    bucket.at = now
    buckets.delete(subject)
    buckets.set(subject, bucket)
    if (buckets.size > MAX_SUBJECTS) buckets.delete(buckets.keys().next().value!)
    return bucket
  }

  return {
    deduct(subject, perMinute, count) {
      const bucket = refillBucket(subject, perMinute)
      bucket.tokens = Math.max(0, bucket.tokens - count)
    },
    take(subject, perMinute) {
      const bucket = refillBucket(subject, perMinute)
      const allowed = bucket.tokens >= 1
      if (allowed) bucket.tokens -= 1
      const tokensToWait = allowed ? perMinute - bucket.tokens : 1 - bucket.tokens
      return {
        allowed,
        limit: perMinute,
        remaining: Math.floor(bucket.tokens),
        resetSeconds: Math.max(1, Math.ceil(((tokensToWait / perMinute) * WINDOW_MS) / 1000)),
      }
    },
  }
}

const SHARE_MS = 100

/**
 * One count for processes that share a port: each admits by its own bucket and tells the others ten times a second what
 * it has admitted. They may together exceed a limit by what arrives within that time, and never refuse too early.
 */
export function createSharedRateLimiter(
  local: LocalRateLimiter,
  channel: Pick<Supervised, 'sendAdmitted' | 'onAdmitted'>,
): RateLimiter & { close(): Promise<void> } {
  const admitted = new Map<string, { perMinute: number; count: number }>()
  channel.onAdmitted((requests) => {
    for (const [subject, perMinute, count] of requests) local.deduct(subject, perMinute, count)
  })
  const timer = setInterval(() => {
    if (admitted.size === 0) return
    channel.sendAdmitted([...admitted].map(([subject, { perMinute, count }]) => [subject, perMinute, count]))
    admitted.clear()
  }, SHARE_MS).unref()

  return {
    take(subject, perMinute) {
      const allowance = local.take(subject, perMinute)
      if (!allowance.allowed) return allowance
      const entry = admitted.get(subject)
      if (entry) entry.count += 1
      else admitted.set(subject, { perMinute, count: 1 })
      return allowance
    },
    close: async () => clearInterval(timer),
  }
}
