import type { NewMemory } from './memory.steps.ts'
import type { RecallReason } from './rank-memories.ts'

/** Limits of what is stored, for how long, and how much of it is given to a run. */
export const limits = {
  contentCharacters: 8_000,
  metadataCharacters: 4_000,
  perSession: 1_000,
  perTenant: 10_000,
  defaultLifetimeMs: 90 * 24 * 60 * 60 * 1000,
  maxLifetimeMs: 365 * 24 * 60 * 60 * 1000,
  maxRecalled: 8,
  maxRecalledBySearch: 5,
  maxRecalledCharacters: 8_000,
  /** How many memories of a session are compared with a task: the newest, and older ones that share a word. */
  recallNewest: 40,
  recallOlder: 20,
  recallTaskCharacters: 4_000,
} as const

const TASK_CHARACTERS = 2_000
const OUTCOME_CHARACTERS = 5_900

export type FinishedRun = {
  memoryId: string
  tenantId: string
  sessionId: string
  agentId: string
  runId: string
  task: string
  output: string
  verified: boolean | null
  grade: string | null
}

/** The memory of a finished run: its task and its outcome, each cut to a maximum length. */
export const toRunMemory = (run: FinishedRun, at: Date): NewMemory => ({
  id: run.memoryId,
  tenant_id: run.tenantId,
  session_id: run.sessionId,
  agent_id: run.agentId,
  run_id: run.runId,
  content: `Task: ${clip(run.task, TASK_CHARACTERS)}\n\nOutcome: ${clip(run.output, OUTCOME_CHARACTERS)}`,
  metadata: { source: 'run', verified: run.verified, grade: run.grade },
  created_at: at.toISOString(),
  expires_at: new Date(at.getTime() + limits.defaultLifetimeMs).toISOString(),
})

/** Cuts a text without splitting a surrogate pair. */
const clip = (text: string, maxLength: number) =>
  text.length <= maxLength ? text : `${text.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`

export type RecalledMemory = RecallReason & { content: string }

/**
 * The memories that match the task best, then the newest, as many as fit. Only whole ones, so that an id in `memory.read`
 * means that all of its content was read. Returned oldest first, as a conversation is read.
 */
export function selectRecalled(
  matchingMemories: readonly RecalledMemory[],
  newestMemories: readonly RecalledMemory[],
): RecalledMemory[] {
  const selectedById = new Map<string, RecalledMemory>()
  let room: number = limits.maxRecalledCharacters
  for (const memory of [...matchingMemories.slice(0, limits.maxRecalledBySearch), ...newestMemories]) {
    if (selectedById.size >= limits.maxRecalled) break
    if (selectedById.has(memory.id) || memory.content.length > room) continue
    selectedById.set(memory.id, memory)
    room -= memory.content.length
  }
  return [...selectedById.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}
