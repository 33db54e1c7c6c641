import { expect, test } from 'vitest'
import { stringifyWithBigints } from '../../platform/json.ts'
import { reviveStoredJson } from './stored-json.ts'

test('stored values are read back with their types', () => {
  const value = {
    priceE8: 5n,
    leverageE2: null,
    feeMicro: -1n,
    quotedAt: new Date('2026-11-16T16:00:00Z'),
    list: [{ lotE8: 1n }],
    name: '2026',
    approvedBy: 'key_1',
  }
  expect(reviveStoredJson(JSON.parse(stringifyWithBigints(value)))).toEqual(value)
})
