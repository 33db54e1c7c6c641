import { usdcFromMicro } from '../../platform/money.ts'
import type { TradeApprovalView } from './approval-payload.ts'
import { toVoteRecord } from './approve-trade.ts'
import { type Fill, numberFromE8 } from './broker.ts'
import { spenderOf, type TradeRun } from './trade-run-record.ts'

/** GET /api/rh/runs/:id: the state of a run with its checks, fills and receipts. */
export const toTradeRunResponse = (
  run: TradeRun,
  fills: readonly Fill[],
  receiptIds: readonly string[],
  /** `request` is undefined for whoever must not see it. */
  approval: { view: TradeApprovalView | null; request: Record<string, unknown> | null | undefined },
) => ({
  run_id: run.id,
  tenant_id: run.tenantId,
  status: run.state,
  reason: run.reason,
  instrument_type: run.terms.type,
  symbol: run.terms.symbol,
  side: run.terms.side,
  quantity: numberFromE8(run.terms.quantityE8),
  notional_usdc: usdcFromMicro(run.terms.notionalMicro),
  price_limit: run.terms.limitPriceE8 === null ? null : numberFromE8(run.terms.limitPriceE8),
  leverage: run.terms.leverageE2 === null ? null : Number(run.terms.leverageE2) / 100,
  policy_id: run.policy.policyId,
  policy_ids: [...(run.policy.limitPolicyIds ?? [])],
  policy_verdict: run.policy.verdict,
  checks: run.policy.checks,
  policy_results: [...run.policyResults] as Record<string, unknown>[],
  agent_id: run.agentId,
  spender: spenderOf(run),
  team: run.team,
  tags: run.tags,
  key_id: run.keyId,
  mandate_id: run.mandateId,
  broker: run.broker,
  mode: run.mode,
  client_order_id: run.clientOrderId,
  approval: run.approval,
  ...(approval.request !== undefined && { request: approval.request }),
  rule: approval.view?.rule ?? null,
  normal: approval.view?.normal ?? null,
  next: approval.view?.next ?? null,
  approvals_required: run.policy.approvalsRequired ?? (run.approval === null ? 0 : 1),
  approvals: run.votes.map(toVoteRecord),
  expires_at: run.expiresAt?.toISOString() ?? null,
  execute_by: run.executeBy.toISOString(),
  approved_at: run.approvedAt?.toISOString() ?? null,
  approved_by: run.approvedBy,
  approved_by_claimed: run.approvedByClaimed,
  self_approved: run.selfApproved,
  fills: fills.map((fill) => ({
    fill_id: fill.fillId,
    quantity: numberFromE8(fill.quantityE8),
    price: numberFromE8(fill.priceE8),
    fee: usdcFromMicro(fill.feeMicro),
    at: fill.at.toISOString(),
  })),
  receipt_ids: receiptIds,
  created_at: run.createdAt.toISOString(),
  updated_at: run.updatedAt.toISOString(),
  finished_at: run.finishedAt?.toISOString() ?? null,
})
