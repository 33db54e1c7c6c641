import { Type } from 'typebox'
import { nullableNumber, pattern } from '../../platform/schema.ts'

const Usdc = Type.Number({ minimum: 0 })

export const AgentPrice = Type.Object(
  {
    agent_id: Type.String(),
    display_name: Type.String(),
    description: Type.String(),
    tier: Type.String(),
    category: Type.String(),
    recommended_use: Type.String(),
    endpoint: Type.String(),
    base_price_usdc: Usdc,
    orchestration_fee_usdc: Usdc,
    price_usdc: Usdc,
    estimated_cost_usd: Type.Number(),
    estimated_margin_usd: Type.Number(),
    margin_percent: Type.Number(),
  },
  { title: 'AgentPrice' },
)

const status = Type.Union([Type.Literal('active'), Type.Literal('paused')])

export const AgentsResponse = Type.Object(
  {
    agents: Type.Array(
      Type.Intersect(
        [
          AgentPrice,
          Type.Object({
            status,
            stats: Type.Object({
              runs: Type.Number(),
              success_rate: nullableNumber,
              p50_ms: nullableNumber,
              p95_ms: nullableNumber,
            }),
          }),
        ],
        { title: 'Agent' },
      ),
    ),
  },
  { title: 'AgentsResponse' },
)

export const Lane = Type.Intersect(
  [
    AgentPrice,
    Type.Object({
      status,
      model: Type.Union([Type.String(), Type.Null()]),
      deadline_seconds: Type.Union([Type.Integer(), Type.Null()], {
        description:
          'How long the lane may work on a run. Null is the limit of all lanes: two minutes, or less where the operator has set so.',
      }),
    }),
  ],
  { title: 'Lane' },
)
export const LanesResponse = Type.Object({ lanes: Type.Array(Lane) }, { title: 'LanesResponse' })

/** An x402 payment is valid for an hour at most, and the work is done and settled before it expires. */
const MAX_DEADLINE_SECONDS = 3_300

const laneFields = {
  display_name: Type.Optional(Type.String({ minLength: 1, maxLength: 80 })),
  description: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
  tier: Type.Optional(Type.String({ minLength: 1, maxLength: 40 })),
  category: Type.Optional(Type.String({ minLength: 1, maxLength: 40 })),
  recommended_use: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
  base_price_usdc: Type.Optional(Type.Number({ minimum: 0.000001, maximum: 1000 })),
  estimated_cost_usd: Type.Optional(Type.Number({ minimum: 0, maximum: 1000 })),
  status: Type.Optional(status),
  model: Type.Optional(Type.Union([Type.String({ minLength: 1, maxLength: 120 }), Type.Null()])),
  deadline_seconds: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: MAX_DEADLINE_SECONDS }), Type.Null()], {
      description: 'How long the lane may work on a run; null: RUN_DEADLINE_SECONDS.',
    }),
  ),
}

export const LaneUpdate = Type.Object(laneFields, {
  title: 'LaneUpdate',
  additionalProperties: false,
  minProperties: 1,
})
export const LaneCreate = Type.Object(
  {
    ...laneFields,
    agent_id: Type.String(pattern('^[a-z0-9][a-z0-9-]{1,62}$', "2 to 63 small letters, digits or '-', not '-' first")),
    display_name: Type.String({ minLength: 1, maxLength: 80 }),
    category: Type.String({ minLength: 1, maxLength: 40 }),
    base_price_usdc: Type.Number({ minimum: 0.000001, maximum: 1000 }),
  },
  { title: 'LaneCreate', additionalProperties: false },
)

export const ProvidersQuery = Type.Object(
  {
    category: Type.Optional(Type.String({ maxLength: 80 })),
    network: Type.Optional(Type.String({ maxLength: 80 })),
    trusted_only: Type.Optional(Type.Boolean()),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  },
  { additionalProperties: false },
)

export const ProvidersResponse = Type.Object(
  {
    providers: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          name: Type.String(),
          resource: Type.String(),
          description: Type.String(),
          category: Type.String(),
          network: Type.String(),
          tags: Type.Array(Type.String()),
          trusted: Type.Boolean(),
          trust: Type.Object({
            score: Type.Number(),
            receipts: Type.Number(),
            success_rate: nullableNumber,
            last_seen_at: Type.Union([Type.String(), Type.Null()]),
          }),
          pricing: Type.Object({ scheme: Type.String(), from_usdc: Usdc, to_usdc: Usdc }),
          accepts: Type.Array(
            Type.Object({ scheme: Type.String(), network: Type.String(), asset: Type.String(), pay_to: Type.String() }),
          ),
          updated_at: Type.String(),
        },
        { title: 'Provider' },
      ),
    ),
  },
  { title: 'ProvidersResponse' },
)

export const CapabilitiesResponse = Type.Object(
  {
    product_layers: Type.Array(Type.String()),
    free_endpoints: Type.Array(Type.String()),
    paid_endpoints: Type.Array(Type.String()),
  },
  { title: 'CapabilitiesResponse' },
)

export const PricingSurfaceResponse = Type.Object(
  {
    pricing_version: Type.String(),
    cost_model: Type.String(),
    product: Type.String(),
    service: Type.String(),
    currency: Type.Literal('USDC'),
    network: Type.Literal('eip155:8453'),
    settlement_asset: Type.Literal('USDC'),
    settlement_network_name: Type.String(),
    orchestration_fee_usdc: Usdc,
    price_note: Type.String(),
    summary: Type.String(),
    primary_paid_endpoint: Type.String(),
    secondary_paid_endpoint: Type.String(),
    cheap_test: Type.Object({
      agent_id: Type.String(),
      endpoint: Type.String(),
      price_usdc: Usdc,
      note: Type.String(),
    }),
    default_router_run: Type.Object({
      endpoint: Type.String(),
      entry_price_usdc: Usdc,
      typical_range_usdc: Type.Object({ min: Usdc, max: Usdc }),
      note: Type.String(),
    }),
    agents: Type.Array(AgentPrice),
    lanes: Type.Array(AgentPrice),
    default: AgentPrice,
    discovery: Type.Object({
      free_endpoints: Type.Array(Type.Object({ path: Type.String(), purpose: Type.String() })),
      note: Type.String(),
    }),
    paid_execution: Type.Array(
      Type.Object({
        path: Type.String(),
        pricing_type: Type.String(),
        from_usdc: Usdc,
        to_usdc: Type.Optional(Usdc),
        recommended: Type.Optional(Type.Boolean()),
        purpose: Type.String(),
      }),
    ),
    governance: Type.Object({
      supported: Type.Boolean(),
      inputs: Type.Array(Type.String()),
      outcomes: Type.Array(Type.String()),
      stable_error_codes: Type.Array(Type.String()),
    }),
    routed_actions: Type.Object({
      path: Type.String(),
      pricing_type: Type.String(),
      status: Type.String(),
      description: Type.String(),
      fee_models: Type.Array(Type.String()),
    }),
    example_prices: Type.Array(
      Type.Object({
        category: Type.String(),
        endpoint: Type.String(),
        estimated_total_usdc: Usdc,
        note: Type.String(),
      }),
    ),
    monetization_logic: Type.Object({ principle: Type.String(), why: Type.Array(Type.String()) }),
    marketplace_hints: Type.Object({ category: Type.String(), tags: Type.Array(Type.String()) }),
    docs: Type.Record(Type.String(), Type.String()),
  },
  { title: 'PricingSurfaceResponse' },
)
