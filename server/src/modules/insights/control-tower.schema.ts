import { Type } from 'typebox'
import { nullable, nullableNumber, nullableText, oneOf } from '../../platform/schema.ts'
import { Alert } from './alerts.schema.ts'
import { budgetProspects } from './budget-watch.ts'
import { towerTopics } from './tower-watch.ts'

const Time = Type.String({ format: 'date-time' })

const Outlook = Type.Object(
  {
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
    at_risk: Type.Boolean({ description: 'Whether it is among the `budgets_at_risk` of the control tower.' }),
    prospect: oneOf(budgetProspects, {
      description:
        'What can be said of it. used_up; below_one_run: less is left than the cheapest run costs; runs_out: before it resets, with 90 % confidence; may_run_out: the forecast or its interval ends before the reset; lasts; no_spending; too_little_history for a forecast.',
    }),
  },
  { title: 'BudgetOutlook' },
)

export const OutlooksQuery = Type.Object(
  { at_risk: Type.Optional(Type.Boolean({ description: 'true: only those at risk.' })) },
  { additionalProperties: false },
)
export const OutlooksResponse = Type.Object({ budgets: Type.Array(Outlook) }, { title: 'BudgetOutlooksResponse' })

export const SelfApprovedQuery = Type.Object(
  {
    since: Type.Optional(Type.String({ format: 'date-time', description: 'Default: the first of this month, UTC.' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
  },
  { additionalProperties: false },
)
export const SelfApprovedResponse = Type.Object(
  {
    decisions: Type.Array(
      Type.Object({
        kind: oneOf(['approval', 'override', 'trade']),
        id: Type.String(),
        agent_id: nullableText,
        amount_usdc: nullable(Type.Number()),
        decided_at: Time,
      }),
    ),
    has_more: Type.Boolean(),
  },
  { title: 'SelfApprovedResponse' },
)

export const SeenNamesResponse = Type.Object(
  {
    names: Type.Array(
      Type.Object({
        name: Type.String(),
        kind: oneOf(['agent', 'spender', 'lane']),
        last_seen_at: nullable(Time),
        frozen: Type.Boolean(),
      }),
    ),
  },
  { title: 'SeenNamesResponse' },
)

export const TowerChange = Type.Object({ topics: Type.Array(oneOf(towerTopics)) }, { title: 'TowerChange' })

export const ControlTowerResponse = Type.Object(
  {
    as_of: Time,
    spend: Type.Object({ today_usdc: Type.Number(), month_usdc: Type.Number() }),
    runs: Type.Object(
      {
        today: Type.Integer(),
        month: Type.Integer(),
        completed_today: Type.Integer(),
        blocked_today: Type.Integer(),
        failed_today: Type.Integer(),
        executing: Type.Integer({ description: 'GET /api/runs?progress=executing.' }),
        escalated: Type.Integer({ description: 'GET /api/runs?outcome=escalated, pre-authorised payments included.' }),
      },
      {
        description:
          'The rows of GET /api/runs with the same outcome since the day or month began, in UTC: runs, loops, top-ups and pre-authorised payments.',
      },
    ),
    approvals_pending: Type.Integer({ description: 'GET /api/approvals?status=pending.' }),
    brokerage_approvals_pending: Type.Integer({
      description: 'Trades that wait: GET /api/rh/runs?status=pending_approval.',
    }),
    self_approved: Type.Boolean({
      description: 'Whether somebody decided this month about what he asked for himself.',
    }),
    self_approved_count: Type.Integer({
      description:
        'Approvals, overrides and trades of this month that the identity decided which had asked: GET /api/control-tower/self-approved.',
    }),
    preauth: Type.Object(
      { open: Type.Integer(), escalated: Type.Integer(), oldest_age_s: nullableNumber },
      { description: 'GET /api/pre-auth?status=active and ?status=escalated.' },
    ),
    settlements_unknown: Type.Integer({ description: 'GET /api/settlements?state=unknown.' }),
    webhooks: Type.Object(
      {
        active: Type.Integer(),
        failing: Type.Integer(),
        pending_deliveries: Type.Integer({ description: 'GET /api/webhook-deliveries.' }),
        oldest_pending_age_s: nullableNumber,
      },
      { description: 'GET /api/webhooks?status=active and ?status=failing.' },
    ),
    budgets_at_risk: Type.Array(Outlook, { description: 'GET /api/control-tower/budgets?at_risk=true.' }),
    alerts: Type.Array(Alert, { description: 'The newest 20 of GET /api/predictive/alerts?unread=true.' }),
    alerts_unread: Type.Integer({ description: 'How many those are.' }),
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
