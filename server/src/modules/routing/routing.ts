import trained from '../../../data/routing/model.json' with { type: 'json' }
import { microFromUsdc } from '../../platform/money.ts'
import { invalid, Problem } from '../../platform/problem.ts'
import {
  type Choice,
  chooseLane,
  type NoChoice,
  type Priority,
  type RoutableLane,
  type RouteAsk,
  type RouteConstraints,
} from './choose.ts'
import { createRouter, type RouterModel } from './model.ts'

/** The constraints as a request body has them. */
export type ConstraintsBody = { max_cost_usdc?: number; priority?: Priority; category?: string }

export type RoutingDeps = {
  /** The price list as it stands: asked anew for each choice, because lanes can be switched off and repriced. */
  catalog: { all(): readonly RoutableLane[]; fallback(): RoutableLane }
  /** Another model than the committed one, for tests. */
  model?: RouterModel
}

export type RoutedRun = {
  agentId: string
  /** What the answer and the receipt say about the choice. */
  route: Record<string, unknown>
  /** Lanes that may take over when the budget asks for a cheaper one, likeliest first. */
  alternatives: { agentId: string; score: number }[]
}

export type Routing = ReturnType<typeof createRouting>

export function createRouting(deps: RoutingDeps) {
  const router = createRouter(deps.model ?? (trained as RouterModel))

  /** Pure for a given price list: the same task, constraints and version always give the same answer. */
  const choose = (
    ask: RouteAsk,
    lanes: readonly RoutableLane[] = [...deps.catalog.all(), deps.catalog.fallback()],
  ): Choice | NoChoice => chooseLane(router, ask, lanes)

  return {
    version: router.version,
    choose,

    /** For a run that names no lane. A limit of the caller's own that no lane meets is a budget refusal. */
    forRun(task: string, constraints?: ConstraintsBody): RoutedRun {
      const limits = readConstraints(constraints)
      const offered = [...deps.catalog.all(), deps.catalog.fallback()]
      if (limits.category !== undefined && !offered.some(({ category }) => category === limits.category))
        throw invalid(`There is no category '${limits.category}'. GET /api/agents lists them.`)
      const choice = choose({ task, constraints: limits }, offered)
      if (choice.agentId === null)
        throw new Problem('budget_exceeded', choice.reason, {
          status: 429,
          extra: { outcome: 'blocked', decision_id: null, approval_id: null },
        })
      return {
        agentId: choice.agentId,
        route: routeRecord(choice),
        alternatives: choice.alternatives
          .filter(
            (alternative) =>
              limits.maxCostMicro === undefined || (microFromUsdc(alternative.price_usdc) ?? 0n) <= limits.maxCostMicro,
          )
          .map(({ agent_id, score }) => ({ agentId: agent_id, score })),
      }
    },
  }
}

export const routeRecord = (choice: Choice): Record<string, unknown> => ({
  agent_id: choice.agentId,
  confidence: choice.confidence,
  reason: choice.reason,
  posture: choice.posture,
  signals: choice.signals,
  routing_version: choice.routingVersion,
})

export function readConstraints(body: ConstraintsBody = {}): RouteConstraints {
  const maxCostMicro = body.max_cost_usdc === undefined ? undefined : microFromUsdc(body.max_cost_usdc)
  if (body.max_cost_usdc !== undefined && maxCostMicro === undefined)
    throw invalid('max_cost_usdc must be an amount with at most six decimals.')
  return {
    ...(maxCostMicro === undefined ? {} : { maxCostMicro }),
    ...(body.priority === undefined ? {} : { priority: body.priority }),
    ...(body.category === undefined ? {} : { category: body.category }),
  }
}
