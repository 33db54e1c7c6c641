import { Type } from 'typebox'
import { AuditLinkSchema } from '../../platform/audit-link.ts'
import { pageFields } from '../../platform/paging.ts'
import { nullable, oneOf, pattern, plainName } from '../../platform/schema.ts'
import { ApprovalRule, NormalSpend } from '../governance/approvals/approval-view.schema.ts'
import { mandateField, payerFields, payerRecord } from '../governance/payer.schema.ts'
import { CountersOpening } from '../receipts/receipts.schema.ts'
import { INSTRUMENT_TYPES } from './broker.ts'
import { SIDES } from './trade-request.ts'

const dateTime = Type.String({ format: 'date-time' })
const uuid = Type.String({ format: 'uuid' })
const openObject = (description: string) => Type.Object({}, { additionalProperties: true, description: description })
const noAdditionalProperties = { additionalProperties: false }
/** Text that can be stored and signed: no NUL character and no unpaired surrogate. */
const freeText = (maxLength: number, description?: string, minLength = 1) =>
  Type.String({
    minLength,
    maxLength,
    ...pattern('^[^\\u0000\\ud800-\\udfff]*$', 'text without NUL or half a character'),
    ...(description && { description }),
  })

const name = (maxLength: number, description?: string) => ({ ...freeText(maxLength, description), ...plainName })

const InstrumentType = oneOf(INSTRUMENT_TYPES)
const Side = oneOf(SIDES)
const PolicyVerdict = oneOf(['requires_human', 'borderline', 'override'])

export const RhRunRequest = Type.Object(
  {
    tenant_id: Type.String({ minLength: 1, maxLength: 128, description: 'Must be the tenant of the key.' }),
    symbol: name(64, 'For a spend: the merchant.'),
    side: Side,
    quantity: Type.Number({ description: 'Shares, contracts or fractional units; USDC for earn and spend.' }),
    price_limit: Type.Optional(
      Type.Number({ description: 'USD. The worst price accepted; for a spend, the price of one unit.' }),
    ),
    instrument_type: Type.Optional(InstrumentType),
    leverage: Type.Optional(Type.Number({ description: 'Perp only; 1 when absent.' })),
    notional_usdc: Type.Optional(
      Type.Number({
        description:
          'The most the run may commit, meant for perp and rwa: it is what policy judges, and the quantity is cut to it. Not valid for an equity.',
      }),
    ),
    policy_id: Type.Optional(
      freeText(
        128,
        "Overrides the tenant's default policy in the limits it has; the default applies to the others. Needs a key with the scope `control`, or a policy that is selectable. What the tenant's other policies deny stays denied.",
      ),
    ),
    client_order_id: Type.Optional(
      Type.String({
        ...pattern('^[A-Za-z0-9._:-]{1,64}$', "1 to 64 letters, digits, '.', '_', ':' or '-'"),
        description: 'Your own name for the order; works once.',
      }),
    ),
    agent_id: Type.Optional(
      name(
        80,
        'The agent that spends, unless `spender` or the key names another: then what restricts this agent still applies, and what permits it does not.',
      ),
    ),
    purpose: Type.Optional(
      freeText(500, 'Why, in words for whoever approves the trade. Kept encrypted with the request, and in no record.'),
    ),
    ...payerFields,
    ...mandateField,
    idempotency_key: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
  },
  { ...noAdditionalProperties, title: 'RhRunRequest' },
)

const Check = Type.Object(
  {
    id: Type.String(),
    result: oneOf(['pass', 'review', 'fail']),
    limit: Type.Unknown(),
    actual: Type.Unknown(),
    reason: Type.Optional(Type.String()),
  },
  { description: 'One risk check: the limit and the requested value.' },
)

const PolicyResults = Type.Array(Type.Object({}, { additionalProperties: true }), {
  description: 'How the mandates, policies and budgets of the tenant judged the trade, as in any refusal.',
})

const party = {
  ...payerRecord,
  key_id: Type.String({ description: 'The key that asked.' }),
  mandate_id: nullable(Type.String({ description: 'The mandate that the trade counts in.' })),
}

const Fill = Type.Object({
  fill_id: Type.String(),
  quantity: Type.Number(),
  price: Type.Number(),
  fee: Type.Number(),
  at: dateTime,
})

