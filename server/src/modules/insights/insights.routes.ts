import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import type { Analytics } from './analytics.ts'
import * as schema from './insights.schema.ts'
import { SpendQuery, SpendResponse } from './spend.schema.ts'
import { type Spend, toSpendCsv } from './spend.ts'

export function insightsRoutes(app: App, { analytics, spend }: { analytics: Analytics; spend: Spend }) {
  app.get(
    '/api/spend',
    {
      schema: {
        operationId: 'getSpend',
        tags: ['Observability'],
        summary: 'What was spent, over everything governed, by day, spender, team, lane, merchant, tag, key or rail',
        description:
          'Runs, loops, pre-authorised payments and trades, each once, when they are counted as settled. Budgets, analytics and the control tower agree with it. With `format=csv` or `Accept: text/csv`, the groups as CSV (RFC 4180); the header `X-Next-Cursor` then has the cursor of the next page.',
        querystring: SpendQuery,
        response: { 200: SpendResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request, reply) => {
      const { format, ...query } = request.query
      const report = await spend.read(requireTenant(request.caller), query)
      const wantsCsv = format === undefined && /\btext\/csv\b/.test(request.headers.accept ?? '')
      if (format !== 'csv' && !wantsCsv) return report
      if (report.next_cursor !== null) reply.header('x-next-cursor', report.next_cursor)
      reply.header('content-disposition', 'attachment; filename="spend.csv"').type('text/csv; charset=utf-8')
      return reply.send(toSpendCsv(report) as never)
    },
  )
  app.get(
    '/api/analytics',
    {
      schema: {
        operationId: 'getAnalytics',
        tags: ['Observability'],
        summary: "The tenant's runs, spend, cost and latency over a window",
        description:
          'Counts and sums are exact at every moment; latencies come from a histogram whose steps are a tenth wide.',
        querystring: schema.AnalyticsQuery,
        response: { 200: schema.AnalyticsResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => analytics.read(requireTenant(request.caller), request.query.window ?? '7d'),
  )
}
