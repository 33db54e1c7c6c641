import { Type } from 'typebox'
import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { nullable } from '../../platform/schema.ts'
import type { Benchmark } from './benchmark.ts'

const interval = (description: string) => Type.Array(Type.Number(), { minItems: 2, maxItems: 2, description })

const BenchmarkResponse = Type.Object(
  {
    as_of: nullable(Type.String({ format: 'date-time' })),
    suite_version: nullable(Type.String()),
    mode: nullable(
      Type.String({ description: '`live` when models did the work, `offline` when none was configured.' }),
    ),
    cost_usd: Type.Optional(Type.Number({ description: 'What the tokens of the measurement cost; 0 offline.' })),
    lanes: Type.Array(
      Type.Object({
        agent_id: Type.String(),
        n: Type.Integer({ description: 'Tasks of the suite that this lane was given.' }),
        success_rate: Type.Number({
          description: 'Share of the tasks whose output passed every check and was verified.',
        }),
        success_ci95: interval('The ends of the 95 % confidence interval of the success rate (Wilson).'),
        score: Type.Object({
          mean: Type.Number(),
          ci95: interval('The ends of the 95 % confidence interval of the mean.'),
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
    own_runs: Type.Object(
      {
        since: Type.String({ format: 'date-time' }),
        until: Type.String({ format: 'date-time' }),
        lanes: Type.Array(
          Type.Object({
            agent_id: Type.String(),
            n: Type.Integer({ description: 'Runs and loops that came to an end.' }),
            success_rate: Type.Number({ description: 'Share of them that was completed and charged.' }),
            success_ci95: interval('The ends of the 95 % confidence interval of the success rate (Wilson).'),
            price_per_success_usdc: nullable(
              Type.Number({ description: 'What you paid for each completed one. Null when there was none.' }),
            ),
          }),
        ),
      },
      { description: 'Your own runs and loops of the last 30 days. Those refused before any work do not count.' },
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
        summary: 'How the lanes did on the committed suite, and in your own runs',
        description:
          'The suite runs by itself in the background after the first start and after a change of model or lane version, and with `countersign benchmark`; `as_of` is null and `lanes` empty until it has run. `own_runs` has the figures of your own runs, apart.',
        response: { 200: BenchmarkResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => benchmark.read(requireTenant(request.caller)),
  )
}
