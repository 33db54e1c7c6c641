import { generateKeyPairSync, sign } from 'node:crypto'
import { verifyAttestation } from '@countersign/proof'
import { recoverTypedDataAddress } from 'viem'
import { describe, expect, test } from 'vitest'
import type { Attestation } from '../../src/modules/basis/attestation.ts'
import { type AttestationSigners, attestationHash, createAttestation } from '../../src/modules/basis/attestation.ts'
import type { AttestationMode } from '../../src/modules/basis/attestation-content.ts'
import { loadCoverage } from '../../src/modules/basis/coverage.ts'
import { buildPreviewReading } from '../../src/modules/basis/preview.ts'
import type { Reading } from '../../src/modules/basis/quote.ts'
import { createKeys } from '../../src/platform/keys.ts'
import { NOW } from './source-responses.ts'
import { createTestSigners } from './test-signers.ts'

const wrapper = loadCoverage().find('AAPLc')!
const keys = createKeys({ signing: 's'.repeat(32), encryption: 'e'.repeat(32) })
const { signers, jwks, addresses } = createTestSigners(keys)

const preview = buildPreviewReading(wrapper, 50, NOW)
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

const attest = (
  reading: Reading,
  seq = 7,
  prevHash: string | null = null,
  attestationSigners: AttestationSigners = signers,
) => createAttestation({ wrapper, reading, seq, prevHash, restatedBy: 'countersign' }, attestationSigners)

const additionalSource = {
  id: 'pyth',
  url: 'https://pyth.example/y',
  published_at: null,
  block: null,
  sha256: 'c'.repeat(64),
}

describe.each<[AttestationMode, Reading]>([
  ['live', live],
  ['preview', preview],
])('a %s attestation', (mode, reading) => {
  test('verifies offline with the public keys alone', async () => {
    const attestation = JSON.parse(JSON.stringify(await attest(reading))) as Attestation
    const verification = verifyAttestation(attestation, { jwks, now: NOW })
    expect(verification.checks.filter(({ ok }) => ok === false)).toEqual([])
    expect(verification.ok).toBe(true)
    expect(attestation.backing.evidence.mode).toBe(mode)
  })

  test.each<[string, (attestation: Attestation) => object]>([
    ['a price', ({ snapshot }) => ({ snapshot: { ...snapshot, wrapper_price: snapshot.wrapper_price + 0.01 } })],
    ['the chain', () => ({ chain: 'elsewhere' })],
    ['the time', () => ({ as_of: new Date(NOW.getTime() + 1).toISOString() })],
    ['the ratio', ({ backing }) => ({ backing: { ...backing, ratio: 2 } })],
    [
      'the evidence',
      ({ backing }) => ({
        backing: {
          ...backing,
          evidence: { ...backing.evidence, sources: [...backing.evidence.sources, additionalSource] },
        },
      }),
    ],
    ['the mode', (attestation) => ({ preview: !attestation.preview })],
  ])('does not verify after a change of %s', async (_name, change) => {
    const attestation = await attest(reading)
    expect(verifyAttestation({ ...attestation, ...change(attestation) }, { jwks }).ok).toBe(false)
  })

  test('is co-signed for EVM contracts by the key of its mode', async () => {
    const { evm_signature } = await attest(reading)
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

test('a live attestation without its sources does not verify', async () => {
  const attestation = await attest(live)
  const { backing } = attestation
  const withoutSources = { ...backing, evidence: { ...backing.evidence, sources: [] } }
  expect(verifyAttestation({ ...attestation, backing: withoutSources }, { jwks }).ok).toBe(false)
})

test('a preview signed with the live key does not verify, nor a live reading signed with the preview key', async () => {
  const swappedSigners: AttestationSigners = { live: signers.preview, preview: signers.live }
  for (const reading of [live, preview]) {
    const { ok, checks } = verifyAttestation(await attest(reading, 1, null, swappedSigners), { jwks })
    expect(ok).toBe(false)
    expect(checks.find(({ name }) => name === 'key_purpose')?.ok).toBe(false)
  }
})

test('a signature by an unpublished key does not verify', async () => {
  const { privateKey } = generateKeyPairSync('ed25519')
  const unpublishedSigner = {
    ...signers.live,
    sign: (bytes: Uint8Array) => ({
      alg: 'ed25519' as const,
      key_id: 'unknown',
      value: sign(null, bytes, privateKey).toString('base64'),
    }),
  }
  expect(verifyAttestation(await attest(live, 1, null, { ...signers, live: unpublishedSigner }), { jwks }).ok).toBe(
    false,
  )
})

test('each attestation carries the hash of the previous one', async () => {
  const first = await attest(live, 1)
  const second = await attest(live, 2, attestationHash(first))
  expect(second.backing.evidence).toMatchObject({ seq: 2, prev_hash: attestationHash(first), asset: wrapper.caip19 })
  expect(attestationHash(second)).not.toBe(attestationHash(first))
})

test('the Solana message holds the figures and the digest of the whole content', async () => {
  const attestation = await attest({ ...live, quote: { ...live.quote, wrapper_price: 250.123456, basis_bps: -12.34 } })
  const message = Buffer.from(attestation.solana_signature.message, 'base64')
  expect(message.length).toBe(90)
  expect(message.subarray(0, 4).toString()).toBe('CSB1')
  expect(message.readUInt8(4)).toBe(1)
  expect(message.readInt32LE(6)).toBe(-1234)
  expect(message.readBigUInt64LE(10)).toBe(BigInt(NOW.getTime() / 1000))
  expect(message.readBigUInt64LE(34)).toBe(250_123456n)
  expect(`0x${message.subarray(58).toString('hex')}`).toBe(attestation.evm_signature.typed_data.message.contentSha256)
  expect(keys.signer('basis').verify(message, Buffer.from(attestation.solana_signature.value, 'base64'))).toBe(true)
})

test('a value that is not a finite number cannot be signed', async () => {
  for (const price of [Number.NaN, Number.POSITIVE_INFINITY])
    await expect(attest({ ...live, quote: { ...live.quote, wrapper_price: price } })).rejects.toThrow(/is not allowed$/)
})
