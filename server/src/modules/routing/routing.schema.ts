import { Type } from 'typebox'
import { nullable } from '../../platform/schema.ts'

const agentId = Type.String({ minLength: 1, maxLength: 80 })
const task = Type.String({ minLength: 1, maxLength: 32_000 })
const limit = Type.Number({ minimum: 0, maximum: 1_000_000 })
const shortText = Type.String({ minLength: 1, maxLength: 200 })

const Constraints = Type.Object(
  {
    max_cost_usdc: Type.Optional(limit),
    priority: Type.Optional(
      Type.Union(['cheapest', 'balanced', 'quality', 'fastest'].map((name) => Type.Literal(name))),
    ),
    category: Type.Optional(Type.String({ minLength: 1, maxLength: 40 })),
  },
  { additionalProperties: false },
)

export const RouteRequest = Type.Object(
  {
    task,
    agent_id: Type.Optional(agentId),
    preferred_agent_id: Type.Optional(agentId),
    constraints: Type.Optional(Constraints),
    budget: Type.Optional(
      Type.Object(
        {
          budget_id: Type.Optional(shortText),
          max_price_usdc: Type.Optional(limit),
          soft_max_price_usdc: Type.Optional(limit),
          strict: Type.Optional(Type.Boolean()),
          currency: Type.Optional(Type.String({ maxLength: 12 })),
        },
        { additionalProperties: false },
      ),
    ),
    policy: Type.Optional(
      Type.Object(
        {
          policy_ids: Type.Optional(Type.Array(shortText, { maxItems: 50 })),
          mode: Type.Optional(Type.Union(['enforce', 'warn', 'shadow'].map((name) => Type.Literal(name)))),
        },
        { additionalProperties: false },
      ),
    ),
  },
  {
    title: 'RouteRequest',
    additionalProperties: false,
    description: 'A task, and what the caller would ask of a run. `preferred_agent_id` is an alias of `agent_id`.',
  },
)

const Posture = Type.Union(
  ['explicit', 'confident', 'leaning', 'constrained', 'fallback'].map((name) => Type.Literal(name)),
  {
    description:
      'Named by the caller, clear from the text, probable, narrowed by a limit, or too vague for a lane of its own.',
  },
)

const Confidence = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'How often the router is right when it is this sure.',
})

const LaneMode = Type.Union([Type.Literal('offline'), Type.Literal('live')], {
  description:
    'How the lanes of this service work: `offline` by rule, `live` with a model. An offline lane refuses a plain request for a translation or an image on POST /api/run and /api/loop, before payment.',
})

export const RouteResponse = Type.Object(
  {
    route_id: Type.String({ description: 'The same question and versions have the same id.' }),
    recommended_agent_id: nullable(Type.String()),
    confidence: Confidence,
    reason: Type.String(),
    posture: Posture,
    signals: Type.Array(Type.Object({ name: Type.String(), weight: Type.Number() }), {
      description: 'The words and shapes of the task that spoke for the lane.',
    }),
    alternatives: Type.Array(
      Type.Object({ agent_id: Type.String(), score: Type.Number(), price_usdc: Type.Number(), why_not: Type.String() }),
    ),
    price_usdc: nullable(Type.Number()),
    decision: Type.String({
      description:
        'What governance would say to this run now: approved, pass, warning, downgrade, review_required or blocked.',
    }),
    decision_reason: nullable(Type.String()),
    quote: nullable(
      Type.Object(
        { quote_id: Type.String(), expires_at: Type.String({ format: 'date-time' }), signature: Type.String() },
        {
          description: 'Send it as `quote` with the same task to POST /api/run: lane and price hold until it expires.',
        },
      ),
    ),
    routing_version: Type.String({
      description:
        'The model, and with priority `fastest` or `quality` the frozen measurements too. The same input and version have the same answer.',
    }),
    lane_mode: LaneMode,
  },
  { title: 'RouteResponse' },
)

export const RoutingIntelRequest = Type.Object({ task }, { title: 'RoutingIntelRequest', additionalProperties: false })

export const RoutingIntelResponse = Type.Object(
  {
    recommended_lane: Type.String(),
    estimated_cost_usdc: Type.Number(),
    routing_posture: Posture,
    confidence: Confidence,
    reason: Type.String(),
    routing_version: Type.String(),
    lane_mode: LaneMode,
  },
  { title: 'RoutingIntelResponse' },
)

export const RouteIntentRequest = Type.Object(
  {},
  { title: 'RouteIntentRequest', additionalProperties: true, description: 'Not read yet.' },
)
