import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  check,
  flipBit,
  issuerKey,
  jwks,
  LOG_ORIGIN,
  logAttestation,
  makeAttestation,
  parseBytes,
  testKey,
  untrustedKey,
} from '../test/fixtures.ts'
import { attestationContent, attestationId, attestationLeaf, evidenceHash } from './attestation.ts'
import { canonicalize } from './canonicalize.ts'
import { toBase64, utf8 } from './encoding.ts'
import { hashJson } from './hash-json.ts'
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

describe('an attestation that a trusted key signed', () => {
  const backing = structuredClone(live.backing) as { evidence: Record<string, unknown> }
  const withEvidence = (changes: object) => ({ backing: { ...backing, evidence: { ...backing.evidence, ...changes } } })
  const sources = (length: number) => {
    const list = Array.from({ length }, () => ({ id: 's' }))
    return withEvidence({ sources: list, hash: evidenceHash(list) })
  }
  test.each([
    ['another schema', { schema: 'basis-attestation/v2' }, "The schema is not 'basis-attestation/v1'."],
    ['an empty symbol', { symbol: '' }, "'symbol' and 'chain' must be texts."],
    ['a chain that is a number', { chain: 1 }, "'symbol' and 'chain' must be texts."],
    ['a day that does not exist', { as_of: '2026-02-30T15:00:00Z' }, "'as_of' must be an ISO 8601 time in UTC."],
    ['a snapshot that is a list', { snapshot: [] }, "'snapshot' and 'backing' must be objects."],
    ['no evidence', { backing: { issuer: 'x' } }, "'backing.evidence' must be an object."],
    ['another mode', withEvidence({ mode: 'draft' }), "'backing.evidence.mode' must be live or preview."],
    ['sources that are no list', withEvidence({ sources: {}, hash: hashJson({}) }), 'at most 1000 sources'],
    ['too many sources', sources(1001), 'at most 1000 sources'],
  ])('is malformed with %s', (_, changes, reason) => {
    const { ok, checks } = verifyAttestation(makeAttestation({ changes }), { jwks })
    expect([ok, checks[0]]).toEqual([false, { name: 'shape', ok: false, reason: expect.stringContaining(reason) }])
  })

  test('may have a thousand sources, and must say whether it is a preview', () => {
    expect(verifyAttestation(makeAttestation({ changes: sources(1000) }), { jwks }).ok).toBe(true)
    expect(verifyAttestation({ ...live, preview: 'no' }, { jwks }).checks[0]).toMatchObject({
      ok: false,
      reason: "'preview' must be true or false.",
    })
    expect(verifyAttestation('text', { jwks }).checks.map(({ name, ok }) => [name, ok])).toEqual([
      ['shape', false],
      ...['key', 'key_purpose', 'signature', 'evidence_hash', 'mode', 'freshness'].map((name) => [name, 'skipped']),
    ])
    expect(verifyAttestation('text', { jwks }).checks[0]?.reason).toBe('An attestation is a JSON object.')
    expect(check(verifyAttestation(live, { jwks, log: {} }), 'inclusion')).toBe('skipped')
  })
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

describe('the place of an attestation in the log', () => {
  const logged = logAttestation(live)
  const required = { jwks, log: { origin: LOG_ORIGIN, required: true } }
  const place = logged.log as Record<string, unknown>

  test('is proven by its checkpoint, for the six signed members with their signature', () => {
    const result = verifyAttestation(logged, required)
    expect([result.ok, check(result, 'checkpoint'), check(result, 'inclusion')]).toEqual([true, true, true])
    expect(Object.keys(JSON.parse(new TextDecoder().decode(attestationLeaf(logged)))).sort()).toEqual(
      ['as_of', 'backing', 'chain', 'schema', 'signature', 'snapshot', 'symbol'].sort(),
    )
    // Members that nobody signed are not part of the entry.
    expect(verifyAttestation({ ...logged, disclaimer: 'Another.' }, required).ok).toBe(true)
  })

  test('is not asked for unless the attestation has one or it is required', () => {
    expect(verifyAttestation(live, { jwks }).checks.some(({ name }) => name === 'inclusion')).toBe(false)
    expect(check(verifyAttestation(logged, { jwks }), 'inclusion')).toBe(true)
    const pending = verifyAttestation({ ...live, log: null }, { jwks })
    expect([pending.ok, check(pending, 'inclusion')]).toEqual([true, 'skipped'])
  })

  const another = makeAttestation({ changes: { as_of: '2026-11-16T15:00:15.000Z' } })
  const resigned = { ...live, signature: { ...(live.signature as object), value: toBase64(new Uint8Array(64)) } }
  test.each([
    ['none', live],
    ['none yet', { ...live, log: null }],
    ['that of another attestation', { ...another, log: place }],
    ['that of the same content with another signature', { ...live, log: logAttestation(resigned).log }],
    ['that of another index', { ...logged, log: { ...place, index: 6 } }],
    ['one in a log of another name', { ...logged, log: { ...place, origin: 'log.example/other' } }],
    ['one that another key signed', logAttestation(live, { key: untrustedKey })],
    ['a shorter proof', { ...logged, log: { ...place, inclusion_proof: (place.inclusion_proof as []).slice(1) } }],
    ['one that is no object', { ...logged, log: 'entry 5' }],
  ])('is refused when it is required and there is %s', (_, attestation) => {
    expect(verifyAttestation(attestation, required).ok).toBe(false)
  })

  test('a changed price is refused, although the place is genuine', () => {
    const snapshot = { ...(logged.snapshot as object), wrapper_price: 1 }
    const result = verifyAttestation({ ...logged, snapshot }, required)
    expect([check(result, 'signature'), check(result, 'inclusion')]).toEqual([false, false])
  })

  test('its id is a hash of what is signed, so that another reading has another', () => {
    expect(attestationId(live)).toMatch(/^att_[0-9a-f]{32}$/)
    expect(attestationId({ ...live, disclaimer: 'Another.' })).toBe(attestationId(live))
    expect(attestationId(another)).not.toBe(attestationId(live))
    expect(check(verifyAttestation({ ...live, id: attestationId(live) }, { jwks }), 'id')).toBe(true)
    expect(verifyAttestation({ ...live, id: attestationId(another) }, { jwks }).ok).toBe(false)
  })
})
