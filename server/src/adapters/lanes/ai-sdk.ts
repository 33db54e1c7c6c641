import type { Lane, LaneResult, LaneTask } from '../../modules/runs/lane.ts'
import { type CircuitBreaker, createCircuitBreaker } from '../../platform/circuit-breaker.ts'
import type { Clock } from '../../platform/clock.ts'
import {
  type CallModel,
  type CallOutcome,
  callModel,
  type LanguageModel,
  type ModelCall,
  openModel,
} from './model-call.ts'
import { retryDelayMs, sleep } from './retry.ts'
import {
  LANE_DEFAULTS,
  LANE_TUNING,
  type LaneProviderSettings,
  type LaneTuning,
  type ProviderSettings,
} from './settings.ts'

export type LiveLaneDeps = {
  clock: Clock
  /** The model an operator has set for a lane in the catalog; it overrides the provider's setting. */
  findModel?: (agentId: string) => string | null | undefined
  /** Loads the provider's package; this one unless a test says otherwise. */
  openModel?: typeof openModel
  /** Traces each attempt at a provider. */
  traceCall?: (call: CallModel) => CallModel
  /** Executes the task when every provider has failed. Without it, the run fails and is not charged. */
  lastResort?: Lane
}

/** Below the time that the report of `/api/health` gives each part. */
const HEALTH_TIMEOUT_MS = 1_500

type Fallback = { provider: string; model: string; reason: string }
type FailedCall = Extract<CallOutcome, { ok: false }>

/** Lanes that call a model: any OpenAI-compatible server or Anthropic, with retries, fallbacks and a circuit breaker for each provider. */
export function createLiveLane(settings: LaneProviderSettings, deps: LiveLaneDeps): Lane {
  const routes = settings.providers.map((provider, index) => ({
    provider,
    breaker: createCircuitBreaker({ clock: deps.clock, ...settings.breaker }),
    modelFor: (agentId: string) =>
      (index === 0 ? deps.findModel?.(agentId) : undefined) ?? provider.models[agentId] ?? provider.model,
  }))
  const tracedCall = deps.traceCall?.(callModel) ?? callModel
  const models = new Map<string, Promise<LanguageModel>>()

  const openCachedModel = (provider: ProviderSettings, modelName: string) => {
    const key = `${provider.name}\n${modelName}`
    const cachedModel = models.get(key)
    if (cachedModel) return cachedModel
    const model = (deps.openModel ?? openModel)(provider, modelName)
    models.set(key, model)
    // A failure is not remembered: the next run opens the model again.
    model.catch(() => models.delete(key))
    return model
  }

  const execute = async (task: LaneTask): Promise<LaneResult> => {
    if (task.signal.aborted)
      return toFailedResult({
        ok: false,
        reason: 'timeout',
        message: 'The run ended before the lane started.',
        retryable: true,
      })
    const fallbacks: Fallback[] = []
    let lastFailure: FailedCall = {
      ok: false,
      reason: 'unavailable',
      message: 'No model provider is available.',
      retryable: true,
    }
    for (const { provider, breaker, modelFor } of routes) {
      const modelName = modelFor(task.agentId)
      if (!breaker.allowsCall()) {
        fallbacks.push({ provider: provider.name, model: modelName, reason: 'Skipped after repeated failures.' })
        continue
      }
      const model = await openCachedModel(provider, modelName)
      const outcome = await tryProvider({ model, modelName, provider }, breaker, task)
      if (outcome.ok)
        return {
          ok: true,
          output: outcome.text,
          provider: provider.name,
          model: modelName,
          mode: 'live',
          usage: outcome.usage,
          fallbacks,
          ...(outcome.finishedEarly && { finishedEarly: true }),
        }
      if (task.signal.aborted) return toFailedResult(outcome)
      lastFailure = outcome
      fallbacks.push({ provider: provider.name, model: modelName, reason: outcome.message })
    }
    return deps.lastResort ? addFallbacks(await deps.lastResort.execute(task), fallbacks) : toFailedResult(lastFailure)
  }

  const tryProvider = async (
    route: Pick<ModelCall, 'model' | 'modelName' | 'provider'>,
    breaker: CircuitBreaker,
    task: LaneTask,
  ): Promise<CallOutcome> => {
    const tuning = resolveTuning(settings, task.agentId)
    for (let attempt = 0; ; attempt++) {
      const outcome = await tracedCall({ ...route, tuning, task, limits: settings })
      recordOutcome(breaker, outcome, task.signal.aborted)
      if (outcome.ok || !outcome.retryable || attempt >= settings.retries) return outcome
      const delayMs = retryDelayMs(attempt + 1, outcome.retryAfterMs)
      const fitsDeadline = deps.clock.now().getTime() + delayMs < task.deadline.getTime()
      if (!fitsDeadline || !(await sleep(delayMs, task.signal)) || !breaker.allowsCall()) return outcome
    }
  }

  const version = (agentId: string) =>
    JSON.stringify([
      routes.map(({ provider, modelFor }) => [provider.name, modelFor(agentId)]),
      resolveTuning(settings, agentId),
    ])

  /** A provider is asked only after a call of its own has failed: its answer to a plain GET shows that it is back. */
  const isAnswering = async ({ provider, breaker }: (typeof routes)[number]): Promise<boolean> => {
    if (breaker.state() !== 'failing') return breaker.state() === 'closed'
    try {
      const response = await fetch(provider.baseUrl, { signal: AbortSignal.timeout(HEALTH_TIMEOUT_MS) })
      await response.body?.cancel()
      return response.status < 500
    } catch {
      return false
    }
  }
  const findProblem = async () => {
    const answers = await Promise.all(routes.map(isAnswering))
    return answers.includes(true) ? undefined : 'No model provider answers: runs fail and are not charged.'
  }

  return { name: 'live', mode: 'live', version, execute, findProblem }
}

/**
 * Only faults of the provider open its breaker. A refused task or an output that is no use shows that the provider works,
 * however many of them a tenant asks for; a 429 or rejected credentials show neither.
 */
function recordOutcome(breaker: CircuitBreaker, outcome: CallOutcome, runAborted: boolean): void {
  if (outcome.ok) breaker.recordSuccess()
  else if (runAborted) breaker.abandonProbe()
  else if (outcome.providerFault) breaker.recordFailure()
  else if (outcome.reason === 'refused' || outcome.reason === 'invalid_output') breaker.recordSuccess()
  else breaker.abandonProbe()
}

const resolveTuning = (settings: LaneProviderSettings, agentId: string): LaneTuning => ({
  ...(LANE_TUNING[agentId] ?? LANE_DEFAULTS),
  ...settings.lanes[agentId],
})

const toFailedResult = ({ reason, message, retryable }: FailedCall): LaneResult => ({
  ok: false,
  reason,
  message,
  // The caller may retry after a deadline, but not after a refusal or rejected credentials.
  retryable: retryable || reason === 'timeout',
})

const addFallbacks = (result: LaneResult, fallbacks: readonly Fallback[]): LaneResult =>
  result.ok ? { ...result, fallbacks: [...fallbacks, ...result.fallbacks] } : result
