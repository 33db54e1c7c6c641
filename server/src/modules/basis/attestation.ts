import { createHash } from 'node:crypto'
import { canonicalJson, hashJson } from '../../platform/canonical.ts'
import { ATTESTATION_SCHEMA, type AttestationContent, type AttestationMode } from './attestation-content.ts'
import { type TypedData, toSolanaMessage, toTypedData } from './attestation-onchain-formats.ts'
import type { CoveredWrapper } from './price-source.ts'
import type { Reading } from './quote.ts'
import { STALE_MS } from './staleness.ts'

export type Signature = { alg: 'ed25519'; key_id: string; value: string }

export type Attestation = AttestationContent & {
  signature: Signature
  /** For EVM contracts: the same content as EIP-712 typed data, signed with secp256k1. */
  evm_signature: { alg: 'eip712-secp256k1'; signer: string; value: string; typed_data: TypedData }
  /** For Solana programs: the same content in 90 bytes, signed with the key of `signature`. */
  solana_signature: Signature & { message: string }
  disclaimer: string
  preview: boolean
}

export const DISCLAIMER =
  "Measurements and restated issuer reports, not investment advice. The backing restates the issuer's own report with its evidence; it is not an audit, a rating or a solvency opinion."

/** Each mode has its own ed25519 and secp256k1 key, so a preview's signature never verifies as live. */
export type AttestationSigners = Record<
  AttestationMode,
  {
    sign(bytes: Uint8Array): Signature
    /** The address that `evm_signature` recovers to, for contracts to trust. */
    evmAddress(): Promise<`0x${string}`>
    signTypedData(typedData: TypedData): Promise<{ signer: `0x${string}`; value: `0x${string}` }>
  }
>

export type AttestationInputs = {
  wrapper: CoveredWrapper
  reading: Reading
  seq: number
  prevHash: string | null
  restatedBy: string
}

export async function createAttestation(inputs: AttestationInputs, signers: AttestationSigners): Promise<Attestation> {
  const content = buildContent(inputs)
  const bytes = Buffer.from(canonicalJson(content), 'utf8')
  const digest = createHash('sha256').update(bytes).digest()
  const { source, preview } = inputs.reading.quote
  const { sign, signTypedData } = signers[source]
  const typedData = toTypedData(content, digest)
  const solanaMessage = toSolanaMessage(content, digest)
  return {
    ...content,
    signature: sign(bytes),
    evm_signature: { alg: 'eip712-secp256k1', ...(await signTypedData(typedData)), typed_data: typedData },
    solana_signature: { ...sign(solanaMessage), message: solanaMessage.toString('base64') },
    disclaimer: DISCLAIMER,
    preview,
  }
}

/** The hash that the next attestation of the same wrapper carries as `prev_hash`. */
export function attestationHash({ schema, symbol, chain, as_of, snapshot, backing }: AttestationContent): string {
  return hashJson({ schema, symbol, chain, as_of, snapshot, backing })
}

function buildContent({ wrapper, reading, seq, prevHash, restatedBy }: AttestationInputs): AttestationContent {
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
      issuer: wrapper.issuer,
      ratio: backing.ratio,
      report_url: backing.reportUrl,
      report_as_of: backing.reportAsOf,
      restated_by: restatedBy,
      evidence: {
        hash: hashJson(sources),
        mode: quote.source,
        valid_until: new Date(Date.parse(quote.as_of) + STALE_MS).toISOString(),
        seq,
        asset: wrapper.caip19,
        prev_hash: prevHash,
        ratio_basis: backing.ratioBasis,
        sources,
      },
    },
  }
}
