import { expect, test } from 'vitest'
import { canonicalize, utf8, verifyAttestation, verifyReceipt } from '../src/proof.ts'
import { bitFlips, jwks, logReceipt, makeAttestation, makeReceipt, parseBytes } from './fixtures.ts'

test('flipping any single bit of a stored receipt makes it invalid: contents, signature, proof or checkpoint', () => {
  let readable = 0
  for (const alteredBytes of bitFlips(utf8(JSON.stringify(logReceipt(makeReceipt()))))) {
    const receipt = parseBytes(alteredBytes)
    if (receipt === undefined) continue
    readable += 1
    expect(verifyReceipt(receipt, { jwks }).ok, new TextDecoder().decode(alteredBytes)).toBe(false)
  }
  expect(readable).toBeGreaterThan(5000)
})

test('flipping any single bit of the signed part of an attestation makes it invalid', () => {
  const { disclaimer, preview, signature, ...content } = makeAttestation()
  let readable = 0
  for (const alteredBytes of bitFlips(utf8(canonicalize(content)))) {
    const flipped = parseBytes(alteredBytes)
    if (flipped === undefined) continue
    readable += 1
    const attestation = { ...(flipped as object), disclaimer, preview, signature }
    expect(verifyAttestation(attestation, { jwks }).ok, new TextDecoder().decode(alteredBytes)).toBe(false)
  }
  expect(readable).toBeGreaterThan(3000)
})
