import trainedModel from '../../../data/routing/model.json' with { type: 'json' }
import { microFromUsdc } from '../../platform/money.ts'
import { invalid, Problem } from '../../platform/problem.ts'
import {
  chooseLane,
  type LaneChoice,
  type LaneRequest,
  type NoLaneFits,
  type Priority,
  type RoutableLane,
  type RouteConstraints,
} from './choose-lane.ts'
import type { MeasurementSnapshot } from './measurements.ts'
import { createRouter, type RouterModel } from './model.ts'

/** The constraints of a request body. */
export type ConstraintsBody = { max_cost_usdc?: number; priority?: Priority; category?: string }

export type RoutingDeps = {
  /** Read again for each choice, because lanes can be paused and repriced. */
  catalog: { all(): readonly RoutableLane[]; fallback(): RoutableLane }
  /** The newest frozen measurements; undefined before the first snapshot. */
  measurements?: { current(): MeasurementSnapshot | undefined }
  /** Replaces the committed model in tests. */
  model?: RouterModel
}

export type RunRoute = {
  agentId: string
  /** The record of the choice in the response and the receipt. */
  route: Record<string, unknown>
  /** Lanes that may be used instead when the budget requires a cheaper one, in the order in which they fit. */
  alternatives: { agentId: string; score: number; route: Record<string, unknown> }[]
}

export type Routing = ReturnType<typeof createRouting>

export function createRouting(deps: RoutingDeps) {
  const router = createRouter(deps.model ?? (trainedModel as RouterModel))

  /** Deterministic: the same task, constraints, price list and routing version give the same choice. */
  const choose = (
    request: LaneRequest,
    lanes: readonly RoutableLane[] = [...deps.catalog.all(), deps.catalog.fallback()],
  ): LaneChoice | NoLaneFits => chooseLane(router, request, lanes, deps.measurements?.current())

  /** A category that no lane has is a mistake of the caller, not a limit that no lane meets. */
  const readLimits = (constraints?: ConstraintsBody): RouteConstraints => {
    const limits = readConstraints(constraints)
    const lanes = [...deps.catalog.all(), deps.catalog.fallback()]
    if (limits.category !== undefined && !lanes.some(({ category }) => category === limits.category))
      throw invalid(`There is no category '${limits.category}'. GET /api/agents lists them.`)
    return limits
  }

  return {
    version: router.version,
    choose,
    readLimits,

    /** Chooses the lane of a run without an `agent_id`. When no lane meets the caller's limits, the run is refused as over budget. */
    routeRun(task: string, constraints?: ConstraintsBody): RunRoute {
      const choice = choose({ task, constraints: readLimits(constraints) })
      if (choice.agentId === null)
        throw new Problem('budget_exceeded', choice.reason, {
          status: 429,
          extra: { outcome: 'blocked', decision_id: null, approval_id: null },
        })
      return {
        agentId: choice.agentId,
        route: toRouteRecord(choice),
        alternatives: toSubstituteRoutes(choice),
      }
    },
  }
}

export const toRouteRecord = (choice: LaneChoice): Record<string, unknown> => ({
  agent_id: choice.agentId,
  confidence: choice.confidence,
  reason: choice.reason,
  posture: choice.posture,
  signals: choice.signals,
  routing_version: choice.routingVersion,
})

/** The lanes that may be used instead of the chosen one, each with the record of the choice as it would then read. */
export const toSubstituteRoutes = (choice: LaneChoice): RunRoute['alternatives'] =>
  choice.substitutes.map(({ agentId, score, confidence, reason }) => ({
    agentId,
    score,
    route: { ...toRouteRecord(choice), agent_id: agentId, confidence, reason, posture: 'constrained' },
  }))

function readConstraints(body: ConstraintsBody = {}): RouteConstraints {
  const maxCostMicro = body.max_cost_usdc === undefined ? undefined : microFromUsdc(body.max_cost_usdc)
  if (body.max_cost_usdc !== undefined && maxCostMicro === undefined)
    throw invalid('max_cost_usdc must be an amount with at most six decimals.')
  return {
    ...(maxCostMicro === undefined ? {} : { maxCostMicro }),
    ...(body.priority === undefined ? {} : { priority: body.priority }),
    ...(body.category === undefined ? {} : { category: body.category }),
  }
}
