import type { ApiResponse, Approval } from '@countersign/sdk'
import type { Tone } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'

export type TradeRun = ApiResponse<'/api/rh/runs/{id}', 'get'>
export type Domain = 'core' | 'brokerage'
export type Status = 'pending' | 'approved' | 'rejected'
export type Decision = 'approve' | 'reject'

export type Vote = { who: string; decision: Decision; reason: string | null; at: string }

/** What the inbox shows of an approval of the core and of a trade alike. */
export type InboxItem = {
  id: string
  status: Status
  /** The status in words, such as `approved, waits for the agent`. */
  state: string
  tone: Tone
  title: string
  amountUsdc: number
  spender: string
  team: string | null
  /** What is the same when it is asked again, as in `to maps.example`. */
  target: string
  createdAt: string
  expiresAt: string | null
  requestedBy: string
  rule: Approval['rule']
  normal: Approval['normal']
  next: string
  votes: { given: number; required: number }
  decisions: Vote[]
  isSelfApproved: boolean
} & ({ domain: 'core'; approval: Approval } | { domain: 'brokerage'; run: TradeRun })

export function fromApproval(approval: Approval): InboxItem {
  const { preauth_id, agent_id, merchant, action } = approval
  return {
    id: approval.id,
    domain: 'core',
    approval,
    status: approval.status,
    ...describeApprovalState(approval),
    title: preauth_id === null ? `${capitalise(action)} on ${agent_id}` : `Payment to ${merchant}`,
    amountUsdc: approval.amount_usdc,
    spender: approval.spender ?? agent_id,
    team: approval.team ?? null,
    target: preauth_id === null ? `on ${agent_id}` : `to ${merchant}`,
    createdAt: approval.created_at,
    expiresAt: approval.expires_at,
    requestedBy: approval.requested_by,
    rule: approval.rule,
    normal: approval.normal,
    next: approval.next,
    votes: {
      given: approval.approvals.filter(({ decision }) => decision === 'approve').length,
      required: approval.approvals_required,
    },
    decisions: approval.approvals.map(({ key_id, decision, reason, at }) => ({ who: key_id, decision, reason, at })),
    isSelfApproved: approval.self_approved,
  }
}

function describeApprovalState(approval: Approval): { state: string; tone: Tone } {
  const { status, resolution, used_at, lapsed_at } = approval
  if (status === 'pending') return { state: 'waits for a decision', tone: 'warning' }
  if (status === 'rejected') return { state: resolution ?? 'rejected', tone: 'error' }
  if (used_at !== null) return { state: 'approved and used', tone: 'success' }
  if (lapsed_at !== null) return { state: 'approved, not used in time', tone: 'error' }
  return { state: 'approved, waits for the agent', tone: 'warning' }
}

const NO_NORMAL: Approval['normal'] = { count_30d: 0, median_usdc: null, max_usdc: null }

export function fromTrade(run: TradeRun): InboxItem {
  return {
    id: run.run_id,
    domain: 'brokerage',
    run,
    status: tradeStatus(run),
    ...describeTradeState(run),
    title: `${capitalise(run.side)} ${run.quantity} ${run.symbol}`,
    amountUsdc: run.notional_usdc,
    spender: run.spender ?? run.agent_id ?? run.key_id,
    team: run.team ?? null,
    target: `in ${run.symbol}`,
    createdAt: run.created_at,
    expiresAt: run.expires_at,
    requestedBy: run.key_id,
    rule: run.rule ?? { policy_id: null, name: null, sentence: 'A person has to approve this trade.' },
    normal: run.normal ?? NO_NORMAL,
    next: run.next ?? '',
    votes: { given: run.approvals.length, required: run.approvals_required },
    decisions: [
      ...run.approvals.map(({ key_id, reason, at }) => ({
        who: key_id,
        decision: 'approve' as const,
        reason: reason ?? null,
        at,
      })),
      ...rejectionOf(run),
    ],
    isSelfApproved: run.self_approved,
  }
}

const tradeStatus = ({ status, approved_at }: TradeRun): Status =>
  status === 'pending_approval' ? 'pending' : approved_at === null ? 'rejected' : 'approved'

/** Nobody approved it in time: the clock ended it. */
const hasExpired = ({ approved_at, ended_by }: TradeRun) => approved_at === null && ended_by === 'clock'

function rejectionOf(run: TradeRun): Vote[] {
  if (tradeStatus(run) !== 'rejected' || hasExpired(run)) return []
  const { ended_by, reason, finished_at, updated_at } = run
  return [{ who: ended_by ?? 'unknown', decision: 'reject', reason, at: finished_at ?? updated_at }]
}

export function describeTradeState(run: TradeRun): { state: string; tone: Tone } {
  switch (run.status) {
    case 'pending_approval':
      return { state: 'waits for a decision', tone: 'warning' }
    case 'approved':
      return { state: 'approved, waits for the broker', tone: 'warning' }
    case 'executing':
      return { state: 'with the broker', tone: 'warning' }
    case 'executed':
      return { state: 'executed', tone: 'success' }
    case 'rejected':
      return { state: 'refused', tone: 'error' }
    default:
      return { state: hasExpired(run) ? 'expired' : run.approved_at ? 'cancelled' : 'rejected', tone: 'error' }
  }
}

/** Why a person should look twice before approving; none when it is what this spender does every day. */
export function confirmReasons({ domain, amountUsdc, normal }: InboxItem): string[] {
  const { count_30d, max_usdc } = normal
  return [
    ...(domain === 'brokerage' ? ['It is a trade: once approved, the order goes to the broker.'] : []),
    ...(count_30d === 0
      ? ['This spender has no payments in the last 30 days to compare it with.']
      : max_usdc !== null && amountUsdc > max_usdc
        ? [`${formatUsdc(amountUsdc)} is more than this spender's largest in 30 days, ${formatUsdc(max_usdc)}.`]
        : []),
  ]
}

/** What is normal for the spender, in a sentence. */
export function describeNormal({ normal, target, domain }: InboxItem): string {
  const { count_30d, median_usdc, max_usdc, same_30d } = normal
  const verb = domain === 'brokerage' ? 'traded' : 'paid'
  if (count_30d === 0 || median_usdc === null || max_usdc === null)
    return `This spender has ${verb} nothing in the last 30 days.`
  const times = `${count_30d} ${count_30d === 1 ? 'time' : 'times'}`
  const same = same_30d === undefined ? '' : same_30d === 0 ? ` None was ${target}.` : ` ${same_30d} ${target}.`
  return `${capitalise(verb)} ${times} in the last 30 days: median ${formatUsdc(median_usdc)}, largest ${formatUsdc(max_usdc)}.${same}`
}

/** Whether the spender pays others, but has never paid this lane, merchant or symbol lately. */
export const isNewTarget = ({ normal }: InboxItem): boolean => normal.count_30d > 0 && normal.same_30d === 0

export const isTradeId = (id: string): boolean => /^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(id)

const capitalise = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
