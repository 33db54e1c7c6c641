/** The state of a dependency. Only `unreachable` degrades the service: `not_configured` is normal. */
export type DependencyState = 'ok' | 'embedded' | 'not_configured' | 'unreachable'
export type Check = () => Promise<DependencyState>
/** The field names are the contract's: `redis` is the cache, `supabase` the database. */
export type HealthChecks = { redis: Check; supabase: Check }
/** With several processes: how many answer requests, and whether the one for background work runs. */
export type ProcessHealth = { workers: number; workers_ready: number; background: 'running' | 'restarting' | 'off' }
export type HealthReport = {
  status: 'ok' | 'degraded'
  redis: DependencyState
  supabase: DependencyState
  /** The service is being stopped and takes no more work. */
  draining?: true
} & Partial<ProcessHealth>

export type Health = ReturnType<typeof createHealth>

const CHECK_TIMEOUT_MS = 2_000

export function createHealth(deps: {
  checks: HealthChecks
  timeoutMs?: number
  processes?: () => ProcessHealth | undefined
  isDraining?: () => boolean
}) {
  const timeoutMs = deps.timeoutMs ?? CHECK_TIMEOUT_MS
  let pendingReport: Promise<HealthReport> | undefined

  const runChecks = async (): Promise<HealthReport> => {
    const [redis, supabase] = await Promise.all([
      runCheck(deps.checks.redis, timeoutMs),
      runCheck(deps.checks.supabase, timeoutMs),
    ])
    const draining = deps.isDraining?.() === true
    const degraded = draining || [redis, supabase].includes('unreachable')
    const status = degraded ? 'degraded' : 'ok'
    return { status, redis, supabase, ...deps.processes?.(), ...(draining && { draining }) }
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
