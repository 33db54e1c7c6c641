import { availableParallelism } from 'node:os'
import { createOfflineLane } from '../adapters/lanes/offline.ts'
import { readLaneSettings } from '../adapters/lanes/settings.ts'
import type { Catalog } from '../modules/catalog/catalog.ts'
import type { Lane } from '../modules/runs/lane.ts'
import { withTurns } from '../modules/runs/lane-turns.ts'
import type { Clock } from '../platform/clock.ts'
import { type Config, ConfigError } from '../platform/config.ts'
import { noTracing, type Tracing } from '../platform/tracing.ts'
import { traceModelCalls } from './tracing.ts'

/** Opens the configured model provider, or the offline lanes. A failing model fails the run, which is not charged. */
export async function openLane(
  config: Config,
  catalog: Pick<Catalog, 'all' | 'find'>,
  clock: Clock,
  tracing: Tracing = noTracing,
): Promise<Lane> {
  if (config.LANE_PROVIDER === 'offline') return withTurns(createOfflineLane(), 2 * availableParallelism())
  const agentIds = [...catalog.all().map((lane) => lane.agentId), 'default']
  const settings = readLaneSettings(laneEnv(config), agentIds)
  if (!settings) throw new ConfigError('LANE_PROVIDER does not name a provider.')
  const { createLiveLane } = await import('../adapters/lanes/ai-sdk.ts')
  return createLiveLane(settings, {
    clock,
    findModel: (agentId) => catalog.find(agentId)?.model ?? undefined,
    traceCall: (callModel) => traceModelCalls(tracing, callModel),
  })
}

/** The adapter reads one variable per lane; the settings table has one list for all of them. */
export function laneEnv(config: Config): Record<string, string | undefined> {
  const models = (config.LANE_MODELS ?? []).map((pair) => {
    const [agentId, model] = pair.split('=')
    if (!agentId || !model) throw new ConfigError(`LANE_MODELS '${pair}' is not usable: write agent-id=model.`)
    return [`LANE_MODEL_${agentId.toUpperCase().replaceAll('-', '_')}`, model]
  })
  const names = Object.keys(config).filter(
    (name) => (name.startsWith('LANE_') || name.startsWith('JUDGE_')) && name !== 'LANE_MODELS',
  ) as (keyof Config)[]
  const settings = names.flatMap((name) => (config[name] === undefined ? [] : [[name, String(config[name])]]))
  return Object.fromEntries([...settings, ...models])
}
