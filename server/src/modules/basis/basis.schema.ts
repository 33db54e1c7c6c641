import { Type } from 'typebox'
import { cursorParameter, pageFields } from '../../platform/paging.ts'
import { nullable, oneOf, pattern } from '../../platform/schema.ts'
import { ProofQuery, ReceiptLog } from '../receipts/receipts.schema.ts'
import { INTERVAL_MS } from './history.ts'
import { WINDOW_STATUSES } from './window-score.ts'

const Time = Type.String({ format: 'date-time' })
const Source = oneOf(['live', 'preview'])
const State = oneOf(['open', 'closed', 'halted', 'holiday'])
const Status = oneOf(Object.keys(WINDOW_STATUSES))

export { ProofQuery }

export const SymbolParams = Type.Object({ symbol: Type.String({ minLength: 1, maxLength: 64 }) })
export const EvidenceParams = Type.Object({
  sha256: Type.String(pattern('^(sha256:)?[0-9a-fA-F]{64}$', '64 hexadecimal digits')),
})

const Chain = Type.Optional(
  Type.String({ minLength: 1, maxLength: 64, description: 'Where the wrapper has several deployments' }),
)
export const ChainQuery = Type.Object({ chain: Chain }, { additionalProperties: false })
export const AttestationQuery = Type.Object(
  {
    chain: Chain,
    seq: Type.Optional(
      Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Of a measured reading' }),
    ),
    as_of: Type.Optional(
      Type.String({
        format: 'date-time',
        description: 'Of a reading. A preview that nobody asked for before can be had for 15 minutes.',
      }),
    ),
  },
  { additionalProperties: false },
)
export const HistoryQuerystring = Type.Object(
  {
    chain: Chain,
    from: Type.Optional(Time),
    to: Type.Optional(Time),
    interval: Type.Optional(
      Type.Union(Object.keys(INTERVAL_MS).map((name) => Type.Literal(name as keyof typeof INTERVAL_MS))),
    ),
  },
  { additionalProperties: false },
)
export const StreamQuery = Type.Object(
  { symbols: Type.Optional(Type.String({ maxLength: 2000, description: 'Separated by commas; all when absent' })) },
  { additionalProperties: false },
)

const attestation_url = Type.String({ description: 'The attestation of this very reading' })

const PrimaryMarket = Type.Object({
  creation: oneOf(['open', 'closed']),
  last_mint_at: nullable(Time),
  last_mint_block: nullable(Type.Number()),
  last_mint_size: nullable(Type.Number({ description: 'Tokens created positive, redeemed negative' })),
})

export const QuoteResponse = Type.Object(
  {
    symbol: Type.String(),
    underlying: Type.String(),
    chain: Type.String(),
    as_of: Time,
    wrapper_price: Type.Number(),
    reference_price: Type.Number(),
    reference_source: Type.String(),
    basis_pct: Type.Number({ description: '(wrapper − reference) / reference, a fraction, signed' }),
    basis_bps: Type.Number({ description: 'basis_pct · 10000' }),
    effective_float: Type.Object({
      near_reference_usd: Type.Number(),
      band_bps: Type.Number(),
      confidence: oneOf(['high', 'medium', 'low']),
    }),
    borrow: Type.Object({
      available: Type.Boolean(),
      rate_apr: nullable(Type.Number()),
      source: nullable(Type.String()),
    }),
    underlying_state: State,
    primary_market: PrimaryMarket,
    observations: Type.Array(Type.String()),
    source: Source,
    preview: Type.Boolean(),
    attestation_url,
  },
  { title: 'BasisQuote' },
)

export const SymbolsResponse = Type.Object(
  {
    symbols: Type.Array(
      Type.Object(
        {
          symbol: Type.String(),
          underlying: Type.String(),
          issuer: Type.String(),
          chains: Type.Array(Type.String()),
        },
        { title: 'BasisSymbol' },
      ),
    ),
    count: Type.Integer(),
  },
  { title: 'BasisSymbolsResponse' },
)

export const BoardResponse = Type.Object(
  {
    status: Source,
    as_of: Time,
    scoring: Type.Object({
      formula: Type.String(),
      note: Type.String(),
      statuses: Type.Record(Type.String(), Type.String()),
    }),
    rows: Type.Array(
      Type.Object(
        {
          rank: Type.Integer(),
          symbol: Type.String(),
          underlying: Type.String(),
          chain: Type.String(),
          meme_symbol: nullable(Type.String()),
          window_score: Type.Number(),
          window_status: Status,
          basis_bps: Type.Number(),
          meme_momentum_24h_pct: nullable(Type.Number()),
          float_locked_pct: nullable(Type.Number()),
          primary_market: PrimaryMarket,
          source: Source,
          as_of: Time,
          attestation_url,
        },
        { title: 'BasisBoardRow' },
      ),
    ),
    preview: Type.Boolean(),
  },
  { title: 'BasisBoard' },
)

