import { expect, test } from 'vitest'
import { type ControlTower, toTiles } from './tower-tiles.ts'

const tower = {
  as_of: '2026-11-16T12:00:00.000Z',
  spend: { today_usdc: 1.5, month_usdc: 20 },
  runs: { today: 3, month: 40, executing: 1, completed_today: 2, blocked_today: 0, failed_today: 0, escalated: 0 },
  approvals_pending: 0,
  brokerage_approvals_pending: 0,
  preauth: { open: 0, oldest_age_s: null, escalated: 0 },
  settlements_unknown: 0,
  webhooks: { active: 1, failing: 0, pending_deliveries: 0, oldest_pending_age_s: null },
  budgets_at_risk: [],
  alerts_unread: 0,
  frozen_agents: [],
  self_approved_count: 0,
} as unknown as ControlTower

const findTile = (changes: object, name: string) =>
  toTiles({ ...tower, ...changes } as ControlTower).find((tile) => tile.name === name)

test('nothing is marked when nothing needs attention', () => {
  expect(toTiles(tower).filter(({ tone }) => tone !== undefined)).toEqual([])
})

test('each figure that needs attention is marked when it is above zero', () => {
  const { runs, preauth, webhooks } = tower
  for (const [name, changes] of [
    ['Blocked today', { runs: { ...runs, blocked_today: 1 } }],
    ['Failed today', { runs: { ...runs, failed_today: 1 } }],
    ['Escalated', { runs: { ...runs, escalated: 1 } }],
    ['Waiting for a decision', { brokerage_approvals_pending: 1 }],
    ['Escalated pre-authorisations', { preauth: { ...preauth, escalated: 1 } }],
    ['Settlements unknown', { settlements_unknown: 1 }],
    ['Failing webhooks', { webhooks: { ...webhooks, failing: 1 } }],
    ['Unread alerts', { alerts_unread: 1 }],
  ] as const)
    expect(findTile(changes, name)?.tone, name).toBe('warning')
})

test('every tile leads to the rows it counts, of the same day and month', () => {
  const links = Object.fromEntries(toTiles(tower).map(({ name, href }) => [name, href]))
  expect(links['Blocked today']).toBe('#/account/runs?outcome=blocked&since=2026-11-16T00%3A00%3A00.000Z')
  expect(links['Runs this month']).toBe('#/account/runs?since=2026-11-01T00%3A00%3A00.000Z')
  expect(links['Open pre-authorisations']).toBe('#/account/preauths?status=active')
})

test('open pre-authorisations are normal, and show the age of the oldest', () => {
  expect(findTile({ preauth: { open: 2, oldest_age_s: 90, escalated: 0 } }, 'Open pre-authorisations')).toMatchObject({
    value: '2',
    note: 'oldest 90 s',
    tone: undefined,
  })
})
