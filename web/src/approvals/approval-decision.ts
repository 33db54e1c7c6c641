import type { ApiRequest, Approval } from '@countersign/sdk'

export type { Approval } from '@countersign/sdk'

type DecisionBody = ApiRequest<'/api/approvals', 'post'>['body']
export type Decision = DecisionBody['decision']

/** The decision carries the hash of the action on screen, so that it cannot approve a different one. */
export const toDecisionBody = (
  approval: Pick<Approval, 'id' | 'action_hash'>,
  decision: Decision,
  reason: string,
): DecisionBody => ({
  approval_id: approval.id,
  decision,
  action_hash: approval.action_hash,
  ...(reason.trim() && { reason: reason.trim() }),
})

/** The entries of the risk summary that the approval does not already show; a finding is shown by its reason. */
export function toRiskFacts({ risk_summary, ...approval }: Approval): [string, string][] {
  return Object.entries(risk_summary as Record<string, unknown>).flatMap(([name, value]): [string, string][] => {
    if (value === null || name in approval || name === 'asked_at') return []
    const text = Array.isArray(value) ? value.map(formatRiskValue).join(' ') : formatRiskValue(value)
    return text ? [[toSentenceCase(name), text]] : []
  })
}

const formatRiskValue = (value: unknown): string => {
  const reason = (value as { reason?: unknown } | null)?.reason
  if (typeof reason === 'string') return reason
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const toSentenceCase = (name: string) => `${name[0]!.toUpperCase()}${name.slice(1).replaceAll('_', ' ')}`
