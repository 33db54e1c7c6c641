import { type AttestationContent, type TypedData, typedFields } from './attestation.ts'

/**
 * The attestation's facts in the two forms that contracts can check cheaply. Both carry the SHA-256 of the canonical
 * JSON, so that what was proved on a chain can be tied to the whole attestation with its evidence.
 */
export function typedDataOf(content: AttestationContent, digest: Uint8Array): TypedData {
  const figures = figuresOf(content)
  return {
    domain: { name: 'Countersign Basis', version: '1' },
    types: { BasisAttestation: typedFields },
    primaryType: 'BasisAttestation',
    message: {
      symbol: content.symbol,
      chain: content.chain,
      asset: content.backing.evidence.asset,
      asOf: String(figures.asOf),
      validUntil: String(figures.validUntil),
      seq: String(figures.seq),
      wrapperPriceE6: String(figures.wrapperPriceE6),
      referencePriceE6: String(figures.referencePriceE6),
      basisBpsE2: String(figures.basisBpsE2),
      underlyingState: content.snapshot.underlying_state,
      ratioE9: String(figures.ratioE9),
      live: content.backing.evidence.mode === 'live',
      contentSha256: `0x${Buffer.from(digest).toString('hex')}`,
    },
  }
}

const STATES = ['open', 'closed', 'halted', 'holiday']

/**
 * 90 bytes, little-endian: `CSB1`; mode (u8, 1 is live); state (u8 by the list above); basis in hundredths of a basis
 * point (i32); then u64 each: time, end of validity (both in seconds), number, wrapper and reference price in
 * millionths, ratio in billionths; and the digest.
 */
export function packForSolana(content: AttestationContent, digest: Uint8Array): Buffer {
  const figures = figuresOf(content)
  const packed = Buffer.alloc(10 + 6 * 8 + 32)
  packed.write('CSB1', 0, 'ascii')
  packed.writeUInt8(content.backing.evidence.mode === 'live' ? 1 : 0, 4)
  packed.writeUInt8(STATES.indexOf(content.snapshot.underlying_state), 5)
  packed.writeInt32LE(Number(figures.basisBpsE2), 6)
  const numbers = [
    figures.asOf,
    figures.validUntil,
    figures.seq,
    figures.wrapperPriceE6,
    figures.referencePriceE6,
    figures.ratioE9,
  ]
  numbers.forEach((value, index) => {
    packed.writeBigUInt64LE(value, 10 + 8 * index)
  })
  packed.set(digest, 10 + 6 * 8)
  return packed
}

const seconds = (time: string) => BigInt(Math.floor(Date.parse(time) / 1000))

/** The published numbers are already rounded, so scaling them only moves the decimal point. */
const scaled = (value: number, decimals: number) => BigInt(value.toFixed(decimals).replace('.', ''))

const figuresOf = ({ as_of, snapshot, backing }: AttestationContent) => ({
  asOf: seconds(as_of),
  validUntil: seconds(backing.evidence.valid_until),
  seq: BigInt(backing.evidence.seq),
  wrapperPriceE6: scaled(snapshot.wrapper_price, 6),
  referencePriceE6: scaled(snapshot.reference_price, 6),
  basisBpsE2: scaled(snapshot.basis_bps, 2),
  ratioE9: scaled(backing.ratio, 9),
})