export const RhReceipt = Type.Object(
  {
    id: uuid,
    run_id: uuid,
    tenant_id: Type.String(),
    instrument_type: InstrumentType,
    symbol: Type.String(),
    side: Side,
    direction: Side,
    quantity: Type.Number(),
    requested_quantity: Type.Number(),
    filled_quantity: Type.Number(),
    notional_usdc: Type.Number(),
    status: oneOf(['pending_approval', 'executed', 'partially_filled', 'cancelled', 'rejected']),
    reason: nullable(Type.String()),
    mode: oneOf(['paper', 'live']),
    broker: Type.String(),
    client_order_id: Type.String(),
    broker_order_id: nullable(Type.String()),
    fills: Type.Array(Fill),
    avg_price: nullable(Type.Number()),
    gross: Type.Number(),
    fees: Type.Number(),
    net: Type.Number({ description: 'What the account gained; negative for a purchase. For a perp its fees alone.' }),
    reference: Type.Object({
      quote_price: Type.Number(),
      quote_source: Type.String(),
      quoted_at: dateTime,
      max_drift_bps: Type.Number(),
      execution_price: nullable(Type.Number()),
      execution_observed_at: nullable(dateTime),
      basis_bps: nullable(Type.Number()),
    }),
    slippage_bps: nullable(Type.Number({ description: 'Positive is worse than the judged price.' })),
    policy: Type.Object({
      policy_id: Type.String(),
      policy_ids: Type.Optional(
        Type.Array(Type.String(), { description: 'Every policy that gave a limit, where there are several.' }),
      ),
      name: Type.String(),
      content_hash: nullable(Type.String()),
      verdict: Type.String(),
      checks: Type.Array(Check),
    }),
    approval: Type.Object({
      required: Type.Boolean(),
      digest: nullable(Type.String()),
      expires_at: nullable(dateTime),
      approved_by: nullable(Type.String({ description: 'The key that approved.' })),
      approved_by_claimed: nullable(Type.String({ description: 'Whom the approver named.' })),
      approved_at: nullable(dateTime),
      self_approved: Type.Optional(
        Type.Boolean({ description: 'Present and true when the identity that asked has approved it.' }),
      ),
    }),
    execute_by: dateTime,
    salt: Type.Optional(
      Type.String({ description: 'Random, so that nobody can guess what the public entry is the hash of.' }),
    ),
    counters: Type.Optional(CountersOpening),
    receipt_url: Type.String({ description: 'The public entry of the transparency log that commits to this receipt.' }),
    attestation: Type.Object(
      {
        hash: Type.String(),
        prev_hash: nullable(Type.String()),
        alg: Type.String(),
        key_id: Type.String(),
        value: Type.String(),
      },
      {
        description: 'Over the RFC 8785 bytes of the receipt without `attestation`, with `prev_hash` at its top level.',
      },
    ),
    created_at: dateTime,
    agent_id: Type.Optional(nullable(Type.String())),
    ...Type.Partial(Type.Object(party)).properties,
    instrument_metadata: openObject(
      'equity: ticker, order_type, limit_price. perp: leverage, notional, liquidation_price, direction. earn: yield_rate, lock_period, principal. rwa: underlying_asset, token_contract, settlement_lag. crypto: base_asset, quote_asset, product_id, order_type, limit_price, network. spend: merchant, merchant_id, category, amount_usdc, rail, authorization_id, pre_auth_id, recurring.',
    ),
  },
  { title: 'RhReceipt', description: 'An enriched attestation receipt of a governed trade.' },
)

const approvalView = {
  rule: ApprovalRule,
  normal: NormalSpend,
  next: Type.String({ description: 'What happens next, or has happened.' }),
}

const approvalVotes = {
  approvals_required: Type.Integer({ description: 'How many identities have to approve.' }),
  approvals: Type.Array(
    Type.Object({
      key_id: Type.String({ description: 'The key, or `recipient:<id>`.' }),
      at: dateTime,
      self_approved: Type.Boolean(),
      reason: Type.Optional(Type.String()),
    }),
    { description: 'The approvals so far.' },
  ),
}

const Approval = Type.Object(
  {
    run_id: uuid,
    tenant_id: Type.String(),
    instrument_type: InstrumentType,
    symbol: Type.String(),
    side: Side,
    direction: Side,
    quantity: Type.Number(),
    notional_usdc: Type.Number(),
    policy_id: Type.String(),
    policy_verdict: PolicyVerdict,
    checks: Type.Array(Check),
    approvals_required: Type.Optional(approvalVotes.approvals_required),
    ...Type.Partial(Type.Object(approvalView)).properties,
    expires_at: dateTime,
    execute_by: dateTime,
    digest: Type.String(),
  },
  {
    additionalProperties: true,
    description: 'What a person must see to decide; further fields depend on the instrument.',
  },
)

