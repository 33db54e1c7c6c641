import { Redis } from 'ioredis'
import type { Log } from '../../platform/log.ts'
import { type Allowance, MINUTE_MS, type RateLimiter, toAllowance } from '../../platform/rate-limit.ts'

export type SharedRateLimiter = RateLimiter & {
  /** Reported by `/api/health`. */
  state(): Promise<'ok' | 'unreachable'>
  close(): Promise<void>
}

const COMMAND_TIMEOUT_MS = 100
const CONNECT_TIMEOUT_MS = 1_000
/** Without an answer to a ping for this long Redis counts as unreachable; below the time that `/api/health` waits. */
const STATE_TIMEOUT_MS = 1_500
const RETRY_DELAY_MS = 1_000
const MAX_RECONNECT_MS = 2_000

// The same token bucket as the local limiter's, on Redis' clock, so that the nodes' clocks need not agree.
const TAKE_TOKEN = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit = tonumber(ARGV[1])
local window = tonumber(ARGV[2])
local stored = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(stored[1]) or limit
local at = tonumber(stored[2]) or now
tokens = math.min(limit, tokens + math.max(0, now - at) / window * limit)
local allowed = 0
if tokens >= 1 then
  tokens = tokens - 1
  allowed = 1
end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', now)
redis.call('PEXPIRE', KEYS[1], window * 2)
return {allowed, tostring(tokens)}
`

type TakeToken = { takeToken(key: string, limit: number, windowMs: number): Promise<[number, string]> }

/**
 * Counts requests across all nodes. Every request is counted locally first: a request that this node alone would refuse
 * never reaches Redis, and when Redis is slow, down or flushed, the local count still applies.
 */
export function createRedisRateLimiter(deps: {
  url: string
  local: RateLimiter
  log: Pick<Log, 'warn' | 'info'>
}): SharedRateLimiter {
  const redis = new Redis(deps.url, {
    scripts: { takeToken: { lua: TAKE_TOKEN, numberOfKeys: 1 } },
    keyPrefix: 'countersign:rate:',
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    retryStrategy: (times) => Math.min(times * 100, MAX_RECONNECT_MS),
  })
  let disconnected = false
  let skipUntil = 0
  redis.on('error', (error) => {
    if (!disconnected) deps.log.warn({ err: error }, 'Redis is unreachable; each node counts rate limits by itself')
    disconnected = true
  })
  redis.on('ready', () => {
    if (disconnected) deps.log.info('Redis is reachable again; rate limits are counted across all nodes')
    disconnected = false
  })

  const takeFromRedis = async (subject: string, limit: number, windowMs: number): Promise<Allowance | undefined> => {
    if (redis.status !== 'ready' || performance.now() < skipUntil) return undefined
    try {
      const reply = await (redis as unknown as TakeToken).takeToken(subject, limit, windowMs)
      return parseReply(reply, limit, windowMs)
    } catch {
      // Redis is skipped for a moment, so that requests do not wait for it.
      skipUntil = performance.now() + RETRY_DELAY_MS
      return undefined
    }
  }

  return {
    async take(subject, limit, windowMs = MINUTE_MS) {
      const localAllowance = await deps.local.take(subject, limit, windowMs)
      if (!localAllowance.allowed) return localAllowance
      return (await takeFromRedis(subject, limit, windowMs)) ?? localAllowance
    },
    async state() {
      // A process that was busy itself for a moment sees the time-out before the answer, so one miss proves nothing.
      const until = performance.now() + STATE_TIMEOUT_MS
      while (redis.status === 'ready' && performance.now() < until) {
        try {
          await redis.ping()
          return 'ok'
        } catch {
          // The next one decides.
        }
      }
      return 'unreachable'
    },
    async close() {
      redis.disconnect()
    },
  }
}

/** Undefined when the reply is malformed: it is then ignored. */
function parseReply([allowed, text]: [number, string], limit: number, windowMs: number): Allowance | undefined {
  const tokens = Number(text)
  if ((allowed !== 0 && allowed !== 1) || !Number.isFinite(tokens)) return undefined
  return toAllowance(allowed === 1, limit, tokens, windowMs)
}
