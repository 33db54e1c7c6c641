import { beforeEach, expect, test } from 'vitest'
import { stubFetch, stubStorage } from '../../test/browser-stubs.ts'
import { decideAll, type Outcome, toApproveBody, toDecisionBody } from './decide.ts'
import type { InboxItem, TradeRun } from './inbox-item.ts'

const approval = { id: 'apr_1', action_hash: 'sha256:abc' }
const run = {
  run_id: 'r1',
  instrument_type: 'perp',
  side: 'long',
  notional_usdc: 10,
  leverage: 3,
  expires_at: '2026-11-16T10:00:00Z',
} as TradeRun

beforeEach(() => stubStorage())

test('a decision carries the hash of the action on screen, and a trade its terms', () => {
  expect(toDecisionBody(approval, 'approve', '')).toEqual({
    approval_id: 'apr_1',
    decision: 'approve',
    action_hash: 'sha256:abc',
  })
  expect(toApproveBody(run, ' Fine ')).toEqual({
    run_id: 'r1',
    instrument_type: 'perp',
    direction: 'long',
    notional_usdc: 10,
    leverage: 3,
    expires_at: '2026-11-16T10:00:00Z',
    reason: 'Fine',
  })
  expect(toApproveBody({ ...run, leverage: null }, '')).not.toHaveProperty('leverage')
})

test('a reason is trimmed, and a blank one is not sent', () => {
  expect(toDecisionBody(approval, 'reject', '  Too dear ')).toMatchObject({ reason: 'Too dear' })
  expect(toDecisionBody(approval, 'reject', '   ')).not.toHaveProperty('reason')
})

test('each is decided in its own domain, and one that is refused does not stop the others', async () => {
  const sent = stubFetch({
    'POST /api/approvals': { status: 403, body: { error: 'forbidden', message: 'Whoever asked cannot decide.' } },
    'POST /api/rh/runs/r1/cancel': { body: {} },
  })
  const items = [
    { id: 'apr_1', title: 'Run', domain: 'core', approval },
    { id: 'r1', title: 'Trade', domain: 'brokerage', run },
  ] as unknown as InboxItem[]
  const outcomes: Outcome[] = []
  await decideAll(items, 'reject', 'No', (outcome) => outcomes.push(outcome))
  expect(outcomes).toEqual([
    { id: 'apr_1', title: 'Run', decision: 'reject', problem: 'Whoever asked cannot decide.' },
    { id: 'r1', title: 'Trade', decision: 'reject', problem: null },
  ])
  expect(sent.map(({ url, body }) => [url, body])).toEqual([
    ['/api/approvals', { approval_id: 'apr_1', decision: 'reject', action_hash: 'sha256:abc', reason: 'No' }],
    ['/api/rh/runs/r1/cancel', { reason: 'No' }],
  ])
})
