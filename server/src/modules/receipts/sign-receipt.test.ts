import {
  hashLeaf,
  hashReceipt,
  sha256 as proofSha256,
  receiptLeaf,
  toHex,
  utf8,
  verifyReceipt,
} from '@countersign/proof'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalJson } from '../../platform/canonical.ts'
import { createKeys } from '../../platform/keys.ts'
import { MAX_RECEIPT_BYTES, type ReceiptDraft, signReceipt } from './sign-receipt.ts'

const keys = createKeys({
  signing: 'a secret for tests that signs things',
  encryption: 'a secret for tests that hides things',
})
const signer = keys.signer('receipts')
const jwks = { keys: [{ ...signer.publicJwk, purpose: 'receipt' }] }

const draft: ReceiptDraft = {
  receipt_id: 'rcpt_1',
  run_id: 'run_1',
  loop_id: null,
  issued_at: '2026-11-16T15:00:00.000Z',
  kind: 'run',
  agent_id: 'analyst-v1',
  route: { recommended_agent_id: 'analyst-v1', confidence: 0.5 },
  pricing: { price_usdc: 0.0125, amount: '12500' },
  governance: { decision: 'approved', policy_hash: null },
  request_hash: `sha256:${'1'.repeat(64)}`,
  input_hash: `sha256:${'2'.repeat(64)}`,
  output_hash: `sha256:${'3'.repeat(64)}`,
  salt: null,
  verification: { verified: true },
  settlement: { payer: '0xAbC0000000000000000000000000000000000001', amount: '12500' },
  prev_hash: null,
  tenant_id: 'ten_secret-canary',
  payer: '0xAbC0000000000000000000000000000000000001',
}

test('a signed receipt verifies with the independent implementation', () => {
  const { receipt } = signReceipt(signer, draft)
  expect(verifyReceipt(receipt, { jwks })).toMatchObject({ ok: true })
})

test('the same draft gives the same bytes', () => {
  expect(signReceipt(signer, { ...draft }).row.body).toBe(signReceipt(signer, draft).row.body)
})

test('body, hash and leaf are what the independent implementation computes from the receipt', () => {
  const { receipt, row } = signReceipt(signer, draft)
  expect(utf8(row.body)).toEqual(receiptLeaf(receipt))
  expect(row.hash).toBe(hashReceipt(receipt))
  expect(row.hash).toBe(`sha256:${toHex(proofSha256(utf8(row.body)))}`)
  expect(hashLeaf(utf8(row.body))).toEqual(hashLeaf(receiptLeaf(receipt)))
})

test('any draft verifies with the independent implementation, and any change to it fails', () => {
  const members = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 6 })
  fc.assert(
    fc.property(members, members, fc.boolean(), (route, pricing, charged) => {
      const { receipt, row } = signReceipt(signer, { ...draft, route, pricing, charged })
      expect(verifyReceipt(receipt, { jwks }).ok).toBe(true)
      expect(row.hash).toBe(hashReceipt(receipt))
      expect(verifyReceipt({ ...receipt, charged: !charged }, { jwks }).ok).toBe(false)
    }),
    { numRuns: 60 },
  )
})

test('neither the tenant nor an unknown member of a draft becomes public', () => {
  const { receipt, row } = signReceipt(signer, {
    ...draft,
    task: 'canary-task',
    output: 'canary-output',
  } as ReceiptDraft)
  expect(row.tenant_id).toBe('ten_secret-canary')
  for (const text of [row.body, canonicalJson(receipt)]) expect(text).not.toMatch(/canary/)
})

test('a failed run proves that it was not charged', () => {
  const { receipt } = signReceipt(signer, { ...draft, kind: 'failure', settlement: null, charged: false })
  expect(receipt.charged).toBe(false)
  expect(verifyReceipt(receipt, { jwks }).ok).toBe(true)
  expect(verifyReceipt({ ...receipt, charged: true }, { jwks }).ok).toBe(false)
})

test('a receipt that is too large for a log entry is refused', () => {
  expect(() => signReceipt(signer, { ...draft, route: { note: 'x'.repeat(MAX_RECEIPT_BYTES) } })).toThrow(/larger/)
})
