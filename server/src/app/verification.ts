import { readJudgeSettings } from '../adapters/lanes/settings.ts'
import { createCodeParser } from '../adapters/parsers/code-parser.ts'
import { createVerification, type VerificationDeps } from '../modules/verification/verification.ts'
import type { Config } from '../platform/config.ts'
import { laneEnv } from './lanes.ts'

/** The verification of runs, with its parser of code and, where models do the work, its judge. */
export async function openVerification(config: Config) {
  return createVerification({ parseCode: createCodeParser().parse, ...(await openJudge(config)) })
}

async function openJudge(config: Config): Promise<Pick<VerificationDeps, 'judge'>> {
  const settings = config.LANE_PROVIDER === 'offline' ? undefined : readJudgeSettings(laneEnv(config))
  if (!settings) return {}
  const { createJudge } = await import('../adapters/lanes/judge.ts')
  return { judge: createJudge(settings) }
}
