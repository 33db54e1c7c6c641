import type { DependencyState } from '../modules/insights/health.ts'
import { createRateLimiter, createSharedRateLimiter, type RateLimiter } from '../platform/rate-limit.ts'
import type { Supervised } from '../platform/supervised.ts'
import type { AppContext } from './context.ts'

type Dependencies = Pick<AppContext, 'config' | 'clock' | 'log' | 'onClose'> & { supervised: Supervised | undefined }

/** Shares rate limits over Redis when REDIS_URL is set; without Redis, or while it is down, each process limits alone. */
export async function openRateLimiter({
  config,
  clock,
  log,
  onClose,
  supervised,
}: Dependencies): Promise<{ limiter: RateLimiter; redisState: () => Promise<DependencyState> }> {
  const own = createRateLimiter(clock)
  const shares = supervised && createSharedRateLimiter(own, supervised)
  if (shares) onClose(shares.close)
  const local = shares ?? own
  if (!config.REDIS_URL) return { limiter: local, redisState: async () => 'not_configured' }
  const { createRedisRateLimiter } = await import('../adapters/cache/redis-rate-limit.ts')
  const shared = createRedisRateLimiter({ url: config.REDIS_URL, local, log })
  onClose(async () => shared.close())
  return { limiter: shared, redisState: async () => shared.state() }
}
