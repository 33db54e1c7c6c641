import type { NewMemory } from './memory.steps.ts'

/** What may be remembered, for how long, and how much of it is put in front of a task. Everything has a limit. */
export const limits = {
  contentCharacters: 8_000,
  metadataCharacters: 4_000,
  inSession: 1_000,
  ofTenant: 10_000,
  defaultLifeMs: 90 * 24 * 60 * 60 * 1000,
  longestLifeMs: 365 * 24 * 60 * 60 * 1000,
  recalled: 8,
  recalledByWords: 5,
  recalledCharacters: 8_000,
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
  verified: boolean
  grade: string
}

/** What a run leaves to those after it: what was asked and what came of it, each cut to a part of the whole. */
export const memoryOfRun = (run: FinishedRun, at: Date): NewMemory => ({
  id: run.memoryId,
  tenant_id: run.tenantId,
  session_id: run.sessionId,
  agent_id: run.agentId,
  run_id: run.runId,
  content: `Task: ${clip(run.task, TASK_CHARACTERS)}\n\nOutcome: ${clip(run.output, OUTCOME_CHARACTERS)}`,
  metadata: { source: 'run', verified: run.verified, grade: run.grade },
  created_at: at.toISOString(),
  expires_at: new Date(at.getTime() + limits.defaultLifeMs).toISOString(),
})

/** No character is cut in half. */
const clip = (text: string, most: number) =>
  text.length <= most ? text : `${text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, '')}…`

export type Recalled = { id: string; content: string }

/**
 * The memories that fit the task best, then the newest, as many as there is room for; whole ones only, so that an id in
 * `memory.read` stands for all of its content. Oldest first, as a conversation is read.
 */
export function chooseRecalled(fitting: readonly Recalled[], newest: readonly Recalled[]): Recalled[] {
  const chosen = new Map<string, Recalled>()
  let room: number = limits.recalledCharacters
  for (const memory of [...fitting.slice(0, limits.recalledByWords), ...newest]) {
    if (chosen.size >= limits.recalled) break
    if (chosen.has(memory.id) || memory.content.length > room) continue
    chosen.set(memory.id, { id: memory.id, content: memory.content })
    room -= memory.content.length
  }
  return [...chosen.values()].sort((one, other) => (one.id < other.id ? -1 : 1))
}
