import { Type } from 'typebox'
import { AuditLinkSchema } from '../../platform/audit-link.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import { cursorParameter, PAGE_MAY_BE_SHORT } from '../../platform/paging.ts'
import { nullable, oneOf } from '../../platform/schema.ts'
import { mandateField, payerFields } from '../governance/payer.schema.ts'
import { CountersOpening } from '../receipts/receipts.schema.ts'

const Usdc = Type.Number({ minimum: 0 })
const shortText = Type.String({ minLength: 1, maxLength: 200 })
const agentId = Type.String({ minLength: 1, maxLength: 80 })

const Constraints = Type.Object(
  {
    max_cost_usdc: Type.Optional(Type.Number({ minimum: 0, maximum: 1_000_000 })),
    priority: Type.Optional(
      Type.Union(['cheapest', 'balanced', 'quality', 'fastest'].map((value) => Type.Literal(value))),
    ),
    category: Type.Optional(Type.String({ minLength: 1, maxLength: 40 })),
  },
  { additionalProperties: false },
)

export const RunBudget = Type.Object(
  {
    budget_id: Type.Optional(shortText),
    max_price_usdc: Type.Optional(Type.Number({ minimum: 0, maximum: 1_000_000 })),
    soft_max_price_usdc: Type.Optional(Type.Number({ minimum: 0, maximum: 1_000_000 })),
    strict: Type.Optional(Type.Boolean()),
    currency: Type.Optional(Type.String({ maxLength: 12 })),
  },
  { title: 'RunBudget', additionalProperties: false },
)

export const RunPolicy = Type.Object(
  {
    policy_ids: Type.Optional(Type.Array(shortText, { maxItems: 50 })),
    mode: Type.Optional(Type.Union(['enforce', 'warn', 'shadow'].map((value) => Type.Literal(value)))),
  },
  { title: 'RunPolicy', additionalProperties: false },
)

const grants = {
  ...payerFields,
  ...mandateField,
  budget: Type.Optional(RunBudget),
  policy: Type.Optional(RunPolicy),
  payment: Type.Optional(
    Type.Object({ wallet_id: shortText, escrow: Type.Optional(Type.Boolean()) }, { additionalProperties: false }),
  ),
  preauth_token: Type.Optional(Type.String({ minLength: 1, maxLength: 8_192 })),
  approval_id: Type.Optional(shortText),
  override_token: Type.Optional(Type.String({ minLength: 1, maxLength: 8_192 })),
  idempotency_key: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
}

const MAX_TASK = 32_000
const sessionId = Type.Optional(Type.String({ minLength: 1, maxLength: 120 }))
const task = Type.String({ minLength: 1, maxLength: MAX_TASK })

const verificationOptions = {
  verify: Type.Optional(
    Type.Boolean({
      description:
        'false skips the checks of the output: it is paid for whatever it is, and `verification.verified` is null in the answer and in the receipt.',
    }),
  ),
  accept_unverified: Type.Optional(
    Type.Boolean({
      description:
        'true takes and pays for an output that fails a deciding check; answer and receipt then have `verified: false` and `accepted_unverified: true`. Otherwise such an output is not shown and not charged.',
    }),
  ),
}

export const RunRequest = Type.Object(
  {
    task: Type.Optional(task),
    intent: Type.Optional(task),
    session_id: sessionId,
    agent_id: Type.Optional(agentId),
    preferred_agent_id: Type.Optional(agentId),
    lane_id: Type.Optional(agentId),
    constraints: Type.Optional(Constraints),
    options: Type.Optional(
      Type.Object(
        {
          include_memory: Type.Optional(
            Type.Boolean({
              description:
                'Puts what the session remembers in front of the task: the memories that fit it best and the newest, 8 at most. They decide nothing about lane, price, payee or policy. True unless sent false for a run with an X-API-Key and a `session_id`; a guest who asks for it gets a 400.',
            }),
          ),
          write_memory: Type.Optional(
            Type.Boolean({
              description:
                'Remembers task and outcome in the session once the run is paid; a run that fails is not remembered. True unless sent false for a run with an X-API-Key and a `session_id`; a guest who asks for it gets a 400.',
            }),
          ),
          ...verificationOptions,
        },
        { additionalProperties: false },
      ),
    ),
    quote: Type.Optional(
      Type.Object(
        {
          quote_id: shortText,
          expires_at: Type.String({ maxLength: 40 }),
          signature: Type.String({ maxLength: 8_192 }),
        },
        { additionalProperties: false },
      ),
    ),
    ...grants,
  },
  {
    title: 'RunRequest',
    additionalProperties: false,
    description:
      'A task, with optional routing wishes, budget and policy. `intent` is an alias of `task`; `preferred_agent_id` and `lane_id` of `agent_id`.',
  },
)

