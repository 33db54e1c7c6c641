import {
  ApprovalNeeded,
  ApprovalRejected,
  BudgetExceeded,
  CountersignError,
  type GovernanceRefused,
  PolicyBlocked,
  type WaitOptions,
} from './errors.ts'
import type { Approval } from './generated/api.ts'
import type { Transport } from './http.ts'
import { sleep } from './retry.ts'

const DEFAULT_INTERVAL_MS = 2_000
/** How long after its expiry an approval may still be shown as pending. */
const EXPIRY_MARGIN_MS = 60_000
/** How long to ask for an approval that cannot be read. */
const UNREACHABLE_PATIENCE_MS = 600_000

/** The error for a refusal of governance (429 on runs and loops, 422 on pre-authorisations); undefined for anything else. */
export function toRefusal(
  transport: Transport,
  status: number,
  body: Record<string, unknown>,
): GovernanceRefused | undefined {
  if (status !== 429 && status !== 422) return undefined
  if (typeof body.approval_id === 'string') return approvalNeeded(transport, status, body, body.approval_id)
  if (body.error === 'budget_exceeded') return new BudgetExceeded(status, body)
  if (body.error === 'policy_blocked') return new PolicyBlocked(status, body)
  return undefined
}

export const approvalNeeded = (
  transport: Transport,
  status: number,
  body: Record<string, unknown>,
  approvalId: string,
): ApprovalNeeded => new ApprovalNeeded(status, body, approvalId, (options) => waitFor(transport, approvalId, options))

async function waitFor(transport: Transport, approvalId: string, options: WaitOptions = {}): Promise<Approval> {
  const { timeoutMs, intervalMs = DEFAULT_INTERVAL_MS, signal } = options
  const startedAt = Date.now()
  for (;;) {
    const approval = await readApproval(transport, approvalId, signal)
    if (approval?.status === 'approved') return approval
    if (approval?.status === 'rejected') throw new ApprovalRejected(approval)
    const expiry = approval ? Date.parse(approval.expires_at) + EXPIRY_MARGIN_MS : startedAt + UNREACHABLE_PATIENCE_MS
    const until = timeoutMs === undefined ? expiry : startedAt + timeoutMs
    if (Date.now() + intervalMs > until)
      throw new CountersignError(0, {
        error: 'error',
        code: 'unavailable',
        message: `Nobody has decided the approval ${approvalId} in time.`,
        retryable: true,
      })
    await sleep(intervalMs, signal)
  }
}

/** Undefined when the service could not be asked this time. */
async function readApproval(transport: Transport, id: string, signal?: AbortSignal): Promise<Approval | undefined> {
  try {
    return (await transport.request('get', '/api/approvals/{id}', { path: { id }, signal })) as Approval
  } catch (error) {
    if (error instanceof CountersignError && (error.status === 0 || error.status === 429 || error.status >= 500))
      return undefined
    throw error
  }
}
