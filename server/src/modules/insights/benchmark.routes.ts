import { Type } from 'typebox'
import type { App } from '../../platform/http.ts'
import type { Benchmark } from './benchmark.ts'

const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(type: T) => Type.Union([type, Type.Null()])
const Interval = Type.Array(Type.Number(), {
  minItems: 2,
  maxItems: 2,
  description: 'Low and high end of the 95 % confidence interval.',
})

const BenchmarkResponse = Type.Object({
  as_of: nullable(Type.String({ format: 'date-time' })),
  suite_version: nullable(Type.String()),
  lanes: Type.Array(
    Type.Object({
      agent_id: Type.String(),
      n: Type.Integer({ description: 'Tasks of the suite that this lane was given.' }),
      success_rate: Type.Number({ description: 'Share of the tasks whose output was verified.' }),
      success_ci95: Interval,
      score: Type.Object({ mean: Type.Number(), ci95: Interval }),
      latency_ms: Type.Object({ p50: Type.Number(), p95: Type.Number() }),
      price_per_verified_success_usdc: nullable(
        Type.Number({
          description: 'What all outputs of the lane would have cost a caller, divided by those that were verified.',
        }),
      ),
      models: Type.Array(Type.String()),
      modes: Type.Array(Type.String()),
    }),
  ),
})

export function benchmarkRoutes(app: App, benchmark: Benchmark) {
  app.get(
    '/api/benchmark',
    {
      schema: {
        operationId: 'getBenchmark',
        tags: ['Observability'],
        summary: 'How the lanes did on the committed suite',
        description:
          'The newest results that `countersign benchmark` has stored; `as_of` is null and `lanes` empty before the first.',
        response: { 200: BenchmarkResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async () => benchmark.read(),
  )
}
