import { MINUTE_MS } from './numbers.ts'
import type { Issuance, Kept, Observation } from './price-source.ts'

/** Whether the issuer's authorised participants can create or redeem now, and what they last did. */
export type PrimaryMarket = {
  creation: 'open' | 'closed'
  last_mint_at: string | null
  last_mint_block: number | null
  last_mint_size: number | null
}

type Of<K extends Observation['kind']> = Kept<Extract<Observation, { kind: K }>>

/** An issuer's word older than this is no word about now. */
const ISSUER_STALE_MS = 15 * MINUTE_MS

/** Closed unless someone who knows says open, and nobody who knows says otherwise. */
export function creationState(
  issuers: readonly Of<'issuer'>[],
  at: Date,
): { creation: 'open' | 'closed'; note?: string } {
  const fresh = issuers.filter((kept) => at.getTime() - kept.fetchedAt.getTime() <= ISSUER_STALE_MS)
  if (fresh.length === 0)
    return { creation: 'closed', note: 'Whether the issuer creates or redeems now is not known; shown as closed.' }
  const against = fresh.find((kept) => !kept.observation.accepting)
  if (against) return { creation: 'closed', note: `Creation is closed: ${against.observation.why}.` }
  return { creation: 'open' }
}

/** What the chain showed of the supply so far. Kept between cycles. */
export type SupplyTrack = {
  tokens: number | null
  scannedBlock: number | null
  last: Issuance | null
  /** Newest last. */
  recent: Issuance[]
}

export const emptySupplyTrack: SupplyTrack = { tokens: null, scannedBlock: null, last: null, recent: [] }

const KEEP = 200

/** Events of the chain, each once, as far as it is final. Tokens created count positive, redeemed negative. */
export function foldIssuance(track: SupplyTrack, kept: Of<'issuance'>): SupplyTrack {
  const { events, toBlock } = kept.observation
  const fresh = events.filter((event) => event.size !== 0 && (event.block ?? 0) > (track.scannedBlock ?? -1))
  return { ...remember(track, fresh), scannedBlock: Math.max(track.scannedBlock ?? -1, toBlock) }
}

/** Where the chain keeps no events of minting, a change of the supply is one. The first reading has nothing before it. */
export function foldSupply(track: SupplyTrack, kept: Of<'supply'>): SupplyTrack {
  const { tokens, block, publishedAt } = kept.observation
  if (track.scannedBlock !== null && block <= track.scannedBlock) return track
  const size = track.tokens === null ? 0 : Number((tokens - track.tokens).toFixed(9))
  const events = size === 0 ? [] : [{ at: publishedAt.toISOString(), block, size }]
  return { ...remember(track, events), tokens, scannedBlock: block }
}

const remember = (track: SupplyTrack, events: readonly Issuance[]): SupplyTrack => ({
  ...track,
  last: events.at(-1) ?? track.last,
  recent: [...track.recent, ...events].slice(-KEEP),
})

/** Tokens that moved the supply toward parity since the gap opened: created when the wrapper is dear, redeemed when cheap. */
export function issuanceToward(track: SupplyTrack, basisSign: number, since: Date | null): number {
  if (!since || basisSign === 0) return 0
  const net = track.recent
    .filter((event) => Date.parse(event.at) >= since.getTime())
    .reduce((sum, event) => sum + event.size, 0)
  return Math.max(0, net * Math.sign(basisSign))
}
