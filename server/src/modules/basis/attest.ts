import { createHash } from 'node:crypto'
import { canonical, hashJson } from '../../platform/canonical.ts'
import { packForSolana, type TypedData, typedDataOf } from './attest-on-chain.ts'
import { STALE_MS } from './numbers.ts'
import type { Covered } from './price-source.ts'
import type { Reading } from './quote.ts'

export const ATTESTATION_SCHEMA = 'basis-attestation/v1'

export type Mode = 'live' | 'preview'

export type Signature = { alg: 'ed25519'; key_id: string; value: string }

/** One ed25519 key and one secp256k1 key for each mode: what a preview's keys sign can never pass for live. */
export type Signers = Record<
  Mode,
  {
    sign(bytes: Uint8Array): Signature
    cosign(typed: TypedData): Promise<{ signer: `0x${string}`; value: `0x${string}` }>
  }
>

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

export type AttestInputs = {
  covered: Covered
  reading: Reading
  seq: number
  prevHash: string | null
  restatedBy: string
}

export async function attest(
  { covered, reading, seq, prevHash, restatedBy }: AttestInputs,
  signers: Signers,
): Promise<Attestation> {
  const content = contentOf({ covered, reading, seq, prevHash, restatedBy })
  const bytes = Buffer.from(canonical(content), 'utf8')
  const digest = createHash('sha256').update(bytes).digest()
  const { sign, cosign } = signers[reading.quote.source]
  const typed = typedDataOf(content, digest)
  const packed = packForSolana(content, digest)
  return {
    ...content,
    signature: sign(bytes),
    evm_signature: { alg: 'eip712-secp256k1', ...(await cosign(typed)), typed_data: typed },
    solana_signature: { ...sign(packed), message: packed.toString('base64') },
    disclaimer: DISCLAIMER,
    preview: reading.quote.preview,
  }
}

/** The hash by which the next attestation of the same wrapper refers to this one. */
export function attestationHash({ schema, symbol, chain, as_of, snapshot, backing }: AttestationContent): string {
  return hashJson({ schema, symbol, chain, as_of, snapshot, backing })
}

function contentOf({ covered, reading, seq, prevHash, restatedBy }: AttestInputs): AttestationContent {
  const { quote, backing, records } = reading
  const sources = records.map(({ source, url, published_at, block, body_sha256 }) => ({
    id: source,
    url,
    published_at,
    block,
    sha256: body_sha256,
  }))
  return {
    schema: ATTESTATION_SCHEMA,
    symbol: quote.symbol,
    chain: quote.chain,
    as_of: quote.as_of,
    snapshot: {
      wrapper_price: quote.wrapper_price,
      reference_price: quote.reference_price,
      basis_bps: quote.basis_bps,
      underlying_state: quote.underlying_state,
    },
    backing: {
      issuer: covered.issuer,
      ratio: backing.ratio,
      report_url: backing.reportUrl,
      report_as_of: backing.reportAsOf,
      restated_by: restatedBy,
      evidence: {
        hash: hashJson(sources),
        mode: quote.source,
        valid_until: new Date(Date.parse(quote.as_of) + STALE_MS).toISOString(),
        seq,
        asset: covered.caip19,
        prev_hash: prevHash,
        ratio_basis: backing.ratioBasis,
        sources,
      },
    },
  }
}