export const LoopRequest = Type.Object(
  {
    input: task,
    session_id: sessionId,
    agent_id: Type.Optional(agentId),
    proposed_actions: Type.Optional(
      Type.Array(Type.Object({}, { additionalProperties: true }), {
        maxItems: 50,
        description:
          'Each is judged by the rules of the tenant and gets a `decision`. Its amount is the largest of `amount_usdc`, `notional_usdc`, `price_usdc` and `amount`, in USDC, as a number or text; `merchant` is a name or `{id, url, pay_to}`. One that cannot be understood gets `review_required`, with the field in its reason.',
      }),
    ),
    options: Type.Optional(Type.Object(verificationOptions, { additionalProperties: false })),
    ...grants,
  },
  { title: 'LoopRequest', additionalProperties: false },
)

const open = (description: string) => Type.Object({}, { additionalProperties: true, description })

const SettlementSummary = Type.Object({
  settlement_id: Type.String(),
  status: Type.String(),
  method: Type.String({ description: '`x402`, or `wallet`: then there is no transaction on the chain.' }),
  transaction: nullable(Type.String()),
  network: Type.String(),
  asset: Type.String(),
  payer: Type.String(),
  pay_to: Type.String(),
  amount: Type.String(),
})

const salt = Type.Optional(
  Type.String({
    description:
      'Opens the hashes of the receipt: keep it, and show it with the task or the output to whom you want to prove what the receipt is about.',
  }),
)

/** The receipt's own hashes, and the salt they were made with. */
const Evidence = Type.Object({
  request_hash: Type.String(),
  input_hash: Type.String(),
  output_hash: Type.String(),
  salt,
  counters: Type.Optional(CountersOpening),
})

const EvidenceWithoutOutput = Type.Object({
  request_hash: Type.String(),
  input_hash: nullable(Type.String()),
  output_hash: nullable(Type.String()),
  salt,
  counters: Type.Optional(CountersOpening),
})

const mandateUsed = nullable(Type.String({ description: 'The mandate that the payment used.' }))

export const OutputCheck = Type.Object(
  {
    name: Type.String(),
    passed: Type.Boolean(),
    weight: Type.Number({ description: '0 when the task has nothing that the check could hold on to.' }),
    decides: Type.Boolean({ description: 'Whether the output is unverified when this check fails.' }),
    reason: Type.String({ description: 'Why it passed or failed.' }),
    detail: Type.Optional(Type.String({ description: 'What exactly was found, when it failed.' })),
  },
  { title: 'OutputCheck', additionalProperties: true },
)

const Verification = Type.Object(
  {
    verification_id: Type.String(),
    verified: nullable(Type.Boolean({ description: 'null: `options.verify` was false.' })),
    score: nullable(Type.Number()),
    grade: nullable(Type.String()),
    checks: Type.Array(OutputCheck),
    accepted_unverified: Type.Optional(
      Type.Literal(true, { description: 'A deciding check failed and `options.accept_unverified` took the output.' }),
    ),
  },
  { title: 'OutputVerification', additionalProperties: true, description: 'What was checked of the output.' },
)

