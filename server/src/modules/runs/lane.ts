/** The lane port: a lane does the work of a run. Adapters import these types and nothing else from this module. */
export type LaneTask = {
  runId: string
  /** The tenant or payer that the work is for; a benchmark has none. */
  owner?: string
  agentId: string
  task: string
  /** The memories put in front of the task, oldest first. Empty when the run does not use memory. */
  context: readonly string[]
  /** The lane must have stopped by then; `signal` fires at the same moment. */
  deadline: Date
  signal: AbortSignal
  /** Called with the whole text so far, where the caller may see it before it is done. A retry begins with an empty text. */
  onText?: (part: PartialOutput) => void
}

/** What a lane has written so far, with what it has cost. */
export type PartialOutput = { output: string; provider: string; model: string; usage: LaneUsage }

export type LaneUsage = { inputTokens: number; outputTokens: number; costUsd: number }

export type LaneResult =
  | {
      ok: true
      output: string
      provider: string
      model: string
      /** `offline` lanes are deterministic: the same task gives the same output on every machine. */
      mode: 'live' | 'offline'
      usage: LaneUsage
      /** The model stopped at its limit of tokens, so the output is cut off. */
      finishedEarly?: boolean
      /** The providers tried before this one, in order, each with the reason it failed. */
      fallbacks: readonly { provider: string; model: string; reason: string }[]
    }
  | { ok: false; reason: 'timeout' | 'refused' | 'unavailable' | 'invalid_output'; message: string; retryable: boolean }

/** A failure of the provider is a result, not an exception. An exception is a bug in the lane. */
export type Lane = {
  name: string
  mode: 'live' | 'offline'
  /** Changes with whatever may change what a lane answers: its own version, its models, its prompt. */
  version?(agentId: string): string
  /** What keeps this lane from a task of this kind, and what would be needed; read before anything is paid. */
  findObstacle?(task: string): LaneObstacle | undefined
  /** Whether a task takes no longer than writing down its run and calls nobody, so that it may be done before. */
  isMomentary?(agentId: string, task: string): boolean
  execute(task: LaneTask): Promise<LaneResult>
  /** Why no task can be done at the moment, for `/api/health`. */
  findProblem?(): Promise<string | undefined>
}

export type LaneObstacle = { message: string; needed: string }
