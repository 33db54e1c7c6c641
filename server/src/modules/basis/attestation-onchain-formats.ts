import type { AttestationContent } from './attestation-content.ts'

/**
 * The content of an attestation in the two formats that contracts can verify cheaply: EIP-712 typed data and a packed
 * message for Solana. Both carry the SHA-256 of the canonical JSON, which links them to the whole attestation.
 */
export const TYPED_DATA_FIELDS = [
  { name: 'symbol', type: 'string' },
  { name: 'chain', type: 'string' },
  { name: 'asset', type: 'string' },
  { name: 'asOf', type: 'uint64' },
  { name: 'validUntil', type: 'uint64' },
  { name: 'seq', type: 'uint64' },
  { name: 'wrapperPriceE6', type: 'uint256' },
  { name: 'referencePriceE6', type: 'uint256' },
  { name: 'basisBpsE2', type: 'int256' },
  { name: 'underlyingState', type: 'string' },
  { name: 'ratioE9', type: 'uint256' },
  { name: 'live', type: 'bool' },
  { name: 'contentSha256', type: 'bytes32' },
] as const

export type TypedData = {
  /** Without a chain id and contract, so that the same signature verifies on any chain. */
  domain: { name: string; version: string }
  types: { BasisAttestation: typeof TYPED_DATA_FIELDS }
  primaryType: 'BasisAttestation'
  /** Integers are decimal text, because JSON numbers are exact only up to 2^53. */
  message: {
    symbol: string
    chain: string
    asset: string
    asOf: string
    validUntil: string
    seq: string
    wrapperPriceE6: string
    referencePriceE6: string
    basisBpsE2: string
    underlyingState: string
    ratioE9: string
    live: boolean
    contentSha256: `0x${string}`
  }
}

export function toTypedData(content: AttestationContent, digest: Uint8Array): TypedData {
  const integers = toScaledIntegers(content)
  return {
    domain: { name: 'Countersign Basis', version: '1' },
    types: { BasisAttestation: TYPED_DATA_FIELDS },
    primaryType: 'BasisAttestation',
    message: {
      symbol: content.symbol,
      chain: content.chain,
      asset: content.backing.evidence.asset,
      asOf: String(integers.asOf),
      validUntil: String(integers.validUntil),
      seq: String(integers.seq),
      wrapperPriceE6: String(integers.wrapperPriceE6),
      referencePriceE6: String(integers.referencePriceE6),
      basisBpsE2: String(integers.basisBpsE2),
      underlyingState: content.snapshot.underlying_state,
      ratioE9: String(integers.ratioE9),
      live: content.backing.evidence.mode === 'live',
      contentSha256: `0x${Buffer.from(digest).toString('hex')}`,
    },
  }
}

const UNDERLYING_STATES = ['open', 'closed', 'halted', 'holiday']

/**
 * 90 bytes, little-endian: `CSB1`; mode (u8, 1 is live); state (u8, index in `UNDERLYING_STATES`); basis in
 * hundredths of a basis point (i32); then u64 each: as_of and valid_until (in seconds), seq, wrapper and reference price
 * in millionths, ratio in billionths; and the digest.
 */
export function toSolanaMessage(content: AttestationContent, digest: Uint8Array): Buffer {
  const integers = toScaledIntegers(content)
  const message = Buffer.alloc(10 + 6 * 8 + 32)
  message.write('CSB1', 0, 'ascii')
  message.writeUInt8(content.backing.evidence.mode === 'live' ? 1 : 0, 4)
  message.writeUInt8(UNDERLYING_STATES.indexOf(content.snapshot.underlying_state), 5)
  message.writeInt32LE(Number(integers.basisBpsE2), 6)
  const fields = [
    integers.asOf,
    integers.validUntil,
    integers.seq,
    integers.wrapperPriceE6,
    integers.referencePriceE6,
    integers.ratioE9,
  ]
  fields.forEach((value, index) => {
    message.writeBigUInt64LE(value, 10 + 8 * index)
  })
  message.set(digest, 10 + 6 * 8)
  return message
}

const toSeconds = (time: string) => BigInt(Math.floor(Date.parse(time) / 1000))

/** The published numbers are already rounded, so scaling them only moves the decimal point. */
const toScaled = (value: number, decimals: number) => BigInt(value.toFixed(decimals).replace('.', ''))

const toScaledIntegers = ({ as_of, snapshot, backing }: AttestationContent) => ({
  asOf: toSeconds(as_of),
  validUntil: toSeconds(backing.evidence.valid_until),
  seq: BigInt(backing.evidence.seq),
  wrapperPriceE6: toScaled(snapshot.wrapper_price, 6),
  referencePriceE6: toScaled(snapshot.reference_price, 6),
  basisBpsE2: toScaled(snapshot.basis_bps, 2),
  ratioE9: toScaled(backing.ratio, 9),
})