export const RunSuccessResponse = Type.Object(
  {
    status: Type.Literal('completed'),
    run_id: Type.String(),
    loop_id: Type.String(),
    session_id: Type.String(),
    agent_id: Type.String(),
    output: Type.String(),
    price_usdc: Usdc,
    amount: Type.String({ description: 'Atomic units (micro-USDC); authoritative.' }),
    route: open('How the lane was chosen.'),
    pricing: Type.Object({
      base_price_usdc: Usdc,
      orchestration_fee_usdc: Usdc,
      price_usdc: Usdc,
      pricing_version: Type.String(),
    }),
    decision: Type.String(),
    budget_outcome: Type.String(),
    mandate_id: mandateUsed,
    policy_applied: Type.Array(Type.Unknown()),
    evidence: Evidence,
    verification: Verification,
    settlement: SettlementSummary,
    memory: Type.Object({
      read: Type.Array(Type.String(), {
        description: 'The memories that were added to the task, oldest first; GET /api/memory/{id} shows each.',
      }),
      written: nullable(Type.String()),
    }),
    memory_reasons: Type.Optional(
      Type.Array(
        Type.Object({
          id: Type.String(),
          why: Type.Union(
            ['words', 'synonym', 'spelling', 'newest'].map((why) => Type.Literal(why)),
            {
              description:
                'It shares words with the task, has a synonym of one, has a word that is spelled almost the same, or is among the newest of the session.',
            },
          ),
          words: Type.Array(Type.String(), { description: 'The stems or words that decided it; none for the newest.' }),
        }),
        { description: 'Why each memory in `memory.read` was read, in the same order; absent when none was.' },
      ),
    ),
    receipt: open('The signed receipt; `log` is filled in once the receipt is in the public log.'),
    receipt_url: Type.String(),
    execution: open('Who did the work, in which mode, how long it took and what it used.'),
    audit: Type.Optional(AuditLinkSchema),
  },
  { title: 'RunSuccessResponse' },
)

export const RunErrorResponse = Type.Object(
  {
    error: Type.String(),
    message: Type.String(),
    run_id: Type.String(),
    status: Type.Literal('failed'),
    stage: Type.Union(['route', 'policy', 'execute', 'verify', 'settle'].map((value) => Type.Literal(value))),
    reason: Type.Optional(
      Type.String({
        description:
          'What failed, as a word. `verification_failed`: the work was done and a deciding check failed; the output is not shown, and `options.accept_unverified` would have taken it.',
      }),
    ),
    charged: nullable(Type.Boolean({ description: 'null: not known yet.' })),
    settlement: nullable(SettlementSummary),
    checks: Type.Optional(
      Type.Array(OutputCheck, { description: 'Of an output that was not verified; they never contain the output.' }),
    ),
    evidence: Type.Optional(EvidenceWithoutOutput),
    retryable: Type.Boolean(),
    request_id: Type.String(),
    receipt: nullable(open('A signed statement that nothing was charged.')),
    audit: Type.Optional(AuditLinkSchema),
  },
  { title: 'RunErrorResponse', additionalProperties: true },
)

/** A request that fails before there is a run gets the plain error. */
export const RunFailure = Type.Union([RunErrorResponse, ErrorResponse], {
  description: 'The run failed and was not charged, or something went wrong before it began.',
})

export const PaymentRequiredResponse = Type.Object(
  {
    error: Type.Literal('payment_required'),
    message: Type.String(),
    reason: Type.String(),
    price_usdc: Usdc,
    amount: Type.String(),
    quote: Type.Optional(Type.String({ description: 'Binds the price to exactly this request; a probe gets none.' })),
    min_validity_seconds: Type.Integer({
      description:
        'How long a payment must still be valid when it arrives, so that it outlives the work. Signed for `maxTimeoutSeconds`, it may be sent until two and a half minutes later.',
    }),
    lane_mode: Type.Optional(
      Type.Union([Type.Literal('offline'), Type.Literal('live')], {
        description: 'How the lanes of this service work: `offline` by rule, `live` with a model.',
      }),
    ),
    price_range: Type.Optional(
      Type.Object(
        { min_usdc: Usdc, max_usdc: Usdc, min_amount: Type.String(), max_amount: Type.String() },
        { description: 'Only for a call with neither body nor content type.' },
      ),
    ),
    input_schema: Type.Optional(
      open('The JSON Schema of the body, only for a call with neither body nor content type.'),
    ),
    x402Version: Type.Literal(1),
    accepts: Type.Array(open('x402 version 1 payment requirements.')),
  },
  {
    title: 'X402PaymentRequiredResponse',
    additionalProperties: true,
    description: 'x402 version 2 is in the header PAYMENT-REQUIRED, version 1 in this body.',
  },
)

