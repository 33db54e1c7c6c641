import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  check,
  flipBit,
  issuerKey,
  jwks,
  makeAttestation,
  parseBytes,
  testKey,
  untrustedKey,
} from '../test/fixtures.ts'
import { attestationContent, evidenceHash } from './attestation.ts'
import { canonicalize } from './canonicalize.ts'
import { utf8 } from './encoding.ts'
import { verifyAttestation } from './verify-attestation.ts'

const live = makeAttestation()
const previewKey = testKey(9, 'attestation-preview')
const liveKey = testKey(1, 'attestation')
const preview = makeAttestation({ mode: 'preview', key: previewKey })
type Backing = { evidence: { sources: object[]; hash: string; valid_until: unknown } }

test('a live attestation verifies', () => {
  const result = verifyAttestation(live, { jwks, now: new Date('2026-11-16T15:05:00Z') })
  expect(result.checks.map(({ name, ok }) => [name, ok])).toEqual([
    ['shape', true],
    ['key', true],
    ['key_purpose', 'skipped'],
    ['signature', true],
    ['evidence_hash', true],
    ['mode', true],
    ['freshness', true],
  ])
  expect(result.ok).toBe(true)
})

test('the signature covers exactly the six members', () => {
  expect(Object.keys(attestationContent(live))).toEqual(['schema', 'symbol', 'chain', 'as_of', 'snapshot', 'backing'])
  expect(verifyAttestation({ ...live, disclaimer: 'Another.', eip712: { value: '0x' } }, { jwks }).ok).toBe(true)
})

// ../test/bit-flips.long.test.ts tries every single bit.
test('flipping a bit of the signed members makes it invalid', () => {
  const { signature, preview: flag } = live
  const bytes = utf8(canonicalize(attestationContent(live)))
  fc.assert(
    fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
      const content = parseBytes(flipBit(bytes, bit))
      fc.pre(content !== undefined)
      expect(verifyAttestation({ ...(content as object), signature, preview: flag }, { jwks }).ok, `bit ${bit}`).toBe(
        false,
      )
    }),
    { numRuns: 200 },
  )
})

describe('evidence', () => {
  test('a hash that does not match the sources fails, although it is signed', () => {
    const backing = structuredClone(live.backing) as Backing
    backing.evidence.sources.pop()
    const forgedAttestation = makeAttestation({ changes: { backing } })
    const result = verifyAttestation(forgedAttestation, { jwks })
    expect([check(result, 'signature'), check(result, 'evidence_hash'), result.ok]).toEqual([true, false, false])
    backing.evidence.hash = evidenceHash(backing.evidence.sources)
    expect(verifyAttestation(makeAttestation({ changes: { backing } }), { jwks }).ok).toBe(true)
  })
})

describe('live and preview', () => {
  const keys = { keys: [liveKey.jwk, previewKey.jwk] }

  test('each verifies with its own key', () => {
    expect(verifyAttestation(live, { jwks: keys })).toMatchObject({ ok: true })
    expect(check(verifyAttestation(preview, { jwks: keys }), 'key_purpose')).toBe(true)
    expect(verifyAttestation(preview, { jwks: keys }).ok).toBe(true)
  })

  test('a preview key is rejected for live data, and a live key for previews', () => {
    for (const attestation of [
      makeAttestation({ key: previewKey }),
      makeAttestation({ mode: 'preview', key: liveKey }),
    ]) {
      const result = verifyAttestation(attestation, { jwks: keys })
      expect([check(result, 'signature'), check(result, 'key_purpose'), result.ok]).toEqual([true, false, false])
    }
  })

  test('the unsigned flag must agree with the signed mode', () => {
    expect(check(verifyAttestation({ ...live, preview: true }, { jwks: keys }), 'mode')).toBe(false)
    expect(verifyAttestation({ ...preview, preview: false }, { jwks: keys }).ok).toBe(false)
    expect(verifyAttestation({ ...live, preview: undefined }, { jwks: keys }).ok).toBe(false)
  })

  test('requireLive rejects previews', () => {
    expect(verifyAttestation(preview, { jwks: keys, requireLive: true }).ok).toBe(false)
    expect(verifyAttestation(live, { jwks: keys, requireLive: true }).ok).toBe(true)
  })
})

describe('freshness', () => {
  const at = (now: string) => check(verifyAttestation(live, { jwks, now: new Date(now) }), 'freshness')
  test('passes from as_of to valid_until, and is skipped when no time is given', () => {
    expect(at('2026-11-16T15:15:00.000Z')).toBe(true)
    expect(at('2026-11-16T15:15:00.001Z')).toBe(false)
    expect(at('2026-11-16T14:59:00Z')).toBe(true)
    expect(at('2026-11-16T14:58:59Z')).toBe(false)
    expect(at('not a time')).toBe(false)
    expect(check(verifyAttestation(live, { jwks }), 'freshness')).toBe('skipped')
  })

  test('valid_until must be a time', () => {
    const backing = structuredClone(live.backing) as Backing
    backing.evidence.valid_until = 'soon'
    expect(verifyAttestation(makeAttestation({ changes: { backing } }), { jwks }).ok).toBe(false)
  })
})

test('an unknown key fails', () => {
  expect(check(verifyAttestation(makeAttestation({ key: untrustedKey }), { jwks }), 'key')).toBe(false)
  expect(verifyAttestation(live, { jwks: { keys: [] } }).ok).toBe(false)
})

test('a receipt is rejected as an attestation, even with a trusted signature', () => {
  expect(verifyAttestation(makeAttestation({ changes: { schema: 'run-receipt/v1' } }), { jwks }).ok).toBe(false)
})

test('it never throws, whatever the input', () => {
  fc.assert(
    fc.property(fc.anything(), (value) => {
      expect(verifyAttestation(value, { jwks }).ok).toBe(false)
    }),
  )
  fc.assert(
    fc.property(
      fc.constantFrom('schema', 'symbol', 'chain', 'as_of', 'snapshot', 'backing', 'signature'),
      fc.anything(),
      (member, value) => {
        expect(verifyAttestation({ ...live, [member]: value }, { jwks: { keys: [issuerKey.jwk] } }).ok).toBe(false)
      },
    ),
    { numRuns: 100 },
  )
})
