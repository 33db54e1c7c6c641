/** Every check of an output, in the order of the answer. */
export const CHECK_NAMES = [
  'present',
  'bounded',
  'answered',
  'work_done',
  'complete',
  'language',
  'on_task',
  'asked_for',
  'grounded',
  'facts_used',
  'recomputed',
  'result_right',
  'safe',
  'reexecution_equal',
  'model_judge',
] as const
export type CheckName = (typeof CHECK_NAMES)[number]

/**
 * How much a check counts in the score, and on whose work it decides. Offline lanes write no other language, count no
 * words, say what they leave out, follow no instruction and have no secret, so what reads prose decides on a model's work
 * only, and of an offline lane's work is not looked at; what is computed again decides on everybody's.
 */
export type CheckRule = { weight: number; decides: 'always' | 'on_models' | 'never' }

type Rules = Readonly<Record<CheckName, CheckRule>>

const rule = (weight: number, decides: CheckRule['decides']): CheckRule => ({ weight, decides })

const COMMON: Rules = {
  present: rule(3, 'always'),
  bounded: rule(2, 'always'),
  answered: rule(3, 'on_models'),
  work_done: rule(4, 'never'),
  complete: rule(2, 'on_models'),
  language: rule(2, 'on_models'),
  on_task: rule(3, 'on_models'),
  asked_for: rule(3, 'on_models'),
  grounded: rule(3, 'on_models'),
  facts_used: rule(2, 'on_models'),
  recomputed: rule(3, 'always'),
  result_right: rule(3, 'on_models'),
  safe: rule(3, 'on_models'),
  reexecution_equal: rule(5, 'always'),
  model_judge: rule(4, 'on_models'),
}

/** What a lane weighs differently from the others. */
const BY_LANE: Readonly<Record<string, Partial<Rules>>> = {
  'comedian-v1': { grounded: rule(1, 'on_models'), facts_used: rule(1, 'never'), on_task: rule(2, 'on_models') },
  'writer-v1': { facts_used: rule(4, 'on_models'), asked_for: rule(4, 'on_models') },
  'support-v1': { facts_used: rule(3, 'on_models'), grounded: rule(4, 'on_models') },
  'analyst-v1': { recomputed: rule(4, 'always'), result_right: rule(6, 'on_models'), grounded: rule(2, 'on_models') },
  'coder-v1': { recomputed: rule(5, 'always'), grounded: rule(1, 'never'), facts_used: rule(1, 'never') },
  'strategist-v1': { facts_used: rule(1, 'never') },
  'researcher-v2': { grounded: rule(5, 'on_models') },
  default: {},
}

export const rulesOf = (agentId: string): Rules => ({ ...COMMON, ...BY_LANE[agentId] })
