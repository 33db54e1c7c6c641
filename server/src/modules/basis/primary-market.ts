import type { Issuance, Observation, SourcedObservation } from './price-source.ts'
import { filterFresh } from './staleness.ts'

/** Whether the issuer's authorised participants can create or redeem now, and their last issuance. */
export type PrimaryMarket = {
  creation: 'open' | 'closed'
  last_mint_at: string | null
  last_mint_block: number | null
  last_mint_size: number | null
}

type SourcedKind<K extends Observation['kind']> = SourcedObservation<Extract<Observation, { kind: K }>>

/** Creation is open only when at least one fresh source reports it open and none reports it closed. */
export function creationState(
  issuerObservations: readonly SourcedKind<'issuer'>[],
  at: Date,
): { creation: 'open' | 'closed'; note?: string } {
  const freshObservations = filterFresh(issuerObservations, at)
  if (freshObservations.length === 0)
    return { creation: 'closed', note: 'Whether the issuer creates or redeems now is not known; shown as closed.' }
  const closedSource = freshObservations.find(({ observation }) => !observation.accepting)
  if (closedSource) return { creation: 'closed', note: `Creation is closed: ${closedSource.observation.reason}.` }
  return { creation: 'open' }
}

/** The supply and issuance of a token as read from its chain so far. Stored between measurements. */
export type SupplyHistory = {
  tokens: number | null
  scannedBlock: number | null
  last: Issuance | null
  /** Newest last. */
  recent: Issuance[]
}

export const emptySupplyHistory: SupplyHistory = { tokens: null, scannedBlock: null, last: null, recent: [] }

const MAX_RECENT_ISSUANCES = 200

/** Adds each final mint and burn event once. Created tokens count positive, redeemed tokens negative. */
export function addIssuanceEvents(
  history: SupplyHistory,
  { observation: { events, toBlock } }: SourcedKind<'issuance'>,
): SupplyHistory {
  const newEvents = events.filter((event) => event.size !== 0 && (event.block ?? 0) > (history.scannedBlock ?? -1))
  return { ...addIssuances(history, newEvents), scannedBlock: Math.max(history.scannedBlock ?? -1, toBlock) }
}

/** On a chain without mint events, a change of the supply counts as one. The first reading counts as no change. */
export function addSupplyChange(
  history: SupplyHistory,
  { observation: { tokens, block, publishedAt } }: SourcedKind<'supply'>,
): SupplyHistory {
  if (history.scannedBlock !== null && block <= history.scannedBlock) return history
  const size = history.tokens === null ? 0 : Number((tokens - history.tokens).toFixed(9))
  const events = size === 0 ? [] : [{ at: publishedAt.toISOString(), block, size }]
  return { ...addIssuances(history, events), tokens, scannedBlock: block }
}

const addIssuances = (history: SupplyHistory, events: readonly Issuance[]): SupplyHistory => ({
  ...history,
  last: events.at(-1) ?? history.last,
  recent: [...history.recent, ...events].slice(-MAX_RECENT_ISSUANCES),
})

/**
 * Net tokens issued toward parity since the gap opened: created while the wrapper is above its reference, redeemed while
 * it is below.
 */
export function issuanceTowardParity(history: SupplyHistory, basisSign: number, since: Date | null): number {
  if (!since || basisSign === 0) return 0
  const net = history.recent
    .filter((event) => Date.parse(event.at) >= since.getTime())
    .reduce((sum, event) => sum + event.size, 0)
  return Math.max(0, net * Math.sign(basisSign))
}
