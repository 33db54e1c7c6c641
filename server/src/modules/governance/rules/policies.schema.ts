import { Type } from 'typebox'
import { cursorParameter, pageFields } from '../../../platform/paging.ts'
import { nullable, oneOf, plainName } from '../../../platform/schema.ts'
import { identityTypes } from './evaluate-policy.ts'
import { ConstraintsSchema } from './policy-constraints.ts'
import { RuleSchema } from './policy-rules.ts'

const Name = Type.String({ minLength: 1, maxLength: 200 })
const AgentId = Type.String({ minLength: 1, maxLength: 200, ...plainName })
const Rules = Type.Array(RuleSchema, { maxItems: 200 })
const ModeSchema = oneOf(['enforce', 'warn', 'shadow'])

const shared = {
  name: Type.Optional(Name),
  rules: Type.Optional(Rules),
  constraints: Type.Optional(ConstraintsSchema),
  mode: Type.Optional(ModeSchema),
  status: Type.Optional(oneOf(['active', 'inactive'])),
  audit_trail_required: Type.Optional(
    Type.Boolean({
      description:
        'The answer of a run, loop or pre-authorisation to which the policy applies waits until its event stands in the audit chain, and has `audit {event_id, seq, hash}`.',
    }),
  ),
  selectable: Type.Optional(
    Type.Boolean({
      description:
        'A key without the scope `control` may name the policy as the `policy_id` of a trade. Default false.',
    }),
  ),
}

const draft = {
  ...shared,
  identity_type: Type.Optional(oneOf(identityTypes)),
  api_key: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: 'One of the tenant’s keys. Neither stored nor shown.' }),
  ),
  agent_id: Type.Optional(AgentId),
  identity_id: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 300,
      ...plainName,
      description: 'The spender, team, tag (`name=value`) or merchant that the policy is for.',
    }),
  ),
}

export const PolicyCreate = Type.Object(
  { ...draft, idempotency_key: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })) },
  {
    title: 'PolicyCreate',
    additionalProperties: false,
    description:
      'Either the legacy shape {name, rules}, or a spend policy {identity_type, api_key or agent_id, audit_trail_required, mode, constraints}; both may be mixed.',
  },
)

export const PolicyUpdate = Type.Object(shared, {
  title: 'PolicyUpdate',
  additionalProperties: false,
  minProperties: 1,
})

export const PolicyParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 80 }) })

export const Policy = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    version: Type.Integer(),
    status: oneOf(['active', 'inactive', 'deleted']),
    mode: ModeSchema,
    identity_type: oneOf(identityTypes),
    agent_id: nullable(Type.String()),
    key_prefix: nullable(Type.String()),
    identity_id: nullable(Type.String()),
    audit_trail_required: Type.Boolean(),
    selectable: Type.Boolean(),
    constraints: Type.Object({}, { additionalProperties: true }),
    rules: Type.Array(Type.Object({}, { additionalProperties: true })),
    content_hash: Type.String(),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { title: 'Policy' },
)

export const PageQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: cursorParameter('pol'),
  },
  { additionalProperties: false },
)

export const PoliciesResponse = Type.Object(
  {
    policies: Type.Array(Policy),
    ...pageFields,
  },
  { title: 'PoliciesResponse' },
)

export const VersionsQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
  },
  { additionalProperties: false },
)

export const VersionsResponse = Type.Object(
  {
    versions: Type.Array(
      Type.Object(
        {
          version: Type.Integer(),
          content_hash: Type.String(),
          content: Type.Object({}, { additionalProperties: true }),
          changed_by: Type.String(),
          created_at: Type.String(),
        },
        { title: 'PolicyVersion' },
      ),
    ),
    ...pageFields,
  },
  { title: 'PolicyVersionsResponse' },
)

export const SimulateRequest = Type.Object(
  {
    policy: Type.Object(draft, { additionalProperties: false, description: 'The draft, in either shape.' }),
    replaces: Type.Optional(
      Type.String({
        maxLength: 80,
        description:
          'The policy that the draft replaces; when absent, the draft is added to the existing policies. A draft with `identity_type` `api_key` and without `api_key` keeps the key of that policy.',
      }),
    ),
    since: Type.Optional(Type.String({ format: 'date-time' })),
    until: Type.Optional(Type.String({ format: 'date-time' })),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 5_000, description: 'The newest so many are replayed. Default 1,000.' }),
    ),
  },
  { title: 'SimulateRequest', additionalProperties: false },
)

const Usdc = Type.Number()

export const SimulateResponse = Type.Object(
  {
    policy: Type.Object({}, { additionalProperties: true }),
    replaces: nullable(Type.String()),
    since: nullable(Type.String()),
    until: nullable(Type.String()),
    considered: Type.Integer(),
    has_more: Type.Boolean({ description: 'Older ones were left out.' }),
    changed: Type.Integer(),
    newly_blocked: Type.Integer(),
    newly_review: Type.Integer(),
    newly_allowed: Type.Integer(),
    money: Type.Object({
      recorded_usdc: Usdc,
      simulated_usdc: Usdc,
      difference_usdc: Usdc,
      newly_blocked_usdc: Usdc,
      newly_review_usdc: Usdc,
      newly_allowed_usdc: Usdc,
    }),
    assumptions: Type.Array(Type.String()),
    results: Type.Array(
      Type.Object({
        run_id: Type.String(),
        preauth_id: Type.Optional(Type.String()),
        kind: Type.String(),
        agent_id: Type.String(),
        amount_usdc: Usdc,
        decided_at: Type.String(),
        recorded: Type.Object({
          outcome: Type.String(),
          ran: Type.Boolean(),
          policy_outcome: nullable(Type.String({ description: 'The result of the replaced policy alone.' })),
        }),
        simulated: Type.Object({
          outcome: Type.String(),
          would_run: Type.Boolean(),
          policy_results: Type.Array(Type.Object({}, { additionalProperties: true })),
        }),
        change: oneOf(['none', 'newly_blocked', 'newly_review', 'newly_allowed']),
      }),
    ),
  },
  { title: 'SimulateResponse' },
)