export const RhRunExecuted = Type.Object(
  {
    run_id: uuid,
    status: Type.Literal('executed'),
    instrument_type: InstrumentType,
    receipt: RhReceipt,
    audit: Type.Optional(AuditLinkSchema),
  },
  { title: 'RhRunExecuted' },
)

export const RhRunAccepted = Type.Object(
  {
    run_id: uuid,
    status: oneOf(['pending_approval', 'executing']),
    instrument_type: InstrumentType,
    expires_at: dateTime,
    execute_by: dateTime,
    decision_id: Type.Optional(Type.String({ description: 'Of a run that waits: GET /api/decisions/{id}.' })),
    approval: nullable(Approval),
    audit: Type.Optional(AuditLinkSchema),
  },
  {
    title: 'RhRunAccepted',
    description: 'Pending approval; or, with a broker that fills later, still executing (`approval` is then null).',
  },
)

export const RhRunRefused = Type.Object(
  {
    error: oneOf(['budget_exceeded', 'policy_blocked']),
    message: Type.String(),
    checks: Type.Array(Check),
    policy_results: Type.Optional(PolicyResults),
    code: Type.Optional(Type.String({ description: '`field_required`: a rule selects by a field that is left out.' })),
    field_required: Type.Optional(Type.String()),
    decided_by: Type.Optional(nullable(openObject('The policy, budget or mandate and the rule that decided.'))),
    smallest_change: Type.Optional(Type.Array(openObject('The least that would have to be different.'))),
    run_id: uuid,
    status: oneOf(['rejected', 'cancelled']),
    instrument_type: InstrumentType,
    receipt_id: Type.Optional(uuid),
    decision_id: Type.Optional(Type.String({ description: 'GET /api/decisions/{id}.' })),
    request_id: Type.Optional(Type.String()),
    audit: Type.Optional(AuditLinkSchema),
  },
  { title: 'RhRunRefused', description: 'Refused, with every check and which of them decided. Nothing was traded.' },
)

export const RhApproveRequest = Type.Object(
  {
    run_id: uuid,
    approved_by: Type.Optional(freeText(200, 'Recorded as claimed.')),
    reason: Type.Optional(freeText(500, 'Recorded with the approval.')),
    instrument_type: Type.Optional(InstrumentType),
    direction: Type.Optional(Side),
    notional_usdc: Type.Optional(Type.Number()),
    leverage: Type.Optional(Type.Number()),
    liquidation_price: Type.Optional(Type.Number()),
    policy_verdict: Type.Optional(PolicyVerdict),
    expires_at: Type.Optional(dateTime),
    idempotency_key: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
  },
  {
    title: 'RhApproveRequest',
    ...noAdditionalProperties,
    description: 'Beside run_id, approved_by and reason these are echoes: one that differs from the run is a 400.',
  },
)

export const RhApproved = Type.Object(
  {
    run_id: uuid,
    status: oneOf(['approved', 'pending_approval'], {
      description: '`pending_approval` while further approvals are needed.',
    }),
    instrument_type: InstrumentType,
    queued: Type.Boolean(),
    approved_at: dateTime,
    approved_by: Type.String(),
    approved_by_claimed: nullable(Type.String()),
    self_approved: Type.Boolean({ description: 'Whether the identity that asked has approved it.' }),
    ...approvalVotes,
    expires_at: dateTime,
    execute_by: dateTime,
    digest: Type.String(),
  },
  { title: 'RhApproved' },
)

export const RhRun = Type.Object(
  {
    run_id: uuid,
    tenant_id: Type.String(),
    status: oneOf(['pending_approval', 'approved', 'executing', 'executed', 'cancelled', 'rejected']),
    reason: nullable(Type.String()),
    instrument_type: InstrumentType,
    symbol: Type.String(),
    side: Side,
    quantity: Type.Number(),
    notional_usdc: Type.Number(),
    price_limit: nullable(Type.Number()),
    leverage: nullable(Type.Number()),
    policy_id: Type.String(),
    policy_ids: Type.Array(Type.String(), {
      description: "The tenant's policies that the limits came from; empty when they came from a default.",
    }),
    policy_verdict: Type.String(),
    checks: Type.Array(Check),
    policy_results: PolicyResults,
    agent_id: nullable(Type.String()),
    ...party,
    broker: Type.String(),
    mode: oneOf(['paper', 'live']),
    client_order_id: nullable(Type.String()),
    approval: nullable(Approval),
    request: Type.Optional(
      nullable(
        openObject(
          'Of a run that needs an approval: what is asked, as it was sent. Only for keys with the scope `control`; null once its retention has passed.',
        ),
      ),
    ),
    rule: nullable(approvalView.rule),
    normal: nullable(approvalView.normal),
    next: nullable(approvalView.next),
    ...approvalVotes,
    expires_at: nullable(dateTime),
    execute_by: dateTime,
    approved_at: nullable(dateTime),
    approved_by: nullable(Type.String()),
    approved_by_claimed: nullable(Type.String()),
    self_approved: Type.Boolean({ description: 'Whether the identity that asked has approved it.' }),
    ended_by: nullable(
      Type.String({
        description: 'Who ended it: a key, `recipient:<id>`, `clock` when nobody approved in time, or `worker`.',
      }),
    ),
    fills: Type.Array(Fill),
    receipt_ids: Type.Array(uuid),
    created_at: dateTime,
    updated_at: dateTime,
    finished_at: nullable(dateTime),
  },
  { title: 'RhRun' },
)

