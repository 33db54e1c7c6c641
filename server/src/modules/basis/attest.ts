import { createHash } from 'node:crypto'
import { canonicalJson, hashJson } from '../../platform/canonical.ts'
import { packForSolana, typedDataOf } from './attest-on-chain.ts'
import {
  ATTESTATION_SCHEMA,
  type Attestation,
  type AttestationContent,
  DISCLAIMER,
  type Mode,
  type Signature,
  type TypedData,
} from './attestation.ts'
import { STALE_MS } from './numbers.ts'
import type { Covered } from './price-source.ts'
import type { Reading } from './quote.ts'

/** One ed25519 key and one secp256k1 key for each mode: what a preview's keys sign can never pass for live. */
export type Signers = Record<
  Mode,
  {
    sign(bytes: Uint8Array): Signature
    /** The address that the co-signatures recover to, for contracts to trust. */
    evmAddress(): Promise<`0x${string}`>
    cosign(typed: TypedData): Promise<{ signer: `0x${string}`; value: `0x${string}` }>
  }
>

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
  const bytes = Buffer.from(canonicalJson(content), 'utf8')
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
