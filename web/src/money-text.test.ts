import { expect, test } from 'vitest'
import { isAmount, readAmount, toInputText, toMicro } from './money-text.ts'

test('an amount is read exactly to six decimals, and what is none stays text', () => {
  expect(readAmount(' 0.05 ')).toBe(0.05)
  expect(readAmount('0.000001')).toBe(0.000001)
  expect(readAmount('999999999.999999')).toBe(999999999.999999)
  for (const text of ['', 'abc', '0.0000001', '-1', '1e3', '1,5', '1000000001', '.5'])
    expect(readAmount(text)).toBe(text)
})

test('every micro-USDC survives the way through a number', () => {
  for (const text of ['0.1', '0.3', '1234567.654321', '0.000003', '99999999.123457'])
    expect(toMicro(toInputText(readAmount(text)))).toBe(toMicro(text))
})

test('an amount with more than six decimals is none', () => {
  expect(isAmount(0.25)).toBe(true)
  expect(isAmount(1e-7)).toBe(false)
  expect(isAmount('1')).toBe(false)
  expect(isAmount(-1)).toBe(false)
})

test('a small amount is shown without an exponent', () => {
  expect(toInputText(0.000001)).toBe('0.000001')
  expect(toInputText(undefined)).toBe('')
})
