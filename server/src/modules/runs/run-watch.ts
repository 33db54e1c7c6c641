import { sql } from 'kysely'
import type { Db } from '../../platform/db.ts'
import type { Log } from '../../platform/log.ts'
import { outsideTenantReads } from '../../platform/tenant-reads.ts'

/** What somebody who waits for a run learns of it. `reason` says why it failed. */
export type RunStatus = {
  status: 'pending' | 'settling' | 'completed' | 'failed' | 'blocked'
  reason: string | null
  receiptId: string | null
  /** What the lane has written so far, for listeners that asked for it. */
  text?: string
}

export type RunWatch = ReturnType<typeof createRunWatch>

type Listener = (status: RunStatus) => void

const POLL_MS = 500

export const isEnded = ({ status }: RunStatus) => status !== 'pending' && status !== 'settling'

/**
 * Tells listeners how runs go on, whichever process works on them. One statement asks for all runs that are followed, and
 * none is sent while nobody listens.
 */
export function createRunWatch({ db, log }: { db: Db; log: Log }) {
  const listeners = new Map<string, Set<Listener>>()
  const textListeners = new Set<Listener>()
  let timer: NodeJS.Timeout | undefined
  let isPolling = false

  const poll = async () => {
    if (isPolling) return
    isPolling = true
    try {
      const wantText = [...listeners]
        .filter(([, ofRun]) => [...ofRun].some((listener) => textListeners.has(listener)))
        .map(([id]) => id)
      const statuses = await readStatuses(db, [...listeners.keys()], wantText)
      for (const [id, status] of statuses) for (const listener of [...(listeners.get(id) ?? [])]) listener(status)
    } catch (error) {
      log.warn({ err: error }, 'the state of runs could not be read')
    } finally {
      isPolling = false
    }
  }

  const schedule = () => {
    timer ??= outsideTenantReads(() => setInterval(() => void poll(), POLL_MS).unref())
  }

  return {
    /** Calls the listener with the status of a run, again and again, until it is stopped. */
    follow(runId: string, listener: Listener, { text = false } = {}): () => void {
      if (text) textListeners.add(listener)
      const ofRun = listeners.get(runId) ?? new Set()
      listeners.set(runId, ofRun.add(listener))
      schedule()
      return () => {
        ofRun.delete(listener)
        textListeners.delete(listener)
        if (ofRun.size === 0 && listeners.get(runId) === ofRun) listeners.delete(runId)
        if (listeners.size > 0) return
        clearInterval(timer)
        timer = undefined
      }
    },

    /** A run of this process has new text or has ended: whoever follows it is told at once. */
    noteChange(runId: string) {
      if (listeners.has(runId)) outsideTenantReads(() => void poll())
    },
  }
}

/** One statement, so that a run which ends meanwhile is seen in one of the two tables. */
export async function readStatuses(
  db: Db,
  ids: readonly string[],
  wantText: readonly string[] = [],
): Promise<Map<string, RunStatus>> {
  if (ids.length === 0) return new Map()
  const { rows } = await sql<StatusRow & { id: string; text: string | null }>`
    select id, state, result->>'reason' as reason, receipt_id,
           case when state = 'executing' and id = any(${wantText}) then result->>'output' end as text
    from runs where id = any(${ids})
  `.execute(db)
  return new Map(rows.map(({ id, text, ...row }) => [id, { ...toRunStatus(row), ...(text !== null && { text }) }]))
}

type StatusRow = { state: string; reason: string | null; receipt_id: string | null }

/** A run that waits for its approval or its turn is pending, too. */
export function toRunStatus(row: StatusRow): RunStatus {
  const isOver = row.state === 'completed' || row.state === 'failed' || row.state === 'blocked'
  const status = isOver || row.state === 'settling' ? (row.state as RunStatus['status']) : 'pending'
  return { status, reason: status === 'failed' ? row.reason : null, receiptId: row.receipt_id }
}
