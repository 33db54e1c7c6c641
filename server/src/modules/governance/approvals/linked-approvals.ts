import type { Db, Tx } from '../../../platform/db.ts'
import { usdcFromMicro } from '../../../platform/money.ts'
import { type Merchant, urlHost } from '../assess/payment-facts.ts'
import { type ApprovalRow, findApproval, findPreauth } from '../grants/grants.store.ts'
import type { ApprovalRule } from './approval-content.ts'
import type { ApprovalDecider, LinkedApproval } from './approval-links.ts'
import type { Approvals } from './approvals.ts'
import type { ApprovalNotice } from './message-text.ts'

/** What a message says about an approval of a payment. The request is not read here, so that no message can contain it. */
export async function findApprovalNotice(
  tx: Tx,
  tenantId: string,
  approvalId: string,
): Promise<ApprovalNotice | undefined> {
  const row = await findApproval(tx, tenantId, approvalId)
  const preauth = row?.preauth_id ? await findPreauth(tx, tenantId, row.preauth_id) : undefined
  const { url, pay_to: payTo = null } = (preauth?.merchant ?? {}) as Partial<Merchant>
  return (
    row && {
      approvalId: row.id,
      actionHash: row.action_hash,
      isOpen: row.status === 'pending',
      amount: `${usdcFromMicro(row.amount_micro)} USDC`,
      agent: agentOf(row),
      merchant: row.merchant,
      payTo,
      host: url === undefined ? null : (urlHost(url) ?? null),
      sentence: (row.rule as ApprovalRule | null)?.sentence ?? row.reason,
      expiresAt: row.expires_at,
    }
  )
}

/** Approvals of payments, as links show and decide them. */
export const createApprovalDecider = (
  deps: { db: Db },
  approvals: Pick<Approvals, 'resolve' | 'findForApprover'>,
): ApprovalDecider => ({
  async find(tenantId, approvalId) {
    const row = await findApproval(deps.db, tenantId, approvalId)
    const approval = await approvals.findForApprover(tenantId, approvalId)
    return row && approval && toLinkedApproval(approval, agentOf(row))
  },
  decide: (caller, approvalId, { decision, reason }, voter) =>
    approvals.resolve(caller, { approval_id: approvalId, decision, reason }, undefined, voter),
})

type ApprovalRecord = NonNullable<Awaited<ReturnType<Approvals['findForApprover']>>>

const toLinkedApproval = (approval: ApprovalRecord, agent: string): LinkedApproval => ({
  status: approval.status as LinkedApproval['status'],
  resolution: approval.resolution as LinkedApproval['resolution'],
  actionHash: approval.action_hash,
  resolvedAt: approval.resolved_at === null ? null : new Date(approval.resolved_at),
  expiresAt: new Date(approval.expires_at),
  required: approval.approvals_required,
  votes: approval.approvals.map((vote) => ({ voter: vote.key_id, decision: vote.decision })),
  view: {
    title: approval.preauth_id === null ? `Approve this ${approval.action}?` : 'Approve this payment?',
    amount: `${approval.amount_usdc} USDC`,
    merchant: approval.merchant,
    agent,
    requestedBy: approval.requested_by,
    requestedAt: new Date(approval.created_at),
    expiresAt: new Date(approval.expires_at),
    rule: approval.rule,
    facts: [],
    reasons: furtherReasons(approval.risk_summary),
    normal: describeNormal(approval),
    next: `${approval.next} If you reject, or nobody decides in time, it does not happen and nothing is charged.`,
    request: approval.request ?? null,
  },
})

type RiskSummary = { because?: { reason: string }[]; warnings?: { reason: string }[] }

/** One rule that asks is in the sentence already; several are listed, and so are warnings. */
const furtherReasons = ({ because = [], warnings = [] }: RiskSummary) =>
  [...(because.length > 1 ? because : []), ...warnings].map(({ reason }) => reason)

const describeNormal = ({ normal, preauth_id, agent_id, merchant }: ApprovalRecord) => {
  const { count_30d, median_usdc, max_usdc, same_30d } = normal
  if (count_30d === 0) return 'This spender has paid nothing in the last 30 days.'
  const target = preauth_id === null ? `on ${agent_id}` : `to ${merchant}`
  const same = same_30d === 0 ? `None was ${target}.` : `${same_30d} of them ${target}.`
  return `In the last 30 days this spender has paid ${count_30d} ${count_30d === 1 ? 'time' : 'times'}: ${median_usdc} USDC in the middle, ${max_usdc} USDC at most. ${same}`
}

/** Who spends, where somebody is named; the lane or agent otherwise. */
const agentOf = ({ agent_id, spender }: ApprovalRow) =>
  spender === null || spender === agent_id || spender.startsWith('key:') ? agent_id : `${agent_id}, for ${spender}`
