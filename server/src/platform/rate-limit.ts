import type { Clock } from './clock.ts'
import type { Supervised } from './supervised.ts'

/** The limiter's decision about one request; the numbers become the IETF `RateLimit` headers. */
export type Allowance = {
  allowed: boolean
  limit: number
  remaining: number
  resetSeconds: number
  windowSeconds: number
}

/** The window is a minute unless it is given; a subject always has the same limit and window. */
export type RateLimiter = {
  take(subject: string, limit: number, windowMs?: number): Promise<Allowance> | Allowance
}

export type LocalRateLimiter = {
  take(subject: string, limit: number, windowMs?: number): Allowance
  /** Counts requests that another process has admitted already. */
  deduct(subject: string, limit: number, windowMs: number, count: number): void
}

export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
const MAX_SUBJECTS = 100_000

/** One token bucket per subject: `limit` at once, refilled evenly over the window. The least recently used subjects are evicted. */
export function createRateLimiter(clock: Clock): LocalRateLimiter {
  const buckets = new Map<string, { tokens: number; at: number }>()

  const refillBucket = (subject: string, limit: number, windowMs: number) => {
    const now = clock.now().getTime()
    const bucket = buckets.get(subject) ?? { tokens: limit, at: now }
    const refill = (Math.max(0, now - bucket.at) / windowMs) * limit
    bucket.tokens = Math.min(limit, bucket.tokens + refill)
    bucket.at = now
    buckets.delete(subject)
    buckets.set(subject, bucket)
    if (buckets.size > MAX_SUBJECTS) buckets.delete(buckets.keys().next().value!)
    return bucket
  }

  return {
    deduct(subject, limit, windowMs, count) {
      const bucket = refillBucket(subject, limit, windowMs)
      bucket.tokens = Math.max(0, bucket.tokens - count)
    },
    take(subject, limit, windowMs = MINUTE_MS) {
      const bucket = refillBucket(subject, limit, windowMs)
      const allowed = bucket.tokens >= 1
      if (allowed) bucket.tokens -= 1
      return toAllowance(allowed, limit, bucket.tokens, windowMs)
    },
  }
}

export function toAllowance(allowed: boolean, limit: number, tokens: number, windowMs: number): Allowance {
  const tokensToWait = allowed ? limit - tokens : 1 - tokens
  return {
    allowed,
    limit,
    remaining: Math.max(0, Math.floor(tokens)),
    resetSeconds: Math.max(1, Math.ceil(((tokensToWait / limit) * windowMs) / 1000)),
    windowSeconds: windowMs / 1000,
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
  const admitted = new Map<string, { limit: number; windowMs: number; count: number }>()
  channel.onAdmitted((requests) => {
    for (const [subject, limit, windowMs, count] of requests) local.deduct(subject, limit, windowMs, count)
  })
  const timer = setInterval(() => {
    if (admitted.size === 0) return
    channel.sendAdmitted(
      [...admitted].map(([subject, { limit, windowMs, count }]) => [subject, limit, windowMs, count]),
    )
    admitted.clear()
  }, SHARE_MS).unref()

  return {
    take(subject, limit, windowMs = MINUTE_MS) {
      const allowance = local.take(subject, limit, windowMs)
      if (!allowance.allowed) return allowance
      const entry = admitted.get(subject)
      if (entry) entry.count += 1
      else admitted.set(subject, { limit, windowMs, count: 1 })
      return allowance
    },
    close: async () => clearInterval(timer),
  }
}
