import { expect, test } from 'vitest'
import { type Approval, toDecisionBody, toRiskFacts } from './approval-decision.ts'

const approval = { id: 'apr_1', action_hash: 'sha256:abc', agent_id: 'coder-v1' } as Approval
const listRiskFacts = (risk_summary: Record<string, unknown>) => toRiskFacts({ ...approval, risk_summary } as Approval)

test('a decision carries the hash of the approved action', () => {
  expect(toDecisionBody(approval, 'approve', '')).toEqual({
    approval_id: 'apr_1',
    decision: 'approve',
    action_hash: 'sha256:abc',
  })
})

test('a reason is trimmed, and a blank one is not sent', () => {
  expect(toDecisionBody(approval, 'reject', '  Too expensive ')).toMatchObject({ reason: 'Too expensive' })
  expect(toDecisionBody(approval, 'reject', '   ')).not.toHaveProperty('reason')
})

test('the risk summary leaves out fields that the approval already shows, null values and its own time', () => {
  expect(listRiskFacts({ agent_id: 'coder-v1', budget_left: null, asked_at: '2026-11-15T00:00:00Z' })).toEqual([])
})

test('risk values are shown as text, findings by their reason', () => {
  expect(
    listRiskFacts({
      price_change: 'none',
      spend_today: 3.5,
      findings: [{ rule: 'a', reason: 'Above the limit.' }, { reason: 'New merchant.' }],
    }),
  ).toEqual([
    ['Price change', 'none'],
    ['Spend today', '3.5'],
    ['Findings', 'Above the limit. New merchant.'],
  ])
  expect(listRiskFacts({ findings: [] })).toEqual([])
})
