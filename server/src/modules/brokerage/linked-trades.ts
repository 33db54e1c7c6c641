import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { conflict, notFound } from '../../platform/problem.ts'
import type { LinkedApproval, LinkedTrades } from '../governance/approvals/approval-links.ts'
import type { LinkVoter } from '../governance/approvals/approvals.ts'
import type { NormalTrade } from './approval-payload.ts'
import { approvalDeadline } from './approval-window.ts'
import { APPROVAL_EXPIRED_REASON, type createApproveTrade } from './approve-trade.ts'
import { findRun, lockRun } from './brokerage.store.ts'
import type { OutcomeRecorder } from './record-outcome.ts'
import { type createTradeContent, type NormalOf, readNormal, viewApproval } from './trade-approval.ts'
import type { createReadRunQuote, RunQuote } from './trade-quote.ts'
import { agentNamesOf, spenderOf, type TradeRun } from './trade-run-record.ts'

export type LinkedTradesDeps = {
  db: Db
  clock: Clock
  outcomeRecorder: OutcomeRecorder
  approve: ReturnType<typeof createApproveTrade>
  content: ReturnType<typeof createTradeContent>
  readQuote: ReturnType<typeof createReadRunQuote>
}

const REJECTED_REASON = 'An approver rejected it.'

/** Trades that wait for an approval, as messages and the links in them show and decide them. */
export const createLinkedTrades = (deps: LinkedTradesDeps): LinkedTrades => ({
  async findNotice(tx, tenantId, runId) {
    const run = await findRun(tx, tenantId, runId)
    if (!run?.approval) return undefined
    const { amount, merchant, agent, rule, expiresAt } = toView(run, noTrades, null)
    return {
      approvalId: run.id,
      actionHash: run.approval.digest,
      isOpen: run.state === 'pending_approval',
      amount,
      merchant,
      payTo: null,
      host: null,
      agent,
      sentence: rule.sentence,
      expiresAt,
    }
  },

  async find(tenantId, runId, options) {
    const run = await findRun(deps.db, tenantId, runId)
    if (!run?.approval) return undefined
    const normalOf = await readNormal(deps.db, tenantId, [run], deps.clock.now())
    const view = toView(run, normalOf, deps.content.read(run))
    // A broker that does not answer must not keep anybody from deciding.
    const isPriced = options?.market === true && run.state === 'pending_approval' && run.terms.type !== 'spend'
    const quote = isPriced ? await deps.readQuote({ tenantId }, runId).catch(() => null) : null
    const facts = quote === null ? view.facts : [...view.facts, ...describeMarket(quote)]
    return toLinkedApproval(run, run.approval.digest, { ...view, facts })
  },

  async decide(caller, runId, { decision, reason }, voter) {
    if (decision === 'approve')
      return deps.approve(caller, { run_id: runId, ...(reason !== undefined && { reason }) }, undefined, voter)
    return rejectTrade(deps, caller, runId, reason, voter)
  },
})

const rejectTrade = (
  deps: LinkedTradesDeps,
  caller: TenantCaller,
  runId: string,
  reason: string | undefined,
  voter: LinkVoter,
) =>
  deps.db.transaction().execute(async (tx) => {
    const run = await lockRun(tx, runId, caller.tenantId)
    if (!run) throw notFound('run')
    if (run.state !== 'pending_approval') throw conflict(`This run is already ${run.state}.`)
    const text = reason === undefined ? REJECTED_REASON : `${REJECTED_REASON} ${reason}`
    const outcome = { state: 'cancelled', reason: text, fills: [], brokerOrderId: null } as const
    await deps.outcomeRecorder.recordFinished(tx, run, outcome, voter.id, deps.clock.now(), voter.audit)
    await voter.use(tx)
  })

function toLinkedApproval(run: TradeRun, digest: string, view: LinkedApproval['view']): LinkedApproval {
  const isPending = run.state === 'pending_approval'
  const resolution = isPending
    ? null
    : run.approvedAt !== null
      ? 'approved'
      : run.reason === APPROVAL_EXPIRED_REASON
        ? 'expired'
        : 'rejected'
  return {
    status: isPending ? 'pending' : resolution === 'approved' ? 'approved' : 'rejected',
    resolution,
    actionHash: digest,
    resolvedAt: run.approvedAt ?? run.finishedAt,
    expiresAt: view.expiresAt,
    required: run.policy.approvalsRequired ?? 1,
    votes: run.votes.map(({ voter }) => ({ voter, decision: 'approve' })),
    view,
  }
}

