/** How a part that the service leans on is doing. Only `unreachable` degrades: what is not configured is not missed. */
export type PartState = 'ok' | 'embedded' | 'not_configured' | 'unreachable'
export type Check = () => Promise<PartState>
/** The field names are the contract's: `redis` is the cache, `supabase` the database. */
export type HealthChecks = { redis: Check; supabase: Check }
export type HealthReport = { status: 'ok' | 'degraded'; redis: PartState; supabase: PartState }

export type Health = ReturnType<typeof createHealth>

const PATIENCE_MS = 2_000

export function createHealth(deps: { checks: HealthChecks; patienceMs?: number }) {
  const patienceMs = deps.patienceMs ?? PATIENCE_MS
  let running: Promise<HealthReport> | undefined

  const look = async (): Promise<HealthReport> => {
    const [redis, supabase] = await Promise.all([
      ask(deps.checks.redis, patienceMs),
      ask(deps.checks.supabase, patienceMs),
    ])
    const degraded = [redis, supabase].includes('unreachable')
    return { status: degraded ? 'degraded' : 'ok', redis, supabase }
  }

  return {
    /** Callers that come while a look is under way share it: a crowd of probes must not become a crowd of queries. */
    report(): Promise<HealthReport> {
      running ??= look().finally(() => {
        running = undefined
      })
      return running
    },
  }
}

/** A part that does not answer in time is as good as gone; its answer may still come and is not waited for. */
async function ask(check: Check, patienceMs: number): Promise<PartState> {
  let timer: NodeJS.Timeout | undefined
  const tired = new Promise<PartState>((resolve) => {
    timer = setTimeout(resolve, patienceMs, 'unreachable')
  })
  try {
    return await Promise.race([check(), tired])
  } catch {
    return 'unreachable'
  } finally {
    clearTimeout(timer)
  }
}
