import { Type } from 'typebox'
import type { App } from '../../platform/http-app.ts'
import { nullable } from '../../platform/schema.ts'
import type { Benchmark } from './benchmark.ts'

const BenchmarkResponse = Type.Object(
  {
    as_of: nullable(Type.String({ format: 'date-time' })),
    suite_version: nullable(Type.String()),
    mode: nullable(
      Type.String({ description: '`live` when models did the work, `offline` when none was configured.' }),
    ),
    lanes: Type.Array(
      Type.Object({
        agent_id: Type.String(),
        n: Type.Integer({ description: 'Tasks of the suite that are for this lane.' }),
        success_rate: Type.Number({
          description: 'Share of the tasks whose output passed every check and was verified.',
        }),
        score: Type.Object({
          mean: Type.Number(),
          ci95: Type.Array(Type.Number(), {
            minItems: 2,
            maxItems: 2,
            description: 'The ends of the 95 % confidence interval of the mean.',
          }),
        }),
        latency_ms: Type.Number({ description: 'The median.' }),
        price_per_verified_success_usdc: nullable(
          Type.Number({
            description:
              'What was charged for each verified success; a run that failed is not charged. Null when there was none.',
          }),
        ),
      }),
    ),
  },
  { title: 'BenchmarkResponse' },
)

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
