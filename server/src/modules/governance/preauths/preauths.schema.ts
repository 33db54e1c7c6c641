import { Type } from 'typebox'
import { AuditLinkSchema } from '../../../platform/audit-link.ts'
import { ErrorResponse } from '../../../platform/http-openapi.ts'
import { cursorParameter, pageFields } from '../../../platform/paging.ts'
import { nullable, oneOf, pattern, plainName } from '../../../platform/schema.ts'
import { assertedBy, settlementStatuses } from '../governance.steps.ts'
import { payerFields, payerRecord } from '../payer.schema.ts'
import { Id, IdempotencyKey, openObject } from '../schema-helpers.ts'

const Atomic = Type.String({
  ...pattern('^(0|[1-9][0-9]{0,15})$', 'a whole number of atomic units, as text, with at most 16 digits'),
  description: 'Atomic units (micro-USDC); authoritative.',
})
const Usdc = Type.Number({ minimum: 0, maximum: 1_000_000_000 })
const Token = Type.String({ minLength: 1, maxLength: 8_192 })
const statuses = ['pending_approval', 'open', 'in_use', 'escalated', 'closed', 'rejected']

export const PreauthCreate = Type.Object(
  {
    agent_id: Type.String({
      minLength: 1,
      maxLength: 200,
      ...plainName,
      description:
        'The agent that spends, unless `spender` or the key names another: then what restricts this agent still applies, and what permits it does not.',
    }),
    mandate_id: Type.Optional(Id),
    merchant: Type.Object(
      {
        id: Type.String({
          minLength: 1,
          maxLength: 200,
          ...plainName,
          description: 'An id that is an address is also where it is paid; `countersign` is this service itself.',
        }),
        url: Type.Optional(Type.String({ maxLength: 2_000 })),
        pay_to: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
      },
      { additionalProperties: false },
    ),
    amount: Type.Optional(Atomic),
    amount_usdc: Type.Optional(Usdc),
    asset: Type.Optional(Type.String({ maxLength: 80 })),
    network: Type.Optional(
      Type.String({
        ...pattern('^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$', 'a network like eip155:8453'),
        description: 'CAIP-2; default eip155:8453.',
      }),
    ),
    purpose: Type.Optional(Type.String({ maxLength: 500 })),
    request_hash: Type.Optional(Type.String(pattern('^sha256:[0-9a-f]{64}$', "'sha256:' and 64 hexadecimal digits"))),
    payer: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description:
          'The address that will pay. Only a transfer from it can then close the pre-authorisation as settled.',
      }),
    ),
    ...payerFields,
    override_token: Type.Optional(Token),
    ttl_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 600 })),
    idempotency_key: IdempotencyKey,
  },
  { title: 'PreauthCreate', additionalProperties: false },
)

const PreauthSettlement = Type.Object(
  {
    status: nullable(
      oneOf(settlementStatuses, {
        description:
          'settled: the payment was seen. reported: nobody but the tenant has seen it; the chain is asked again if a transaction was named. not_found: the chain does not show it. What was counted stays counted.',
      }),
    ),
    asserted_by: nullable(oneOf(assertedBy, { description: 'Who says so.' })),
    transaction: nullable(Type.String()),
    amount: Type.String({ description: 'What was counted as spent, in atomic units.' }),
    reason: nullable(Type.String({ description: 'Why it was corrected.' })),
    receipt_url: nullable(Type.String({ description: 'The latest receipt.' })),
  },
  { title: 'PreauthSettlement' },
)

