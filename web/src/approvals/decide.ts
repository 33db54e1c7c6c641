import type { ApiRequest, Approval } from '@countersign/sdk'
import { api } from '../api.ts'
import type { Decision, InboxItem, TradeRun } from './inbox-item.ts'

type CoreBody = ApiRequest<'/api/approvals', 'post'>['body']
type TradeBody = ApiRequest<'/api/rh/approve', 'post'>['body']

/** The decision carries the hash of the action on screen, so that it cannot approve a different one. */
export const toDecisionBody = (
  approval: Pick<Approval, 'id' | 'action_hash'>,
  decision: Decision,
  reason: string,
): CoreBody => ({
  approval_id: approval.id,
  decision,
  action_hash: approval.action_hash,
  ...withReason(reason),
})

/** The approval repeats the terms on screen; the server refuses it when one differs from the run. */
export const toApproveBody = (run: TradeRun, reason: string): TradeBody => ({
  run_id: run.run_id,
  instrument_type: run.instrument_type,
  direction: run.side,
  notional_usdc: run.notional_usdc,
  ...(run.leverage !== null && { leverage: run.leverage }),
  ...(run.expires_at !== null && { expires_at: run.expires_at }),
  ...withReason(reason),
})

const withReason = (reason: string) => (reason.trim() ? { reason: reason.trim() } : {})

export type Outcome = { id: string; title: string; decision: Decision; problem: string | null }

const send = (item: InboxItem, decision: Decision, reason: string): Promise<unknown> => {
  if (item.domain === 'core')
    return api.post('/api/approvals', { body: toDecisionBody(item.approval, decision, reason) })
  return decision === 'approve'
    ? api.post('/api/rh/approve', { body: toApproveBody(item.run, reason) })
    : api.post('/api/rh/runs/{id}/cancel', { path: { id: item.id }, body: withReason(reason) })
}

/** Each is decided with a call of its own, one after the other; one that is refused does not stop the others. */
export async function decideAll(
  items: readonly InboxItem[],
  decision: Decision,
  reason: string,
  onOutcome: (outcome: Outcome) => void,
): Promise<void> {
  for (const item of items) {
    const { id, title } = item
    const problem = await send(item, decision, reason).then(
      () => null,
      (error: Error) => error.message,
    )
    onOutcome({ id, title, decision, problem })
  }
}
