import { AsyncLocalStorage } from 'node:async_hooks'
import { createLastOwners } from './last-owners.ts'
import { Problem } from './problem.ts'

export type FairQueueOptions = {
  /** How many pieces of work may be under way at the same time. */
  slots: number
  /** How many of one owner while others are about; without it as many as the slots allow. */
  maxBesideOthers?: number
  /** How many of one owner while nobody else is about, in slots of its own beyond `maxBesideOthers`; without it half of the slots. */
  maxAlone?: number
  /** How many pieces of work of one owner may wait; the next one is refused. */
  maxWaiting?: number
  /** How many may wait of all owners together. When they are too many, the owner with the most loses its newest. */
  maxWaitingOfAll?: number
}

export type FairQueue = {
  /** Does the work now or when it is its owner's turn. Refuses with 503, before the work has begun, when too much waits. */
  run<Result>(owner: string, work: () => Promise<Result>): Promise<Result>
  /** How many pieces of work of an owner are under way and waiting. */
  load(owner: string): { underWay: number; waiting: number }
  /** Whether nothing is under way and nothing waits. */
  isIdle(): boolean
}

type Waiting = { start: () => void; refuse: () => void }

export const MAX_WAITING_OF_OWNER = 1_024
const MAX_WAITING_OF_ALL = 4_096
const RETRY_AFTER_SECONDS = 1

/**
 * Shares slots between owners, which are tenants, or addresses of guests. An owner may take a slot while it has fewer than
 * are free: one alone gets half of them or what it may have alone, two get a third each, and a slot is always left for the
 * next one. While others are about it may have fewer, and what it has beyond that takes no slot of theirs. Owners that wait take
 * turns, so that a flood of one delays itself and nobody else.
 */
export function createFairQueue({
  slots,
  maxBesideOthers = slots,
  maxAlone = 0,
  maxWaiting = MAX_WAITING_OF_OWNER,
  maxWaitingOfAll = MAX_WAITING_OF_ALL,
}: FairQueueOptions): FairQueue {
  const underWay = new Map<string, number>()
  /** In the order of turns: an owner that has had its turn goes to the end. */
  const waiting = new Map<string, Waiting[]>()
  const lastOwners = createLastOwners()
  /** How many slots one owner occupies, however much it has under way. */
  const maxSlots = maxAlone > 0 ? maxBesideOthers : slots
  let free = slots
  let waitingOfAll = 0

  const mayStart = (owner: string) => {
    const own = underWay.get(owner) ?? 0
    if (lastOwners.areOthersAbout(owner)) return own < free && own < maxBesideOthers
    return own < free || own < maxAlone
  }

  const take = (owner: string) => {
    const own = underWay.get(owner) ?? 0
    if (own < maxSlots) free -= 1
    underWay.set(owner, own + 1)
  }

  const release = (owner: string) => {
    const left = underWay.get(owner)! - 1
    if (left < maxSlots) free += 1
    if (left === 0) underWay.delete(owner)
    else underWay.set(owner, left)
    startNext()
  }

  const startNext = () => {
    while (waitingOfAll > 0) {
      const owner = findNextOwner()
      if (owner === undefined) return
      const queue = waiting.get(owner)!
      const next = queue.shift()!
      waitingOfAll -= 1
      waiting.delete(owner)
      if (queue.length > 0) waiting.set(owner, queue)
      take(owner)
      next.start()
    }
  }

  const findNextOwner = () => {
    for (const owner of waiting.keys()) if (mayStart(owner)) return owner
    return undefined
  }

  /** Makes room by refusing the newest work of the owner that has the most waiting. */
  const refuseLongest = () => {
    let longest: string | undefined
    let length = 0
    for (const [owner, queue] of waiting) if (queue.length > length) [longest, length] = [owner, queue.length]
    if (longest === undefined) return
    const queue = waiting.get(longest)!
    const newest = queue.pop()!
    waitingOfAll -= 1
    if (queue.length === 0) waiting.delete(longest)
    newest.refuse()
  }

  const perform = async <Result>(owner: string, work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work()
    } finally {
      release(owner)
    }
  }

  return {
    run<Result>(owner: string, work: () => Promise<Result>): Promise<Result> {
      lastOwners.note(owner)
      const queue = waiting.get(owner)
      if (!queue && mayStart(owner)) {
        take(owner)
        return perform(owner, work)
      }
      if (queue && queue.length >= maxWaiting) return Promise.reject(tooManyWaiting())
      // Whoever frees the slot starts the work, which must not run in that caller's context: it decides whose rows are read.
      const inOwnContext = AsyncLocalStorage.snapshot()
      return new Promise<Result>((resolve, reject) => {
        const item = {
          start: () => void inOwnContext(() => perform(owner, work)).then(resolve, reject),
          refuse: () => reject(tooManyWaiting()),
        }
        if (queue) queue.push(item)
        else waiting.set(owner, [item])
        waitingOfAll += 1
        if (waitingOfAll > maxWaitingOfAll) refuseLongest()
      })
    },
    isIdle: () => free === slots && waitingOfAll === 0,
    load: (owner) => ({ underWay: underWay.get(owner) ?? 0, waiting: waiting.get(owner)?.length ?? 0 }),
  }
}

const tooManyWaiting = () =>
  new Problem(
    'error',
    'Too many of your requests are waiting; nothing was done and nothing was charged. Send it again later.',
    { status: 503, code: 'unavailable', retryable: true, retryAfterSeconds: RETRY_AFTER_SECONDS, expected: true },
  )
