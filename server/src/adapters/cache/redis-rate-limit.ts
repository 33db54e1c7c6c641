import { Redis } from 'ioredis'
import type { Log } from '../../platform/log.ts'
import type { Allowance, RateLimiter } from '../../platform/rate-limit.ts'

export type SharedRateLimiter = RateLimiter & {
  /** What `/api/health` says of it. */
  state(): Promise<'ok' | 'unreachable'>
  close(): Promise<void>
}

const WINDOW_MS = 60_000
const PATIENCE_MS = 100
const CONNECT_MS = 1_000
const PAUSE_MS = 1_000
const MAX_RECONNECT_MS = 2_000

// The same bucket as the local limiter's, on Redis' own time, so that the nodes' clocks need not agree.
const TAKE_TOKEN = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit = tonumber(ARGV[1])
local window = tonumber(ARGV[2])
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(kept[1]) or limit
local at = tonumber(kept[2]) or now
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
 * Counts requests over all nodes. Every request is counted here first: what this node alone would refuse never reaches
 * Redis, and when Redis is slow, gone or emptied the local count is already running, so the limit is never absent.
 */
export function createRedisRateLimiter(deps: {
  url: string
  local: RateLimiter
  log: Pick<Log, 'warn' | 'info'>
}): SharedRateLimiter {
  const redis = new Redis(deps.url, {
    scripts: { takeToken: { lua: TAKE_TOKEN, numberOfKeys: 1 } },
    keyPrefix: 'countersign:rate:',
    connectTimeout: CONNECT_MS,
    commandTimeout: PATIENCE_MS,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    retryStrategy: (times) => Math.min(times * 100, MAX_RECONNECT_MS),
  })
  let lost = false
  let quietUntil = 0
  redis.on('error', (error) => {
    if (!lost) deps.log.warn({ err: error }, 'Redis is lost; rate limits are counted by each node for itself')
    lost = true
  })
  redis.on('ready', () => {
    if (lost) deps.log.info('Redis is back; rate limits are counted over all nodes')
    lost = false
  })

  const askRedis = async (subject: string, perMinute: number): Promise<Allowance | undefined> => {
    if (redis.status !== 'ready' || performance.now() < quietUntil) return undefined
    try {
      const answer = await (redis as unknown as TakeToken).takeToken(subject, perMinute, WINDOW_MS)
      return readAnswer(answer, perMinute)
    } catch {
      // It is asked again in a moment; until then no request waits for it.
      quietUntil = performance.now() + PAUSE_MS
      return undefined
    }
  }

  return {
    async take(subject, perMinute) {
      const here = await deps.local.take(subject, perMinute)
      if (!here.allowed) return here
      return (await askRedis(subject, perMinute)) ?? here
    },
    async state() {
      try {
        await redis.ping()
        return 'ok'
      } catch {
        return 'unreachable'
      }
    },
    async close() {
      redis.disconnect()
    },
  }
}

/** Undefined when the answer makes no sense: then it is as if there had been none. */
function readAnswer([allowed, text]: [number, string], limit: number): Allowance | undefined {
  const tokens = Number(text)
  if ((allowed !== 0 && allowed !== 1) || !Number.isFinite(tokens)) return undefined
  const missing = allowed ? limit - tokens : 1 - tokens
  return {
    allowed: allowed === 1,
    limit,
    remaining: Math.max(0, Math.floor(tokens)),
    resetSeconds: Math.max(1, Math.ceil(((missing / limit) * WINDOW_MS) / 1000)),
  }
}
