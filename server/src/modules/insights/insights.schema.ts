import { Type } from 'typebox'
import { nullableNumber, nullableText } from '../../platform/schema.ts'
import { type AnalyticsWindow, analyticsWindows } from './analytics.ts'
import { spendSums } from './spend.schema.ts'

const Time = Type.String({ format: 'date-time' })

const sums = {
  runs: Type.Integer(),
  completed: Type.Integer(),
  blocked: Type.Integer(),
  failed: Type.Integer(),
  spend_usdc: Type.Number(),
  cost_usd: Type.Number(),
  margin_usd: Type.Number(),
}

const WindowName = Type.Union((Object.keys(analyticsWindows) as AnalyticsWindow[]).map((name) => Type.Literal(name)))

export const AnalyticsQuery = Type.Object({ window: Type.Optional(WindowName) }, { additionalProperties: false })

export const AnalyticsResponse = Type.Object(
  {
    window: Type.Object({ name: WindowName, since: Time, until: Time, bucket: Type.String() }),
    totals: Type.Object(sums),
    by_agent: Type.Array(Type.Object({ agent_id: Type.String(), ...sums, success_rate: nullableNumber })),
    latency_ms: Type.Object({ p50: nullableNumber, p95: nullableNumber, p99: nullableNumber }),
    series: Type.Array(Type.Object({ at: Time, ...sums })),
    by_spender: Type.Array(Type.Object({ spender: nullableText, ...spendSums }), {
      description:
        'Everything governed (runs, loops, pre-authorised payments, trades) by who spent it, the largest first, at most 100; the figures are those of GET /api/spend.',
    }),
    by_team: Type.Array(Type.Object({ team: nullableText, ...spendSums })),
    by_key: Type.Array(Type.Object({ key: nullableText, ...spendSums })),
    by_tag: Type.Array(Type.Object({ tag: Type.String(), value: Type.String(), ...spendSums })),
    groups_complete: Type.Boolean({
      description:
        'False when a list has more than 100 groups, or is empty because more than 100,000 runs would have to be added up one by one: GET /api/spend has them all.',
    }),
  },
  { title: 'AnalyticsResponse' },
)
