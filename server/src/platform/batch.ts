import type pg from 'pg'
import type { Metrics } from './metrics.ts'

/**
 * Group commit. Each step of a run is an SQL function for one run; whatever is waiting is sent in one call and
 * committed once. A refusal undoes one item and leaves its neighbours, so a caller cannot tell that it had company.
 */
export type Step<Item, Result> = (item: Item, locks: readonly string[]) => Promise<Result>

/** A refusal raised by a step: SQLSTATE `CS` and the HTTP status, the reason as message, the rest as JSON detail. */
export class StepRefused extends Error {
  readonly status: number
  readonly detail: Record<string, unknown>
  constructor(status: number, message: string, detail: Record<string, unknown>) {
    super(message)
    this.name = 'StepRefused'
    this.status = status
    this.detail = detail
  }
}

type Waiting = {
  item: unknown
  locks: readonly string[]
  resolve: (result: unknown) => void
  reject: (error: unknown) => void
}

type Verdict = { ok: true; result: unknown } | { ok: false; sqlstate: string; message: string; detail: string }

const MAX_BATCH = 64
const MAX_WAITING = 10_000

/** `most` is for the bench, which shows what sharing a commit is worth. */
export function createSteps(pool: Pick<pg.Pool, 'query'>, metrics?: Metrics, most = MAX_BATCH) {
  return function step<Item, Result>(functionName: string): Step<Item, Result> {
    const waiting: Waiting[] = []
    let busy = false

    const drain = async () => {
      busy = true
      while (waiting.length > 0) {
        const batch = waiting.splice(0, most)
        metrics?.batchSize.observe({ step: functionName }, batch.length)
        await runBatch(batch)
      }
      busy = false
    }

    const runBatch = async (batch: Waiting[]) => {
      try {
        const verdicts = await call(batch)
        for (const [index, entry] of batch.entries()) answer(entry, verdicts[index]!)
      } catch (error) {
        if (batch.length === 1) return batch[0]!.reject(error)
        // The batch as a whole failed (a lost connection, a deadlock, no memory): none of it may be judged by that.
        // Every step is idempotent by its own id, so each is tried once more alone.
        for (const entry of batch) await runBatch([entry])
      }
    }

    const call = async (batch: Waiting[]): Promise<Verdict[]> => {
      const locks = [...new Set(batch.flatMap((entry) => entry.locks))]
      const { rows } = await pool.query<{ verdicts: Verdict[] }>(
        'select each_item($1, $2::jsonb, $3::text[]) as verdicts',
        [
          functionName,
          JSON.stringify(
            batch.map((entry) => entry.item),
            bigintAsText,
          ),
          locks,
        ],
      )
      return rows[0]!.verdicts
    }

    return (item, locks) =>
      new Promise<Result>((resolve, reject) => {
        if (waiting.length >= MAX_WAITING) return reject(new Error('Too many steps are waiting for the database.'))
        waiting.push({ item, locks, resolve: resolve as (result: unknown) => void, reject })
        if (!busy) void drain()
      })
  }
}

const bigintAsText = (_: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)

function answer(entry: Waiting, verdict: Verdict) {
  if (verdict.ok) return entry.resolve(verdict.result)
  if (/^CS\d{3}$/.test(verdict.sqlstate))
    return entry.reject(
      new StepRefused(
        Number(verdict.sqlstate.slice(2)),
        verdict.message,
        verdict.detail ? JSON.parse(verdict.detail) : {},
      ),
    )
  entry.reject(Object.assign(new Error(verdict.message), { code: verdict.sqlstate, detail: verdict.detail }))
}
