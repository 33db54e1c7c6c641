import { describe, expect, test } from 'vitest'
import { check, jwks, makeReceipt, untrustedKey } from '../test/fixtures.ts'
import { hashReceipt } from './receipt.ts'
import { verifyReceiptChain } from './verify-receipt-chain.ts'

const firstReceipt = makeReceipt({ receipt_id: 'rcpt_01' })
const secondReceipt = makeReceipt({ receipt_id: 'rcpt_02', prev_hash: hashReceipt(firstReceipt) })
const thirdReceipt = makeReceipt({ receipt_id: 'rcpt_03', prev_hash: hashReceipt(secondReceipt) })

test('a chain verifies, and with keys each receipt is verified too', () => {
  expect(verifyReceiptChain([firstReceipt, secondReceipt, thirdReceipt]).ok).toBe(true)
  expect(check(verifyReceiptChain([firstReceipt, secondReceipt, thirdReceipt]), 'signatures')).toBe('skipped')
  const full = verifyReceiptChain([firstReceipt, secondReceipt, thirdReceipt], { jwks })
  expect(full.ok).toBe(true)
  expect(full.checks.filter(({ name }) => name.startsWith('receipt['))).toHaveLength(3)
})

describe('a broken chain', () => {
  test.each<[string, unknown[], string]>([
    ['a receipt is left out', [firstReceipt, thirdReceipt], 'link[1]'],
    ['two are swapped', [firstReceipt, thirdReceipt, secondReceipt], 'link[1]'],
    ['the first is left out', [secondReceipt, thirdReceipt], 'link[0]'],
    ['one is repeated', [firstReceipt, firstReceipt], 'link[1]'],
    ['one was changed', [{ ...firstReceipt, kind: 'loop' }, secondReceipt], 'link[1]'],
    [
      'one is of another run',
      [firstReceipt, makeReceipt({ run_id: 'run_02', prev_hash: hashReceipt(firstReceipt) })],
      'link[1]',
    ],
    ['one entry is not a receipt', [firstReceipt, 'nonsense', thirdReceipt], 'link[1]'],
    ['a null in the middle', [firstReceipt, null, thirdReceipt], 'link[2]'],
  ])('%s', (_, receipts, name) => {
    const result = verifyReceiptChain(receipts)
    expect([result.ok, check(result, name)]).toEqual([false, false])
  })

  test('a chain signed with an untrusted key has valid links, but fails with the keys', () => {
    const forged = makeReceipt({}, untrustedKey)
    expect(verifyReceiptChain([forged]).ok).toBe(true)
    const result = verifyReceiptChain([forged], { jwks })
    expect([result.ok, check(result, 'receipt[0]')]).toEqual([false, false])
  })

  test('an empty list is not a chain', () => {
    expect(verifyReceiptChain([]).ok).toBe(false)
    expect(verifyReceiptChain(undefined as never).ok).toBe(false)
  })
})
