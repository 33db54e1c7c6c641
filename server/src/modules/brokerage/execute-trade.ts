import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { TradeGovernance } from '../governance/assess/assess-trade.ts'
import type { Broker, BrokerOrder, OrderRequest, Quote } from './broker.ts'
import { lockRun, markSent, readKillSwitch, releaseRun } from './brokerage.store.ts'
import type { OutcomeRecorder, RunOutcome } from './record-outcome.ts'
import { brokerClientOrderId, isFinal, type TradeRun } from './trade-run-record.ts'
import { driftBps, worstPriceE8 } from './trade-terms.ts'
import type { Venues } from './venues.ts'

export type ExecuteDeps = {
  db: Db
  clock: Clock
  venues: Venues
  outcomeRecorder: OutcomeRecorder
  governance: Pick<TradeGovernance, 'findFreeze'>
  /** For crash tests: called at each step. */
  probe?(step: ExecuteStep): void
}

/** The steps at which crash tests kill a worker. */
export const executeSteps = ['claimed', 'intent_recorded', 'broker_called', 'outcome_recorded'] as const
export type ExecuteStep = (typeof executeSteps)[number]

export type ExecuteTrade = (run: TradeRun) => Promise<TradeRun>

const WORKER = 'worker'
const POLL_MS = 1000
const RETRY_MS = 5000
const MAX_RETRY_MS = 60_000

type Decision =
  | { action: 'finish'; outcome: RunOutcome }
  /** `sentAt`: when an order may have been sent; null when certainly none was. */
  | { action: 'wait'; until: Date; sentAt: Date | null }

/**
 * Executes one claimed run: record the intent, call the broker, record the outcome. A worker may die between any two of
 * these and another repeats the work; the client order id is the run's id, so it stays one order.
 */
