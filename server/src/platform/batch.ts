import { sql } from 'kysely'
import type pg from 'pg'
import type { TSchema } from 'typebox'
import type { Tx } from './db.ts'
import { stringifyWithBigints } from './json.ts'
import type { Metrics } from './metrics.ts'
import type { StepAnswer, StepDefinition, StepInput } from './sql-step.ts'

/**
 * Group commit. A step is an SQL function for one item; all items that are waiting are sent in one call and committed
 * once. A refusal undoes its own item and leaves the others of the batch.
 */
export type Step<Input, Answer> = (input: Input, locks: readonly string[]) => Promise<Answer>

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

type WaitingItem = {
  input: unknown
  locks: readonly string[]
  resolve: (answer: unknown) => void
  reject: (error: unknown) => void
}

type ItemResult = { ok: true; result: unknown } | { ok: false; sqlstate: string; message: string; detail: string }

const MAX_BATCH = 64
const MAX_WAITING = 10_000

/** `maxBatch` is set only by the benchmark of group commit. */
export function createSteps(pool: Pick<pg.Pool, 'query'>, metrics?: Metrics, maxBatch = MAX_BATCH) {
  return function createStep<Input extends TSchema, Answer extends TSchema>(
    definition: StepDefinition<Input, Answer>,
  ): Step<StepInput<StepDefinition<Input, Answer>>, StepAnswer<StepDefinition<Input, Answer>>> {
    const waiting: WaitingItem[] = []
    let busy = false

    const drain = async () => {
      busy = true
      while (waiting.length > 0) {
        const batch = waiting.splice(0, maxBatch)
        metrics?.batchSize.observe({ step: definition.name }, batch.length)
        await runBatch(batch)
      }
      busy = false
    }

    const runBatch = async (batch: WaitingItem[]) => {
      try {
        const results = await callEachItem(batch)
        for (const [index, item] of batch.entries()) settle(item, results[index]!)
      } catch (error) {
        if (batch.length === 1) return batch[0]!.reject(error)
        // The whole batch failed (a lost connection, a deadlock, no memory), which says nothing about any single item.
        // Every step is idempotent by its own id, so each item is tried once more alone.
        for (const item of batch) await runBatch([item])
      }
    }

    const callEachItem = async (batch: WaitingItem[]): Promise<ItemResult[]> => {
      const locks = [...new Set(batch.flatMap((item) => item.locks))]
      const { rows } = await pool.query<{ results: ItemResult[] }>(
        'select each_item($1, $2::jsonb, $3::text[]) as results',
        [definition.name, stringifyWithBigints(batch.map((item) => item.input)), locks],
      )
      return rows[0]!.results
    }

    return (input, locks) =>
      new Promise((resolve, reject) => {
        if (waiting.length >= MAX_WAITING) return reject(new Error('Too many steps are waiting for the database.'))
        waiting.push({ input, locks, resolve: resolve as (answer: unknown) => void, reject })
        if (!busy) void drain()
      })
  }
}

/** Calls a step inside the caller's transaction. Locks are taken in the same order as by a batch, to avoid deadlocks. */
export async function callStepWithLocks<Input extends TSchema, Answer extends TSchema>(
  tx: Tx,
  definition: StepDefinition<Input, Answer>,
  input: StepInput<StepDefinition<Input, Answer>>,
  locks: readonly string[],
): Promise<StepAnswer<StepDefinition<Input, Answer>>> {
  const { rows } = await sql<{ results: ItemResult[] }>`
    select each_item(${definition.name}, ${stringifyWithBigints([input])}::jsonb, ${[...locks]}::text[]) as results
  `.execute(tx)
  const result = rows[0]!.results[0]!
  if (result.ok) return result.result as StepAnswer<StepDefinition<Input, Answer>>
  throw toError(result)
}

/** Calls a step that needs no locks and raises no refusal, inside the caller's transaction. */
export async function callStep<Input extends TSchema, Answer extends TSchema>(
  tx: Tx,
  definition: StepDefinition<Input, Answer>,
  input: StepInput<StepDefinition<Input, Answer>>,
): Promise<StepAnswer<StepDefinition<Input, Answer>>> {
  const { rows } = await sql<{ answer: unknown }>`
    select ${sql.id(definition.name)}(${stringifyWithBigints(input)}::jsonb) as answer
  `.execute(tx)
  return rows[0]!.answer as StepAnswer<StepDefinition<Input, Answer>>
}

function settle(item: WaitingItem, result: ItemResult) {
  if (result.ok) item.resolve(result.result)
  else item.reject(toError(result))
}

function toError({ sqlstate, message, detail }: ItemResult & { ok: false }): Error {
  if (/^CS\d{3}$/.test(sqlstate))
    return new StepRefused(Number(sqlstate.slice(2)), message, detail ? JSON.parse(detail) : {})
  return Object.assign(new Error(message), { code: sqlstate, detail })
}
