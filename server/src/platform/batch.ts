import { setImmediate as nextTurn } from 'node:timers/promises'
import { sql } from 'kysely'
import type pg from 'pg'
import type { TSchema } from 'typebox'
import { isUnavailable, type Tx } from './db.ts'
import { stringifyWithBigints } from './json.ts'
import { createLastOwners } from './last-owners.ts'
import type { Metrics } from './metrics.ts'
import { unavailable } from './problem.ts'
import type { StepAnswer, StepDefinition, StepInput } from './sql-step.ts'

/**
 * Group commit. All inputs that are waiting, of any step, are sent in one call and committed once. A refusal undoes its
 * own input and leaves the others of the batch. An input whose lock another transaction holds leaves its batch and waits
 * with others for the same lock, so that one slow tenant delays nobody else.
 * Inputs wait by owner, and the owners take turns: a flood of one delays itself. An input with many locks touches as many
 * rows: it shares a batch only with inputs of its owner, and one batch is always left for the others.
 */
export type Step<Input, Answer> = (input: Input, locks: readonly string[], options?: StepOptions) => Promise<Answer>

export type StepOptions = {
  /** The tenant or payer that the work is for. */
  owner?: string
  /** This input may have been committed before, and only the reply was lost. */
  repeated?: boolean
}

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
  owner: string
  repeated: boolean
  resolve: (answer: unknown) => void
  reject: (error: unknown) => void
}

type ItemResult =
  | { ok: true; result: unknown }
  | { ok: false; sqlstate: string; message: string; detail: string }
  | { busy: string }

const MAX_BATCH = 64
/** The weight of an input is its number of locks, each of which stands for rows that it changes. */
const MAX_BATCH_WEIGHT = 512
const HEAVY_WEIGHT = 32
/** How many inputs of one owner a batch takes while others wait, and how many at its turn. */
const MAX_SHARE = 16
const TURN = 4
const MAX_WAITING = 10_000
/** A second batch is prepared and sent while the first one commits. */
const MAX_BATCHES = 2
/** While others are about, a heavy batch is followed by a rest of so many times what it took: they find most of the database free. */
const REST = 3
const MAX_REST_MS = 500
/**
 * How many callers hear of their results before others get the event loop: what follows a result is the work of a run. One
 * owner alone hears of more at a time, so that its next batch is larger: a batch of twice the size costs a run a sixth less.
 */
const SLICE = 8
const SLICE_ALONE = 32
/** Batches that wait for a lock of another process at the same time; each occupies a database connection. */
const MAX_LOCK_WAITS = 4

/**
 * How many turns of the event loop the first input of a batch waits for others. Turns are as long as there is work: an input
 * alone waits some microseconds, and where the process is busy, those that it works on share the batch and its commit. Six
 * instead of one cost a run a fifth less.
 */
export const TURNS_BEFORE_BATCH = 6

/** How long a lock that another process held counts as shared with it. */
const SHARED_MS = 250
const MAX_SHARED = 1_000

