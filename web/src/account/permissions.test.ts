import { expect, test } from 'vitest'
import { mayControl, mayMandate } from './permissions.ts'

test('only keys with the control or admin scope may make changes', () => {
  expect(mayControl({ scopes: ['read', 'control'] })).toBe(true)
  expect(mayControl({ scopes: ['admin'] })).toBe(true)
  expect(mayControl({ scopes: ['read', 'run', 'mandate'] })).toBe(false)
  expect(mayControl({ scopes: [] })).toBe(false)
})

test('only keys with the mandate or admin scope may make mandates', () => {
  expect(mayMandate({ scopes: ['mandate'] })).toBe(true)
  expect(mayMandate({ scopes: ['admin'] })).toBe(true)
  expect(mayMandate({ scopes: ['read', 'control'] })).toBe(false)
})
