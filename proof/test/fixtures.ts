import { ed25519 } from '@noble/curves/ed25519.js'
import {
  attestationLeaf,
  attestationSigningBytes,
  checkpointSignatureLine,
  checkpointText,
  evidenceHash,
  formatNote,
  hashLeaf,
  inclusionProof,
  type Jwk,
  jwkFromPublicKey,
  receiptLeaf,
  receiptSigningBytes,
  rootOfLeafHashes,
  statementSigningBytes,
  toBase64,
  toBase64Url,
  utf8,
} from '../src/proof.ts'

/** Keys from fixed seeds, so that failures are reproducible. */
export type TestKey = { publicKey: Uint8Array; jwk: Jwk & { kid: string }; sign(message: Uint8Array): Uint8Array }

export function testKey(seed: number, purpose?: string): TestKey {
  const secret = new Uint8Array(32).fill(seed)
  const publicKey = ed25519.getPublicKey(secret)
  const jwk = { ...jwkFromPublicKey(publicKey), ...(purpose === undefined ? {} : { purpose }) }
  return { publicKey, jwk, sign: (message) => ed25519.sign(message, secret) }
}

export const issuerKey = testKey(1)
export const logKey = testKey(2)
export const untrustedKey = testKey(3)
export const jwks = { keys: [issuerKey.jwk, logKey.jwk] }
export const LOG_ORIGIN = 'log.countersign.test/receipts'

type JsonObject = Record<string, unknown>

const withSignature = (content: JsonObject, bytes: Uint8Array, key: TestKey): JsonObject => ({
  ...content,
  signature: { alg: 'ed25519', key_id: key.jwk.kid, value: toBase64(key.sign(bytes)) },
})

export function makeReceipt(changes: JsonObject = {}, key = issuerKey): JsonObject {
  const content = {
    schema: 'run-receipt/v1',
    receipt_id: 'rcpt_01',
    run_id: 'run_01',
    loop_id: null,
    issued_at: '2026-11-16T15:00:00.000Z',
    kind: 'run',
    agent_id: 'research-lane',
    route: { lane: 'research-lane', reason: 'the cheapest that fits' },
    pricing: { price_usdc: 0.015, amount: '15000' },
    governance: {
      decision: 'allow',
      policy_hash: null,
      mandate_id: null,
      preauth_id: null,
      override_id: null,
      approval_id: null,
    },
    request_hash: `sha256:${'1'.repeat(64)}`,
    input_hash: `sha256:${'2'.repeat(64)}`,
    output_hash: `sha256:${'3'.repeat(64)}`,
    verification: { passed: true },
    settlement: { state: 'settled', network: 'eip155:8453', transaction: `0x${'4'.repeat(64)}` },
    prev_hash: null,
    ...changes,
  }
  return { ...withSignature(content, receiptSigningBytes(content), key), log: null }
}

export function makeCheckpoint(leafHashes: readonly Uint8Array[], key = logKey, origin = LOG_ORIGIN): string {
  const text = checkpointText({ origin, size: leafHashes.length, root: rootOfLeafHashes(leafHashes) })
  return formatNote(text, [checkpointSignatureLine(origin, key.publicKey, key.sign(utf8(text)))])
}

/** The receipt at `index` of a log whose other entries are fillers. */
export function logReceipt(
  receipt: JsonObject,
  { index = 5, size = 11, key = logKey, origin = LOG_ORIGIN } = {},
): JsonObject {
  const leafHashes = fillerHashes(size)
  leafHashes[index] = hashLeaf(receiptLeaf(receipt))
  const inclusion_proof = inclusionProof(leafHashes, index).map(toBase64)
  return { ...receipt, log: { origin, index, inclusion_proof, checkpoint: makeCheckpoint(leafHashes, key, origin) } }
}

/** The attestation at `index` of a log whose other entries are fillers. */
export function logAttestation(attestation: JsonObject, { index = 5, size = 11, key = logKey } = {}): JsonObject {
  const leafHashes = fillerHashes(size)
  leafHashes[index] = hashLeaf(attestationLeaf(attestation))
  const inclusion_proof = inclusionProof(leafHashes, index).map(toBase64)
  const checkpoint = makeCheckpoint(leafHashes, key)
  return { ...attestation, log: { origin: LOG_ORIGIN, index, inclusion_proof, checkpoint } }
}

export const fillerHashes = (size: number): Uint8Array[] =>
  Array.from({ length: size }, (_, i) => hashLeaf(utf8(`entry ${i}`)))

export function makeAttestation({ changes = {} as JsonObject, mode = 'live', key = issuerKey } = {}): JsonObject {
  const sources = [
    {
      id: 'pyth:TSLA',
      url: 'https://prices.test/tsla',
      published_at: '2026-11-16T14:59:58Z',
      block: null,
      sha256: 'ab'.repeat(32),
    },
    { id: 'pool:TSLAx', url: null, published_at: null, block: 312_000_001, sha256: 'cd'.repeat(32) },
  ]
  const content = {
    schema: 'basis-attestation/v1',
    symbol: 'TSLAx',
    chain: 'solana',
    as_of: '2026-11-16T15:00:00Z',
    snapshot: { wrapper_price: 402.11, reference_price: 400, basis_bps: 52.75, underlying_state: 'open' },
    backing: {
      issuer: 'Backed (xStocks)',
      ratio: 1,
      report_url: null,
      report_as_of: null,
      restated_by: 'countersign',
      evidence: {
        hash: evidenceHash(sources),
        mode,
        valid_until: '2026-11-16T15:15:00Z',
        seq: 7,
        asset: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp/token:XsDoVfqeBukxuZHWhdvWHBhgEHjGNst4MLodqsJHzoB',
        prev_hash: null,
        sources,
      },
    },
    ...changes,
  }
  return {
    ...withSignature(content, attestationSigningBytes(content), key),
    disclaimer: 'Not advice.',
    preview: mode === 'preview',
  }
}

export const makeStatement = (content: JsonObject, key = issuerKey): JsonObject =>
  withSignature(content, statementSigningBytes(content), key)

export function makeToken(claims: JsonObject, { key = issuerKey, header = {} as JsonObject } = {}): string {
  const encodePart = (value: JsonObject) => toBase64Url(utf8(JSON.stringify(value)))
  const signingInput = `${encodePart({ alg: 'EdDSA', typ: 'JWT', kid: key.jwk.kid, ...header })}.${encodePart(claims)}`
  return `${signingInput}.${toBase64Url(key.sign(utf8(signingInput)))}`
}

export const check = (verification: { checks: { name: string; ok: boolean | 'skipped' }[] }, name: string) =>
  verification.checks.find((candidate) => candidate.name === name)?.ok

export function flipBit(bytes: Uint8Array, bit: number): Uint8Array {
  const altered = bytes.slice()
  altered[bit >> 3]! ^= 1 << (bit & 7)
  return altered
}

/** Every single-bit change of some bytes. */
export function* bitFlips(bytes: Uint8Array): Generator<Uint8Array> {
  for (let bit = 0; bit < bytes.length * 8; bit += 1) yield flipBit(bytes, bit)
}

/** The JSON value of the bytes, or undefined when they are not JSON. */
export function parseBytes(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}
