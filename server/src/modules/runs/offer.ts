import { sha256 } from '../../platform/canonical.ts'
import { conflict, invalid } from '../../platform/problem.ts'
import { didYouMean } from '../../platform/suggest.ts'
import type { Lane as PricedLane } from '../catalog/price-list.ts'
import type { Offer } from '../governance/assess/assessment.ts'
import type { Quote } from '../payments/quote.ts'
import type { PaidRequest } from './paid-request.ts'
import type { LaneRoute, RunDeps } from './run-deps.ts'

/** Lane and price: as they were quoted, or as the task is routed now. */
export const chooseOffer = (deps: RunDeps, request: PaidRequest): Offer =>
  readQuotedOffer(deps, request) ?? routeTask(deps, request)

/** A price that this service signed earlier for exactly this request, or for exactly this task. */
function readQuotedOffer(deps: RunDeps, request: PaidRequest): Offer | undefined {
  const quote = readPaymentQuote(deps, request) ?? readTaskQuote(deps, request)
  if (!quote || quote.kind !== request.kind) return undefined
  if (request.body.agent_id !== undefined && request.body.agent_id !== quote.agent_id) return undefined
  const lane = deps.findLane(quote.agent_id)
  if (!lane) return undefined
  if (lane.status !== 'active')
    throw invalid(`The agent '${lane.agentId}' is not active any more. Nothing was charged; ask for a new price.`)
  const priceMicro = BigInt(quote.amount)
  const feeMicro = request.kind === 'run' ? lane.feeMicro : 0n
  return {
    agentId: quote.agent_id,
    basePriceMicro: priceMicro - feeMicro,
    feeMicro,
    priceMicro,
    pricingVersion: quote.pricing_version,
    route: quote.route,
    explicit: request.body.agent_id !== undefined,
    quoted: true,
    alternatives: [],
  }
}

/** The quote of a 402, which the client returns inside the payment. */
export function readPaymentQuote(
  deps: Pick<RunDeps, 'payments'>,
  request: Pick<PaidRequest, 'paid' | 'requestHash'>,
): Quote | undefined {
  const quote = deps.payments.quotes.read(request.paid?.accepted.quote)
  if (quote && 'request_hash' in quote.bound_to && quote.bound_to.request_hash !== request.requestHash)
    throw conflict(
      'This payment was quoted for another request. It was not used and can still pay for its own request.',
    )
  return quote
}

/** The quote of `/api/route`, which the client sends in the body. */
function readTaskQuote(deps: RunDeps, request: PaidRequest): Quote | undefined {
  const quote = deps.payments.quotes.read(request.quoteToken)
  if (!quote || !('task_hash' in quote.bound_to)) return undefined
  if (quote.bound_to.task_hash !== sha256(request.body.task)) throw conflict('This quote was given for another task.')
  return quote
}

function routeTask(deps: RunDeps, request: PaidRequest): Offer {
  const { agent_id } = request.body
  const laneRoute = agent_id === undefined ? chooseLaneRoute(deps, request) : namedLaneRoute(agent_id)
  const lane = deps.findLane(laneRoute.agentId)
  if (!lane)
    throw invalid(
      `There is no agent '${laneRoute.agentId.slice(0, 80)}'. GET /api/agents lists them.${didYouMean(laneRoute.agentId, deps.laneIds())}`,
    )
  if (lane.status !== 'active') throw invalid(`The agent '${lane.agentId}' is not active.`)
  return {
    ...priceOf(request.kind, lane),
    pricingVersion: deps.pricingVersion(),
    route: laneRoute.route,
    explicit: agent_id !== undefined,
    quoted: false,
    alternatives: laneRoute.alternatives.flatMap(({ agentId, score, route }) => {
      const alternative = deps.findLane(agentId)
      return alternative && alternative.status === 'active' && agentId !== lane.agentId
        ? [{ ...priceOf(request.kind, alternative), score, route }]
        : []
    }),
  }
}

/** A run without an `agent_id` is routed; a loop without one gets the default lane, which has the lowest price. */
const chooseLaneRoute = (deps: RunDeps, { kind, body: { task, constraints } }: PaidRequest): LaneRoute =>
  kind === 'run'
    ? deps.chooseLane(task, constraints)
    : { ...namedLaneRoute('default'), route: { agent_id: 'default', reason: 'No agent_id was given.' } }

const namedLaneRoute = (agentId: string): LaneRoute => ({
  agentId,
  route: { agent_id: agentId, confidence: 1, reason: 'The request names this lane.' },
  alternatives: [],
})

const priceOf = (kind: PaidRequest['kind'], lane: PricedLane) => ({
  agentId: lane.agentId,
  basePriceMicro: lane.basePriceMicro,
  feeMicro: kind === 'run' ? lane.feeMicro : 0n,
  priceMicro: kind === 'run' ? lane.priceMicro : lane.basePriceMicro,
})
