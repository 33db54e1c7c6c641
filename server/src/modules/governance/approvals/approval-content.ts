import type { Keys } from '../../../platform/keys.ts'
import type { RefusedAssessment } from '../assess/assessment.ts'
import { refusalMessage } from '../assess/assessment-outcome.ts'

/**
 * The request that waits for an approval. It is stored encrypted and nowhere else, until the approval and its retention
 * have ended.
 */
export type ApprovalContent = {
  /** What approvers are shown. */
  request: Record<string, unknown>
  /** What the service needs besides to send a run again; absent for a pre-authorisation. */
  resend?: ResendContent
}

/** The parts of a request that identify it, and its tokens, which are shown to nobody. */
export type ResendContent = {
  requestHash: string
  bodyHash: string
  idempotencyKey?: string
  quoteToken?: string
  tokens: { preauth_token?: string; override_token?: string }
}

export const encryptContent = (keys: Pick<Keys, 'encrypt'>, content: ApprovalContent): string =>
  keys.encrypt(JSON.stringify(content))

export const decryptContent = (keys: Pick<Keys, 'decrypt'>, ciphertext: string): ApprovalContent =>
  JSON.parse(keys.decrypt(ciphertext))

/** Which rule asked for the approval, in words for a person; then the constraint, its limit and what was asked. */
export type ApprovalRule = {
  policy_id: string | null
  name: string | null
  sentence: string
  version?: number
  constraint?: string
  limit?: unknown
  asked?: unknown
}

/** The policy or budget behind a rule with its version and constraint, as 'Small money', version 2: max_per_run_usdc 5. */
export function describeRuleSource({ name, version, constraint, limit }: ApprovalRule): string | null {
  if (name === null) return null
  const value = typeof limit === 'number' || typeof limit === 'string' ? ` ${limit}` : ''
  return `'${name}'${version === undefined ? '' : `, version ${version}`}${constraint === undefined ? '' : `: ${constraint}${value}`}`
}

export function describeRule({ decided_by: result, message }: RefusedAssessment): ApprovalRule {
  if (!result) return { policy_id: null, name: null, sentence: message }
  const { policy_id, policy_name, policy_version, budget_id, rule, asked, limit, used, reason } = result
  const name = policy_name ?? budget_id ?? null
  const describe = (): string => {
    if (rule === 'require_approval_above_usdc')
      return `The policy '${policy_name}' wants a person to approve payments above ${limit} USDC; this one is ${asked} USDC.`
    if (budget_id !== undefined)
      return `The budget '${budget_id}' allows ${limit} USDC${used === undefined ? '' : `, of which ${used} USDC are used`}; this payment of ${asked} USDC is more than that leaves, and the budget lets a person decide.`
    if (policy_id !== null) return `The policy '${policy_name}' wants a person to approve this. ${reason}`
    return refusalMessage(result)
  }
  return {
    policy_id,
    name,
    sentence: describe(),
    ...(policy_version !== undefined && { version: policy_version }),
    constraint: rule,
    ...(limit !== undefined && { limit }),
    ...(asked !== undefined && { asked }),
  }
}
