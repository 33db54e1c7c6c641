import type { Clock } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db.ts'
import type { Log } from '../../platform/log.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import type { ApprovalRule } from '../governance/approvals/approval-content.ts'
import type { TradeGovernance } from '../governance/assess/assess-trade.ts'
import type { NormalTrade, TradeApprovalView } from './approval-payload.ts'
import { readNormalTrades } from './brokerage.store.ts'
import type { Check, RiskFacts } from './risk-facts.ts'
import { spenderOf, type TradeRun } from './trade-run-record.ts'

const NORMAL_DAYS = 30
const DAY_MS = 86_400_000

export type TradeContentDeps = {
  clock: Clock
  log: Pick<Log, 'error'>
  governance: Pick<TradeGovernance, 'encryptRequest' | 'decryptRequest'>
  /** For how many days the request of a run that ended is kept. */
  contentDays: number
}

/** The request of a trade that needs an approval: stored encrypted, and deleted when its retention ends. */
export const createTradeContent = (deps: TradeContentDeps) => {
  const contentEnd = () => new Date(deps.clock.now().getTime() - deps.contentDays * DAY_MS)
  return {
    contentEnd,
    encrypt: deps.governance.encryptRequest,

    /** Null once the retention has passed, even before the content is deleted. */
    read(run: Pick<TradeRun, 'id' | 'content' | 'finishedAt'>): Record<string, unknown> | null {
      if (run.content === null || (run.finishedAt !== null && run.finishedAt <= contentEnd())) return null
      try {
        return deps.governance.decryptRequest(run.content)
      } catch (error) {
        // A damaged value must not hide the other runs.
        deps.log.error({ err: error, run_id: run.id }, 'the request of a trade cannot be decrypted')
        return null
      }
    },
  }
}

type SpenderAndSymbol = Pick<TradeRun, 'spender' | 'keyId' | 'terms'>
export type NormalOf = (run: SpenderAndSymbol) => NormalTrade

/** What is normal for the spenders of these runs, and how often they traded the same symbol. */
export async function readNormal(
  tx: Tx,
  tenantId: string,
  runs: readonly SpenderAndSymbol[],
  now: Date,
): Promise<NormalOf> {
  const since = new Date(now.getTime() - NORMAL_DAYS * DAY_MS)
  const spenders = [...new Set(runs.map(spenderOf))]
  const symbols = [...new Set(runs.map(({ terms }) => terms.symbol))]
  const rows = runs.length === 0 ? [] : await readNormalTrades(tx, tenantId, spenders, symbols, since)
  return (run) => {
    const own = rows.filter(({ spender }) => spender === spenderOf(run))
    const all = own.find(({ symbol }) => symbol === null)
    return {
      count_30d: all?.count ?? 0,
      median_usdc: all ? usdcFromMicro(all.median_micro) : null,
      max_usdc: all ? usdcFromMicro(all.max_micro) : null,
      same_30d: own.find(({ symbol }) => symbol === run.terms.symbol)?.count ?? 0,
    }
  }
}

/** Which rule asked for the approval: one of the tenant's before the threshold of the limits, and that before the market's state. */
export function describeTradeRule({ assessment, policy, terms }: RiskFacts, checks: readonly Check[]): ApprovalRule {
  if (assessment.outcome === 'review') return assessment.approvalRule
  const reviews = checks.filter(({ result }) => result === 'review')
  if (reviews.some(({ id }) => id === 'approval')) {
    const { alwaysRequireApproval, requireApprovalAboveMicro } = policy
    const { source, policyId, name, constraint } = policy.origins.approval
    const amount = usdcFromMicro(terms.notionalMicro)
    const what = alwaysRequireApproval
      ? `every ${terms.type} trade`
      : `trades above ${usdcFromMicro(requireApprovalAboveMicro!)} USDC; this one is ${amount} USDC`
    const rule = {
      policy: `The policy '${name}'`,
      tenant_default: `Your organisation's default for ${terms.type} trades`,
      shipped: 'No rule of yours sets a threshold for this trade; the shipped default',
    }[source]
    return {
      policy_id: source === 'policy' ? policyId : null,
      name,
      sentence: `${rule} wants a person to approve ${what}.`,
      ...(alwaysRequireApproval
        ? { constraint: 'always_require_approval' }
        : { constraint, limit: usdcFromMicro(requireApprovalAboveMicro!) }),
      asked: amount,
    }
  }
  const [first] = reviews
  const sentence = first?.reason ?? 'A person has to approve this trade.'
  if (!first) return { policy_id: null, name: null, sentence }
  return { policy_id: null, name: null, sentence, constraint: first.id, limit: first.limit, asked: first.actual }
}

/** How many identities have to approve: the most that a rule which asks for people requires. */
export const requiredApprovals = ({ assessment, policy }: RiskFacts, checks: readonly Check[]): number =>
  Math.max(
    assessment.outcome === 'review' ? assessment.approvalsRequired : 1,
    checks.some(({ id, result }) => id === 'approval' && result === 'review') ? policy.approvalsRequired : 1,
  )

type NextFacts = Pick<TradeRun, 'id' | 'state' | 'reason' | 'votes' | 'policy'> & { nextOpen: string | null }

/** What happens next, or has happened, in a sentence for a person. */
export function describeNextOf({ id, state, reason, votes, policy, nextOpen }: NextFacts): string {
  const where = `GET /api/rh/runs/${id}`
  const missing = (policy.approvalsRequired ?? 1) - votes.length
  const when = nextOpen === null ? 'at once' : `when the session opens at ${nextOpen}`
  switch (state) {
    case 'pending_approval':
      return `After ${missing > 1 ? `${missing} approvals` : 'approval'} the order is sent to the broker ${when}; ${where} shows what became of it.`
    case 'approved':
      return `It was approved; the order is sent to the broker ${when}. ${where} shows what became of it.`
    case 'executing':
      return `It was approved and the order is with the broker; ${where} shows what became of it.`
    case 'executed':
      return `The order was executed; ${where} has its fills and receipts.`
    default:
      return `Nothing: no order is sent.${reason === null ? '' : ` ${reason}`}`
  }
}

/** The view of a stored run; null for one that needed no approval. */
export function viewApproval(run: TradeRun, normalOf: NormalOf): TradeApprovalView | null {
  if (run.approval === null) return null
  const { rule, next_open, session } = run.approval
  const nextOpen =
    session === 'closed' || session === 'holiday' ? ((next_open as string | null | undefined) ?? null) : null
  return {
    rule: (rule as ApprovalRule | undefined) ?? {
      policy_id: run.policy.policyId,
      name: run.policy.name,
      sentence: `The policy '${run.policy.name}' requires an approval.`,
    },
    normal: normalOf(run),
    next: describeNextOf({ ...run, nextOpen }),
  }
}
