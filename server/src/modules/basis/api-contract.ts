import { DISCLAIMER } from './attestation.ts'
import { ATTESTATION_SCHEMA } from './attestation-content.ts'
import type { Coverage } from './coverage.ts'
import { MAX_POINTS } from './history.ts'
import { SCORING_FORMULA, WINDOW_STATUSES } from './window-score.ts'

const endpoints = [
  ['GET', '/api/basis/v1', 'This contract'],
  ['GET', '/api/basis/v1/symbols', 'The covered wrappers'],
  [
    'GET',
    '/api/basis/v1/quote/:symbol',
    'Basis, effective float, market state and primary market of one wrapper; ?chain=',
  ],
  ['GET', '/api/basis/v1/board', 'All covered wrappers ranked by window_score; ?chain='],
  [
    'GET',
    '/api/basis/v1/attestation/:symbol',
    'A signed attestation with its evidence; ?chain=, ?seq= or ?as_of= for an older one',
  ],
  [
    'GET',
    '/api/basis/v1/attestations',
    'Attestations that were handed out, newest first; ?symbol=, ?chain=, ?since=, ?until=, ?limit=, ?cursor=',
  ],
  ['GET', '/api/basis/v1/attestations/:id', 'One attestation with its place in the public log'],
  ['GET', '/api/basis/v1/attestations/:id/proof', 'Proof that an attestation is in the public log; ?witnessed=true'],
  [
    'GET',
    '/api/basis/v1/history/:symbol',
    `Past readings; ?from=, ?to=, ?interval=1m|5m|15m|1h|1d, at most ${MAX_POINTS} points`,
  ],
  ['GET', '/api/basis/v1/stream', 'New readings as server-sent events; ?symbols=A,B'],
  ['GET', '/api/basis/v1/evidence/:sha256', 'The raw body of a source, by its hash'],
] as const

const quote = {
  symbol: 'string',
  underlying: 'string',
  chain: 'string',
  as_of: 'ISO 8601',
  wrapper_price: 'number, quote currency, of one raw token',
  reference_price: 'number, quote currency: price of a share times shares per token',
  reference_source: 'string',
  basis_pct: 'number, a fraction, signed, six decimals',
  basis_bps: 'number, basis_pct times 10000, two decimals',
  effective_float: { near_reference_usd: 'number', band_bps: 'number', confidence: 'high | medium | low' },
  borrow: { available: 'boolean', rate_apr: 'number | null', source: 'string | null' },
  underlying_state: 'open | closed | halted | holiday',
  primary_market: {
    creation: 'open | closed',
    last_mint_at: 'ISO 8601 | null',
    last_mint_block: 'number | null',
    last_mint_size: 'number | null',
  },
  observations: 'string[]',
  source: 'live | preview',
  preview: 'boolean',
}

/** The machine-readable description of the basis API, served at `/api/basis/v1`. */
export function describeApiContract(
  coverage: Coverage,
  limits: { metered: boolean; anonymousPerMinute: number; keyPerMinute: number },
  evmSigners: { live: string; preview: string },
) {
  return {
    service: 'Countersign Basis',
    version: 'v1',
    status: 'preview' as const,
    description:
      'Measurements and attestations about tokenized-equity wrappers: basis against reference, effective float, issuer proof-of-backing and the state of the underlying market. It does not custody assets, execute or facilitate trades, or give investment advice.',
    disclaimer: DISCLAIMER,
    machine_readable: '/openapi.json',
    methodology: {
      reference:
        'Median of the sources that are fresh, each share price times the shares per token of its own moment, without those further than max(25 bps, 3·conf) from it. Outside the session the last regular close is carried.',
      effective_float: `Wrapper inventory on offer inside reference·(1 ± band), integrated exactly over the liquidity of each pool; default band ${coverage.bandBps} bps.`,
      confidence:
        'High: two references within 10 bps, both sides under a minute old, 80% of the known liquidity counted, spot near its five-minute mean, multipliers agree. One missing: medium. Otherwise, or with a carried reference, a halt or a preview: low.',
      staleness:
        'A mandatory input older than 15 minutes turns the reading into a preview, with the reason among its observations.',
      window_score: SCORING_FORMULA,
      attestation:
        'Ed25519 over the RFC 8785 bytes of {schema, symbol, chain, as_of, snapshot, backing}. backing.evidence.hash is the SHA-256 of the RFC 8785 bytes of its sources; each body is served by its hash. Previews are signed with a key of their own. Keys: /.well-known/jwks.json.',
      units: 'Every *_pct is a fraction. Prices are of one raw token, before any scaling that a wallet shows.',
    },
    spec_repo: null,
    keys: { jwks: '/.well-known/jwks.json', evm_signers: evmSigners },
    free_tier: {
      metered: limits.metered,
      anonymous_requests_per_minute: limits.metered ? limits.anonymousPerMinute : null,
      key_requests_per_minute: limits.metered ? limits.keyPerMinute : null,
      note: 'Unmetered while in preview. A free key in Authorization: Bearer has the higher limit at general availability.',
    },
    endpoints: endpoints.map(([method, path, purpose]) => ({ method, path, purpose })),
    response_shapes: {
      quote,
      board: {
        status: 'live | preview',
        as_of: 'ISO 8601',
        scoring: { formula: 'string', note: 'string', statuses: WINDOW_STATUSES },
        rows: [
          {
            rank: 'number',
            symbol: 'string',
            underlying: 'string',
            meme_symbol: 'string | null',
            window_score: 'number, 0 to 100',
            window_status: Object.keys(WINDOW_STATUSES).join(' | '),
            basis_bps: 'number',
            meme_momentum_24h_pct: 'number | null, a fraction',
            float_locked_pct: 'number | null, a fraction',
            primary_market: quote.primary_market,
            as_of: 'ISO 8601',
          },
        ],
        preview: 'boolean',
      },
      attestation: {
        schema: ATTESTATION_SCHEMA,
        symbol: 'string',
        chain: 'string',
        as_of: 'ISO 8601',
        snapshot: {
          wrapper_price: 'number',
          reference_price: 'number',
          basis_bps: 'number',
          underlying_state: 'string',
        },
        backing: {
          issuer: 'string',
          ratio: 'number, reserve shares per wrapper token',
          report_url: 'string | null',
          report_as_of: 'ISO 8601 | null',
          restated_by: 'string',
          evidence: { hash: 'string', mode: 'live | preview', sources: '[{id, url, published_at, block, sha256}]' },
        },
        signature: { alg: 'ed25519', key_id: 'string', value: 'base64' },
        disclaimer: 'string',
        preview: 'boolean',
      },
      symbols: { symbol: 'string', underlying: 'string', issuer: 'string', chains: 'string[]' },
    },
    coverage_seed: coverage.symbols,
    note: 'Response values are illustrative and flagged preview:true unless a reading says source live; field names and shapes are stable.',
  }
}
