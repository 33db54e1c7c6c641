import { canonicalize } from './canonicalize.ts'
import { isJsonObject, isShortText, isTime, type JsonObject } from './checks.ts'
import { utf8 } from './encoding.ts'
import { hashJson } from './hash-json.ts'

export const ATTESTATION_SCHEMA = 'basis-attestation/v1'

/** Source of a figure in the attestation; `sha256` is the hash of the raw body, which is served under that hash. */
export type EvidenceSource = {
  id: string
  url: string | null
  published_at: string | null
  block: number | string | null
  sha256: string | null
}

export type AttestationEvidence = {
  hash: string
  mode: 'live' | 'preview'
  valid_until: string
  seq: number
  /** CAIP-19. */
  asset: string
  prev_hash: string | null
  sources: readonly EvidenceSource[]
}

/** The six signed members. All other members of an attestation are unsigned. */
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
    evidence: AttestationEvidence
  }
}

export const MAX_SOURCES = 1000

/** The signed members of an attestation. */
export const attestationContent = (attestation: object): JsonObject => {
  const { schema, symbol, chain, as_of, snapshot, backing } = attestation as JsonObject
  return { schema, symbol, chain, as_of, snapshot, backing }
}

/** The bytes that are signed: the canonical JSON of exactly the six members. */
export const attestationSigningBytes = (attestation: object): Uint8Array =>
  utf8(canonicalize(attestationContent(attestation)))

/** The log entry of an attestation: the canonical JSON of the six signed members and their signature. */
export const attestationLeaf = (attestation: object): Uint8Array => {
  const { signature } = attestation as JsonObject
  return utf8(canonicalize({ ...attestationContent(attestation), signature }))
}

/** The id of an attestation: `att_` and 128 bits of the hash of the signed members. */
export const attestationId = (attestation: object): string =>
  `att_${hashJson(attestationContent(attestation)).slice('sha256:'.length, 'sha256:'.length + 32)}`

/** `backing.evidence.hash`, which anyone can recompute from the sources. */
export const evidenceHash = (sources: readonly object[]): string => hashJson(sources)

/** Why the value is not a well-formed attestation, or undefined when it is. */
export function attestationProblem(attestation: unknown): string | undefined {
  if (!isJsonObject(attestation)) return 'An attestation is a JSON object.'
  const { schema, symbol, chain, as_of, snapshot, backing, preview } = attestation
  if (schema !== ATTESTATION_SCHEMA) return `The schema is not '${ATTESTATION_SCHEMA}'.`
  if (!isShortText(symbol) || !isShortText(chain)) return "'symbol' and 'chain' must be texts."
  if (!isTime(as_of)) return "'as_of' must be an ISO 8601 time in UTC."
  if (!isJsonObject(snapshot) || !isJsonObject(backing)) return "'snapshot' and 'backing' must be objects."
  if (typeof preview !== 'boolean') return "'preview' must be true or false."
  const { evidence } = backing
  if (!isJsonObject(evidence)) return "'backing.evidence' must be an object."
  if (evidence.mode !== 'live' && evidence.mode !== 'preview') return "'backing.evidence.mode' must be live or preview."
  if (!Array.isArray(evidence.sources) || evidence.sources.length > MAX_SOURCES) {
    return `'backing.evidence.sources' must be a list of at most ${MAX_SOURCES} sources.`
  }
  return undefined
}
