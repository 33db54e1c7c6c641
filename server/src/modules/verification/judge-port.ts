/** The judge port: a model that looks at a finished output. Adapters import these types and nothing else from this module. */
export type Criterion = { name: string; question: string }

export type JudgeRequest = {
  agentId: string
  task: string
  output: string
  context?: readonly string[]
  criteria: readonly Criterion[]
  /** The JSON Schema of the answer. */
  schema: Record<string, unknown>
  /** Fires at the run's deadline and when the run is cancelled. */
  signal: AbortSignal
}

export type LaneUsage = { inputTokens: number; outputTokens: number; costUsd: number }

/** The judge's answer as it came; the module decides what it is worth. Undefined when there is none. */
export type JudgeReply = { text: string; provider: string; model: string; usage: LaneUsage }

export type AskJudge = (request: JudgeRequest) => Promise<JudgeReply | undefined>
