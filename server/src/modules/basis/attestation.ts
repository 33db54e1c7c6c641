export const ATTESTATION_SCHEMA = 'basis-attestation/v1'

export type Mode = 'live' | 'preview'

export type Signature = { alg: 'ed25519'; key_id: string; value: string }

export type EvidenceSource = {
  id: string
  url: string
  published_at: string | null
  block: number | null
  sha256: string
}

/** The six members that are signed. */
export type AttestationContent = {
  schema: typeof ATTESTATION_SCHEMA
  symbol: string
  chain: string
  as_of: string
  snapshot: { wrapper_price: number; reference_price: number; basis_bps: number; underlying_state: string }
  backing: {
    issuer: string
    ratio: number
    report_url: string | null
    report_as_of: string | null
    restated_by: string
    evidence: {
      hash: string
      mode: Mode
      valid_until: string
      seq: number
      asset: string
      prev_hash: string | null
      ratio_basis: 'reserve_report' | 'issuer_claim' | 'illustration'
      sources: EvidenceSource[]
    }
  }
}

export type Attestation = AttestationContent & {
  signature: Signature
  /** For contracts of EVM chains: the same facts as EIP-712 typed data, signed with secp256k1. */
  evm_signature: { alg: 'eip712-secp256k1'; signer: string; value: string; typed_data: TypedData }
  /** For programs on Solana: the same facts in 90 bytes, signed with the key of `signature`. */
  solana_signature: Signature & { message: string }
  disclaimer: string
  preview: boolean
}

export const DISCLAIMER =
  "Measurements and restated issuer reports, not investment advice. The backing restates the issuer's own report with its evidence; it is not an audit, a rating or a solvency opinion."

/** The attestation's facts as EIP-712 typed data. */
export const typedFields = [
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
  /** No chain id and no contract: the same signature serves a verifier on any chain. */
  domain: { name: string; version: string }
  types: { BasisAttestation: typeof typedFields }
  primaryType: 'BasisAttestation'
  /** Integers as decimal text, since JSON numbers end at 2^53. */
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