/** `maxBatch` is set only by the benchmark of group commit. */
export function createSteps(pool: Pick<pg.Pool, 'query'>, metrics?: Metrics, maxBatch = MAX_BATCH) {
  const waiting: OwnerQueues = new Map()
  /** Inputs that wait for locks of another process, by their names. */
  const waitingForLock = new Map<string, WaitingItem[]>()
  /** The locks that are being waited for, with the owner of the batch that waits. */
  const locksInWait = new Map<string, string>()
  /** The locks of the batches under way: an input that needs one of them waits here, not in the database. */
  const locksInUse = new Set<string>()
  /** Until when a lock counts as one that another process uses too: its inputs wait for it at once instead of being sent in vain. */
  const sharedUntil = new Map<string, number>()
  let isScheduled = false
  let isLockScheduled = false
  let batches = 0
  let heavyBatches = 0
  let isHeavyResting = false
  const lastOwners = createLastOwners()
  let itemCount = 0

  const startBatches = () => {
    isScheduled = false
    while (batches < MAX_BATCHES) {
      const mayBeHeavy = heavyBatches < MAX_BATCHES - 1 && !isHeavyResting
      const batch = takeBatch(waiting, locksInUse, maxBatch, mayBeHeavy)
      if (batch.length === 0) return
      void drainBatch(batch)
    }
  }

  /** After a heavy batch, while others are about. */
  const restHeavy = (owner: string, startedAt: number) => {
    const now = performance.now()
    if (isHeavyResting || !lastOwners.areOthersAbout(owner)) return
    isHeavyResting = true
    setTimeout(
      () => {
        isHeavyResting = false
        startBatches()
        drainLocks()
      },
      Math.min(REST * (now - startedAt), MAX_REST_MS),
    )
  }

  const drainBatch = async (batch: WaitingItem[]) => {
    const isHeavyBatch = isHeavy(batch[0]!)
    batches += 1
    if (isHeavyBatch) heavyBatches += 1
    const locks = batch.flatMap((item) => item.locks)
    for (const lock of locks) locksInUse.add(lock)
    const startedAt = performance.now()
    await runBatch(batch, false, () => {
      for (const lock of locks) locksInUse.delete(lock)
      batches -= 1
      if (isHeavyBatch) {
        heavyBatches -= 1
        restHeavy(batch[0]!.owner, startedAt)
      }
      startBatches()
    })
  }

  /** An owner may wait for a lock while it waits for fewer than can still be waited for: some are left for the others. */
  const mayWait = (owner: string) => {
    let waits = 0
    for (const other of locksInWait.values()) if (other === owner) waits += 1
    return waits < MAX_LOCK_WAITS - locksInWait.size
  }

  /** The locks of an input that are shared with another process now, as one name; undefined when there are none. */
  const findShared = (locks: readonly string[]): string | undefined => {
    if (sharedUntil.size === 0) return undefined
    const now = performance.now()
    const shared = locks.filter((lock) => {
      const until = sharedUntil.get(lock)
      if (until !== undefined && until < now) sharedUntil.delete(lock)
      return until !== undefined && until >= now
    })
    return shared.length === 0 ? undefined : shared.join('\n')
  }

  /** Only inputs that wait for the same locks share a batch, so that nobody waits for more than its own. */
  const waitForLocks = (names: string, item: WaitingItem) => {
    const items = waitingForLock.get(names)
    if (items) items.push(item)
    else waitingForLock.set(names, [item])
    // After the current turn, so that everything that became ready in it shares a batch.
    if (!isLockScheduled) setImmediate(drainLocks)
    isLockScheduled = true
  }

  /** One batch at a time for each lock, and the locks in turn. */
  const drainLocks = () => {
    isLockScheduled = false
    for (;;) {
      const next = [...waitingForLock].find(
        ([key, [first]]) => !locksInWait.has(key) && mayWait(first!.owner) && !(isHeavyResting && isHeavy(first!)),
      )
      if (!next) return
      const [name, items] = next
      const batch = items.splice(0, Math.min(maxBatch, countWithin(items, MAX_BATCH_WEIGHT)))
      waitingForLock.delete(name)
      if (items.length > 0) waitingForLock.set(name, items)
      const { owner } = batch[0]!
      locksInWait.set(name, owner)
      const startedAt = performance.now()
      void runBatch(batch, true, () => {
        locksInWait.delete(name)
        if (batch.some(isHeavy)) restHeavy(owner, startedAt)
        drainLocks()
      })
    }
  }

  /**
   * `onEnd` starts the next batch. While others are about that is before any caller hears of its result, so that the database
   * works meanwhile; an owner alone gains more when what follows from these results is in the next batch.
   */
  const runBatch = async (batch: WaitingItem[], wait: boolean, onEnd: () => void) => {
    for (const [name, count] of countSteps(batch)) metrics?.batchSize.observe({ step: name }, count)
    const outcomes = await readOutcomes(batch, wait)
    const { owner } = batch[0]!
    const isAlone = owner !== '' && !lastOwners.areOthersAbout(owner)
    if (!isAlone) onEnd()
    const slice = isHeavy(batch[0]!) ? 1 : isAlone ? SLICE_ALONE : SLICE
    for (const [index, settle] of outcomes.entries()) {
      if (index > 0 && index % slice === 0) await nextTurn()
      settle()
    }
    if (isAlone) setImmediate(onEnd)
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
    if (sharedUntil.size >= MAX_SHARED) sharedUntil.clear()
    sharedUntil.set(result.busy, performance.now() + SHARED_MS)
    waitForLocks(findShared(item.locks) ?? result.busy, item)
  }

  return <Input extends TSchema, Answer extends TSchema>(
    definition: StepDefinition<Input, Answer>,
  ): Step<StepInput<StepDefinition<Input, Answer>>, StepAnswer<StepDefinition<Input, Answer>>> =>
    (input, locks, { owner = '', repeated = false } = {}) =>
      new Promise<never>((resolve, reject) => {
        if (itemCount >= MAX_WAITING)
          return reject(unavailable('Too much work is waiting for the database; nothing was done.'))
        itemCount += 1
        if (owner !== '') lastOwners.note(owner)
        const end =
          <Value>(settlePromise: (value: Value) => void) =>
          (value: Value) => {
            itemCount -= 1
            settlePromise(value)
          }
        const queue = waiting.get(owner)
        const item = {
          definition,
          input,
          locks,
          owner,
          repeated,
          resolve: end(resolve as (answer: unknown) => void),
          reject: end(reject),
        }
        const sharedLocks = findShared(locks)
        if (sharedLocks !== undefined) return waitForLocks(sharedLocks, item)
        if (queue) queue.push(item)
        else waiting.set(owner, [item])
        if (!isScheduled) afterTurns(TURNS_BEFORE_BATCH, startBatches)
        isScheduled = true
      })
}