export const Preauth = Type.Object(
  {
    preauth_id: Type.String(),
    run_id: Type.String({
      description: 'Under which `/api/runs` shows it, and which a run that uses the token takes over.',
    }),
    decision: oneOf(['approved', 'rejected', 'review_required']),
    status: oneOf([...statuses]),
    token: nullable(
      Type.String({
        description: 'EdDSA JWT, single use; its key is in the public key set with the purpose `preauth`.',
      }),
    ),
    agent_id: Type.String(),
    ...payerRecord,
    mandate_id: nullable(Type.String()),
    merchant: openObject('Who is paid.'),
    amount: Type.String(),
    amount_usdc: Type.Number(),
    asset: Type.String(),
    network: Type.String(),
    purpose: nullable(Type.String()),
    request_hash: nullable(Type.String()),
    payer: nullable(Type.String()),
    reserved: Type.String(),
    reserved_usdc: Type.Number(),
    policy_hash: nullable(Type.String()),
    policy_results: Type.Array(openObject('The result of one rule, with its reason.')),
    decision_id: nullable(Type.String()),
    approval_id: nullable(Type.String()),
    override_id: nullable(Type.String()),
    created_at: Type.String(),
    expires_at: nullable(Type.String()),
    close_by: nullable(Type.String()),
    escalated_at: nullable(Type.String()),
    closed: nullable(
      openObject(
        'What came of it. `outcome` is `reported` when nobody but the tenant has seen the payment; `receipts` has the receipt of the close and the one that settled or corrected it.',
      ),
    ),
    settlement: nullable(PreauthSettlement),
  },
  { title: 'Preauth' },
)

export const PreauthCreated = Type.Object(
  {
    preauth_id: Type.String(),
    decision: oneOf(['approved', 'review_required']),
    status: oneOf([...statuses]),
    token: nullable(Type.String()),
    reserved: Type.String(),
    remaining: nullable(Type.String({ description: 'What the tightest limit leaves, in atomic units.' })),
    policy_results: Type.Array(openObject('The result of one rule, with its reason.')),
    expires_at: nullable(Type.String()),
    close_by: nullable(Type.String()),
    approval_id: nullable(Type.String()),
    audit: Type.Optional(AuditLinkSchema),
  },
  { title: 'PreauthCreated', additionalProperties: true },
)

export const PreauthRejected = Type.Object(
  {
    ...ErrorResponse.properties,
    decision: Type.Optional(Type.Literal('rejected')),
    decision_id: Type.Optional(Type.String()),
    policy_results: Type.Optional(Type.Array(openObject('The result of one rule, with its reason.'))),
    audit: Type.Optional(AuditLinkSchema),
  },
  {
    title: 'PreauthRejected',
    additionalProperties: true,
    description: 'Refused by a policy, a budget or a mandate; nothing is held.',
  },
)

export const PreauthClose = Type.Object(
  {
    preauth_id: Type.Optional(Id),
    token: Type.Optional(Token),
    outcome: oneOf(['settled', 'failed', 'voided']),
    actual_amount: Type.Optional(Atomic),
    actual_amount_usdc: Type.Optional(Usdc),
    transaction: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    receipt: Type.Optional(Type.Unknown({ description: 'Evidence of yours; its hash is kept.' })),
    idempotency_key: IdempotencyKey,
  },
  {
    title: 'PreauthClose',
    additionalProperties: false,
    description: 'Without an amount, all of what was authorised was charged. What was not charged is released.',
  },
)

export const PreauthClosed = Type.Object(
  {
    preauth_id: Type.String(),
    run_id: Type.String(),
    status: Type.Literal('closed'),
    outcome: oneOf(['settled', 'reported', 'failed', 'voided'], {
      description: 'reported: `settled` was said, and nobody but the tenant has seen the payment.',
    }),
    charged: Type.String(),
    released: Type.String(),
    late: Type.Boolean(),
    verified_onchain: nullable(Type.Boolean({ description: 'null: no chain was queried, or none could be.' })),
    transaction: nullable(Type.String()),
    settlement: PreauthSettlement,
    evidence: nullable(
      openObject(
        'The hashes of the receipt with the salt that opens them, and `counters`: what opens its commitment to the budgets and mandates that counted it. Null when it has neither.',
      ),
    ),
    receipt_url: Type.String(),
    receipt: openObject('The signed receipt.'),
  },
  { title: 'PreauthClosed' },
)

export const PreauthParams = Type.Object({ id: Id })

export const PreauthsQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: cursorParameter('pa'),
    status: Type.Optional(oneOf([...statuses, 'active'], { description: 'active: open or in_use.' })),
    agent_id: Type.Optional(Type.String({ maxLength: 200 })),
  },
  { additionalProperties: false },
)

export const PreauthsResponse = Type.Object(
  {
    preauths: Type.Array(Preauth),
    ...pageFields,
  },
  { title: 'PreauthsResponse' },
)
