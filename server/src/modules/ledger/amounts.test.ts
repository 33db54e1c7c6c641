import { Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { expect, test } from 'vitest'
import { amountFields, readAmount } from './amounts.ts'

test('an amount is read from atomic units, from USDC, or from both when they agree', () => {
  expect(readAmount({ amount: '300000' })).toBe(300_000n)
  expect(readAmount({ amount_usdc: 0.3 })).toBe(300_000n)
  expect(readAmount({ amount: '300000', amount_usdc: 0.3 })).toBe(300_000n)
})

test('two amounts that differ by one unit are refused', () => {
  expect(() => readAmount({ amount: '300001', amount_usdc: 0.3 })).toThrow('body/amount and body/amount_usdc differ.')
})

test('an amount finer than a unit is refused with what it was meant to be, never rounded', () => {
  expect(() => readAmount({ amount_usdc: 0.1 + 0.2 })).toThrow('body/amount_usdc has more than six decimals. Send 0.3,')
  expect(() => readAmount({ amount: '1', amount_usdc: 0.0000001 })).toThrow('more than six decimals')
})

test('no amount is refused, and so is one unit above a million USDC', () => {
  expect(() => readAmount({})).toThrow('body must have an amount or an amount_usdc.')
  expect(readAmount({ amount: '1000000000000' })).toBe(1_000_000_000_000n)
  expect(() => readAmount({ amount: '1000000000001' })).toThrow('body/amount must be at most 1000000 USDC.')
})

test('the schema lets through what can be read and nothing else', () => {
  const body = Compile(Type.Object(amountFields))
  for (const value of [
    {},
    { amount: '1' },
    { amount: '9999999999999' },
    { amount_usdc: 0.000001 },
    { amount_usdc: 1e6 },
  ])
    expect(body.Check(value)).toBe(true)
  for (const amount of ['', '0', '01', '-1', '1.5', '1e3', ' 1', '1x', '10000000000000', 1])
    expect(body.Check({ amount })).toBe(false)
  for (const amount_usdc of [0, -1, 1_000_000.000001, '1']) expect(body.Check({ amount_usdc })).toBe(false)
})