export const GovernanceRefusal = Type.Object(
  {
    ...ErrorResponse.properties,
    outcome: Type.Optional(Type.String({ description: 'blocked, review_required or rejected.' })),
    decision_id: Type.Optional(nullable(Type.String({ description: 'What POST /api/authorize takes.' }))),
    approval_id: Type.Optional(nullable(Type.String())),
    run_id: Type.Optional(Type.String()),
    policy_results: Type.Optional(Type.Array(open('The result of one rule: asked, limit, reason, smallest_change.'))),
    smallest_change: Type.Optional(Type.Array(open('The least that would have to be different.'))),
    audit: Type.Optional(AuditLinkSchema),
  },
  {
    title: 'GovernanceRefusal',
    additionalProperties: true,
    description: 'Refused by budget or policy, before any payment; with Retry-After it is a rate limit.',
  },
)

export const LoopSuccessResponse = Type.Object(
  {
    status: Type.Literal('success'),
    paid: Type.Literal(true),
    run_id: Type.String(),
    loop_id: Type.String(),
    session_id: Type.String(),
    agent_id: Type.String(),
    output: Type.String(),
    actions: Type.Array(open('A proposed action with the decision on it.')),
    cost_estimate: Type.Object({ estimated_cost_usd: Type.Number(), currency: Type.Literal('USD') }),
    price_usdc: Usdc,
    amount: Type.String(),
    mandate_id: mandateUsed,
    evidence: Evidence,
    verification: Verification,
    receipt: open('The signed receipt.'),
    receipt_url: Type.String(),
    settlement: SettlementSummary,
    audit: Type.Optional(AuditLinkSchema),
  },
  { title: 'LoopSuccessResponse' },
)

const runStatuses = ['pending', 'settling', 'completed', 'failed', 'blocked'] as const

export const RunPending = Type.Object(
  {
    run_id: Type.String(),
    status: Type.Literal('pending'),
    location: Type.String({ description: 'The path of the run, as in the header `Location`.' }),
    events: Type.String({ description: 'The path of its states as server-sent events.' }),
    token: Type.Optional(
      Type.String({
        description:
          'Only without a key: sent as `X-Run-Token` it reads the answer at `location` and cancels the run. Keep it as secret as the answer.',
      }),
    ),
  },
  {
    title: 'RunPending',
    description:
      'Only with `Prefer: respond-async`: the run is admitted and goes on without this request. The same payment or idempotency key gets this answer while it does, and the final one afterwards.',
  },
)

export const RunEvent = Type.Object(
  {
    run_id: Type.String(),
    status: Type.Union(runStatuses.map((value) => Type.Literal(value))),
    reason: Type.Optional(Type.String({ description: 'Why it failed; nothing was charged.' })),
    receipt_url: Type.Optional(Type.String()),
    location: Type.String(),
  },
  { title: 'RunEvent', description: 'The data of an event named `state`.' },
)

export const RunTokenHeader = Type.Object({
  'x-run-token': Type.Optional(
    Type.String({ description: 'The `token` of the 202, for a run that was paid without an API key.' }),
  ),
})

export const RunCancelled = Type.Object(
  {
    run_id: Type.String(),
    status: Type.Union([Type.Literal('failed'), Type.Literal('completed')]),
    reason: Type.Literal('cancelled'),
    charged: Type.Boolean({ description: 'true only where text of the run was streamed before.' }),
    receipt_url: Type.String({ description: 'The signed statement whether anything was charged.' }),
  },
  { title: 'RunCancelled' },
)