export const RhRunQuote = Type.Object(
  {
    run_id: uuid,
    price: Type.Number({ description: 'What the order would trade at now: the ask for a buy, the bid for a sale.' }),
    mark: Type.Number(),
    source: Type.String(),
    observed_at: dateTime,
    session: oneOf(['open', 'closed', 'holiday', 'always']),
    next_open: nullable(dateTime),
    halted: Type.Boolean(),
    price_when_asked: Type.Number(),
    asked_at: dateTime,
    drift_bps: Type.Number({ description: 'How far the price has moved since; positive when it rose.' }),
    max_drift_bps: Type.Number({ description: 'An approved run whose price moved further is cancelled.' }),
    liquidation_price: nullable(Type.Number()),
    distance_to_liq_pct: nullable(
      Type.Number({ description: 'From the mark to the liquidation price, as a share of the mark.' }),
    ),
    basis_bps: nullable(Type.Number()),
    basis_when_asked_bps: nullable(Type.Number()),
  },
  { title: 'RhRunQuote', description: 'The market of a run now, beside what it was when the run was asked for.' },
)

export const RhRunsQuery = Type.Object(
  {
    status: Type.Optional(oneOf(['pending_approval', 'approved', 'executing', 'executed', 'cancelled', 'rejected'])),
    approval: Type.Optional(
      oneOf(['pending', 'approved', 'rejected', 'all'], {
        description: 'Only runs that a person was asked about, by what was decided; an expired one was rejected.',
      }),
    ),
    spender: Type.Optional(Type.String({ maxLength: 200 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
    cursor: Type.Optional(Type.String({ format: 'uuid', description: 'next_cursor of the page before' })),
  },
  noAdditionalProperties,
)

export const RhRuns = Type.Object({ runs: Type.Array(RhRun), ...pageFields }, { title: 'RhRuns' })

const usdc = (description: string) =>
  Type.Optional(Type.Number({ minimum: 0, maximum: 1_000_000_000, description: `USDC. ${description}` }))
const basisPoints = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000, description: `Basis points. ${description}` }))
const share = (description: string) => Type.Optional(Type.Number({ minimum: 0, maximum: 1, description }))

const DefaultConstraints = Type.Object(
  {
    always_require_approval: Type.Optional(Type.Boolean({ description: 'A person approves every run.' })),
    require_approval_above_usdc: usdc('A person approves a run with a higher notional.'),
    max_notional_usdc: usdc('Highest notional of a run.'),
    max_per_day_usdc: usdc('Highest notional of the type in one UTC day, pending runs included.'),
    max_leverage: Type.Optional(Type.Number({ minimum: 0, maximum: 1_000, description: 'Perps: highest leverage.' })),
    min_liquidation_distance_bps: basisPoints('Perps: smallest distance from the price to liquidation.'),
    max_concentration: share('Highest share of the account in one symbol.'),
    collar_bps: basisPoints('How far from the quote a run may be filled.'),
    max_drift_bps: basisPoints('How far the price may move between approval and execution.'),
    max_quote_age_seconds: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 86_400, description: 'Oldest quote that is good for a run.' }),
    ),
    max_basis_bps: basisPoints('Tokenised equities: how far from the reference.'),
    max_float_share: share('Tokenised equities: highest share of what is offered near the reference.'),
  },
  noAdditionalProperties,
)

export const RhPolicyParams = Type.Object({ instrument_type: InstrumentType })

export const RhPolicyUpdate = Type.Object(
  { constraints: DefaultConstraints },
  {
    ...noAdditionalProperties,
    title: 'RhPolicyUpdate',
    description:
      'Replaces the constraints that the tenant has set before. A constraint that is absent has its shipped value; with none at all, the tenant has no default of its own.',
  },
)

