import { Type } from 'typebox'
import { nullableNumber, nullableText } from '../../platform/schema.ts'
import { Alert } from './alerts.schema.ts'
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
        'False when a list has more than 100 groups, or the window more than 100,000 runs and the lists are empty: GET /api/spend has them all.',
    }),
  },
  { title: 'AnalyticsResponse' },
)

const Outlook = Type.Object({
  budget_id: Type.String(),
  scope: Type.Object({ type: Type.String(), id: Type.String() }),
  window: Type.String(),
  limit_usdc: Type.Number(),
  spent_usdc: Type.Number(),
  reserved_usdc: Type.Number(),
  remaining_usdc: Type.Number(),
  resets_at: nullableText,
  forecast: Type.Union([
    Type.Object({
      rate_usdc_per_hour: Type.Number(),
      exhausted_at: Time,
      earliest: Time,
      latest: nullableText,
      confidence: Type.Number(),
    }),
    Type.Null(),
  ]),
})

export const ControlTowerResponse = Type.Object(
  {
    as_of: Time,
    spend: Type.Object({ today_usdc: Type.Number(), month_usdc: Type.Number() }),
    runs: Type.Object({
      today: Type.Integer(),
      month: Type.Integer(),
      completed_today: Type.Integer(),
      blocked_today: Type.Integer(),
      failed_today: Type.Integer(),
      executing: Type.Integer(),
      escalated: Type.Integer(),
    }),
    approvals_pending: Type.Integer(),
    brokerage_approvals_pending: Type.Integer({
      description: 'Trades that wait: GET /api/rh/runs?status=pending_approval.',
    }),
    self_approved: Type.Boolean({
      description: 'Whether somebody decided this month about what he asked for himself.',
    }),
    self_approved_count: Type.Integer({
      description: 'Approvals, overrides and trades of this month that the identity decided which had asked.',
    }),
    preauth: Type.Object({ open: Type.Integer(), escalated: Type.Integer(), oldest_age_s: nullableNumber }),
    settlements_unknown: Type.Integer(),
    webhooks: Type.Object({
      active: Type.Integer(),
      failing: Type.Integer(),
      pending_deliveries: Type.Integer(),
      oldest_pending_age_s: nullableNumber,
    }),
    budgets_at_risk: Type.Array(Outlook),
    alerts: Type.Array(Alert),
    frozen_agents: Type.Array(
      Type.Object({ agent_id: Type.String(), reason: Type.String(), frozen_by: Type.String(), frozen_at: Time }),
    ),
    log_checkpoint: nullableText,
    known: Type.Optional(
      Type.Boolean({
        description:
          'Only in the answer to a freeze: false when no lane has this name and no run, pre-authorisation, trade, mandate or key names it. The freeze applies all the same.',
      }),
    ),
  },
  { title: 'ControlTowerResponse' },
)

export const ControlTowerAction = Type.Object(
  {
    action: Type.Union([Type.Literal('freeze'), Type.Literal('unfreeze')]),
    agent_id: Type.String({ minLength: 1, maxLength: 120 }),
    reason: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
    idempotency_key: Type.Optional(Type.String({ maxLength: 255 })),
  },
  { title: 'ControlTowerRequest', additionalProperties: false },
)
