import { sha256 } from '../../platform/canonical.ts'
import { conflict, invalid } from '../../platform/problem.ts'
import type { Lane as PricedLane } from '../catalog/price-list.ts'
import type { Offer } from '../governance/assessment.ts'
import type { Quote } from '../payments/quote.ts'
import type { Ask, Deps, Routed } from './execute-run.ts'
import type { RunBody } from './run.ts'

/** Lane and price: as they were quoted, or as the task is routed now. */
export const offerFor = (d: Deps, ask: Ask): Offer => readQuote(d, ask) ?? route(d, ask)

/** A price we signed earlier for exactly this request, or for exactly this task. */
function readQuote(d: Deps, ask: Ask): Offer | undefined {
  const fromPayment = d.payments.quotes.read(ask.paid?.accepted.quote)
  if (fromPayment && 'request_hash' in fromPayment.bound_to && fromPayment.bound_to.request_hash !== ask.requestHash)
    throw conflict('This payment was quoted for another request. It was not used and is still good for its own.')
  const quote = fromPayment ?? quoteOfTask(d, ask)
  if (!quote || quote.kind !== ask.kind) return undefined
  if (ask.body.agent_id !== undefined && ask.body.agent_id !== quote.agent_id) return undefined
  const lane = d.find(quote.agent_id)
  if (!lane) return undefined
  const priceMicro = BigInt(quote.amount)
  const feeMicro = ask.kind === 'run' ? lane.feeMicro : 0n
  return {
    agentId: quote.agent_id,
    basePriceMicro: priceMicro - feeMicro,
    feeMicro,
    priceMicro,
    pricingVersion: quote.pricing_version,
    route: quote.route,
    explicit: ask.body.agent_id !== undefined,
    quoted: true,
    alternatives: [],
  }
}

function quoteOfTask(d: Deps, ask: Ask): Quote | undefined {
  const quote = d.payments.quotes.read(ask.quoteToken)
  if (!quote || !('task_hash' in quote.bound_to)) return undefined
  if (quote.bound_to.task_hash !== sha256(ask.body.task)) throw conflict('This quote was given for another task.')
  return quote
}

function route(d: Deps, ask: Ask): Offer {
  const { agent_id: named, task, constraints } = ask.body
  const routed = named === undefined ? unnamed(d, ask.kind, task, constraints) : explicit(named)
  const lane = d.find(routed.agentId)
  if (!lane) throw invalid(`There is no agent '${routed.agentId.slice(0, 80)}'. GET /api/agents lists them.`)
  if (lane.status !== 'active') throw invalid(`The agent '${lane.agentId}' takes no work at the moment.`)
  return {
    ...priceOf(ask.kind, lane),
    pricingVersion: d.pricingVersion(),
    route: routed.route,
    explicit: named !== undefined,
    quoted: false,
    alternatives: routed.alternatives.flatMap(({ agentId, score }) => {
      const other = d.find(agentId)
      return other && other.status === 'active' && agentId !== lane.agentId
        ? [{ ...priceOf(ask.kind, other), score }]
        : []
    }),
  }
}

/** A loop without a lane is the bare primitive at its lowest price; a run without one is routed. */
const unnamed = (d: Deps, kind: Ask['kind'], task: string, constraints: RunBody['constraints']): Routed =>
  kind === 'run'
    ? d.choose(task, constraints)
    : { ...explicit('default'), route: { agent_id: 'default', reason: 'No agent_id was given.' } }

const explicit = (agentId: string): Routed => ({
  agentId,
  route: { agent_id: agentId, confidence: 1, reason: 'The request names this lane.' },
  alternatives: [],
})

const priceOf = (kind: Ask['kind'], lane: PricedLane) => ({
  agentId: lane.agentId,
  basePriceMicro: lane.basePriceMicro,
  feeMicro: kind === 'run' ? lane.feeMicro : 0n,
  priceMicro: kind === 'run' ? lane.priceMicro : lane.basePriceMicro,
})
