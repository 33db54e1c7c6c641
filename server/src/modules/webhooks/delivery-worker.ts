import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { createSteps } from '../../platform/batch.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Keys } from '../../platform/keys.ts'
import type { Log } from '../../platform/log.ts'
import { composeBody } from './compose-body.ts'
import { type ClaimedDelivery, claimDeliveries, releaseDeliveries, type Standing } from './deliveries.store.ts'
import { retryDelayMs } from './retry-schedule.ts'
import type { Sender, SignedOutcome } from './send.ts'
import { type DeliveryOutcome, finishDeliveryStep } from './webhooks.steps.ts'

export type DeliveryWorkerDeps = {
  db: Db
  pool: Pick<pg.Pool, 'query'>
  clock: Clock
  keys: Pick<Keys, 'decrypt'>
  send: Sender
  log: Pick<Log, 'warn' | 'debug'>
  random?: () => number
  /** Called when a subscription was switched off, so that its tenant gets an alert soon. */
  onDisabled?: () => void
}

type Pool = { standing: Standing; size: number; perSubscription: number }

/**
 * Two pools. A target that was slow or did not respond is served from the second, one message at a time, and returns
 * to the first with its next fast success. So an unresponsive target can delay other slow targets, but never a fast one.
 */
const pools: Pool[] = [
  { standing: 'good', size: 256, perSubscription: 8 },
  { standing: 'poor', size: 256, perSubscription: 1 },
]
const SLOW_MS = 2_000
const LEASE_SECONDS = 60

export type DeliveryWorker = ReturnType<typeof createDeliveryWorker>

export function createDeliveryWorker(deps: DeliveryWorkerDeps) {
  const random = deps.random ?? Math.random
  const finish = createSteps(deps.pool)(finishDeliveryStep)
  const worker = randomBytes(12).toString('hex')
  const stopping = new AbortController()
  const attemptsBySubscription = new Map<string, number>()
  const inPool = new Map<Standing, number>()
  const runningAttempts = new Set<Promise<void>>()
  const interruptedIds: string[] = []
  let claiming: Promise<number> | undefined
  let claimAgain = false

  const claimOnce = async (): Promise<number> => {
    let started = 0
    for (const pool of pools) {
      const room = pool.size - (inPool.get(pool.standing) ?? 0)
      if (room <= 0 || stopping.signal.aborted) continue
      const deliveries = await claimDeliveries(deps.db, {
        at: deps.clock.now(),
        leaseSeconds: LEASE_SECONDS,
        limit: room,
        perSubscription: pool.perSubscription,
        standing: pool.standing,
        attemptsBySubscription: Object.fromEntries(attemptsBySubscription),
        worker,
      })
      for (const delivery of deliveries) start(pool.standing, delivery)
      started += deliveries.length
    }
    return started
  }

  /** Starts due deliveries while there is room, without waiting for responses. A finished attempt claims the next ones. */
  const deliverDue = (): Promise<number> => {
    claimAgain = true
    claiming ??= claimRepeatedly().finally(() => {
      claiming = undefined
    })
    return claiming
  }

  // A running claim does not see room that became free meanwhile, so it is repeated.
  const claimRepeatedly = async () => {
    let started = 0
    while (claimAgain) {
      claimAgain = false
      started += await claimOnce()
    }
    return started
  }

  const start = (standing: Standing, delivery: ClaimedDelivery) => {
    addCount(attemptsBySubscription, delivery.subscription_id, 1)
    addCount(inPool, standing, 1)
    const attempt = attemptDelivery(delivery)
      .catch((error) =>
        deps.log.warn({ err: error, delivery: delivery.id }, 'the outcome of a delivery could not be stored'),
      )
      .finally(() => {
        addCount(attemptsBySubscription, delivery.subscription_id, -1)
        addCount(inPool, standing, -1)
      })
      .then(async () => {
        if (!stopping.signal.aborted) await deliverDue()
      })
      .catch((error) => deps.log.debug({ err: error }, 'no more deliveries could be claimed for now'))
      .finally(() => runningAttempts.delete(attempt))
    runningAttempts.add(attempt)
  }

  const attemptDelivery = async (delivery: ClaimedDelivery) => {
    const at = deps.clock.now()
    const message = toMessage(delivery, at)
    const outcome = await deps.send(
      { url: delivery.url, message, secrets: decryptSecrets(delivery, at, deps.keys) },
      stopping.signal,
    )
    // A shutdown is not the target's failure: the delivery is released for another worker.
    if (stopping.signal.aborted && !outcome.ok) {
      interruptedIds.push(delivery.id)
      return
    }
    const { switched_off } = await finish(
      { ...toDeliveryOutcome(delivery, outcome, deps.clock.now(), random), timestamp: message.timestamp },
      [`webhook:${delivery.subscription_id}`],
    )
    if (switched_off) deps.onDisabled?.()
  }

  return {
    deliverDue,

    /** Waits until no attempt is running. */
    async idle() {
      while (claiming || runningAttempts.size > 0) await Promise.allSettled([claiming, ...runningAttempts])
    },

    async stop() {
      stopping.abort()
      await Promise.allSettled([claiming, ...runningAttempts])
      if (interruptedIds.length > 0) await releaseDeliveries(deps.db, worker, interruptedIds, deps.clock.now())
    },
  }
}

function addCount<K>(counts: Map<K, number>, key: K, by: number) {
  const next = (counts.get(key) ?? 0) + by
  if (next === 0) counts.delete(key)
  else counts.set(key, next)
}

const toMessage = (delivery: ClaimedDelivery, at: Date) => ({
  id: delivery.event_id,
  timestamp: Math.floor(at.getTime() / 1000),
  body: composeBody(delivery),
})

function decryptSecrets(delivery: ClaimedDelivery, at: Date, keys: Pick<Keys, 'decrypt'>): string[] {
  const { secret, earlier_secret, earlier_secret_until } = delivery
  const isOverlapping = earlier_secret && earlier_secret_until && earlier_secret_until > at
  return [secret, ...(isOverlapping ? [earlier_secret] : [])].map((ciphertext) => keys.decrypt(ciphertext))
}

function toDeliveryOutcome(
  delivery: ClaimedDelivery,
  outcome: SignedOutcome,
  at: Date,
  random: () => number,
): Omit<DeliveryOutcome, 'timestamp'> {
  const isGone = outcome.status === 410
  const delayMs = outcome.ok || isGone ? undefined : retryDelayMs(delivery.round_attempts + 1, random)
  const isExhausted = !outcome.ok && delayMs === undefined
  return {
    ...outcome,
    id: delivery.id,
    claim: delivery.claim,
    at: at.toISOString(),
    next_attempt_at: delayMs === undefined ? null : new Date(at.getTime() + delayMs).toISOString(),
    standing: outcome.ms > SLOW_MS ? 'poor' : 'good',
    switch_off: isGone ? 'gone' : isExhausted ? 'exhausted' : null,
  }
}
