import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Broker, BrokerOrder, OrderRequest, Quote } from './broker.ts'
import { lockRun, markSent, putBack, readKillSwitch } from './brokerage.store.ts'
import type { Outcome, Outcomes } from './outcomes.ts'
import { driftBps, worstPriceE8 } from './terms.ts'
import { brokerClientOrderId, isFinal, type TradeRun } from './trade-run.ts'
import type { Venues } from './venues.ts'

/**
 * Executes one claimed run: record the intent, call the broker, record the outcome. It may die between any two of
 * these and be done again by another worker; the broker knows the order by the run's id, so it stays one order.
 */
export type ExecuteDeps = {
  db: Db
  clock: Clock
  venues: Venues
  outcomes: Outcomes
  isFrozen(tenantId: string, agentId: string): Promise<boolean>
  /** For crash tests: told where the work stands. */
  probe?(step: ExecuteStep): void
}

/** Where a worker can die. */
export const executeSteps = ['claimed', 'intent_recorded', 'broker_called', 'outcome_recorded'] as const
export type ExecuteStep = (typeof executeSteps)[number]

export type ExecuteTrade = (run: TradeRun) => Promise<TradeRun>

const WORKER = 'worker'
const POLL_MS = 1000
const RETRY_MS = 5000
const MAX_RETRY_MS = 60_000

type Decision =
  | { now: 'finish'; outcome: Outcome }
  /** `sentAt`: an order may be on its way since then. */
  | { now: 'wait'; until: Date; sentAt: Date | null }

export const createExecuteTrade = (d: ExecuteDeps): ExecuteTrade => {
  const probe = d.probe ?? (() => {})

  return async (run) => {
    probe('claimed')
    const broker = d.venues.byId(run.broker)
    const decision = broker
      ? await decide(broker, run)
      : end('cancelled', `The broker ${run.broker} is not configured.`)
    if (decision.now === 'wait') {
      const { until: at, sentAt } = decision
      await putBack(d.db, run, { at, sentAt, now: d.clock.now() })
      return run
    }
    const finished = await finish(run, decision.outcome)
    probe('outcome_recorded')
    return finished
  }

  async function decide(broker: Broker, run: TradeRun): Promise<Decision> {
    if (run.sentAt) {
      const earlier = await followUp(broker, run, run.sentAt)
      if (earlier) return earlier
    }
    if (run.stopReason) return end('cancelled', run.stopReason)
    if (isOver(run)) return end('cancelled', 'Its time to execute had passed.')
    const quoted = await broker.quote(run.terms.type, run.terms.symbol)
    if (!quoted.ok) return retry(run, null)
    const obstacle = await obstacleTo(run, quoted.quote)
    if (obstacle) return obstacle
    return send(broker, run, quoted.quote)
  }

  /** An order may exist already. Undefined when it certainly does not and may still be sent. */
  async function followUp(broker: Broker, run: TradeRun, sentAt: Date): Promise<Decision | undefined> {
    const found = await broker.find(run.tenantId, brokerClientOrderId(run), run.createdAt)
    if (found.outcome === 'unknown') return retry(run, sentAt)
    if (found.outcome === 'found') return settle(broker, run, found.order, sentAt)
    const arrivedBy = new Date(sentAt.getTime() + broker.inFlightMs)
    return d.clock.now() < arrivedBy ? { now: 'wait', until: arrivedBy, sentAt } : undefined
  }

  /** What forbids the order at this moment: some things for good, others for a while. */
  async function obstacleTo(run: TradeRun, quote: Quote): Promise<Decision | undefined> {
    const kill = await readKillSwitch(d.db, run.tenantId)
    if (kill.engagedAt) return end('cancelled', 'Trading is switched off for this tenant.')
    if (run.agentId && (await d.isFrozen(run.tenantId, run.agentId))) {
      return end('cancelled', `Agent '${run.agentId}' is frozen.`)
    }
    if (quote.session === 'closed' || quote.session === 'holiday') {
      const opens = quote.nextOpen && quote.nextOpen < run.executeBy ? quote.nextOpen : run.executeBy
      return { now: 'wait', until: opens, sentAt: null }
    }
    if (quote.halted) return retry(run, null)
    const drift = driftBps(run.terms, quote)
    if (run.approval && drift > run.terms.maxDriftBps) {
      return end('cancelled', `The price moved ${drift} bps since it was approved, more than ${run.terms.maxDriftBps}.`)
    }
    return undefined
  }

  async function send(broker: Broker, run: TradeRun, quote: Quote): Promise<Decision> {
    const sentAt = d.clock.now()
    const { markE8, source, observedAt } = quote
    const mine = await markSent(d.db, run, sentAt, { markE8, source, observedAt })
    if (!mine) return { now: 'wait', until: sentAt, sentAt }
    probe('intent_recorded')
    // The last look at the clock before the order leaves; the broker looks again before it fills.
    if (isOver(run)) return end('cancelled', 'Its time to execute had passed.')
    const placed = await broker.place(orderOf(run))
    probe('broker_called')
    switch (placed.outcome) {
      case 'placed':
        return settle(broker, run, placed.order, sentAt)
      case 'rejected':
        return end('rejected', placed.reason)
      case 'unavailable':
        return retry(run, null, placed.retryAfterSeconds * 1000)
      case 'unknown':
        return retry(run, sentAt)
    }
  }

  /** What has ended is written down; what still works is left to work, until its time is up or somebody stops it. */
  async function settle(broker: Broker, run: TradeRun, order: BrokerOrder, sentAt: Date): Promise<Decision> {
    if (order.status !== 'working') return ended(order)
    const kill = await readKillSwitch(d.db, run.tenantId)
    const stop = run.stopReason ?? (kill.engagedAt ? 'Trading is switched off for this tenant.' : null)
    if (!stop && !isOver(run)) {
      const next = new Date(d.clock.now().getTime() + POLL_MS)
      return { now: 'wait', until: next < run.executeBy ? next : run.executeBy, sentAt }
    }
    const cancelled = await broker.cancel(run.tenantId, brokerClientOrderId(run), run.createdAt)
    if (cancelled.outcome !== 'done') return retry(run, sentAt)
    return ended(cancelled.order, stop ?? 'Its time to execute had passed.')
  }

  /** The outcome is written once: whoever comes second finds the run at rest and leaves it so. */
  async function finish(run: TradeRun, outcome: Outcome): Promise<TradeRun> {
    return d.db.transaction().execute(async (tx) => {
      const current = await lockRun(tx, run.id)
      // Another worker took over while this one was away: what it finds at the broker counts, not what we remember.
      const ours = current && current.attempts === run.attempts && !isFinal(current.state)
      if (!ours) return current ?? run
      return d.outcomes.finish(tx, current, outcome, WORKER, d.clock.now())
    })
  }

  function retry(run: TradeRun, sentAt: Date | null, afterMs = RETRY_MS): Decision {
    const backOff = Math.min(afterMs * 2 ** Math.min(run.attempts - 1, 4), MAX_RETRY_MS)
    const next = d.clock.now().getTime() + backOff
    // A run nobody has sent has nothing to wait for once its time is up.
    return { now: 'wait', until: new Date(sentAt ? next : Math.min(next, run.executeBy.getTime())), sentAt }
  }

  function isOver(run: TradeRun): boolean {
    return d.clock.now() >= run.executeBy
  }
}

