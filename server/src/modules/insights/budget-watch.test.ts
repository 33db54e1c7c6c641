import { expect, test } from 'vitest'
import { type BudgetOutlook, findProspect, isAtRisk } from './budget-watch.ts'

const now = Date.UTC(2026, 10, 16, 12)
const at = (minutes: number) => new Date(now + minutes * 60_000)

const prospectOf = (usedMicro: bigint, forecast?: { exhausted: number; earliest: number; latest: number | null }) => {
  const budget = { limit_micro: 100_000n, applies_to: ['runs'] } as BudgetOutlook['budget']
  const outlook = {
    budget,
    usedMicro,
    resetsAt: at(60),
    forecast: forecast && {
      ratePerHourMicro: 1n,
      exhaustedAt: at(forecast.exhausted),
      earliest: at(forecast.earliest),
      latest: forecast.latest === null ? null : at(forecast.latest),
    },
  }
  const prospect = findProspect({ ...outlook, cheapestRunMicro: 10_000n })
  return [prospect, isAtRisk({ ...outlook, prospect })]
}

test('a budget with less left than the cheapest run costs is at risk, with or without a forecast', () => {
  expect(prospectOf(91_000n)).toEqual(['below_one_run', true])
  expect(prospectOf(91_000n, { exhausted: 500, earliest: 400, latest: 600 })).toEqual(['below_one_run', true])
  expect(prospectOf(100_000n)).toEqual(['used_up', true])
})

test('without a pace nothing is foretold', () => {
  expect(prospectOf(0n)).toEqual(['no_spending', false])
  expect(prospectOf(50_000n)).toEqual(['too_little_history', false])
})

test('only a forecast whose whole interval lies before the reset says that the budget runs out', () => {
  expect(prospectOf(50_000n, { exhausted: 30, earliest: 20, latest: 50 })).toEqual(['runs_out', true])
  expect(prospectOf(50_000n, { exhausted: 30, earliest: 20, latest: null })).toEqual(['may_run_out', true])
  expect(prospectOf(50_000n, { exhausted: 90, earliest: 40, latest: 200 })).toEqual(['may_run_out', false])
  expect(prospectOf(50_000n, { exhausted: 90, earliest: 70, latest: 200 })).toEqual(['lasts', false])
})
