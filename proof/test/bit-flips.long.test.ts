import { expect, test } from 'vitest'
import { canonicalize, utf8, verifyAttestation, verifyReceipt } from '../src/proof.ts'
import { bitFlips, jwks, logReceipt, makeAttestation, makeReceipt, parseBytes } from './fixtures.ts'

test('no single bit of a stored receipt can change: contents, signature, proof or checkpoint', () => {
  let readable = 0
  for (const changed of bitFlips(utf8(JSON.stringify(logReceipt(makeReceipt()))))) {
    const receipt = parseBytes(changed)
    if (receipt === undefined) continue
    readable += 1
    expect(verifyReceipt(receipt, { jwks }).ok, new TextDecoder().decode(changed)).toBe(false)
  }
  expect(readable).toBeGreaterThan(5000)
})

test('no single bit of the signed part of an attestation can change', () => {
  const { disclaimer, preview, signature, ...content } = makeAttestation()
  let readable = 0
  for (const changed of bitFlips(utf8(canonicalize(content)))) {
    const flipped = parseBytes(changed)
    if (flipped === undefined) continue
    readable += 1
    const attestation = { ...(flipped as object), disclaimer, preview, signature }
    expect(verifyAttestation(attestation, { jwks }).ok, new TextDecoder().decode(changed)).toBe(false)
  }
  expect(readable).toBeGreaterThan(3000)
})
