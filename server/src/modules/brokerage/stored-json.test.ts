import { expect, test } from 'vitest'
import { reviveStoredJson, toJson } from './stored-json.ts'

test('what is stored is read back with its types', () => {
  const value = {
    priceE8: 5n,
    leverageE2: null,
    feeMicro: -1n,
    quotedAt: new Date('2026-11-16T16:00:00Z'),
    list: [{ lotE8: 1n }],
    name: '2026',
    approvedBy: 'key_1',
  }
  expect(reviveStoredJson(JSON.parse(toJson(value)))).toEqual(value)
})
