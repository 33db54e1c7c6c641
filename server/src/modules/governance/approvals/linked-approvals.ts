import type { Db, Tx } from '../../../platform/db.ts'
import { usdcFromMicro } from '../../../platform/money.ts'
import { type ApprovalRow, findApproval, readVotes } from '../grants/grants.store.ts'
import type { ApprovalDecider, LinkedApproval } from './approval-links.ts'
import type { Approvals } from './approvals.ts'
import type { ApprovalNotice } from './message-text.ts'

/** What a message says about an approval of a payment. */
export async function findApprovalNotice(
  tx: Tx,
  tenantId: string,
  approvalId: string,
): Promise<ApprovalNotice | undefined> {
  const row = await findApproval(tx, tenantId, approvalId)
  return (
    row && {
      approvalId: row.id,
      actionHash: row.action_hash,
      isOpen: row.status === 'pending',
      amount: formatAmount(row.amount_micro),
      agent: agentOf(row),
      merchant: row.merchant,
      sentence: row.reason,
      expiresAt: row.expires_at,
    }
  )
}

/** Approvals of payments, as links show and decide them. */
export const createApprovalDecider = (deps: { db: Db }, approvals: Pick<Approvals, 'resolve'>): ApprovalDecider => ({
  async find(tenantId, approvalId) {
    const row = await findApproval(deps.db, tenantId, approvalId)
    return row && toLinkedApproval(row, await readVotes(deps.db, [row.id]))
  },
  decide: (caller, approvalId, { decision, reason }, voter) =>
    approvals.resolve(caller, { approval_id: approvalId, decision, reason }, undefined, voter),
})

function toLinkedApproval(row: ApprovalRow, votes: Awaited<ReturnType<typeof readVotes>>): LinkedApproval {
  return {
    status: row.status as LinkedApproval['status'],
    resolution: row.resolution as LinkedApproval['resolution'],
    actionHash: row.action_hash,
    resolvedAt: row.resolved_at,
    expiresAt: row.expires_at,
    required: row.approvals_required,
    votes: votes.map((vote) => ({ voter: vote.key_id, decision: vote.decision })),
    view: {
      title: titles[row.kind as keyof typeof titles],
      amount: formatAmount(row.amount_micro),
      merchant: row.merchant,
      agent: agentOf(row),
      requestedBy: row.requested_by,
      requestedAt: row.created_at,
      expiresAt: row.expires_at,
      sentence: row.reason,
      reasons: furtherReasons(row.risk_summary as RiskSummary),
      normal: null,
      next: nextSteps[row.kind as keyof typeof nextSteps],
      request: null,
    },
  }
}

type RiskSummary = { because?: { reason: string }[]; warnings?: { reason: string }[] }

/** One rule that asks is in the sentence already; several are listed, and so are warnings. */
const furtherReasons = ({ because = [], warnings = [] }: RiskSummary) =>
  [...(because.length > 1 ? because : []), ...warnings].map(({ reason }) => reason)

const titles = {
  run: 'Approve this run?',
  loop: 'Approve this loop?',
  preauth: 'Approve this payment?',
}

const nextSteps = {
  run: 'If you approve, this request may run once, for this amount, until the time above. If you reject, or nobody decides, it does not run and nothing is charged.',
  loop: 'If you approve, this request may run once, for this amount, until the time above. If you reject, or nobody decides, it does not run and nothing is charged.',
  preauth:
    'If you approve, the amount is reserved and the agent may pay this merchant once. If you reject, or nobody decides, it may not.',
}

const formatAmount = (micro: bigint) => `${usdcFromMicro(micro)} USDC`

/** Who spends, where somebody is named; the lane or agent otherwise. */
const agentOf = ({ agent_id, spender }: ApprovalRow) =>
  spender === null || spender === agent_id || spender.startsWith('key:') ? agent_id : `${agent_id}, for ${spender}`
