import { expect, test } from 'vitest'
import { describeRemaining, type Remaining, stateAt } from './remaining.tsx'

const mandate = { status: 'active', starts_at: '2030-01-01T00:00:00Z', expires_at: '2030-02-01T00:00:00Z' } as const

test('a mandate is in force from its beginning up to its end, unless it is revoked', () => {
  const at = (time: string, status: 'active' | 'revoked' = 'active') =>
    stateAt({ ...mandate, status }, Date.parse(time))
  expect(at('2029-12-31T23:59:59Z')).toBe('not started')
  expect(at('2030-01-01T00:00:00Z')).toBe('active')
  expect(at('2030-02-01T00:00:00Z')).toBe('expired')
  expect(at('2030-01-15T00:00:00Z', 'revoked')).toBe('revoked')
})

test('what remains is money, payments, both or nothing that is limited', () => {
  const describe = (fields: object) => describeRemaining({ occurrences: null, ...fields } as Remaining)
  expect(describe({ remaining_usdc: 1, limit_usdc: 2 })).toBe('1 USDC of 2 USDC')
  expect(describe({ remaining_usdc: null, occurrences: { limit: 3, used: 1, remaining: 2 } })).toBe('2 of 3 payments')
  expect(describe({ remaining_usdc: null })).toBe('no total limit')
})
