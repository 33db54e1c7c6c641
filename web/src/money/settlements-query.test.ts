import { expect, test } from 'vitest'
import { toSettlementsQuery } from './settlements-query.ts'

test('the filters of the address are those of the API, and unknown values are left out', () => {
  const query = toSettlementsQuery(
    new URLSearchParams('status=unknown&rail=wallet&run=run_1&from=2026-11-01&to=2026-11-01'),
  )
  expect(query).toMatchObject({ state: 'unknown', method: 'wallet', run_id: 'run_1' })
  expect(Date.parse(query.until!) - Date.parse(query.since!)).toBe(86_399_999)
  const nothing = toSettlementsQuery(new URLSearchParams('status=lost&rail=cash&run=&from=x&to='))
  expect(Object.values(nothing).every((value) => value === undefined)).toBe(true)
})
