import { describe, expect, test } from 'vitest'
import { check, jwks, makeReceipt, strangerKey } from '../test/fixtures.ts'
import { hashReceipt } from './receipt.ts'
import { verifyReceiptChain } from './verify-receipt-chain.ts'

const one = makeReceipt({ receipt_id: 'rcpt_01' })
const two = makeReceipt({ receipt_id: 'rcpt_02', prev_hash: hashReceipt(one) })
const three = makeReceipt({ receipt_id: 'rcpt_03', prev_hash: hashReceipt(two) })

test('a chain holds, and with keys each receipt is verified too', () => {
  expect(verifyReceiptChain([one, two, three]).ok).toBe(true)
  expect(check(verifyReceiptChain([one, two, three]), 'signatures')).toBe('skipped')
  const full = verifyReceiptChain([one, two, three], { jwks })
  expect(full.ok).toBe(true)
  expect(full.checks.filter(({ name }) => name.startsWith('receipt['))).toHaveLength(3)
})

describe('a broken chain', () => {
  test.each<[string, unknown[], string]>([
    ['a receipt is left out', [one, three], 'link[1]'],
    ['two are swapped', [one, three, two], 'link[1]'],
    ['the first is left out', [two, three], 'link[0]'],
    ['one is repeated', [one, one], 'link[1]'],
    ['one was changed', [{ ...one, kind: 'loop' }, two], 'link[1]'],
    ['one is of another run', [one, makeReceipt({ run_id: 'run_02', prev_hash: hashReceipt(one) })], 'link[1]'],
    ['one is no receipt', [one, 'nonsense', three], 'link[1]'],
    ['a null in the middle', [one, null, three], 'link[2]'],
  ])('%s', (_, receipts, name) => {
    const result = verifyReceiptChain(receipts)
    expect([result.ok, check(result, name)]).toEqual([false, false])
  })

  test('a chain a stranger signed holds together, but not with the keys', () => {
    const forged = makeReceipt({}, strangerKey)
    expect(verifyReceiptChain([forged]).ok).toBe(true)
    const result = verifyReceiptChain([forged], { jwks })
    expect([result.ok, check(result, 'receipt[0]')]).toEqual([false, false])
  })

  test('no receipts are no chain', () => {
    expect(verifyReceiptChain([]).ok).toBe(false)
    expect(verifyReceiptChain(undefined as never).ok).toBe(false)
  })
})
