import { sql } from 'kysely'
import type pg from 'pg'
import type { TSchema } from 'typebox'
import { isUnavailable, type Tx } from './db.ts'
import { stringifyWithBigints } from './json.ts'
import type { Metrics } from './metrics.ts'
import type { StepAnswer, StepDefinition, StepInput } from './sql-step.ts'

/**
 * Group commit. All inputs that are waiting, of any step, are sent in one call and committed once. A refusal undoes its
 * own input and leaves the others of the batch. An input whose lock another transaction holds leaves its batch and waits
 * with others for the same lock, so that one slow tenant delays nobody else.
 * `repeated` says that this input may have been committed before, and only the reply was lost.
 */
export type Step<Input, Answer> = (input: Input, locks: readonly string[], repeated?: boolean) => Promise<Answer>

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
  definition: StepDefinition
  input: unknown
  locks: readonly string[]
  repeated: boolean
  resolve: (answer: unknown) => void
  reject: (error: unknown) => void
}

type ItemResult =
  | { ok: true; result: unknown }
  | { ok: false; sqlstate: string; message: string; detail: string }
  | { busy: string }

const MAX_BATCH = 64
const MAX_WAITING = 10_000
/** A second batch is prepared and sent while the first one commits. */
const MAX_BATCHES = 2
/** Batches that wait for a lock of another process at the same time; each occupies a database connection. */
const MAX_LOCK_WAITS = 4

/** `maxBatch` is set only by the benchmark of group commit. */
export function createSteps(pool: Pick<pg.Pool, 'query'>, metrics?: Metrics, maxBatch = MAX_BATCH) {
  const waiting: WaitingItem[] = []
  /** Inputs that wait for a lock of another process, by its name. */
  const waitingForLock = new Map<string, WaitingItem[]>()
  const locksInWait = new Set<string>()
  /** The locks of the batches under way: an input that needs one of them waits here, not in the database. */
  const locksInUse = new Set<string>()
  let isScheduled = false
  let batches = 0
  let itemCount = 0

  const startBatches = () => {
    isScheduled = false
    while (batches < MAX_BATCHES) {
      const batch = takeBatch(waiting, locksInUse, maxBatch)
      if (batch.length === 0) return
      void drainBatch(batch)
    }
  }

  const drainBatch = async (batch: WaitingItem[]) => {
    batches += 1
    const locks = batch.flatMap((item) => item.locks)
    for (const lock of locks) locksInUse.add(lock)
    await runBatch(batch, false, () => {
      for (const lock of locks) locksInUse.delete(lock)
      batches -= 1
      startBatches()
    })
  }

  /** One batch at a time for each lock, and the locks in turn. */
  const drainLocks = async () => {
    for (;;) {
      const name = locksInWait.size < MAX_LOCK_WAITS && [...waitingForLock.keys()].find((key) => !locksInWait.has(key))
      if (!name) return
      const items = waitingForLock.get(name)!
      const batch = items.splice(0, maxBatch)
      waitingForLock.delete(name)
      if (items.length > 0) waitingForLock.set(name, items)
      locksInWait.add(name)
      await runBatch(batch, true, () => void locksInWait.delete(name))
    }
  }

  /** `onEnd` is called before any caller hears of its result, so that the database works on the next batch meanwhile. */
  const runBatch = async (batch: WaitingItem[], wait: boolean, onEnd: () => void) => {
    for (const [name, count] of countSteps(batch)) metrics?.batchSize.observe({ step: name }, count)
    const outcomes = await readOutcomes(batch, wait)
    onEnd()
    for (const settle of outcomes) settle()
  }

  /** The result of each input, as a function that tells its caller. */
  const readOutcomes = async (batch: WaitingItem[], wait: boolean): Promise<(() => void)[]> => {
    try {
      const results = await callSteps(batch, wait)
      return batch.map((item, index) => () => settle(item, results[index]!))
    } catch (error) {
      // A lost connection fails every input at once; those who may repeat their step do so, again as a batch.
      if (batch.length === 1 || isUnavailable(error)) return batch.map((item) => () => item.reject(error))
      // A deadlock or an error like it says nothing about any single input, so each is tried once more alone.
      const outcomes: (() => void)[] = []
      for (const item of batch) outcomes.push(...(await readOutcomes([{ ...item, repeated: true }], wait)))
      return outcomes
    }
  }

  const callSteps = async (batch: WaitingItem[], wait: boolean): Promise<ItemResult[]> => {
    const { rows } = await pool.query<{ results: ItemResult[] }>({
      name: 'run_steps',
      text: 'select run_steps($1, $2, $3, $4, $5, $6, $7) as results',
      values: [
        batch.map((item) => item.definition.name),
        batch.map((item) => item.definition.isSet),
        stringifyWithBigints(batch.map((item) => item.input)),
        batch.flatMap((item) => item.locks),
        batch.flatMap((item, index) => item.locks.map(() => index + 1)),
        wait,
        batch.some((item) => item.repeated),
      ],
    })
    return rows[0]!.results
  }

  const settle = (item: WaitingItem, result: ItemResult) => {
    if (!('busy' in result)) return result.ok ? item.resolve(result.result) : item.reject(toError(result))
    const items = waitingForLock.get(result.busy)
    if (items) items.push(item)
    else waitingForLock.set(result.busy, [item])
    void drainLocks()
  }

  return <Input extends TSchema, Answer extends TSchema>(
    definition: StepDefinition<Input, Answer>,
  ): Step<StepInput<StepDefinition<Input, Answer>>, StepAnswer<StepDefinition<Input, Answer>>> =>
    (input, locks, repeated = false) =>
      new Promise<never>((resolve, reject) => {
        if (itemCount >= MAX_WAITING) return reject(new Error('Too many steps are waiting for the database.'))
        itemCount += 1
        const end =
          <Value>(settlePromise: (value: Value) => void) =>
          (value: Value) => {
            itemCount -= 1
            settlePromise(value)
          }
        waiting.push({
          definition,
          input,
          locks,
          repeated,
          resolve: end(resolve as (answer: unknown) => void),
          reject: end(reject),
        })
        // After the current turn, so that everything that became ready in it shares a batch.
        if (!isScheduled) setImmediate(startBatches)
        isScheduled = true
      })
}

