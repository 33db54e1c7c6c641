import { usdcFromMicro } from '../../platform/money.ts'
import type { LaneMeasurement, MeasurementSnapshot } from './measurements.ts'
import type { Router, Signal } from './model.ts'

/** The fields of a catalog lane that routing uses. */
export type RoutableLane = { agentId: string; category: string; tier: string; priceMicro: bigint; status: string }

export type Priority = 'cheapest' | 'balanced' | 'quality' | 'fastest'

export type RouteConstraints = { maxCostMicro?: bigint; priority?: Priority; category?: string }

export type LaneRequest = { task: string; agentId?: string; constraints?: RouteConstraints }

export type Alternative = { agent_id: string; score: number; price_usdc: number; why_not: string }

/**
 * How the lane was chosen: `explicit` by the caller; `confident` or `leaning` from the text; `constrained` when a limit
 * excluded a more likely lane; `fallback` when the text was too vague.
 */
export type Posture = 'explicit' | 'confident' | 'leaning' | 'constrained' | 'fallback'

type Explanation = {
  /** The calibrated probability that the lane is right; for an explicit lane, how well the task fits it. */
  confidence: number
  reason: string
  signals: readonly Signal[]
  alternatives: readonly Alternative[]
  routingVersion: string
}

/** A lane that may do the task instead, when a budget rules the chosen one out. */
export type Substitute = { agentId: string; score: number; confidence: number; reason: string }

export type LaneChoice = Explanation & {
  agentId: string
  priceMicro: bigint
  posture: Posture
  /** In the order in which they fit the task: capable lanes, the general lane, lanes of another trade. */
  substitutes: readonly Substitute[]
}

/** No lane can be used; `reason` says why. */
export type NoLaneFits = Explanation & { agentId: null; problem: 'unknown_agent' | 'no_lane_fits' }

export const FALLBACK_LANE = 'default'
const CONFIDENT_SCORE = 0.7
/** A lane with at least this share of the best score counts as capable of the task. */
const CAPABLE_SHARE = 0.35

/** A priority selects only among lanes that the text makes at least this likely. */
const MIN_PRIORITY_SCORE = 0.15
/** A lane counts as measured from this many runs or receipts on. */
const MIN_MEASURED = 10

type Candidate = { lane: RoutableLane; score: number; blockReason: string | undefined }

/** Chooses a lane from the text of the task, the caller's constraints and the price list. A pure function. */
export function chooseLane(
  router: Router,
  request: LaneRequest,
  lanes: readonly RoutableLane[],
  snapshot?: MeasurementSnapshot,
): LaneChoice | NoLaneFits {
  const constraints = request.constraints ?? {}
  const routingVersion = nameVersion(router.version, constraints.priority, snapshot)
  const prediction = router.predict(request.task)
  const findScore = (agentId: string) => prediction.scores.find((score) => score.agentId === agentId)?.probability ?? 0
  const candidates = lanes
    .map((lane) => ({ lane, score: findScore(lane.agentId), blockReason: findBlockReason(lane, constraints) }))
    .sort((a, b) => b.score - a.score || compareText(a.lane.agentId, b.lane.agentId))
  const explain = (
    confidence: number,
    reason: string,
    explainRejection: (candidate: Candidate) => string,
    selectedLane?: RoutableLane,
  ): Explanation => ({
    confidence,
    reason,
    signals: prediction.signals,
    alternatives: candidates
      .filter((candidate) => candidate.lane !== selectedLane)
      .map((candidate) => ({
        agent_id: candidate.lane.agentId,
        score: candidate.score,
        price_usdc: usdcFromMicro(candidate.lane.priceMicro),
        why_not: explainRejection(candidate),
      })),
    routingVersion,
  })

  if (request.agentId !== undefined) return chooseRequestedLane(request.agentId, candidates, explain)

  const available = candidates.filter((candidate) => !candidate.blockReason)
  const best = candidates.find((candidate) => candidate.score > 0)
  const selection = selectCandidate(available, best, router.threshold, constraints, snapshot)
  if (!selection) {
    return {
      ...explain(
        best?.score ?? 0,
        `No lane fits ${describeConstraints(constraints)}.`,
        (candidate) => candidate.blockReason ?? 'Not able to do this task.',
      ),
      agentId: null,
      problem: 'no_lane_fits',
    }
  }
  const { selected, priorityNote } = selection
  const fallback = selected.lane.agentId === FALLBACK_LANE
  const bestIsBlocked = best !== undefined && best !== selected && best.blockReason !== undefined
  const posture: Posture = bestIsBlocked
    ? 'constrained'
    : fallback
      ? 'fallback'
      : selected.score >= CONFIDENT_SCORE
        ? 'confident'
        : 'leaning'
  // For a vague task, the general lane reports how sure the best guess was.
  const confidence = posture === 'fallback' ? (best?.score ?? 0) : selected.score
  return {
    ...explain(
      confidence,
      describeReason(selected, best, posture, prediction.signals) + priorityNote,
      (candidate) => describeRejection(candidate, selected, constraints),
      selected.lane,
    ),
    agentId: selected.lane.agentId,
    priceMicro: selected.lane.priceMicro,
    posture,
    substitutes: listSubstitutes(available, selected, best?.score ?? 0),
  }
}

