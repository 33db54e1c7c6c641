import { expect, test } from 'vitest'
import { listLaneNames, toReceiptQuery } from './receipt-query.ts'

test('the filter of the URL becomes the query, and empty fields are left out', () => {
  expect(toReceiptQuery(new URLSearchParams('kind=run&agent_id=&run_id=run_1&payer=0xabc'))).toEqual({
    kind: 'run',
    agent_id: undefined,
    run_id: 'run_1',
    payer: '0xabc',
    since: undefined,
    until: undefined,
  })
})

test('a day as the end of the range includes the whole day', () => {
  expect(toReceiptQuery(new URLSearchParams('since=2026-11-15&until=2026-11-15'))).toMatchObject({
    since: '2026-11-15T00:00:00.000Z',
    until: '2026-11-16T00:00:00.000Z',
  })
})

test('a day that does not exist is ignored', () => {
  expect(toReceiptQuery(new URLSearchParams('since=2026-13-45&until=soon'))).toMatchObject({
    since: undefined,
    until: undefined,
  })
})

test('the selected lane can be chosen even when it is no longer listed, and no lane is listed twice', () => {
  const lanes = [{ agent_id: 'writer-v1' }]
  expect(listLaneNames(lanes, undefined)).toEqual(['writer-v1', 'default'])
  expect(listLaneNames(lanes, 'writer-v1')).toEqual(['writer-v1', 'default'])
  expect(listLaneNames(lanes, 'old-v1')).toEqual(['writer-v1', 'default', 'old-v1'])
})
