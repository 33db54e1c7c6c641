import { expect, test } from 'vitest'
import { type ControlTower, toStats } from './control-tower-stats.tsx'

const controlTower = {
  spend: { today_usdc: 1.5, month_usdc: 20 },
  runs: { today: 3, month: 40, executing: 1, blocked_today: 0, failed_today: 0, escalated: 0 },
  approvals_pending: 0,
  preauth: { open: 0, oldest_age_s: null, escalated: 0 },
  settlements_unknown: 0,
  webhooks: { active: 1, failing: 0 },
} as ControlTower

const findStat = (changes: object, name: string) =>
  toStats({ ...controlTower, ...changes } as ControlTower).find((stat) => stat.name === name)

test('nothing is marked when nothing needs attention', () => {
  expect(toStats(controlTower).filter(({ tone }) => tone !== undefined)).toEqual([])
})

test('each figure that needs attention is marked when it is above zero', () => {
  const { runs, preauth, webhooks } = controlTower
  for (const [name, changes] of [
    ['Blocked today', { runs: { ...runs, blocked_today: 1 } }],
    ['Failed today', { runs: { ...runs, failed_today: 1 } }],
    ['Escalated', { runs: { ...runs, escalated: 1 } }],
    ['Approvals waiting', { approvals_pending: 1 }],
    ['Open pre-authorisations', { preauth: { ...preauth, open: 1, escalated: 1 } }],
    ['Settlements unknown', { settlements_unknown: 1 }],
    ['Webhooks', { webhooks: { ...webhooks, failing: 1 } }],
  ] as const)
    expect(findStat(changes, name)?.tone, name).toBe('warning')
})

test('open pre-authorisations are normal, and show the age of the oldest', () => {
  expect(findStat({ preauth: { open: 2, oldest_age_s: 90, escalated: 0 } }, 'Open pre-authorisations')).toEqual({
    name: 'Open pre-authorisations',
    value: '2, oldest 90 s',
    tone: undefined,
  })
})
