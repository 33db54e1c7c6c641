import {
  formatReceiptProof,
  hashAuditEvent,
  hashReceipt,
  type ReceiptLog,
  saltHash,
  sha256,
  toHex,
  utf8,
} from '@countersign/proof'
import { describe, expect, test } from 'vitest'
import {
  fillerHashes,
  jwks,
  LOG_ORIGIN,
  logReceipt,
  makeAttestation,
  makeCheckpoint,
  makeReceipt,
  makeStatement,
  untrustedKey,
} from '../../../proof/test/fixtures.ts'
import { PASTED_KEYS, SERVICE_KEYS, selectTrustedKeys } from './trusted-keys.ts'
import { parseKeySet, verifyEvidence, verifyEvidenceText, verifyItems, withCheck } from './verify-evidence.ts'

const now = new Date('2026-11-16T15:05:00Z')
const receipt = logReceipt(makeReceipt())
const verifyText = (value: unknown) => verifyEvidenceText(JSON.stringify(value), jwks, now)

test('a receipt is valid by itself and inside the response of its run', () => {
  expect(verifyText(receipt)).toMatchObject({ kind: 'receipt', verdict: 'valid' })
  expect(verifyText({ run_id: 'run_01', output: 'text', receipt })).toMatchObject({ kind: 'receipt', verdict: 'valid' })
})

test('a changed receipt, or one of an untrusted key, is not valid', () => {
  expect(verifyText({ ...receipt, agent_id: 'another-lane' })).toMatchObject({ verdict: 'invalid' })
  expect(verifyText(makeReceipt({}, untrustedKey))).toMatchObject({ verdict: 'invalid' })
})

test('the previous receipt is checked when it is given', () => {
  const first = makeReceipt()
  const second = makeReceipt({ receipt_id: 'rcpt_02', prev_hash: hashReceipt(first) })
  expect(verifyEvidence(second, jwks, now, first)).toMatchObject({ verdict: 'valid' })
  expect(verifyEvidence(second, jwks, now, makeReceipt({ kind: 'refund' }))).toMatchObject({ verdict: 'invalid' })
})

test('an attestation past its time has expired, and a changed one is not valid at any time', () => {
  const late = new Date('2026-11-17T00:00:00Z')
  const attestation = makeAttestation()
  expect(verifyEvidence(attestation, jwks, now)).toMatchObject({ kind: 'attestation', verdict: 'valid' })
  expect(verifyEvidence(attestation, jwks, late)).toMatchObject({ verdict: 'expired' })
  expect(verifyEvidence({ ...attestation, symbol: 'AAPLx' }, jwks, late)).toMatchObject({ verdict: 'invalid' })
})

test('any other signed object is verified as a statement', () => {
  const statement = makeStatement({ schema: 'mandate-budget/v1', remaining_usdc: 5 })
  expect(verifyText(statement)).toMatchObject({ kind: 'statement', verdict: 'valid' })
  expect(verifyText({ ...statement, remaining_usdc: 6 })).toMatchObject({ kind: 'statement', verdict: 'invalid' })
})

test('text that is not evidence is an error', () => {
  expect(verifyEvidenceText('not json', jwks, now)).toEqual({ error: expect.stringContaining('Not valid JSON') })
  expect(verifyEvidenceText('{"schema": 1, "schema": 2}', jwks, now)).toEqual({
    error: expect.stringContaining('Not valid JSON'),
  })
  expect(verifyEvidenceText(' '.repeat(600_000), jwks, now)).toEqual({ error: expect.stringContaining('too long') })
  for (const value of [{}, [], null, 'text', { receipt: 'text' }])
    expect(verifyText(value)).toEqual({ error: expect.stringContaining('Neither a receipt') })
})

test('a pasted key set may be a set or a single key', () => {
  const [key] = jwks.keys
  expect(parseKeySet(JSON.stringify(jwks))).toEqual({ jwks })
  expect(parseKeySet(JSON.stringify(key))).toEqual({ jwks: { keys: [key] } })
  for (const text of ['', '[]', '{}', '{"keys": {}}']) expect(parseKeySet(text)).toHaveProperty('error')
})

test('pasted keys replace the keys of the service and never fall back to them', () => {
  expect(selectTrustedKeys(SERVICE_KEYS, '', jwks)).toEqual({ jwks })
  expect(selectTrustedKeys(SERVICE_KEYS, JSON.stringify(jwks), undefined)).toHaveProperty('error')
  expect(selectTrustedKeys(PASTED_KEYS, '{"keys": []}', jwks)).toEqual({ jwks: { keys: [] } })
  expect(selectTrustedKeys(PASTED_KEYS, 'not json', jwks)).toHaveProperty('error')
})