const Signature = { alg: Type.Literal('ed25519'), key_id: Type.String(), value: Type.String() }

const attestation = {
  schema: Type.Literal('basis-attestation/v1'),
  symbol: Type.String(),
  chain: Type.String(),
  as_of: Time,
  snapshot: Type.Object({
    wrapper_price: Type.Number(),
    reference_price: Type.Number(),
    basis_bps: Type.Number(),
    underlying_state: State,
  }),
  backing: Type.Object({
    issuer: Type.String(),
    ratio: Type.Number(),
    report_url: nullable(Type.String()),
    report_as_of: nullable(Time),
    restated_by: Type.String(),
    evidence: Type.Object({
      hash: Type.String(),
      mode: Source,
      valid_until: Time,
      seq: Type.Integer(),
      asset: Type.String(),
      prev_hash: nullable(Type.String()),
      ratio_basis: oneOf(['reserve_report', 'issuer_claim', 'illustration']),
      sources: Type.Array(
        Type.Object({
          id: Type.String(),
          url: Type.String(),
          published_at: nullable(Time),
          block: nullable(Type.Integer()),
          sha256: Type.String(),
        }),
      ),
    }),
  }),
  signature: Type.Object(Signature),
  evm_signature: Type.Object({
    alg: Type.Literal('eip712-secp256k1'),
    signer: Type.String(),
    value: Type.String(),
    typed_data: Type.Unknown(),
  }),
  solana_signature: Type.Object({ ...Signature, message: Type.String() }),
  disclaimer: Type.String(),
  preview: Type.Boolean(),
  id: Type.String({ description: 'A hash of the signed members: the same for everybody who asks for this reading' }),
  proof_url: Type.String({ description: 'The proof that it is an entry of the public log' }),
}

export const AttestationResponse = Type.Object(attestation, { title: 'BasisAttestation' })

const LoggedAttestation = Type.Object(
  {
    ...attestation,
    log: Type.Union([ReceiptLog, Type.Null()], { description: 'Its place in the public log; null for about a second' }),
  },
  { title: 'LoggedBasisAttestation', description: 'An attestation that was handed out, with its place in the log.' },
)

export const IssuedAttestationResponse = LoggedAttestation
export const IssuedAttestationParams = Type.Object({
  id: Type.String(pattern('^att_[0-9a-f]{32}$', "'att_' and 32 hexadecimal digits")),
})

export const AttestationsQuery = Type.Object(
  {
    symbol: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
    chain: Chain,
    since: Type.Optional(Type.String({ format: 'date-time', description: 'Of this time or later' })),
    until: Type.Optional(Type.String({ format: 'date-time', description: 'Before this time' })),
    limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
    cursor: cursorParameter('att'),
  },
  { additionalProperties: false },
)

export const AttestationsResponse = Type.Object(
  { attestations: Type.Array(LoggedAttestation), ...pageFields },
  { title: 'BasisAttestationsResponse' },
)

export const AttestationProofResponse = Type.Object(
  {
    attestation_id: Type.String(),
    hash: Type.String({ description: 'SHA-256 of the entry' }),
    leaf_hash: Type.String({ description: 'RFC 6962 leaf hash of the same bytes, in base64' }),
    log: Type.Union([ReceiptLog, Type.Null()], { description: 'Null until it has its place, within about a second' }),
  },
  { title: 'BasisAttestationProof' },
)

export const HistoryResponse = Type.Object(
  {
    symbol: Type.String(),
    chain: Type.String(),
    interval: Type.String(),
    from: Time,
    to: Time,
    points: Type.Array(
      Type.Object(
        {
          as_of: Time,
          wrapper_price: Type.Number(),
          reference_price: Type.Number(),
          basis_bps: Type.Number(),
          near_reference_usd: Type.Number(),
          underlying_state: State,
          window_score: Type.Number(),
          window_status: Status,
        },
        { title: 'BasisHistoryPoint' },
      ),
    ),
    source: Source,
    preview: Type.Boolean(),
  },
  { title: 'BasisHistoryResponse' },
)

export const ContractResponse = Type.Object(
  {
    service: Type.String(),
    version: Type.String(),
    status: Type.Literal('preview'),
    description: Type.String(),
    disclaimer: Type.String(),
    machine_readable: Type.String(),
    methodology: Type.Record(Type.String(), Type.String()),
    spec_repo: nullable(Type.String()),
    keys: Type.Object({
      jwks: Type.String(),
      evm_signers: Type.Object({ live: Type.String(), preview: Type.String() }),
    }),
    free_tier: Type.Record(Type.String(), Type.Unknown()),
    endpoints: Type.Array(Type.Object({ method: Type.String(), path: Type.String(), purpose: Type.String() })),
    response_shapes: Type.Record(Type.String(), Type.Unknown()),
    coverage_seed: Type.Array(Type.Unknown()),
    note: Type.String(),
  },
  { title: 'BasisContractResponse' },
)