/** Takes the inputs whose locks are free from the queue. One that is left behind keeps its turn: later ones with the same lock stay behind it. */
function takeBatch(waiting: WaitingItem[], locksInUse: ReadonlySet<string>, maxBatch: number): WaitingItem[] {
  const batch: WaitingItem[] = []
  const left: WaitingItem[] = []
  const locksLeft = new Set<string>()
  for (const [index, item] of waiting.entries()) {
    if (batch.length === maxBatch) {
      left.push(...waiting.slice(index))
      break
    }
    if (item.locks.some((lock) => locksInUse.has(lock) || locksLeft.has(lock))) {
      left.push(item)
      for (const lock of item.locks) locksLeft.add(lock)
    } else batch.push(item)
  }
  waiting.splice(0, waiting.length, ...left)
  return batch
}

function countSteps(batch: readonly WaitingItem[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { definition } of batch) counts.set(definition.name, (counts.get(definition.name) ?? 0) + 1)
  return counts
}

/** Calls a step inside the caller's transaction. Locks are taken in the same order as by a batch, to avoid deadlocks. */
export async function callStepWithLocks<Input extends TSchema, Answer extends TSchema>(
  tx: Tx,
  definition: StepDefinition<Input, Answer>,
  input: StepInput<StepDefinition<Input, Answer>>,
  locks: readonly string[],
): Promise<StepAnswer<StepDefinition<Input, Answer>>> {
  const { rows } = await sql<{ results: Exclude<ItemResult, { busy: string }>[] }>`
    select run_steps(${[definition.name]}::text[], ${[definition.isSet]}::boolean[], ${stringifyWithBigints([input])}::jsonb, ${[...locks]}::text[], ${locks.map(() => 1)}::int[], true, false) as results
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

function toError({ sqlstate, message, detail }: Extract<ItemResult, { ok: false }>): Error {
  if (/^CS\d{3}$/.test(sqlstate))
    return new StepRefused(Number(sqlstate.slice(2)), message, detail ? JSON.parse(detail) : {})
  return Object.assign(new Error(message), { code: sqlstate, detail })
}
