import type { LaneTask } from '../modules/runs/lane.ts'
import type { RunDeps } from '../modules/runs/run-deps.ts'
import { noTracing, type Tracing } from '../platform/tracing.ts'
import type { AppContext } from './context.ts'

/** Exports traces over OTLP when OTEL_EXPORTER_OTLP_ENDPOINT is set. */
export async function openTracing({ config, onClose }: Pick<AppContext, 'config' | 'onClose'>): Promise<Tracing> {
  const endpoint = config.OTEL_EXPORTER_OTLP_ENDPOINT
  if (!endpoint) return noTracing
  const { createOtlpTracing } = await import('../adapters/telemetry/otlp.ts')
  const tracing = createOtlpTracing({ endpoint })
  onClose(tracing.close)
  return tracing
}

/** Adds a span around each step of a run that takes time. */
export function traceRun({ withSpan }: Tracing, deps: RunDeps): RunDeps {
  const { steps, payments, lane } = deps
  return {
    ...deps,
    assess: withSpan('run.assess', deps.assess),
    verify: withSpan('run.verify', deps.verify),
    lane: { ...lane, execute: withSpan('run.execute', (task: LaneTask) => lane.execute(task)) },
    payments: {
      ...payments,
      check: withSpan('run.check', payments.check),
      settle: withSpan('run.settle', payments.settle),
    },
    steps: {
      ...steps,
      admit: withSpan('run.admit', steps.admit),
      keep: withSpan('run.keep', steps.keep),
      complete: withSpan('run.complete', steps.complete),
      abandon: withSpan('run.abandon', steps.abandon),
    },
  }
}
