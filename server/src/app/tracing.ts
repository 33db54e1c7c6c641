import type { CallModel } from '../adapters/lanes/model-call.ts'
import type { LaneResult, LaneTask } from '../modules/runs/lane.ts'
import type { RunDeps } from '../modules/runs/run-deps.ts'
import { noTracing, type SpanDescription, type Tracing } from '../platform/tracing.ts'
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
    lane: { ...lane, execute: withSpan(agentSpan, (task) => lane.execute(task)) },
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

/** Names of OpenTelemetry's conventions for generative AI: the lane is the agent. */
const agentSpan: SpanDescription<[LaneTask], LaneResult> = {
  name: ({ agentId }) => `invoke_agent ${agentId}`,
  attributes: ({ agentId, runId }) => ({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.id': agentId,
    'gen_ai.agent.name': agentId,
    'countersign.run_id': runId,
  }),
  outcome: (result) =>
    result.ok
      ? {
          attributes: {
            'gen_ai.provider.name': result.provider,
            'gen_ai.request.model': result.model,
            'gen_ai.usage.input_tokens': result.usage.inputTokens,
            'gen_ai.usage.output_tokens': result.usage.outputTokens,
          },
        }
      : { error: result.reason },
}

/** Adds a span around each attempt at a model provider. */
export const traceModelCalls = ({ withSpan }: Tracing, callModel: CallModel): CallModel =>
  withSpan(
    {
      name: ({ modelName }) => `chat ${modelName}`,
      isClient: true,
      attributes: ({ provider, modelName, tuning }) => ({
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': provider.kind,
        'gen_ai.request.model': modelName,
        'gen_ai.request.temperature': tuning.temperature,
        'gen_ai.request.max_tokens': tuning.maxOutputTokens,
        'server.address': new URL(provider.baseUrl).hostname,
      }),
      outcome: (result) =>
        result.ok
          ? {
              attributes: {
                'gen_ai.usage.input_tokens': result.usage.inputTokens,
                'gen_ai.usage.output_tokens': result.usage.outputTokens,
              },
            }
          : { error: result.reason },
    },
    callModel,
  )
