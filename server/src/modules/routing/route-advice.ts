import type { Caller } from '../../platform/auth-context.ts'
import { canonicalJson, hashJson, sha256 } from '../../platform/canonical.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import { didYouMean } from '../../platform/suggest.ts'
import type { Lane } from '../catalog/price-list.ts'
import type { LaneChoice, NoLaneFits, Substitute } from './choose-lane.ts'
import { type ConstraintsBody, type Routing, toRouteRecord, toSubstituteRoutes } from './routing.ts'

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

/** Governance's assessment of a route: the same one as for a run, but nothing is written. */
export type Assess = (
  request: {
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
    alternatives: readonly (PricedLane & { score: number; route: Record<string, unknown> })[]
  },
) => Promise<
  | { refused: true; outcome: string; message: string }
  | {
      refused: false
      offer: { agentId: string; priceMicro: bigint; route: Record<string, unknown> }
      summary: { decision: string }
    }
>

/** Issues a signed quote of lane and price that a run honours until it expires. */
export type IssueQuote = (draft: {
  bound_to: { task_hash: string }
  kind: string
  agent_id: string
  amount: string
  pricing_version: string
  route: Record<string, unknown>
}) => { quote: { quote_id: string; expires_at: string }; token: string }

export type RouteAdviceDeps = {
  routing: Routing
  catalog: { find(agentId: string): Lane | undefined; all(): readonly Lane[]; version(): string }
  assess: Assess
  issueQuote: IssueQuote
  /** `offline` lanes work by rule, `live` ones ask a model. */
  laneMode(): 'offline' | 'live'
}

export type RouteAdvice = ReturnType<typeof createRouteAdvice>

export function createRouteAdvice(deps: RouteAdviceDeps) {
  /** The lane a run would use, its price, the reason, and governance's decision; with a quote when it is allowed. */
  const adviseRoute = async (caller: Caller, body: RouteBody) => {
    const requestedAgentId = body.agent_id ?? body.preferred_agent_id
    const choice = deps.routing.choose({
      task: body.task,
      ...(requestedAgentId === undefined ? {} : { agentId: requestedAgentId }),
      constraints: deps.routing.readLimits(body.constraints),
    })
    if (choice.agentId === null && choice.problem === 'unknown_agent')
      throw invalid(
        `There is no agent '${requestedAgentId!.slice(0, 80)}'. GET /api/agents lists them.${didYouMean(
          requestedAgentId!,
          deps.catalog.all().map(({ agentId }) => agentId),
        )}`,
      )
    if (choice.agentId === null)
      return {
        ...toExplanation(deps, body, choice),
        recommended_agent_id: null,
        price_usdc: null,
        decision: 'blocked',
        decision_reason: choice.reason,
        posture: 'constrained',
        quote: null,
      }
    const assessment = await deps.assess(
      toAssessmentRequest(caller, body),
      toOffer(deps, choice, requestedAgentId !== undefined),
    )
    if (assessment.refused)
      return {
        ...toExplanation(deps, body, choice),
        ...toPrice(choice),
        decision: assessment.outcome,
        decision_reason: assessment.message,
        posture: choice.posture,
        quote: null,
      }
    const { agentId, priceMicro } = assessment.offer
    const substitute = choice.substitutes.find((lane) => lane.agentId === agentId)
    const usedChoice = substitute ? replaceLane(choice, substitute) : choice
    return {
      ...toExplanation(deps, body, usedChoice),
      ...toPrice({ agentId, priceMicro }),
      decision: assessment.summary.decision,
      decision_reason: substitute?.reason ?? null,
      posture: usedChoice.posture,
      quote: issueQuoteFor(deps, body.task, { agentId, priceMicro }, assessment.offer.route),
    }
  }

  const adviseLane = (task: string) => {
    const choice = deps.routing.choose({ task })
    if (choice.agentId === null) throw invalid('No lane is available at the moment.')
    return {
      recommended_lane: choice.agentId,
      estimated_cost_usdc: usdcFromMicro(choice.priceMicro),
      routing_posture: choice.posture,
      confidence: choice.confidence,
      reason: choice.reason,
      routing_version: choice.routingVersion,
      lane_mode: deps.laneMode(),
    }
  }

  return { adviseRoute, adviseLane }
}

/** `route_id` is a hash of the request and the versions, so the same request gets the same id. */
const toExplanation = (deps: RouteAdviceDeps, body: RouteBody, choice: LaneChoice | NoLaneFits) => ({
  route_id: `rte_${sha256(canonicalJson({ body, routing: choice.routingVersion, pricing: deps.catalog.version() })).slice(7, 39)}`,
  confidence: choice.confidence,
  reason: choice.reason,
  signals: choice.signals,
  alternatives: choice.alternatives,
  routing_version: choice.routingVersion,
  lane_mode: deps.laneMode(),
})

/** The choice as it reads when the substitute is used: the lane that was over the budget becomes an alternative. */
function replaceLane(choice: LaneChoice, substitute: Substitute): LaneChoice {
  const replaced = {
    agent_id: choice.agentId,
    score: choice.confidence,
    price_usdc: usdcFromMicro(choice.priceMicro),
    why_not: 'It is over the budget.',
  }
  const alternatives = [replaced, ...choice.alternatives.filter(({ agent_id }) => agent_id !== substitute.agentId)]
  return { ...choice, ...substitute, alternatives, posture: 'constrained' }
}

const toPrice = (lane: { agentId: string; priceMicro: bigint }) => ({
  recommended_agent_id: lane.agentId,
  price_usdc: usdcFromMicro(lane.priceMicro),
})

const toAssessmentRequest = (caller: Caller, body: RouteBody) => ({
  kind: 'run' as const,
  caller,
  action: 'run',
  sessionId: '',
  requestHash: hashJson(body),
  request: body,
  ...(body.budget ? { budget: body.budget } : {}),
  ...(body.policy ? { policy: body.policy } : {}),
})

function toOffer(deps: RouteAdviceDeps, choice: LaneChoice, explicit: boolean): Parameters<Assess>[1] {
  const lane = deps.catalog.find(choice.agentId)!
  return {
    agentId: lane.agentId,
    basePriceMicro: lane.basePriceMicro,
    feeMicro: lane.feeMicro,
    priceMicro: lane.priceMicro,
    pricingVersion: deps.catalog.version(),
    route: toRouteRecord(choice),
    explicit,
    quoted: false,
    alternatives: toSubstituteRoutes(choice).flatMap(({ agentId, score, route }) => {
      const alternative = deps.catalog.find(agentId)
      return alternative?.status === 'active'
        ? [
            {
              agentId,
              basePriceMicro: alternative.basePriceMicro,
              feeMicro: alternative.feeMicro,
              priceMicro: alternative.priceMicro,
              score,
              route,
            },
          ]
        : []
    }),
  }
}

function issueQuoteFor(
  deps: RouteAdviceDeps,
  task: string,
  lane: { agentId: string; priceMicro: bigint },
  route: Record<string, unknown>,
) {
  const { quote, token } = deps.issueQuote({
    bound_to: { task_hash: sha256(task) },
    kind: 'run',
    agent_id: lane.agentId,
    amount: lane.priceMicro.toString(),
    pricing_version: deps.catalog.version(),
    route,
  })
  return { quote_id: quote.quote_id, expires_at: quote.expires_at, signature: token }
}
