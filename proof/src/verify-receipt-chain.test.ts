import { describe, expect, test } from 'vitest'
import { check, jwks, makeReceipt, untrustedKey } from '../test/fixtures.ts'
import { hashReceipt } from './receipt.ts'
import { MAX_CHAIN_LENGTH, verifyReceiptChain } from './verify-receipt-chain.ts'

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

describe('what the check of a chain says', () => {
  const reasonOf = (receipts: unknown, name: string, options?: Parameters<typeof verifyReceiptChain>[1]) =>
    verifyReceiptChain(receipts as unknown[], options).checks.find((candidate) => candidate.name === name)?.reason

  test('a list that is empty or too long is no chain', () => {
    for (const receipts of [[], undefined, new Array(MAX_CHAIN_LENGTH + 1).fill(null)])
      expect(verifyReceiptChain(receipts as never).checks).toEqual([
        { name: 'chain', ok: false, reason: `A chain is a list of 1 to ${MAX_CHAIN_LENGTH} receipts.` },
      ])
    expect(reasonOf(new Array(MAX_CHAIN_LENGTH).fill(null), 'link[0]')).toContain('Not a receipt')
  })

  test('a malformed receipt is no link, although the hash of it is the right one', () => {
    const malformed = makeReceipt({ kind: 7 })
    const next = makeReceipt({ receipt_id: 'rcpt_02', prev_hash: hashReceipt(malformed) })
    expect(reasonOf([malformed, next], 'link[0]')).toBe("Not a receipt: 'kind' must be a text.")
    expect(reasonOf([malformed, next], 'link[1]')).toBe('There is no previous receipt.')
    expect(reasonOf([{ ...firstReceipt, extra: Number.NaN }, secondReceipt], 'link[1]')).toContain('$.extra')
  })

  test('each link has its reason, and each receipt that of its first failure', () => {
    expect(reasonOf([firstReceipt], 'link[0]')).toBe('The first receipt of the run.')
    expect(reasonOf([secondReceipt], 'link[0]')).toContain('does not start at the first receipt')
    expect(reasonOf([firstReceipt, secondReceipt], 'link[1]')).toBe('It has the hash of the previous receipt.')
    expect(reasonOf([firstReceipt, thirdReceipt], 'link[1]')).toBe('It does not have the hash of the previous receipt.')
    expect(reasonOf([firstReceipt], 'receipt[0]', { jwks })).toBe('It verifies on its own.')
    expect(reasonOf([makeReceipt({}, untrustedKey)], 'receipt[0]', { jwks })).toContain('No trusted key has the id')
  })

  test('without keys it says that nobody has signed', () => {
    expect(verifyReceiptChain([firstReceipt]).does_not_prove.join()).toContain('no keys were given')
    const full = verifyReceiptChain([firstReceipt], { jwks })
    expect([full.does_not_prove.length, full.checks.map(({ name }) => name)]).toEqual([1, ['link[0]', 'receipt[0]']])
  })
})
