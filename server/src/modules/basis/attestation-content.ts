export const ATTESTATION_SCHEMA = 'basis-attestation/v1'

export type AttestationMode = 'live' | 'preview'

export type EvidenceSource = {
  id: string
  url: string
  published_at: string | null
  block: number | null
  sha256: string
}

/** The six signed fields. */
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
      mode: AttestationMode
      valid_until: string
      seq: number
      asset: string
      prev_hash: string | null
      ratio_basis: 'reserve_report' | 'issuer_claim' | 'illustration'
      sources: EvidenceSource[]
    }
  }
}