/** Fitness comes first: a cheap lane of another trade is the last choice, after the general lane. */
function listSubstitutes(available: readonly Candidate[], selected: Candidate, bestScore: number): Substitute[] {
  const fitness = (candidate: Candidate) =>
    isCapable(candidate, bestScore) ? 'capable' : candidate.lane.agentId === FALLBACK_LANE ? 'general' : 'other trade'
  const groups = ['capable', 'general', 'other trade']
  const reasons: Record<string, (agentId: string) => string> = {
    capable: (agentId) => `'${agentId}' is likely able to do it.`,
    general: (agentId) => `'${agentId}', the general lane, takes it.`,
    'other trade': (agentId) => `'${agentId}' is made for other work, but it is the only lane left.`,
  }
  return available
    .filter((candidate) => candidate !== selected)
    .toSorted((a, b) => groups.indexOf(fitness(a)) - groups.indexOf(fitness(b)))
    .map((candidate) => ({
      agentId: candidate.lane.agentId,
      score: candidate.score,
      confidence: candidate.score,
      reason: `'${selected.lane.agentId}' fits the task better but is over the budget. ${reasons[fitness(candidate)]!(candidate.lane.agentId)}`,
    }))
}

const isCapable = (candidate: Candidate, bestScore: number) =>
  candidate.score > 0 && candidate.score >= bestScore * CAPABLE_SHARE

/** Uses the lane the caller named, unless it violates a limit that the caller also set. */
function chooseRequestedLane(
  agentId: string,
  candidates: readonly Candidate[],
  explain: (
    confidence: number,
    reason: string,
    explainRejection: (candidate: Candidate) => string,
    selectedLane?: RoutableLane,
  ) => Explanation,
): LaneChoice | NoLaneFits {
  const requested = candidates.find((candidate) => candidate.lane.agentId === agentId)
  if (!requested)
    return {
      ...explain(0, `There is no lane '${agentId}'.`, () => 'Another lane was asked for.'),
      agentId: null,
      problem: 'unknown_agent',
    }
  if (requested.blockReason)
    return {
      ...explain(
        requested.score,
        `'${agentId}' was asked for, but: ${requested.blockReason}`,
        (candidate) => candidate.blockReason ?? 'Another lane was asked for.',
      ),
      agentId: null,
      problem: 'no_lane_fits',
    }
  return {
    ...explain(
      requested.score,
      `'${agentId}' was asked for.`,
      (candidate) => candidate.blockReason ?? 'Another lane was asked for.',
      requested.lane,
    ),
    agentId,
    priceMicro: requested.lane.priceMicro,
    posture: 'explicit',
    substitutes: [],
  }
}

function findBlockReason(lane: RoutableLane, constraints: RouteConstraints): string | undefined {
  if (lane.status !== 'active') return 'The lane takes no work at the moment.'
  if (constraints.category !== undefined && lane.category !== constraints.category)
    return `Its category is ${lane.category}, not ${constraints.category}.`
  if (constraints.maxCostMicro !== undefined && lane.priceMicro > constraints.maxCostMicro) {
    return `It costs ${usdcFromMicro(lane.priceMicro)} USDC, above the limit of ${usdcFromMicro(constraints.maxCostMicro)}.`
  }
  return undefined
}

/** Choices that read measurements name the snapshot they read, so that a version stands for one answer. */
const nameVersion = (model: string, priority: Priority | undefined, snapshot: MeasurementSnapshot | undefined) =>
  snapshot && (priority === 'fastest' || priority === 'quality') ? `${model}+${snapshot.version}` : model

type Selection = { selected: Candidate; priorityNote: string }

/**
 * The most likely available lane, or the fallback lane when the text is too vague. A priority selects only among capable
 * lanes, because a cheap lane that cannot do the task saves nothing.
 */
function selectCandidate(
  available: readonly Candidate[],
  best: Candidate | undefined,
  threshold: number,
  constraints: RouteConstraints,
  snapshot: MeasurementSnapshot | undefined,
): Selection | undefined {
  const bestScore = best?.score ?? 0
  const fallback = available.find((candidate) => candidate.lane.agentId === FALLBACK_LANE)
  const trainedLanes = available.filter((candidate) => candidate.lane.agentId !== FALLBACK_LANE)
  const likeliest = trainedLanes[0]
  if (!likeliest) return fallback && { selected: fallback, priorityNote: '' }
  // When a limit excludes the lanes that can do the task, the general lane comes before lanes of another trade.
  const isFit = best?.lane.agentId !== FALLBACK_LANE && likeliest.score >= threshold && isCapable(likeliest, bestScore)
  // A category is an explicit choice of the caller, so the best lane of it is used even when it does not fit well.
  if (!isFit && constraints.category === undefined && fallback) return { selected: fallback, priorityNote: '' }
  const capable = trainedLanes.filter(
    (candidate) =>
      candidate === likeliest ||
      (candidate.score >= MIN_PRIORITY_SCORE && candidate.score >= likeliest.score * CAPABLE_SHARE),
  )
  return applyPriority(capable, constraints.priority ?? 'balanced', snapshot)
}

