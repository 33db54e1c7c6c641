import { generateKeyPairSync, sign } from 'node:crypto'
import { verifyAttestation } from '@countersign/proof'
import { recoverTypedDataAddress } from 'viem'
import { describe, expect, test } from 'vitest'
import { attest, attestationHash, type Signers } from '../../src/modules/basis/attest.ts'
import type { Attestation, Mode } from '../../src/modules/basis/attestation.ts'
import { loadCoverage } from '../../src/modules/basis/coverage.ts'
import { previewReading } from '../../src/modules/basis/preview.ts'
import type { Reading } from '../../src/modules/basis/quote.ts'
import { createKeys } from '../../src/platform/keys.ts'
import { NOW } from './shapes.ts'
import { createTestSigners } from './signers.ts'

const covered = loadCoverage().find('AAPLc')!
const keys = createKeys({ signing: 's'.repeat(32), encryption: 'e'.repeat(32) })
const { signers, jwks, addresses } = createTestSigners(keys)

const preview = previewReading(covered, 50, NOW)
const live: Reading = {
  ...preview,
  backing: {
    ratio: 1.0039,
    ratioBasis: 'issuer_claim',
    reportUrl: 'https://issuer.example/list',
    reportAsOf: NOW.toISOString(),
  },
  records: [
    {
      source: 'pyth',
      url: 'https://pyth.example/x',
      status: 200,
      body_sha256: 'a'.repeat(64),
      fetched_at: NOW.toISOString(),
      published_at: NOW.toISOString(),
      block: null,
    },
    {
      source: 'uniswap-v3',
      url: 'https://node.example',
      status: 200,
      body_sha256: 'b'.repeat(64),
      fetched_at: NOW.toISOString(),
      published_at: null,
      block: 1000,
    },
  ],
  quote: { ...preview.quote, source: 'live', preview: false },
}

const make = (reading: Reading, seq = 7, prevHash: string | null = null, by: Signers = signers) =>
  attest({ covered, reading, seq, prevHash, restatedBy: 'countersign' }, by)

describe.each<[Mode, Reading]>([
  ['live', live],
  ['preview', preview],
])('a %s attestation', (mode, reading) => {
  test('verifies offline with the public keys alone', async () => {
    const made = JSON.parse(JSON.stringify(await make(reading))) as Attestation
    const verdict = verifyAttestation(made, { jwks, now: NOW })
    expect(verdict.checks.filter(({ ok }) => ok === false)).toEqual([])
    expect(verdict.ok).toBe(true)
    expect(made.backing.evidence.mode).toBe(mode)
  })

  test.each<[string, (made: Attestation) => Attestation]>([
    [
      'a price',
      (made) => ({ ...made, snapshot: { ...made.snapshot, wrapper_price: made.snapshot.wrapper_price + 0.01 } }),
    ],
    ['the chain', (made) => ({ ...made, chain: 'elsewhere' })],
    ['the time', (made) => ({ ...made, as_of: new Date(NOW.getTime() + 1).toISOString() })],
    ['the ratio', (made) => ({ ...made, backing: { ...made.backing, ratio: 2 } })],
    [
      'the evidence',
      (made) => ({ ...made, backing: { ...made.backing, evidence: { ...made.backing.evidence, sources: [] } } }),
    ],
    ['the mode', (made) => ({ ...made, preview: !made.preview })],
  ])('does not verify once %s was changed', async (what, change) => {
    // A preview has no sources that could be taken away.
    if (what === 'the evidence' && mode === 'preview') return
    expect(verifyAttestation(change(await make(reading)), { jwks }).ok).toBe(false)
  })

  test('is co-signed for EVM contracts by the key of its mode', async () => {
    const { evm_signature } = await make(reading)
    const { domain, types, primaryType, message } = evm_signature.typed_data
    const signer = await recoverTypedDataAddress({
      domain,
      types,
      primaryType,
      message: message as never,
      signature: evm_signature.value as `0x${string}`,
    })
    expect(signer).toBe(addresses[mode])
    expect(evm_signature.signer).toBe(addresses[mode])
    expect(message.live).toBe(mode === 'live')
  })
})

test('a preview signed with the live key does not pass, nor the other way round', async () => {
  const swapped: Signers = { live: signers.preview, preview: signers.live }
  for (const reading of [live, preview]) {
    const { ok, checks } = verifyAttestation(await make(reading, 1, null, swapped), { jwks })
    expect(ok).toBe(false)
    expect(checks.find(({ name }) => name === 'key_purpose')?.ok).toBe(false)
  }
})

test('a key that is not in the set does not verify', async () => {
  const { privateKey } = generateKeyPairSync('ed25519')
  const stranger = {
    ...signers.live,
    sign: (bytes: Uint8Array) => ({
      alg: 'ed25519' as const,
      key_id: 'unknown',
      value: sign(null, bytes, privateKey).toString('base64'),
    }),
  }
  expect(verifyAttestation(await make(live, 1, null, { ...signers, live: stranger }), { jwks }).ok).toBe(false)
})

test('each refers to the one before by its hash', async () => {
  const first = await make(live, 1)
  const second = await make(live, 2, attestationHash(first))
  expect(second.backing.evidence).toMatchObject({ seq: 2, prev_hash: attestationHash(first), asset: covered.caip19 })
  expect(attestationHash(second)).not.toBe(attestationHash(first))
})

test('the packed form for Solana holds the figures and the digest of the whole', async () => {
  const made = await make({ ...live, quote: { ...live.quote, wrapper_price: 250.123456, basis_bps: -12.34 } })
  const packed = Buffer.from(made.solana_signature.message, 'base64')
  expect(packed.length).toBe(90)
  expect(packed.subarray(0, 4).toString()).toBe('CSB1')
  expect(packed.readUInt8(4)).toBe(1)
  expect(packed.readInt32LE(6)).toBe(-1234)
  expect(packed.readBigUInt64LE(10)).toBe(BigInt(NOW.getTime() / 1000))
  expect(packed.readBigUInt64LE(34)).toBe(250_123456n)
  expect(`0x${packed.subarray(58).toString('hex')}`).toBe(made.evm_signature.typed_data.message.contentSha256)
  expect(keys.signer('basis').verify(packed, Buffer.from(made.solana_signature.value, 'base64'))).toBe(true)
})

test('what is not a number cannot be signed', async () => {
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY])
    await expect(make({ ...live, quote: { ...live.quote, wrapper_price: bad } })).rejects.toThrow()
})