export const createExecuteTrade = (deps: ExecuteDeps): ExecuteTrade => {
  const probe = deps.probe ?? (() => {})

  return async (run) => {
    probe('claimed')
    const broker = deps.venues.byId(run.broker)
    const decision = broker
      ? await decideNextStep(broker, run)
      : finishUnfilled('cancelled', `The broker ${run.broker} is not configured.`)
    if (decision.action === 'wait') {
      const { until: at, sentAt } = decision
      await releaseRun(deps.db, run, { at, sentAt, now: deps.clock.now() })
      return run
    }
    const finishedRun = await finishRun(run, decision.outcome)
    probe('outcome_recorded')
    return finishedRun
  }

  async function decideNextStep(broker: Broker, run: TradeRun): Promise<Decision> {
    if (run.sentAt) {
      const followUpDecision = await followUpOrder(broker, run, run.sentAt)
      if (followUpDecision) return followUpDecision
    }
    if (run.stopReason) return finishUnfilled('cancelled', run.stopReason)
    if (isPastDeadline(run)) return finishUnfilled('cancelled', 'Its time to execute had passed.')
    const quoteResult = await broker.quote(run.terms.type, run.terms.symbol)
    if (!quoteResult.ok) return retryLater(run, null)
    const blocker = await findBlocker(run, quoteResult.quote)
    if (blocker) return blocker
    return placeOrder(broker, run, quoteResult.quote)
  }

  /** Looks for an order that may have been sent before. Undefined when there is certainly none, so that it may be sent. */
  async function followUpOrder(broker: Broker, run: TradeRun, sentAt: Date): Promise<Decision | undefined> {
    const findResult = await broker.find(run.tenantId, brokerClientOrderId(run), run.createdAt)
    if (findResult.outcome === 'unknown') return retryLater(run, sentAt)
    if (findResult.outcome === 'found') return settleOrder(broker, run, findResult.order, sentAt)
    const arrivedBy = new Date(sentAt.getTime() + broker.inFlightMs)
    return deps.clock.now() < arrivedBy ? { action: 'wait', until: arrivedBy, sentAt } : undefined
  }

  /** Why the order may not be sent now: some reasons end the run, others delay it. */
  async function findBlocker(run: TradeRun, quote: Quote): Promise<Decision | undefined> {
    const killSwitch = await readKillSwitch(deps.db, run.tenantId)
    if (killSwitch.engagedAt) return finishUnfilled('cancelled', 'Trading is switched off for this tenant.')
    const freeze = await deps.governance.findFreeze(run)
    if (freeze) {
      const name = freeze.agentId
      const reason = name === null ? 'An agent is frozen, and the run names none.' : `Agent '${name}' is frozen.`
      return finishUnfilled('cancelled', reason)
    }
    if (quote.session === 'closed' || quote.session === 'holiday') {
      const retryAt = quote.nextOpen && quote.nextOpen < run.executeBy ? quote.nextOpen : run.executeBy
      return { action: 'wait', until: retryAt, sentAt: null }
    }
    if (quote.halted) return retryLater(run, null)
    const drift = driftBps(run.terms, quote)
    if (run.approval && drift > run.terms.maxDriftBps) {
      return finishUnfilled(
        'cancelled',
        `The price moved ${drift} bps since it was approved, more than ${run.terms.maxDriftBps}.`,
      )
    }
    return undefined
  }

  async function placeOrder(broker: Broker, run: TradeRun, quote: Quote): Promise<Decision> {
    const sentAt = deps.clock.now()
    const { markE8, source, observedAt } = quote
    const intent = await markSent(deps.db, run, sentAt, { markE8, source, observedAt })
    if (intent.result === 'taken_over') return { action: 'wait', until: sentAt, sentAt }
    if (intent.result === 'stopped') return finishUnfilled('cancelled', intent.reason)
    probe('intent_recorded')
    // The last check of the deadline before the order is sent; the broker checks it again before it fills.
    if (isPastDeadline(run)) return finishUnfilled('cancelled', 'Its time to execute had passed.')
    const placeResult = await broker.place(toOrderRequest(run))
    probe('broker_called')
    switch (placeResult.outcome) {
      case 'placed':
        return settleOrder(broker, run, placeResult.order, sentAt)
      case 'rejected':
        return finishUnfilled('rejected', placeResult.reason)
      case 'unavailable':
        return retryLater(run, null, placeResult.retryAfterSeconds * 1000)
      case 'unknown':
        return retryLater(run, sentAt)
    }
  }

  /** Finishes the run when its order has ended; a working order is polled until its deadline, or cancelled when stopped. */
  async function settleOrder(broker: Broker, run: TradeRun, order: BrokerOrder, sentAt: Date): Promise<Decision> {
    if (order.status !== 'working') return finishWithOrder(order)
    const killSwitch = await readKillSwitch(deps.db, run.tenantId)
    const stopReason = run.stopReason ?? (killSwitch.engagedAt ? 'Trading is switched off for this tenant.' : null)
    if (!stopReason && !isPastDeadline(run)) {
      const next = new Date(deps.clock.now().getTime() + POLL_MS)
      return { action: 'wait', until: next < run.executeBy ? next : run.executeBy, sentAt }
    }
    const cancelResult = await broker.cancel(run.tenantId, brokerClientOrderId(run), run.createdAt)
    if (cancelResult.outcome !== 'done') return retryLater(run, sentAt)
    return finishWithOrder(cancelResult.order, stopReason ?? 'Its time to execute had passed.')
  }

  /** Writes the outcome once: a second worker finds the run final and leaves it as it is. */
  async function finishRun(run: TradeRun, outcome: RunOutcome): Promise<TradeRun> {
    return deps.db.transaction().execute(async (tx) => {
      const current = await lockRun(tx, run.id)
      // When another worker has taken the run over, the order that worker finds at the broker is authoritative.
      const stillOwned = current && current.attempts === run.attempts && !isFinal(current.state)
      if (!stillOwned) return current ?? run
      return deps.outcomeRecorder.recordFinished(tx, current, outcome, WORKER, deps.clock.now())
    })
  }

  function retryLater(run: TradeRun, sentAt: Date | null, afterMs = RETRY_MS): Decision {
    const backOff = Math.min(afterMs * 2 ** Math.min(run.attempts - 1, 4), MAX_RETRY_MS)
    const next = deps.clock.now().getTime() + backOff
    // A run whose order was not sent is cancelled at its deadline, so there is no reason to wait longer.
    return { action: 'wait', until: new Date(sentAt ? next : Math.min(next, run.executeBy.getTime())), sentAt }
  }

  function isPastDeadline(run: TradeRun): boolean {
    return deps.clock.now() >= run.executeBy
  }
}

const finishUnfilled = (state: 'cancelled' | 'rejected', reason: string): Decision => ({
  action: 'finish',
  outcome: { state, reason, fills: [], brokerOrderId: null },
})

function finishWithOrder(order: BrokerOrder, reasonOverride?: string): Decision {
  const state = order.filledE8 > 0n ? 'executed' : order.status === 'rejected' ? 'rejected' : 'cancelled'
  const reason = order.status === 'filled' ? null : (reasonOverride ?? order.reason)
  return { action: 'finish', outcome: { state, reason, fills: order.fills, brokerOrderId: order.brokerOrderId } }
}

/** The order follows the stored terms only. An approved run tolerates the drift its approver was shown, any other the collar. */
export function toOrderRequest(run: TradeRun): OrderRequest {
  const { terms, instrument } = run
  const worstPrice = worstPriceE8(terms, run.approval ? terms.maxDriftBps : terms.collarBps)
  const tickRemainder = worstPrice % instrument.tickE8
  return {
    accountId: run.tenantId,
    clientOrderId: brokerClientOrderId(run),
    type: terms.type,
    symbol: terms.symbol,
    side: terms.orderSide,
    quantityE8: terms.quantityE8,
    orderType: terms.orderType,
    limitPriceE8: terms.limitPriceE8,
    // Rounded to the tick in the tenant's favour.
    worstPriceE8:
      tickRemainder === 0n
        ? worstPrice
        : terms.orderSide === 'buy'
          ? worstPrice - tickRemainder
          : worstPrice - tickRemainder + instrument.tickE8,
    tif: terms.tif,
    leverageE2: terms.leverageE2,
    placeBy: run.leaseUntil ?? run.executeBy,
    executeBy: run.executeBy,
  }
}
