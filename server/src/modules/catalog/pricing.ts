import { usdcFromMicro } from '../../platform/money.ts'
import { costModel, FEE_MICRO, type Lane, priceRange, priceRecord } from './price-list.ts'

export const freeEndpoints = [
  { path: '/api/health', purpose: 'Is the service well, and the parts it needs?' },
  { path: '/api/env-check', purpose: 'Which settings are set, without their values.' },
  { path: '/api/capabilities', purpose: 'What the service offers, free and paid.' },
  { path: '/api/pricing', purpose: 'Every lane with its price.' },
  { path: '/api/providers', purpose: 'Providers with trust and pricing hints.' },
  { path: '/api/route', purpose: 'Which lane fits a task, with a signed quote.' },
  { path: '/api/routing-intel', purpose: 'The recommended lane and what it would cost.' },
  { path: '/api/agents', purpose: 'Agent lanes with live pricing and statistics.' },
  { path: '/api/receipts', purpose: 'Public receipts and their evidence.' },
]

export const governanceInputs = [
  'budget.max_price_usdc',
  'budget.soft_max_price_usdc',
  'budget.strict',
  'budget.currency',
  'budget.budget_id',
  'policy.policy_ids',
  'policy.mode',
]

export const governanceOutcomes = ['approved', 'rejected', 'review_required', 'pass', 'warning', 'blocked', 'downgrade']
export const stableErrorCodes = ['budget_exceeded', 'policy_blocked', 'invalid_request', 'payment_required', 'error']

export const capabilities = () => ({
  product_layers: [
    'discovery',
    'routing',
    'execution',
    'governance',
    'settlement',
    'memory',
    'receipts',
    'verification',
    'observability',
    'brokerage',
    'basis',
  ],
  free_endpoints: freeEndpoints.map((endpoint) => endpoint.path),
  paid_endpoints: ['POST /api/run', 'POST /api/loop'],
})

/** The response of `/api/pricing`, computed from the current price list. */
export function pricingSurface(version: string, lanes: readonly Lane[], fallback: Lane) {
  const records = lanes.map(priceRecord)
  const cheapest = lanes.reduce((a, b) => (b.priceMicro < a.priceMicro ? b : a), fallback)
  const testLane = lanes.find((lane) => lane.agentId === 'comedian-v1') ?? cheapest
  const runRange = priceRange({ lanes: [...lanes], fallback }, 'run')
  const loopRange = priceRange({ lanes: [...lanes], fallback }, 'loop')
  const min = usdcFromMicro(runRange.minMicro)
  const max = usdcFromMicro(runRange.maxMicro)
  const loopFrom = usdcFromMicro(loopRange.minMicro)
  const loopTo = usdcFromMicro(loopRange.maxMicro)
  return {
    pricing_version: version,
    cost_model: costModel,
    product: 'Countersign',
    service: 'Execution, payment and attestation for autonomous agents',
    currency: 'USDC',
    network: 'eip155:8453',
    settlement_asset: 'USDC',
    settlement_network_name: 'Base',
    orchestration_fee_usdc: usdcFromMicro(FEE_MICRO),
    price_note: 'price_usdc = base_price_usdc + orchestration_fee_usdc: the total per /api/run call.',
    summary: `Discovery is free. A run costs ${min} to ${max} USDC depending on its lane, paid per call by x402, and a run that fails is not charged.`,
    primary_paid_endpoint: 'POST /api/run',
    secondary_paid_endpoint: 'POST /api/loop',
    cheap_test: {
      agent_id: testLane.agentId,
      endpoint: 'POST /api/run',
      price_usdc: usdcFromMicro(testLane.priceMicro),
      note: 'The cheapest lane, for smoke tests.',
    },
    default_router_run: {
      endpoint: 'POST /api/run',
      entry_price_usdc: min,
      typical_range_usdc: { min, max },
      note: 'Without an agent_id the router picks the lane, and that lane’s price applies.',
    },
    agents: records,
    lanes: records,
    default: priceRecord(fallback),
    discovery: { free_endpoints: freeEndpoints, note: 'None of these asks for payment.' },
    paid_execution: [
      {
        path: 'POST /api/run',
        pricing_type: 'tiered',
        from_usdc: min,
        to_usdc: max,
        recommended: true,
        purpose: 'Routing, execution, verification, settlement and a signed receipt in one call.',
      },
      {
        path: 'POST /api/loop',
        pricing_type: 'fixed_or_tiered',
        from_usdc: loopFrom,
        to_usdc: loopTo,
        purpose: 'The execution primitive below a run, at the lane’s base price.',
      },
    ],
    governance: {
      supported: true,
      inputs: governanceInputs,
      outcomes: governanceOutcomes,
      stable_error_codes: stableErrorCodes,
    },
    routed_actions: {
      path: 'POST /api/route-intent',
      pricing_type: 'provider_cost_plus_routing_fee',
      status: 'planned',
      description: 'Actions carried out by outside providers, at their cost plus a routing fee.',
      fee_models: ['flat_fee', 'percentage_of_gmv', 'dynamic_by_route_type'],
    },
    example_prices: lanes.map((lane) => ({
      category: lane.category,
      endpoint: 'POST /api/run',
      estimated_total_usdc: usdcFromMicro(lane.priceMicro),
      note: lane.recommendedUse,
    })),
    monetization_logic: {
      principle: 'Work is paid, looking is free.',
      why: [
        'A caller pays for finished work only.',
        'A price is known and signed before it is paid.',
        'The fee for orchestration is the same on every lane.',
      ],
    },
    marketplace_hints: {
      category: 'agent-execution',
      tags: ['x402', 'usdc', 'base', 'agents', 'receipts', 'governance'],
    },
    docs: { api: '/docs', openapi: '/openapi.json', keys: '/.well-known/jwks.json', dashboard: '/dashboard' },
  }
}