describe('what is about the log', () => {
  const log = receipt.log as unknown as ReceiptLog

  test('a tlog-proof file is verified with the keys of the page, and what it leaves open is said', () => {
    const file = formatReceiptProof(receipt, log)
    const result = verifyEvidenceText(file, jwks, now)
    expect(result).toMatchObject({ kind: 'proof', verdict: 'valid' })
    expect(JSON.stringify(result)).toContain('That witnesses saw the same log')
    expect(verifyEvidenceText(file.replace('index 5', 'index 6'), jwks, now)).toMatchObject({ verdict: 'invalid' })
    expect(verifyEvidenceText(file.slice(0, 40), jwks, now)).toMatchObject({ verdict: 'invalid' })
  })

  test('evidence of a fork is verified with the keys of the page', () => {
    const evidence = {
      schema: 'log-evidence/v1',
      kind: 'fork',
      origin: LOG_ORIGIN,
      checkpoints: [makeCheckpoint(fillerHashes(4)), makeCheckpoint(fillerHashes(4).reverse())],
      observed_at: ['2026-11-16T10:00:00.000Z', '2026-11-16T10:00:10.000Z'],
    }
    expect(verifyEvidenceText(JSON.stringify(evidence), jwks, now)).toMatchObject({
      kind: 'evidence',
      verdict: 'valid',
    })
    const honest = { ...evidence, checkpoints: [evidence.checkpoints[0], evidence.checkpoints[0]] }
    expect(verifyEvidenceText(JSON.stringify(honest), jwks, now)).toMatchObject({ verdict: 'invalid' })
  })
})

test('a check more can make a result invalid, and never valid', () => {
  const valid = verifyEvidenceText(JSON.stringify(receipt), jwks, now)
  expect(withCheck(valid, { name: 'log_memory', ok: false, reason: 'x' })).toMatchObject({ verdict: 'invalid' })
  expect(withCheck(valid, { name: 'log_memory', ok: 'skipped', reason: 'x' })).toMatchObject({ verdict: 'valid' })
  const invalid = verifyEvidenceText(JSON.stringify({ ...receipt, run_id: 'run_9' }), jwks, now)
  expect(withCheck(invalid, { name: 'log_memory', ok: true, reason: 'x' })).toMatchObject({ verdict: 'invalid' })
})

test('several receipts in one text are verified one by one, each with the one before it', () => {
  const first = makeReceipt()
  const second = makeReceipt({ receipt_id: 'rcpt_02', prev_hash: hashReceipt(first) })
  for (const value of [[second, first], { receipts: [first, second] }]) {
    const items = verifyItems('run.json', JSON.stringify(value), jwks, now)
    expect(items.map(({ result }) => 'verdict' in result && result.verdict)).toEqual(['valid', 'valid'])
    const link = items
      .filter(({ name }) => name.includes('rcpt_02'))
      .flatMap(({ result }) => ('verification' in result ? result.verification.checks : []))
      .find(({ name }) => name === 'prev_hash')
    expect(link).toMatchObject({ ok: true, reason: 'It has the hash of the previous receipt.' })
  }
  const [item] = verifyItems('run.json', JSON.stringify([{ ...second, charged: false }]), jwks, now)
  expect(item!.result).toMatchObject({ verdict: 'invalid' })
})

test('the answer of a run opens its receipt: the output belongs to it, and another one does not', () => {
  const salt = 'a'.repeat(22)
  const plainHash = `sha256:${toHex(sha256(utf8('The output')))}`
  const salted = makeReceipt({
    output_hash: saltHash(salt, 'output_hash', plainHash),
    commitment: { alg: 'sha256-salted', salted: ['output_hash'] },
  })
  const answer = { output: 'The output', evidence: { salt }, receipt: salted }
  expect(verifyText(answer)).toMatchObject({ verdict: 'valid' })
  expect(verifyText({ ...answer, output: 'Another output' })).toMatchObject({ verdict: 'invalid' })
  expect(verifyText({ receipt: salted, opening: { salt, output: 'The output' } })).toMatchObject({ verdict: 'valid' })
  expect(verifyText({ receipt: salted, opening: { salt, output: 'Another' } })).toMatchObject({ verdict: 'invalid' })
})

test('an audit export is verified as a chain', () => {
  const event = { actor: 'key_1', data: {}, prev_hash: null, seq: 1 }
  const line = JSON.stringify({ ...event, hash: hashAuditEvent(event) })
  expect(verifyEvidenceText(`${line}\n`, jwks, now)).toMatchObject({ kind: 'audit export', verdict: 'valid' })
  expect(verifyEvidenceText(line.replace('key_1', 'key_2'), jwks, now)).toMatchObject({ verdict: 'invalid' })
})