const afterTurns = (turns: number, next: () => void): void => {
  setImmediate(turns === 1 ? next : () => afterTurns(turns - 1, next))
}

/** The inputs of each owner in the order of arrival; the owners in the order of turns. */
type OwnerQueues = Map<string, WaitingItem[]>

const isHeavy = ({ locks }: WaitingItem) => locks.length > HEAVY_WEIGHT

/** How many of the first items weigh at most so much together; at least one. */
function countWithin(items: readonly WaitingItem[], maxWeight: number): number {
  let weight = 0
  const index = items.findIndex((item) => {
    weight += item.locks.length
    return weight > maxWeight
  })
  return index === -1 ? items.length : Math.max(1, index)
}

/**
 * Takes the inputs of the next batch, a few of each owner in turn. An input whose lock is in use is left behind and keeps its
 * turn: later ones with the same lock stay behind it.
 */
function takeBatch(
  waiting: OwnerQueues,
  locksInUse: ReadonlySet<string>,
  maxBatch: number,
  mayBeHeavy: boolean,
): WaitingItem[] {
  const batch: WaitingItem[] = []
  const locksLeft = new Set<string>()
  const isBlocked = ({ locks }: WaitingItem) => locks.some((lock) => locksInUse.has(lock) || locksLeft.has(lock))
  const share = waiting.size > 1 ? Math.min(MAX_SHARE, maxBatch) : maxBatch
  let weight = 0
  let heavyOwner: string | undefined

  const sources = [...waiting].map(([owner, queue]) => ({ owner, queue, next: 0, left: [] as WaitingItem[], taken: 0 }))
  type Source = (typeof sources)[number]

  /** Takes up to so many inputs of an owner, and returns whether it may give more at its next turn. */
  const takeTurn = (source: Source, most: number): boolean => {
    for (let count = 0; count < most && source.next < source.queue.length; ) {
      const item = source.queue[source.next]!
      if (batch.length >= maxBatch || source.taken >= share) return false
      if (batch.length > 0 && weight + item.locks.length > MAX_BATCH_WEIGHT) return false
      if (heavyOwner !== undefined && heavyOwner !== source.owner) return false
      if (isBlocked(item)) {
        for (const lock of item.locks) locksLeft.add(lock)
        source.left.push(item)
        source.next += 1
        continue
      }
      if (isHeavy(item) && heavyOwner === undefined) {
        if (!mayBeHeavy || batch.length > 0) return false
        heavyOwner = source.owner
      }
      batch.push(item)
      weight += item.locks.length
      source.next += 1
      source.taken += 1
      count += 1
    }
    return source.next < source.queue.length
  }

  const turn = sources.length > 1 ? TURN : maxBatch
  for (let open = sources; open.length > 0; ) open = open.filter((source) => takeTurn(source, turn))

  for (const { owner, queue, next, left, taken } of sources) {
    if (taken === 0) continue
    const rest = [...left, ...queue.slice(next)]
    waiting.delete(owner)
    if (rest.length > 0) waiting.set(owner, rest)
  }
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
