import type { Broker, InstrumentType } from './broker.ts'

/**
 * Which broker serves whom, in order of preference. An account at a real broker belongs to somebody, so only the
 * tenants named for it reach it; the paper broker is for everyone.
 */
export type Venue = { broker: Broker; tenants: 'all' | ReadonlySet<string> }

export type Venues = {
  choose(tenantId: string, type: InstrumentType): Broker | undefined
  byId(brokerId: string): Broker | undefined
  /** Every broker the tenant can reach, each once. */
  of(tenantId: string): Broker[]
}

export function createVenues(venues: readonly Venue[]): Venues {
  const mayUse = ({ tenants }: Venue, tenantId: string) => tenants === 'all' || tenants.has(tenantId)
  return {
    choose: (tenantId, type) => venues.find((venue) => mayUse(venue, tenantId) && venue.broker.supports(type))?.broker,
    byId: (brokerId) => venues.find(({ broker }) => broker.id === brokerId)?.broker,
    of: (tenantId) => venues.filter((venue) => mayUse(venue, tenantId)).map(({ broker }) => broker),
  }
}