export const RhPolicy = Type.Object(
  {
    instrument_type: InstrumentType,
    source: oneOf(['tenant', 'shipped']),
    version: Type.Integer({ description: 'Rises with each change; 0 while there was none.' }),
    constraints: Type.Object({}, { additionalProperties: true, description: 'The constraints of this default.' }),
    tenant_constraints: nullable(
      Type.Object({}, { additionalProperties: true, description: 'Those that the tenant has set.' }),
    ),
    content_hash: nullable(Type.String()),
    changed_by: nullable(Type.String({ description: 'The key that made the last change.' })),
    updated_at: nullable(dateTime),
  },
  {
    title: 'RhPolicy',
    description:
      'The default limits and approval thresholds for trades of one instrument type. While its source is `shipped`, active policies of the tenant that speak of trades come before it.',
  },
)

export const RhPolicies = Type.Object({ policies: Type.Array(RhPolicy) }, { title: 'RhPolicies' })

export const RhCancelRequest = Type.Object(
  { reason: Type.Optional(freeText(500)) },
  { ...noAdditionalProperties, title: 'RhCancelRequest' },
)
export const RhCancelled = Type.Object(
  {
    run_id: uuid,
    status: Type.String(),
    stopping: Type.Boolean({ description: 'True while a broker may still have the order; the worker stops it.' }),
  },
  { title: 'RhCancelled' },
)

export const RhReceiptsQuery = Type.Object(
  {
    run_id: Type.Optional(Type.String({ maxLength: 64 })),
    tenant_id: Type.Optional(Type.String({ maxLength: 128 })),
    instrument_type: Type.Optional(InstrumentType),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
  },
  noAdditionalProperties,
)

export const RhPositions = Type.Object(
  {
    as_of: dateTime,
    accounts: Type.Array(
      Type.Object({
        broker: Type.String(),
        mode: oneOf(['paper', 'live']),
        currency: Type.String(),
        cash_usdc: Type.Number(),
        unsettled_usdc: Type.Number(),
        held_usdc: Type.Number(),
        buying_power_usdc: Type.Number(),
        equity_usdc: Type.Number(),
        positions: Type.Array(
          Type.Object({
            instrument_type: InstrumentType,
            symbol: Type.String(),
            quantity: Type.Number(),
            cost_usdc: Type.Number(),
            avg_price: Type.Number(),
            margin_usdc: Type.Number(),
            leverage: nullable(Type.Number()),
            liquidation_price: nullable(Type.Number()),
            locked_until: nullable(dateTime),
          }),
        ),
      }),
    ),
  },
  { title: 'RhPositions' },
)

export const KillSwitchRequest = Type.Object(
  { engaged: Type.Boolean(), reason: Type.Optional(freeText(500)) },
  { ...noAdditionalProperties, title: 'RhKillSwitchRequest' },
)
export const KillSwitch = Type.Object(
  {
    engaged: Type.Boolean(),
    engaged_at: nullable(dateTime),
    engaged_by: nullable(Type.String()),
    reason: nullable(Type.String()),
    runs_stopped: Type.Integer(),
  },
  { title: 'RhKillSwitch' },
)

export const IdParams = Type.Object({ id: Type.String({ maxLength: 64 }) })

export const CbReceiptsQuery = Type.Object(
  {
    status: Type.Optional(oneOf(['pending', 'history'])),
    type: Type.Optional(Type.Literal('accounts')),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
  },
  noAdditionalProperties,
)

const Balance = Type.Object({ value: Type.String(), currency: Type.String() })
export const CbAccount = Type.Object(
  {
    uuid: Type.String(),
    currency: Type.String(),
    available_balance: Balance,
    hold: Balance,
    type: Type.String(),
  },
  { title: 'CbAccount' },
)

export const OauthCallbackQuery = Type.Object({
  code: Type.Optional(Type.String({ maxLength: 2048 })),
  state: Type.Optional(Type.String({ maxLength: 512 })),
})
export const OauthCallback = Type.Object(
  {
    domain: Type.String(),
    oauth_ready: Type.Boolean(),
    token_stored: Type.Boolean(),
    account_stub_created: Type.Boolean(),
    encrypted: Type.Boolean(),
  },
  { title: 'RhOauthCallback' },
)
/** Revoking is a 200 for any account id, so the body is validated as little as possible. */
export const OauthRevokeRequest = Type.Object(
  {
    rh_account_id: Type.Optional(nullable(freeText(256, 'An id that matches nothing is answered all the same.', 0))),
  },
  { title: 'RhOauthRevokeRequest' },
)
export const OauthRevoked = Type.Object(
  {
    domain: Type.String(),
    revoked: Type.Literal(true),
    rh_account_id: nullable(Type.String()),
  },
  { title: 'RhOauthRevoked' },
)
