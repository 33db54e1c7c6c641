import { expect, test } from 'vitest'
import { describeProspect, type Outlook, usedShare } from './budget-prospect.ts'

const outlook = { limit_usdc: 1, spent_usdc: 0.5, reserved_usdc: 0.25, forecast: null } as Outlook
const forecast = { rate_usdc_per_hour: 0.1 } as Outlook['forecast']

test('what is reserved counts as used', () => {
  expect(usedShare(outlook)).toBe(75)
  expect(usedShare({ ...outlook, limit_usdc: 0 })).toBe(100)
})

test('an interval is shown only with a forecast that may end before the reset', () => {
  expect(describeProspect({ ...outlook, prospect: 'too_little_history' })).toMatchObject({ showsInterval: false })
  expect(describeProspect({ ...outlook, forecast, prospect: 'may_run_out' })).toEqual({
    label: 'may run out',
    text: 'Not certain, at 0.1 USDC an hour.',
    showsInterval: true,
  })
  expect(describeProspect({ ...outlook, forecast, prospect: 'below_one_run' })).toMatchObject({
    label: 'too little for a run',
    showsInterval: false,
  })
})
