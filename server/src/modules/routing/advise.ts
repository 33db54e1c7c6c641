import type { Caller } from '../../platform/auth-context.ts'
import { canonicalJson, hashJson, sha256 } from '../../platform/canonical.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import type { Lane } from '../catalog/price-list.ts'
import type { Choice, NoChoice } from './choose.ts'
import { type ConstraintsBody, type Routing, readConstraints, routeRecord } from './routing.ts'

export type RouteBody = {
  task: string
  agent_id?: string
  preferred_agent_id?: string
  constraints?: ConstraintsBody
  budget?: {
    budget_id?: string
    max_price_usdc?: number
    soft_max_price_usdc?: number
    strict?: boolean
    currency?: string
  }
  policy?: { policy_ids?: string[]; mode?: 'enforce' | 'warn' | 'shadow' }
}

type PricedLane = Pick<Lane, 'agentId' | 'basePriceMicro' | 'feeMicro' | 'priceMicro'>

/** What governance is asked about a route: the same question that a run would put to it, with nothing written. */
export type Assess = (
  proposal: {
    kind: 'run'
    caller: Caller
    action: string
    sessionId: string
    requestHash: string
    request: Record<string, unknown>
    budget?: RouteBody['budget']
    policy?: RouteBody['policy']
  },
  offer: PricedLane & {
    pricingVersion: string
    route: Record<string, unknown>
    explicit: boolean
    quoted: boolean
    alternatives: readonly (PricedLane & { score: number })[]
  },
) => Promise<
  | { refused: true; outcome: string; message: string }
  | { refused: false; offer: { agentId: string; priceMicro: bigint }; summary: { decision: string } }
>

/** A signed promise of lane and price that a run honours until it expires; the payments module makes it. */
export type IssueQuote = (draft: {
  bound_to: { task_hash: string }
  kind: string
  agent_id: string
  amount: string
  pricing_version: string
  route: Record<string, unknown>
}) => { quote: { quote_id: string; expires_at: string }; token: string }

export type AdviceDeps = {
  routing: Routing
  catalog: { find(agentId: string): Lane | undefined; version(): string }
  assess: Assess
  issueQuote: IssueQuote
}

export type Advice = ReturnType<typeof createAdvice>

export function createAdvice(d: AdviceDeps) {
  /** Which lane a run would take, at what price, why, and whether it would be allowed; with a quote when it would. */
  const route = async (caller: Caller, body: RouteBody) => {
    const named = body.agent_id ?? body.preferred_agent_id
    const choice = d.routing.choose({
      task: body.task,
      ...(named === undefined ? {} : { agentId: named }),
      constraints: readConstraints(body.constraints),
    })
    if (choice.agentId === null && choice.problem === 'unknown_agent')
      throw invalid(`There is no agent '${named!.slice(0, 80)}'. GET /api/agents lists them.`)
    if (choice.agentId === null)
      return {
        ...explained(d, body, choice),
        recommended_agent_id: null,
        price_usdc: null,
        decision: 'blocked',
        decision_reason: choice.reason,
        posture: 'constrained',
        quote: null,
      }
    const ruling = await d.assess(proposalOf(caller, body), offerOf(d, choice, named !== undefined))
    if (ruling.refused)
      return {
        ...explained(d, body, choice),
        ...priced(choice),
        decision: ruling.outcome,
        decision_reason: ruling.message,
        posture: choice.posture,
        quote: null,
      }
    const { agentId, priceMicro } = ruling.offer
    return {
      ...explained(d, body, choice),
      ...priced({ agentId, priceMicro }),
      decision: ruling.summary.decision,
      decision_reason:
        agentId === choice.agentId
          ? null
          : `'${choice.agentId}' is over the budget; '${agentId}' is the best lane that fits.`,
      posture: choice.posture,
      quote: quoteFor(d, body.task, { agentId, priceMicro }, choice),
    }
  }

  const intel = (task: string) => {
    const choice = d.routing.choose({ task })
    if (choice.agentId === null) throw invalid('No lane takes work at the moment.')
    return {
      recommended_lane: choice.agentId,
      estimated_cost_usdc: usdcFromMicro(choice.priceMicro),
      routing_posture: choice.posture,
      confidence: choice.confidence,
      reason: choice.reason,
      routing_version: choice.routingVersion,
    }
  }

  return { route, intel }
}

/** The id is made of the question and the version, not of the moment: the same question has the same answer. */
const explained = (d: AdviceDeps, body: RouteBody, choice: Choice | NoChoice) => ({
  route_id: `rte_${sha256(canonicalJson({ body, routing: choice.routingVersion, pricing: d.catalog.version() })).slice(7, 39)}`,
  confidence: choice.confidence,
  reason: choice.reason,
  signals: choice.signals,
  alternatives: choice.alternatives,
  routing_version: choice.routingVersion,
})

const priced = (lane: { agentId: string; priceMicro: bigint }) => ({
  recommended_agent_id: lane.agentId,
  price_usdc: usdcFromMicro(lane.priceMicro),
})

const proposalOf = (caller: Caller, body: RouteBody) => ({
  kind: 'run' as const,
  caller,
  action: 'run',
  sessionId: '',
  requestHash: hashJson(body),
  request: body,
  ...(body.budget ? { budget: body.budget } : {}),
  ...(body.policy ? { policy: body.policy } : {}),
})

function offerOf(d: AdviceDeps, choice: Choice, explicit: boolean): Parameters<Assess>[1] {
  const lane = d.catalog.find(choice.agentId)!
  return {
    agentId: lane.agentId,
    basePriceMicro: lane.basePriceMicro,
    feeMicro: lane.feeMicro,
    priceMicro: lane.priceMicro,
    pricingVersion: d.catalog.version(),
    route: routeRecord(choice),
    explicit,
    quoted: false,
    alternatives: choice.alternatives.flatMap(({ agent_id, score }) => {
      const other = d.catalog.find(agent_id)
      return other?.status === 'active'
        ? [
            {
              agentId: agent_id,
              basePriceMicro: other.basePriceMicro,
              feeMicro: other.feeMicro,
              priceMicro: other.priceMicro,
              score,
            },
          ]
        : []
    }),
  }
}

function quoteFor(d: AdviceDeps, task: string, lane: { agentId: string; priceMicro: bigint }, choice: Choice) {
  const { quote, token } = d.issueQuote({
    bound_to: { task_hash: sha256(task) },
    kind: 'run',
    agent_id: lane.agentId,
    amount: lane.priceMicro.toString(),
    pricing_version: d.catalog.version(),
    route: { ...routeRecord(choice), agent_id: lane.agentId },
  })
  return { quote_id: quote.quote_id, expires_at: quote.expires_at, signature: token }
}
