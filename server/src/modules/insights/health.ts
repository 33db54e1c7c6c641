import { within } from '../../platform/within.ts'

/** The state of a dependency. Only `unreachable` degrades the service: `not_configured` is normal. */
export type DependencyState = 'ok' | 'embedded' | 'not_configured' | 'unreachable'
export type Check = () => Promise<DependencyState>
/** The field names are the contract's: `redis` is the cache, `supabase` the database. */
export type HealthChecks = { redis: Check; supabase: Check }
/** With several processes: how many answer requests, and whether the one for background work runs. */
export type ProcessHealth = { workers: number; workers_ready: number; background: 'running' | 'restarting' | 'off' }
export type LogQuorumHealth = {
  state: 'ok' | 'waiting' | 'missing'
  entries: number
  cosigned_entries: number
  seconds: number
}
export type HealthReport = {
  status: 'ok' | 'degraded'
  redis: DependencyState
  supabase: DependencyState
  /** The service is being stopped and takes no more work. */
  draining?: true
  /** How the newest checkpoint of the log stands with the quorum of LOG_POLICY. It never degrades the service. */
  log_quorum?: LogQuorumHealth
} & Partial<ProcessHealth>

export type Health = ReturnType<typeof createHealth>

const CHECK_TIMEOUT_MS = 2_000

export function createHealth(deps: {
  checks: HealthChecks
  timeoutMs?: number
  processes?: () => ProcessHealth | undefined
  isDraining?: () => boolean
  logQuorum?: () => Promise<
    { state: LogQuorumHealth['state']; size: number; cosignedSize: number; behindSeconds: number } | undefined
  >
}) {
  const timeoutMs = deps.timeoutMs ?? CHECK_TIMEOUT_MS
  let pendingReport: Promise<HealthReport> | undefined

  /** Left out when it cannot be read: the state of the database says why. */
  const readLogQuorum = async (): Promise<Pick<HealthReport, 'log_quorum'>> => {
    const quorum = await (deps.logQuorum ? within(timeoutMs, deps.logQuorum()).catch(() => undefined) : undefined)
    if (!quorum) return {}
    const { state, size, cosignedSize, behindSeconds } = quorum
    return { log_quorum: { state, entries: size, cosigned_entries: cosignedSize, seconds: Math.floor(behindSeconds) } }
  }

  const runChecks = async (): Promise<HealthReport> => {
    const [redis, supabase, quorum] = await Promise.all([
      runCheck(deps.checks.redis, timeoutMs),
      runCheck(deps.checks.supabase, timeoutMs),
      readLogQuorum(),
    ])
    const draining = deps.isDraining?.() === true
    const degraded = draining || [redis, supabase].includes('unreachable')
    const status = degraded ? 'degraded' : 'ok'
    return { status, redis, supabase, ...deps.processes?.(), ...(draining && { draining }), ...quorum }
  }

  return {
    /** Concurrent callers share one report, so that many probes do not become many queries. */
    report(): Promise<HealthReport> {
      pendingReport ??= runChecks().finally(() => {
        pendingReport = undefined
      })
      return pendingReport
    },
  }
}

/** A check that does not finish in time counts as unreachable; it keeps running and its result is ignored. */
async function runCheck(check: Check, timeoutMs: number): Promise<DependencyState> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<DependencyState>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, 'unreachable')
  })
  try {
    return await Promise.race([check(), timeout])
  } catch {
    return 'unreachable'
  } finally {
    clearTimeout(timer)
  }
}
