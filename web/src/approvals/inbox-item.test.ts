import type { Approval } from '@countersign/sdk'
import { expect, test } from 'vitest'
import {
  confirmReasons,
  describeNormal,
  fromApproval,
  fromTrade,
  isNewTarget,
  isTradeId,
  type TradeRun,
} from './inbox-item.ts'

const approval = {
  id: 'apr_1',
  status: 'pending',
  resolution: null,
  action: 'run',
  agent_id: 'coder-v1',
  preauth_id: null,
  merchant: 'countersign',
  amount_usdc: 0.5,
  spender: 'buyer-1',
  normal: { count_30d: 4, median_usdc: 0.1, max_usdc: 0.5, same_30d: 2 },
  approvals: [],
  approvals_required: 1,
  used_at: null,
  lapsed_at: null,
} as unknown as Approval
const trade = {
  run_id: '01a1e232-9058-76e0-8e3f-e6cc0d309a24',
  status: 'pending_approval',
  side: 'buy',
  quantity: 2,
  symbol: 'AAPL',
  notional_usdc: 400,
  approvals: [],
  approved_at: null,
  ended_by: null,
  normal: approval.normal,
} as unknown as TradeRun

const stateOf = (change: Partial<Approval>) => fromApproval({ ...approval, ...change }).state

test('an approved payment waits for the agent until it is used or lapses', () => {
  expect(stateOf({})).toBe('waits for a decision')
  expect(stateOf({ status: 'approved' })).toBe('approved, waits for the agent')
  expect(stateOf({ status: 'approved', used_at: '2026-11-16T10:00:00Z' })).toBe('approved and used')
  expect(stateOf({ status: 'approved', lapsed_at: '2026-11-16T10:00:00Z' })).toBe('approved, not used in time')
  expect(stateOf({ status: 'rejected', resolution: 'expired' })).toBe('expired')
})

test('a trade that a person said no to names who and why; one that expired names nobody', () => {
  const ended = { ...trade, status: 'cancelled' as const, reason: 'Too dear', finished_at: '2026-11-16T10:00:00Z' }
  expect(fromTrade({ ...ended, ended_by: 'key_1' })).toMatchObject({
    status: 'rejected',
    state: 'rejected',
    decisions: [{ who: 'key_1', decision: 'reject', reason: 'Too dear' }],
  })
  expect(fromTrade({ ...ended, ended_by: 'clock' })).toMatchObject({ state: 'expired', decisions: [] })
  // Approved before it was cancelled.
  expect(fromTrade({ ...ended, approved_at: '2026-11-16T09:00:00Z', ended_by: 'worker' })).toMatchObject({
    status: 'approved',
    state: 'cancelled',
    decisions: [],
  })
})

test('trades, amounts above the largest and spenders without a past are confirmed; what is usual is not', () => {
  expect(confirmReasons(fromApproval(approval))).toEqual([])
  expect(confirmReasons(fromApproval({ ...approval, amount_usdc: 0.500001 }))).toHaveLength(1)
  const unknown = { count_30d: 0, median_usdc: null, max_usdc: null, same_30d: 0 }
  expect(confirmReasons(fromApproval({ ...approval, normal: unknown }))).toHaveLength(1)
  expect(confirmReasons(fromTrade(trade))).toHaveLength(2)
})

test('what is normal is said with how often the same was paid', () => {
  expect(describeNormal(fromApproval(approval))).toBe(
    'Paid 4 times in the last 30 days: median 0.1 USDC, largest 0.5 USDC. 2 on coder-v1.',
  )
  const first = fromApproval({ ...approval, normal: { ...approval.normal, same_30d: 0 } })
  expect([isNewTarget(first), describeNormal(first)]).toEqual([true, expect.stringMatching(/None was on coder-v1\.$/)])
  expect(isNewTarget(fromApproval(approval))).toBe(false)
})

test('an id says whether it is of a trade', () => {
  expect(isTradeId(trade.run_id)).toBe(true)
  expect(isTradeId('apr_01a1e232-9058-76e0-8e3f-e6cc0d309a24')).toBe(false)
})
