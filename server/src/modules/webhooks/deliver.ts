import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { createSteps } from '../../platform/batch.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Keys } from '../../platform/keys.ts'
import type { Log } from '../../platform/log.ts'
import { type Claimed, claimDeliveries, giveBack, type Standing } from './deliveries.store.ts'
import { retryDelayMs } from './retry.ts'
import type { Outcome, Send } from './send.ts'
import { type DeliveryOutcome, finishDeliveryStep } from './webhooks.steps.ts'

export type DeliverDeps = {
  db: Db
  pool: Pick<pg.Pool, 'query'>
  clock: Clock
  keys: Pick<Keys, 'decrypt'>
  send: Send
  log: Pick<Log, 'warn' | 'debug'>
  random?: () => number
  /** Told when a subscription was switched off, so that its tenant hears of it soon. */
  switchedOff?: () => void
}

type Lane = { standing: Standing; most: number; aSubscription: number }

/**
 * Two lanes. A target that answered late or not at all is served in the second, one message at a time, and comes back
 * to the first with its next quick success. So a dead target can delay others like it, and never a good one.
 */
const lanes: Lane[] = [
  { standing: 'good', most: 256, aSubscription: 8 },
  { standing: 'poor', most: 256, aSubscription: 1 },
]
const SLOW_MS = 2_000
const LEASE_SECONDS = 60

export type Deliver = ReturnType<typeof createDeliver>

export function createDeliver(deps: DeliverDeps) {
  const random = deps.random ?? Math.random
  const finish = createSteps(deps.pool)(finishDeliveryStep)
  const worker = randomBytes(12).toString('hex')
  const stopping = new AbortController()
  const busy = new Map<string, number>()
  const inLane = new Map<Standing, number>()
  const underWay = new Set<Promise<void>>()
  const interrupted: string[] = []
  let claiming: Promise<number> | undefined
  let again = false

  const claimOnce = async (): Promise<number> => {
    let started = 0
    for (const lane of lanes) {
      const room = lane.most - (inLane.get(lane.standing) ?? 0)
      if (room <= 0 || stopping.signal.aborted) continue
      const claimed = await claimDeliveries(deps.db, {
        at: deps.clock.now(),
        leaseSeconds: LEASE_SECONDS,
        most: room,
        aSubscription: lane.aSubscription,
        standing: lane.standing,
        busy: Object.fromEntries(busy),
        worker,
      })
      for (const delivery of claimed) start(lane.standing, delivery)
      started += claimed.length
    }
    return started
  }

  /** Starts what is due and has room; it does not wait for targets. What is finished makes room and takes the next. */
  const deliverDue = (): Promise<number> => {
    again = true
    claiming ??= claimWhileAsked().finally(() => {
      claiming = undefined
    })
    return claiming
  }

  // Room made while a claim was being written is not known to it, so the question is asked once more.
  const claimWhileAsked = async () => {
    let started = 0
    while (again) {
      again = false
      started += await claimOnce()
    }
    return started
  }

  const start = (standing: Standing, delivery: Claimed) => {
    count(busy, delivery.subscription_id, 1)
    count(inLane, standing, 1)
    const attempt = attemptOnce(delivery)
      .catch((error) => deps.log.warn({ err: error, delivery: delivery.id }, 'the outcome of a delivery was not kept'))
      .finally(() => {
        count(busy, delivery.subscription_id, -1)
        count(inLane, standing, -1)
      })
      .then(async () => {
        if (!stopping.signal.aborted) await deliverDue()
      })
      .catch((error) => deps.log.debug({ err: error }, 'no more deliveries could be claimed for now'))
      .finally(() => underWay.delete(attempt))
    underWay.add(attempt)
  }

  const attemptOnce = async (delivery: Claimed) => {
    const at = deps.clock.now()
    const outcome = await deps.send(
      { url: delivery.url, message: messageOf(delivery, at), secrets: secretsOf(delivery, at, deps.keys) },
      stopping.signal,
    )
    // A stop is not the target's fault: the delivery is given back, and another worker tries again.
    if (stopping.signal.aborted && !outcome.ok) {
      interrupted.push(delivery.id)
      return
    }
    const { switched_off } = await finish(judge(delivery, outcome, deps.clock.now(), random), [
      `webhook:${delivery.subscription_id}`,
    ])
    if (switched_off) deps.switchedOff?.()
  }

  return {
    deliverDue,

    /** Waits until nothing is under way: all that is due at this moment of the clock has had its attempt. */
    async idle() {
      while (claiming || underWay.size > 0) await Promise.allSettled([claiming, ...underWay])
    },

    async stop() {
      stopping.abort()
      await Promise.allSettled([claiming, ...underWay])
      if (interrupted.length > 0) await giveBack(deps.db, worker, interrupted, deps.clock.now())
    },
  }
}

function count<K>(counts: Map<K, number>, key: K, by: number) {
  const next = (counts.get(key) ?? 0) + by
  if (next === 0) counts.delete(key)
  else counts.set(key, next)
}

/** The same bytes on every attempt: nothing in the body says when it was sent. */
function messageOf(delivery: Claimed, at: Date) {
  const body = {
    type: delivery.type,
    timestamp: delivery.event_at.toISOString(),
    data: delivery.data,
    seq: Number(delivery.seq),
  }
  return { id: delivery.event_id, timestamp: Math.floor(at.getTime() / 1000), body: JSON.stringify(body) }
}

function secretsOf(delivery: Claimed, at: Date, keys: Pick<Keys, 'decrypt'>): string[] {
  const { secret, earlier_secret, earlier_secret_until } = delivery
  const overlapping = earlier_secret && earlier_secret_until && earlier_secret_until > at
  return [secret, ...(overlapping ? [earlier_secret] : [])].map((sealed) => keys.decrypt(sealed))
}

function judge(delivery: Claimed, outcome: Outcome, at: Date, random: () => number): DeliveryOutcome {
  const gone = outcome.status === 410
  const delayMs = outcome.ok || gone ? undefined : retryDelayMs(delivery.round_attempts + 1, random)
  const over = !outcome.ok && delayMs === undefined
  return {
    ...outcome,
    id: delivery.id,
    claim: delivery.claim,
    at: at.toISOString(),
    next_attempt_at: delayMs === undefined ? null : new Date(at.getTime() + delayMs).toISOString(),
    standing: outcome.ms > SLOW_MS ? 'poor' : 'good',
    switch_off: gone ? 'gone' : over ? 'exhausted' : null,
  }
}
