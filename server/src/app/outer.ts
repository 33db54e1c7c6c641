import type { PartState } from '../modules/insights/health.ts'
import type { Deps as RunDeps } from '../modules/runs/execute-run.ts'
import type { LaneTask } from '../modules/runs/lane.ts'
import { createRateLimiter, type RateLimiter } from '../platform/rate-limit.ts'
import { noTracing, type Tracing } from '../platform/tracing.ts'
import type { Foundation } from './foundation.ts'

/** What an operator may add around the service: a collector for traces and a Redis for shared rate limits. */
export async function openOuter({ config, clock, log, onClose }: Foundation) {
  return { tracing: await openTracing(), ...(await openLimiter()) }

  async function openTracing(): Promise<Tracing> {
    const endpoint = config.OTEL_EXPORTER_OTLP_ENDPOINT
    if (!endpoint) return noTracing
    const { createOtlpTracing } = await import('../adapters/telemetry/otlp.ts')
    const tracing = createOtlpTracing({ endpoint })
    onClose(tracing.close)
    return tracing
  }

  /** Losing Redis makes the limits local, never absent. */
  async function openLimiter(): Promise<{ limiter: RateLimiter; redis: () => Promise<PartState> }> {
    const local = createRateLimiter(clock)
    if (!config.REDIS_URL) return { limiter: local, redis: async () => 'not_configured' }
    const { createRedisRateLimiter } = await import('../adapters/cache/redis-rate-limit.ts')
    const shared = createRedisRateLimiter({ url: config.REDIS_URL, local, log })
    onClose(async () => shared.close())
    return { limiter: shared, redis: async () => shared.state() }
  }
}

/** A span around each step of a run that takes time: what is asked and answered stays out of it. */
export function traceRun({ traced }: Tracing, deps: RunDeps): RunDeps {
  const { steps, payments, lane } = deps
  return {
    ...deps,
    assess: traced('run.assess', deps.assess),
    verify: traced('run.verify', deps.verify),
    lane: { ...lane, execute: traced('run.execute', (task: LaneTask) => lane.execute(task)) },
    payments: {
      ...payments,
      check: traced('run.check', payments.check),
      settle: traced('run.settle', payments.settle),
    },
    steps: {
      ...steps,
      admit: traced('run.admit', steps.admit),
      keep: traced('run.keep', steps.keep),
      complete: traced('run.complete', steps.complete),
      abandon: traced('run.abandon', steps.abandon),
    },
  }
}