export const TopUpResponse = Type.Object(
  {
    status: Type.Literal('completed'),
    run_id: Type.String(),
    wallet_id: Type.String(),
    amount: Type.String(),
    amount_usdc: Usdc,
    settlement: SettlementSummary,
    evidence: EvidenceWithoutOutput,
    receipt: open('The signed receipt.'),
    receipt_url: Type.String(),
  },
  { title: 'TopUpResponse' },
)

export const LoopsQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 5_000 })),
    session_id: Type.Optional(Type.String({ maxLength: 120 })),
    since: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000, description: 'Epoch milliseconds.' }),
    ),
  },
  { additionalProperties: false },
)

export const RecentLoopsResponse = Type.Object(
  {
    loops: Type.Array(
      Type.Object(
        {
          loop_id: Type.String(),
          run_id: Type.String(),
          agent_id: Type.String(),
          session_id: Type.String(),
          created_at: Type.String(),
          paid: Type.Boolean(),
          price_usdc: Usdc,
          grade: nullable(Type.String()),
          output_hash: nullable(Type.String()),
        },
        { title: 'Loop' },
      ),
    ),
    count: Type.Integer(),
  },
  { title: 'RecentLoopsResponse' },
)

export const runProgress = ['waiting', 'executing', 'escalated', 'ended'] as const
export type RunProgress = (typeof runProgress)[number]

export const RunsQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    after: cursorParameter('run', 'The last run id of the page before.'),
    outcome: Type.Optional(
      Type.Union(
        ['completed', 'blocked', 'pending', 'approved', 'escalated', 'failed'].map((value) => Type.Literal(value)),
      ),
    ),
    action: Type.Optional(Type.String({ maxLength: 80 })),
    agent_id: Type.Optional(Type.String({ maxLength: 80 })),
    since: Type.Optional(Type.String({ format: 'date-time' })),
    until: Type.Optional(Type.String({ format: 'date-time' })),
    spender: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    team: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    tag: Type.Optional(
      Type.String({ minLength: 1, maxLength: 400, description: 'The name of a tag, or name:value (project:apollo).' }),
    ),
    min_usdc: Type.Optional(Type.Number({ minimum: 0, maximum: 1e9 })),
    max_usdc: Type.Optional(Type.Number({ minimum: 0, maximum: 1e9 })),
    mandate_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 80, description: 'What was allowed under this mandate.' }),
    ),
    spent: Type.Optional(Type.Boolean({ description: 'true: only runs and loops that GET /api/spend counts.' })),
    progress: Type.Optional(
      oneOf(runProgress, {
        description:
          'waiting: for a decision, its payment or its close. executing: the work or its settlement goes on.',
      }),
    ),
  },
  { additionalProperties: false },
)

const RunItem = {
  run_id: Type.String(),
  outcome: Type.String(),
  action: Type.String(),
  agent_id: Type.String(),
  price_usdc: Usdc,
  created_at: Type.String(),
  receipt_url: nullable(Type.String()),
  finished_at: Type.Optional(nullable(Type.String())),
  spender: Type.Optional(nullable(Type.String())),
  team: Type.Optional(nullable(Type.String())),
  tags: Type.Optional(nullable(Type.Record(Type.String(), Type.String()))),
}

export const RunsResponse = Type.Object(
  {
    runs: Type.Array(Type.Object(RunItem, { title: 'RunSummary' })),
    has_more: Type.Boolean({ description: PAGE_MAY_BE_SHORT }),
    next_after: nullable(Type.String()),
  },
  { title: 'RunsResponse' },
)

export const RunParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 80 }) })

export const Run = Type.Object(
  {
    ...RunItem,
    answer: nullable(
      Type.Object(
        { status: Type.Integer(), body: Type.Object({}, { additionalProperties: true }) },
        {
          description:
            'What POST /api/run answered or would have: null while it is not decided, and without a key or token.',
        },
      ),
    ),
    next_action: Type.Optional(
      Type.String({ description: 'Without a key or token: how the answer is had, once the run has ended.' }),
    ),
  },
  { title: 'Run' },
)