const end = (state: 'cancelled' | 'rejected', reason: string): Decision => ({
  now: 'finish',
  outcome: { state, reason, fills: [], brokerOrderId: null },
})

function ended(order: BrokerOrder, why?: string): Decision {
  const state = order.filledE8 > 0n ? 'executed' : order.status === 'rejected' ? 'rejected' : 'cancelled'
  const reason = order.status === 'filled' ? null : (why ?? order.reason)
  return { now: 'finish', outcome: { state, reason, fills: order.fills, brokerOrderId: order.brokerOrderId } }
}

/** The stored terms and nothing else. What a person approved may drift as far as they were told; the rest, the collar. */
export function orderOf(run: TradeRun): OrderRequest {
  const { terms, instrument } = run
  const worst = worstPriceE8(terms, run.approval ? terms.maxDriftBps : terms.collarBps)
  const off = worst % instrument.tickE8
  return {
    accountId: run.tenantId,
    clientOrderId: brokerClientOrderId(run),
    type: terms.type,
    symbol: terms.symbol,
    side: terms.orderSide,
    quantityE8: terms.quantityE8,
    orderType: terms.orderType,
    limitPriceE8: terms.limitPriceE8,
    // Rounded to the tick on the side that is better for us.
    worstPriceE8: off === 0n ? worst : terms.orderSide === 'buy' ? worst - off : worst - off + instrument.tickE8,
    tif: terms.tif,
    leverageE2: terms.leverageE2,
    placeBy: run.leaseUntil ?? run.executeBy,
    executeBy: run.executeBy,
  }
}