function toView(run: TradeRun, normalOf: NormalOf, request: Record<string, unknown> | null): LinkedApproval['view'] {
  const { approval, terms, policy } = run
  const { rule, normal, next } = viewApproval(run, normalOf)!
  const {
    checks: _,
    digest: _digest,
    tenant_id: _tenant,
    run_id: _run,
    rule: _rule,
    normal: _normal,
    next: _next,
    ...shown
  } = approval!
  const reasons = policy.checks.flatMap(({ result, id, reason }) => (result === 'review' ? [reason ?? id] : []))
  return {
    title: 'Approve this trade?',
    amount: `${usdcFromMicro(terms.notionalMicro)} USDC`,
    merchant: `${run.broker}${run.mode === 'paper' ? ' (paper)' : ''}: ${approval!.side} ${approval!.quantity} ${terms.symbol}`,
    agent: agentNamesOf(run).join(', for ') || spenderOf(run),
    requestedBy: run.keyId,
    requestedAt: run.createdAt,
    expiresAt: approvalDeadline({ expiresAt: run.expiresAt!, executeBy: run.executeBy }),
    rule,
    facts: describeOrder(run),
    reasons: reasons.length > 1 ? reasons : [],
    normal: describeNormal(normal, terms.symbol),
    next: `${next} If you reject, or nobody decides in time, no order is sent.`,
    request: { ...request, terms: shown },
  }
}

/** A message says nothing about what is normal. */
const noTrades = (): NormalTrade => ({ count_30d: 0, median_usdc: null, max_usdc: null, same_30d: 0 })

const describeNormal = ({ count_30d, median_usdc, max_usdc, same_30d }: NormalTrade, symbol: string) => {
  if (count_30d === 0) return 'This spender has traded nothing in the last 30 days.'
  const same = same_30d === 0 ? `None was in ${symbol}.` : `${same_30d} of them in ${symbol}.`
  return `In the last 30 days this spender has traded ${count_30d} ${count_30d === 1 ? 'time' : 'times'}: ${median_usdc} USDC in the middle, ${max_usdc} USDC at most. ${same}`
}

type Facts = [name: string, value: string][]

const percent = (share: number) => `${(share * 100).toFixed(2)} %`

/** The order and its risk, on the terms that are approved. */
function describeOrder({ approval, terms }: TradeRun): Facts {
  const { quote, leverage, liquidation_price, distance_to_liq_pct, basis_bps, session, limit_price } = approval as {
    quote?: { price: number; source: string }
    leverage?: number
    liquidation_price?: number
    distance_to_liq_pct?: number
    basis_bps?: number | null
    session?: string
    limit_price?: number | null
  }
  if (terms.type === 'spend') return []
  const limit = typeof limit_price === 'number' ? `limit ${limit_price} USD` : 'at the market'
  return [
    ['Order', `${terms.side} ${approval!.quantity} ${terms.symbol}, ${limit}`],
    ...fact('Leverage', leverage, (value) => `${value}×`),
    ...fact(
      'Liquidation price',
      liquidation_price,
      (value) => `${value} USD${distance_to_liq_pct === undefined ? '' : `, ${percent(distance_to_liq_pct)} away`}`,
    ),
    ...fact('Basis', basis_bps, (value) => `${value} bps`),
    ...fact('Session', session, (value) => (value === 'always' ? 'never closes' : value)),
    ...fact('Price when asked', quote, ({ price, source }) => `${price} USD (${source})`),
  ]
}

const fact = <Value>(name: string, value: Value | null | undefined, describe: (value: Value) => string): Facts =>
  value === null || value === undefined ? [] : [[name, describe(value)]]

const describeMarket = ({ price, observed_at, drift_bps, max_drift_bps }: RunQuote): Facts => [
  [
    'Price now',
    `${price} USD at ${observed_at.slice(11, 19)} UTC, ${drift_bps === 0 ? 'unchanged' : `${Math.abs(drift_bps)} bps ${drift_bps > 0 ? 'up' : 'down'}`}; beyond ${max_drift_bps} bps it is not executed`,
  ],
]
