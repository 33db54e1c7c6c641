import type { LanguageModel } from 'ai'
import type { Lane, LaneResult, LaneTask } from '../../modules/runs/lane.ts'
import type { Clock } from '../../platform/clock.ts'
import { type CallOutcome, callModel, openModel } from './model-call.ts'
import { type Breaker, createBreaker, pause, pauseBefore } from './resilience.ts'
import {
  LANE_DEFAULTS,
  LANE_TUNING,
  type LaneProviderSettings,
  type LaneTuning,
  type ProviderSettings,
} from './settings.ts'

export type LiveLaneDeps = {
  clock: Clock
  /** The model an operator has set for a lane in the catalog; it goes before the provider's own choice. */
  modelOf?: (agentId: string) => string | null | undefined
  /** Does the work when every provider has failed. Left out, the run fails uncharged instead. */
  lastResort?: Lane
}

type Fallback = { provider: string; model: string; reason: string }
type Failed = Extract<CallOutcome, { ok: false }>

/** Lanes that ask a model: any OpenAI-compatible server or Anthropic, with retries, fallbacks and a breaker for each. */
export function createLiveLane(settings: LaneProviderSettings, deps: LiveLaneDeps): Lane {
  const routes = settings.providers.map((provider, at) => ({
    provider,
    breaker: createBreaker({ clock: deps.clock, ...settings.breaker }),
    modelFor: (agentId: string) =>
      (at === 0 ? deps.modelOf?.(agentId) : undefined) ?? provider.models[agentId] ?? provider.model,
  }))
  const opened = new Map<string, Promise<LanguageModel>>()

  const modelOn = (provider: ProviderSettings, name: string) => {
    const key = `${provider.name}\n${name}`
    const known = opened.get(key)
    if (known) return known
    const opening = openModel(provider, name)
    opened.set(key, opening)
    return opening
  }

  const execute = async (task: LaneTask): Promise<LaneResult> => {
    if (task.signal.aborted)
      return failed({
        ok: false,
        reason: 'timeout',
        message: 'The run was over before the lane started.',
        retryable: true,
      })
    const fallbacks: Fallback[] = []
    let last: Failed = { ok: false, reason: 'unavailable', message: 'No model provider is ready.', retryable: true }
    for (const { provider, breaker, modelFor } of routes) {
      const name = modelFor(task.agentId)
      if (!breaker.admits()) {
        fallbacks.push({ provider: provider.name, model: name, reason: 'Left alone after repeated failures.' })
        continue
      }
      const outcome = await tryProvider(await modelOn(provider, name), provider, breaker, task)
      if (outcome.ok)
        return {
          ok: true,
          output: outcome.text,
          provider: provider.name,
          model: name,
          mode: 'live',
          usage: outcome.usage,
          fallbacks,
        }
      if (task.signal.aborted) return failed(outcome)
      last = outcome
      fallbacks.push({ provider: provider.name, model: name, reason: outcome.message })
    }
    return deps.lastResort ? withFallbacks(await deps.lastResort.execute(task), fallbacks) : failed(last)
  }

  const tryProvider = async (
    model: LanguageModel,
    provider: ProviderSettings,
    breaker: Breaker,
    task: LaneTask,
  ): Promise<CallOutcome> => {
    const tuning = tuningFor(settings, task.agentId)
    for (let attempt = 0; ; attempt++) {
      const outcome = await callModel(model, provider, tuning, task, settings)
      tellBreaker(breaker, outcome, task.signal.aborted)
      if (outcome.ok || !outcome.retryable || attempt >= settings.retries) return outcome
      const wait = pauseBefore(attempt + 1, outcome.retryAfterMs)
      const enough = deps.clock.now().getTime() + wait < task.deadline.getTime()
      if (!enough || !(await pause(wait, task.signal)) || !breaker.admits()) return outcome
    }
  }

  return { name: 'live', mode: 'live', execute }
}

/** Silence, errors and broken answers speak against a provider; a refused task or a run that ran out of time do not. */
function tellBreaker(breaker: Breaker, outcome: CallOutcome, ranOut: boolean): void {
  if (outcome.ok || outcome.reason === 'refused') breaker.succeeded()
  else if (ranOut) breaker.undecided()
  else breaker.failed()
}

const tuningFor = (settings: LaneProviderSettings, agentId: string): LaneTuning => ({
  ...(LANE_TUNING[agentId] ?? LANE_DEFAULTS),
  ...settings.lanes[agentId],
})

const failed = ({ reason, message, retryable }: Failed): LaneResult => ({
  ok: false,
  reason,
  message,
  // A deadline says nothing against trying again; a refusal and bad credentials do.
  retryable: retryable || reason === 'timeout',
})

const withFallbacks = (result: LaneResult, fallbacks: readonly Fallback[]): LaneResult =>
  result.ok ? { ...result, fallbacks: [...fallbacks, ...result.fallbacks] } : result