/**
 * `cheapest` takes the lowest price; `fastest` the lowest median latency; `quality` the highest product of how well the
 * lane fits and the lower bound of its verified success rate. Ties go to the likelier lane, which comes first.
 */
function applyPriority(
  capable: readonly Candidate[],
  priority: Priority,
  snapshot: MeasurementSnapshot | undefined,
): Selection {
  const likeliest = capable[0]!
  if (priority === 'balanced') return { selected: likeliest, priorityNote: '' }
  if (capable.length === 1)
    return { selected: likeliest, priorityNote: ` '${priority}' changes nothing: no other lane is likely enough.` }
  if (priority === 'cheapest') {
    const selected = minBy(capable, (candidate) => Number(candidate.lane.priceMicro))
    return {
      selected,
      priorityNote: ` 'cheapest' was asked for: of ${listLanes(capable)} it has the lowest price, ${usdcFromMicro(selected.lane.priceMicro)} USDC.`,
    }
  }
  const measured = capable.flatMap((candidate) => {
    const measurement = snapshot?.lanes.find((lane) => lane.agent_id === candidate.lane.agentId)
    return measurement && isMeasured(measurement, priority) ? [{ candidate, measurement }] : []
  })
  if (measured.length < 2)
    return {
      selected: likeliest,
      priorityNote: ` '${priority}' was asked for, but of ${listLanes(capable)} fewer than two have been measured on ${MIN_MEASURED} runs; the likeliest lane takes it.`,
    }
  const first =
    priority === 'fastest'
      ? minBy(measured, ({ measurement }) => measurement.median_ms!)
      : minBy(measured, ({ candidate, measurement }) => -candidate.score * measurement.success_low)
  const figure =
    priority === 'fastest'
      ? `the lowest median latency, ${first.measurement.median_ms} ms over ${first.measurement.runs} runs`
      : `the best product of fit and verified success rate, which is at least ${percent(first.measurement.success_low / 10_000)} over ${first.measurement.receipts} receipts`
  return {
    selected: first.candidate,
    priorityNote: ` '${priority}' was asked for: of ${listLanes(measured.map(({ candidate }) => candidate))} it has ${figure}.`,
  }
}

const isMeasured = (lane: LaneMeasurement, priority: 'fastest' | 'quality') =>
  priority === 'fastest' ? lane.median_ms !== null && lane.runs >= MIN_MEASURED : lane.receipts >= MIN_MEASURED

const listLanes = (candidates: readonly Candidate[]) => candidates.map(({ lane }) => `'${lane.agentId}'`).join(', ')

/** The first item with the lowest cost. */
function minBy<Item>(items: readonly Item[], cost: (item: Item) => number): Item {
  return items.reduce((best, item) => (cost(item) < cost(best) ? item : best))
}

function describeReason(
  selected: Candidate,
  best: Candidate | undefined,
  posture: Posture,
  signals: readonly Signal[],
): string {
  const signalNames = signals
    .slice(0, 3)
    .map((signal) => signal.name)
    .join(', ')
  if (posture === 'constrained')
    return `'${best!.lane.agentId}' fits the task best but is ruled out: ${best!.blockReason} '${selected.lane.agentId}' is the best that fits.`
  if (posture === 'fallback')
    return best?.lane.agentId === FALLBACK_LANE
      ? `The task asks for no lane's own work (${percent(best.score)})${signalNames ? `: ${signalNames}` : ''}, so the general lane takes it.`
      : `The task does not say clearly what kind of work it is (best guess '${best?.lane.agentId ?? 'none'}' at ${percent(best?.score ?? 0)}), so the general lane takes it.`
  return `${posture === 'confident' ? 'Clearly' : 'Probably'} ${selected.lane.category} work (${percent(selected.score)})${signalNames ? `: ${signalNames}` : ''}.`
}

function describeRejection(candidate: Candidate, selected: Candidate, constraints: RouteConstraints): string {
  if (candidate.blockReason) return candidate.blockReason
  if (candidate.lane.agentId === FALLBACK_LANE && candidate.score <= selected.score)
    return 'The task is clear enough for a lane of its own.'
  if (candidate.score > selected.score) {
    return selected.lane.agentId === FALLBACK_LANE
      ? `At ${percent(candidate.score)} the guess is too weak to charge for.`
      : `Likelier at ${percent(candidate.score)}, but '${constraints.priority}' was asked for.`
  }
  if (candidate.score === 0) return 'The router sees nothing of its work in the task; ask for it by agent_id.'
  return `Less likely: ${percent(candidate.score)} against ${percent(selected.score)}.`
}

const describeConstraints = (constraints: RouteConstraints) =>
  [
    constraints.maxCostMicro !== undefined ? `a cost of at most ${usdcFromMicro(constraints.maxCostMicro)} USDC` : '',
    constraints.category !== undefined ? `the category '${constraints.category}'` : '',
  ]
    .filter(Boolean)
    .join(' and ') || 'the request'

const percent = (share: number) => `${(share * 100).toFixed(1)} %`

const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
