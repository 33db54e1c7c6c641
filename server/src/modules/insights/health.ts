import { type Clock, systemClock } from '../../platform/clock.ts'
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
/** The parts that a service can have, as `problems` names them. */
export const HEALTH_PARTS = [
  'database',
  'disk',
  'redis',
  'facilitator',
  'chain',
  'models',
  'webhooks',
  'clock',
] as const
export type HealthPart = (typeof HEALTH_PARTS)[number]
export type HealthProblem = { part: HealthPart; message: string; since: string }
/** What is wrong with a part; undefined when nothing is. `degrades`: without it hardly any request can be served. */
export type PartCheck = () => Promise<{ message: string; degrades?: true } | undefined>
export type HealthReport = {
  status: 'ok' | 'degraded'
  redis: DependencyState
  supabase: DependencyState
  /** The service is being stopped and takes no more work. */
  draining?: true
  /** How the newest checkpoint of the log stands with the quorum of LOG_POLICY. It never degrades the service. */
  log_quorum?: LogQuorumHealth
  /** What is wrong, and since when; absent when nothing is. */
  problems?: HealthProblem[]
  /** Whether commits wait for another server, so that a failover loses nothing. It never degrades the service. */
  database_replication?: 'synchronous' | 'asynchronous'
} & Partial<ProcessHealth>

export type Health = ReturnType<typeof createHealth>

const CHECK_TIMEOUT_MS = 2_000
/** Parts of other people are asked this often at most; one that fails more often, so that its recovery is seen soon. */
const PART_OK_MS = 5_000
const PART_PROBLEM_MS = 1_000
/** When these cannot be read, the state of the database says why. */
const ASKED_IN_DATABASE: ReadonlySet<HealthPart> = new Set(['disk', 'webhooks', 'clock'])
const FIXED_MESSAGES = {
  database: 'The database cannot be reached.',
  redis: 'Redis cannot be reached; each process counts rate limits by itself.',
}

export function createHealth(deps: {
  checks: HealthChecks
  timeoutMs?: number
  processes?: () => ProcessHealth | undefined
  isDraining?: () => boolean
  /** The checks of the other parts that are configured. */
  parts?: Partial<Record<Exclude<HealthPart, 'database' | 'redis'>, PartCheck>>
  clock?: Clock
  waitsForStandby?: (() => Promise<boolean>) | undefined
  logQuorum?: () => Promise<
    { state: LogQuorumHealth['state']; size: number; cosignedSize: number; behindSeconds: number } | undefined
  >
}) {
  const timeoutMs = deps.timeoutMs ?? CHECK_TIMEOUT_MS
  const clock = deps.clock ?? systemClock
  let pendingReport: Promise<HealthReport> | undefined
  const since = new Map<HealthPart, string>()
  type PartState = { until: number; problem: Awaited<ReturnType<PartCheck>> }
  const partStates = new Map<HealthPart, PartState>()

  const readPart = async (part: HealthPart, check: PartCheck): Promise<PartState['problem']> => {
    const lastState = partStates.get(part)
    if (lastState && performance.now() < lastState.until) return lastState.problem
    const problem = await within(timeoutMs, check()).catch(() =>
      ASKED_IN_DATABASE.has(part) ? undefined : { message: `There is no answer from ${part} in time.` },
    )
    partStates.set(part, { problem, until: performance.now() + (problem ? PART_PROBLEM_MS : PART_OK_MS) })
    return problem
  }

  const listProblems = (found: ReadonlyMap<HealthPart, string>): HealthProblem[] => {
    for (const part of HEALTH_PARTS) if (!found.has(part)) since.delete(part)
    return HEALTH_PARTS.flatMap((part) => {
      const message = found.get(part)
      if (message === undefined) return []
      if (!since.has(part)) since.set(part, clock.now().toISOString())
      return [{ part, message, since: since.get(part)! }]
    })
  }

  /** Left out when it cannot be read: the state of the database says why. */
  const readLogQuorum = async (): Promise<Pick<HealthReport, 'log_quorum'>> => {
    const quorum = await (deps.logQuorum ? within(timeoutMs, deps.logQuorum()).catch(() => undefined) : undefined)
    if (!quorum) return {}
    const { state, size, cosignedSize, behindSeconds } = quorum
    return { log_quorum: { state, entries: size, cosigned_entries: cosignedSize, seconds: Math.floor(behindSeconds) } }
  }

  const readReplication = async (): Promise<Pick<HealthReport, 'database_replication'>> => {
    if (!deps.waitsForStandby) return {}
    const isWaiting = await within(timeoutMs, deps.waitsForStandby()).catch(() => undefined)
    return isWaiting === undefined ? {} : { database_replication: isWaiting ? 'synchronous' : 'asynchronous' }
  }

  const runChecks = async (): Promise<HealthReport> => {
    const parts = Object.entries(deps.parts ?? {}) as [HealthPart, PartCheck][]
    const [redis, supabase, quorum, replication, ...partProblems] = await Promise.all([
      runCheck(deps.checks.redis, timeoutMs),
      runCheck(deps.checks.supabase, timeoutMs),
      readLogQuorum(),
      readReplication(),
      ...parts.map(([part, check]) => readPart(part, check)),
    ])
    const messages = new Map<HealthPart, string>()
    if (supabase === 'unreachable') messages.set('database', FIXED_MESSAGES.database)
    if (redis === 'unreachable') messages.set('redis', FIXED_MESSAGES.redis)
    for (const [index, problem] of partProblems.entries()) if (problem) messages.set(parts[index]![0], problem.message)
    const problems = listProblems(messages)
    const draining = deps.isDraining?.() === true
    const degraded =
      draining || [redis, supabase].includes('unreachable') || partProblems.some((problem) => problem?.degrades)
    const status = degraded ? 'degraded' : 'ok'
    return {
      status,
      redis,
      supabase,
      ...deps.processes?.(),
      ...(draining && { draining }),
      ...quorum,
      ...replication,
      ...(problems.length > 0 && { problems }),
    }
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
