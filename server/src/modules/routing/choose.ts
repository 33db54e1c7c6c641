import { usdcFromMicro } from '../../platform/money.ts'
import type { Router, Signal } from './model.ts'

/** What routing needs to know of a lane; the catalog has more. */
export type RoutableLane = { agentId: string; category: string; tier: string; priceMicro: bigint; status: string }

export type Priority = 'cheapest' | 'balanced' | 'quality' | 'fastest'

export type RouteConstraints = { maxCostMicro?: bigint; priority?: Priority; category?: string }

export type RouteAsk = { task: string; agentId?: string; constraints?: RouteConstraints }

export type Alternative = { agent_id: string; score: number; price_usdc: number; why_not: string }

/**
 * How firmly the lane was chosen: `explicit` by the caller, `confident` or `leaning` by the text, `constrained` when a
 * limit kept a likelier lane out, `fallback` when the text did not say enough.
 */
export type Posture = 'explicit' | 'confident' | 'leaning' | 'constrained' | 'fallback'

type Explained = {
  /** How often the router is right when it is this sure; for an explicit lane, how well the task fits that lane. */
  confidence: number
  reason: string
  signals: readonly Signal[]
  alternatives: readonly Alternative[]
  routingVersion: string
}

export type Choice = Explained & { agentId: string; priceMicro: bigint; posture: Posture }

/** Nothing fits: the caller must hear why, and nothing may run. */
export type NoChoice = Explained & { agentId: null; problem: 'unknown_agent' | 'no_lane_fits' }

export const FALLBACK_LANE = 'default'
const CONFIDENT_FROM = 0.7
/** A lane at least this likely, compared with the likeliest, is thought able to do the task. */
const ABLE_SHARE = 0.35

const TIERS = ['starter', 'standard', 'pro', 'expert']

type Candidate = { lane: RoutableLane; score: number; blocked: string | undefined }

/** Chooses a lane from the task's own text, the caller's constraints and the price list. Pure: equal input, equal answer. */
export function chooseLane(router: Router, ask: RouteAsk, lanes: readonly RoutableLane[]): Choice | NoChoice {
  const constraints = ask.constraints ?? {}
  const reading = router.read(ask.task)
  const scoreOf = (agentId: string) => reading.scores.find((score) => score.agentId === agentId)?.probability ?? 0
  const candidates = lanes
    .map((lane) => ({ lane, score: scoreOf(lane.agentId), blocked: blockOf(lane, constraints) }))
    .sort((a, b) => b.score - a.score || compareText(a.lane.agentId, b.lane.agentId))
  const explained = (
    confidence: number,
    reason: string,
    whyNot: (candidate: Candidate) => string,
    chosen?: RoutableLane,
  ): Explained => ({
    confidence,
    reason,
    signals: reading.signals,
    alternatives: candidates
      .filter((candidate) => candidate.lane !== chosen)
      .map((candidate) => ({
        agent_id: candidate.lane.agentId,
        score: candidate.score,
        price_usdc: usdcFromMicro(candidate.lane.priceMicro),
        why_not: whyNot(candidate),
      })),
    routingVersion: router.version,
  })

  if (ask.agentId !== undefined) return explicitChoice(ask.agentId, candidates, explained)

  const open = candidates.filter((candidate) => !candidate.blocked)
  const best = candidates.find((candidate) => candidate.score > 0)
  const picked = pick(open, router.threshold, constraints)
  if (!picked) {
    return {
      ...explained(
        best?.score ?? 0,
        `No lane fits ${describe(constraints)}.`,
        (candidate) => candidate.blocked ?? 'Not able to do this task.',
      ),
      agentId: null,
      problem: 'no_lane_fits',
    }
  }
  const fallback = picked.lane.agentId === FALLBACK_LANE
  const held = best !== undefined && best !== picked && best.blocked !== undefined
  const posture: Posture = held
    ? 'constrained'
    : fallback
      ? 'fallback'
      : picked.score >= CONFIDENT_FROM
        ? 'confident'
        : 'leaning'
  const confidence = fallback ? (best?.score ?? 0) : picked.score
  return {
    ...explained(
      confidence,
      reasonFor(picked, best, posture, reading.signals, constraints),
      (candidate) => whyNot(candidate, picked, constraints),
      picked.lane,
    ),
    agentId: picked.lane.agentId,
    priceMicro: picked.lane.priceMicro,
    posture,
  }
}

/** The caller's word counts; a limit the caller also set still holds. */
function explicitChoice(
  agentId: string,
  candidates: readonly Candidate[],
  explained: (
    confidence: number,
    reason: string,
    whyNot: (candidate: Candidate) => string,
    chosen?: RoutableLane,
  ) => Explained,
): Choice | NoChoice {
  const named = candidates.find((candidate) => candidate.lane.agentId === agentId)
  if (!named)
    return {
      ...explained(0, `There is no lane '${agentId}'.`, () => 'Another lane was asked for.'),
      agentId: null,
      problem: 'unknown_agent',
    }
  if (named.blocked)
    return {
      ...explained(
        named.score,
        `'${agentId}' was asked for, but: ${named.blocked}`,
        (candidate) => candidate.blocked ?? 'Another lane was asked for.',
      ),
      agentId: null,
      problem: 'no_lane_fits',
    }
  return {
    ...explained(
      named.score,
      `'${agentId}' was asked for.`,
      (candidate) => candidate.blocked ?? 'Another lane was asked for.',
      named.lane,
    ),
    agentId,
    priceMicro: named.lane.priceMicro,
    posture: 'explicit',
  }
}

