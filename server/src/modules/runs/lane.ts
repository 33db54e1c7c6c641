/** The lane port: what does the work of a run. Adapters import these types and nothing else of this module. */
export type LaneTask = {
  runId: string
  agentId: string
  task: string
  /** What memory put in front of the task, oldest first. Empty when the run asked for none. */
  context: readonly string[]
  /** The lane must have stopped by then; `signal` fires at the same moment. */
  deadline: Date
  signal: AbortSignal
}

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
      /** Providers tried before this one, in order, with why each was left. */
      fallbacks: readonly { provider: string; model: string; reason: string }[]
    }
  | { ok: false; reason: 'timeout' | 'refused' | 'unavailable' | 'invalid_output'; message: string; retryable: boolean }

/** A lane never throws for what the outside world does: failure is a result. It may throw only for our own bugs. */
export type Lane = {
  name: string
  mode: 'live' | 'offline'
  execute(task: LaneTask): Promise<LaneResult>
}
