import type { Clock } from './clock.ts'

/** The limiter's decision about one request; the numbers become the IETF `RateLimit` headers. */
export type Allowance = { allowed: boolean; limit: number; remaining: number; resetSeconds: number }

export type RateLimiter = { take(subject: string, perMinute: number): Promise<Allowance> | Allowance }

const WINDOW_MS = 60_000
const MAX_SUBJECTS = 100_000

/** One token bucket per subject: `perMinute` at once, refilled evenly. The least recently used subjects are evicted. */
export function createRateLimiter(clock: Clock): RateLimiter {
  const buckets = new Map<string, { tokens: number; at: number }>()
  return {
    take(subject, perMinute) {
      const now = clock.now().getTime()
      const bucket = buckets.get(subject) ?? { tokens: perMinute, at: now }
      const refill = (Math.max(0, now - bucket.at) / WINDOW_MS) * perMinute
      bucket.tokens = Math.min(perMinute, bucket.tokens + refill)
      bucket.at = now
      const allowed = bucket.tokens >= 1
      if (allowed) bucket.tokens -= 1
      buckets.delete(subject)
      buckets.set(subject, bucket)
      if (buckets.size > MAX_SUBJECTS) buckets.delete(buckets.keys().next().value!)
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