function blockOf(lane: RoutableLane, constraints: RouteConstraints): string | undefined {
  if (lane.status !== 'active') return 'The lane takes no work at the moment.'
  if (constraints.category !== undefined && lane.category !== constraints.category)
    return `Its category is ${lane.category}, not ${constraints.category}.`
  if (constraints.maxCostMicro !== undefined && lane.priceMicro > constraints.maxCostMicro) {
    return `It costs ${usdcFromMicro(lane.priceMicro)} USDC, above the limit of ${usdcFromMicro(constraints.maxCostMicro)}.`
  }
  return undefined
}

/**
 * The likeliest open lane, or the lane of last resort when the text does not say enough. A wish for cheap or fast
 * chooses only among lanes that are likely able to do the task: the wrong lane is never cheap.
 */
function pick(open: readonly Candidate[], threshold: number, constraints: RouteConstraints): Candidate | undefined {
  const fallback = open.find((candidate) => candidate.lane.agentId === FALLBACK_LANE)
  const trained = open.filter((candidate) => candidate.lane.agentId !== FALLBACK_LANE)
  const likeliest = trained[0]
  if (!likeliest) return fallback
  // A category narrows the field by the caller's own word, so the best of it is taken without more ado.
  if (likeliest.score < threshold && constraints.category === undefined && fallback) return fallback
  const able = trained.filter((candidate) => candidate.score >= likeliest.score * ABLE_SHARE)
  const priority = constraints.priority ?? 'balanced'
  if (priority === 'cheapest') return least(able, (candidate) => Number(candidate.lane.priceMicro))
  if (priority === 'fastest') return least(able, (candidate) => tierOf(candidate.lane))
  if (priority === 'quality')
    return least(
      able.filter((candidate) => candidate.score >= likeliest.score * 0.8),
      (candidate) => -tierOf(candidate.lane),
    )
  return likeliest
}

/** The first with the least cost: the order is by likelihood, so ties go to the likelier lane. */
function least(candidates: readonly Candidate[], cost: (candidate: Candidate) => number): Candidate {
  return candidates.reduce((best, candidate) => (cost(candidate) < cost(best) ? candidate : best))
}

const tierOf = (lane: RoutableLane) => {
  const tier = TIERS.indexOf(lane.tier)
  return tier < 0 ? TIERS.length : tier
}

function reasonFor(
  picked: Candidate,
  best: Candidate | undefined,
  posture: Posture,
  signals: readonly Signal[],
  constraints: RouteConstraints,
): string {
  const spoke = signals
    .slice(0, 3)
    .map((signal) => signal.name)
    .join(', ')
  if (posture === 'constrained')
    return `'${best!.lane.agentId}' fits the task best but is ruled out: ${best!.blocked} '${picked.lane.agentId}' is the best that fits.`
  if (posture === 'fallback')
    return `The task does not say clearly what kind of work it is (best guess '${best?.lane.agentId ?? 'none'}' at ${percent(best?.score ?? 0)}), so the general lane takes it.`
  const wish =
    picked !== best && constraints.priority
      ? ` Chosen among the likely lanes because '${constraints.priority}' was asked for.`
      : ''
  return `${posture === 'confident' ? 'Clearly' : 'Probably'} ${picked.lane.category} work (${percent(picked.score)})${spoke ? `: ${spoke}` : ''}.${wish}`
}

function whyNot(candidate: Candidate, picked: Candidate, constraints: RouteConstraints): string {
  if (candidate.blocked) return candidate.blocked
  if (candidate.lane.agentId === FALLBACK_LANE) return 'The task is clear enough for a lane of its own.'
  if (candidate.score > picked.score) {
    return picked.lane.agentId === FALLBACK_LANE
      ? `At ${percent(candidate.score)} the guess is too weak to charge for.`
      : `Likelier at ${percent(candidate.score)}, but '${constraints.priority}' was asked for.`
  }
  if (candidate.score === 0) return 'The router sees nothing of its work in the task; ask for it by agent_id.'
  return `Less likely: ${percent(candidate.score)} against ${percent(picked.score)}.`
}

const describe = (constraints: RouteConstraints) =>
  [
    constraints.maxCostMicro !== undefined ? `a cost of at most ${usdcFromMicro(constraints.maxCostMicro)} USDC` : '',
    constraints.category !== undefined ? `the category '${constraints.category}'` : '',
  ]
    .filter(Boolean)
    .join(' and ') || 'the request'

const percent = (share: number) => `${(share * 100).toFixed(1)} %`

const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
