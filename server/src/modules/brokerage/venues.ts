import type { Broker, InstrumentType } from './broker.ts'

/**
 * Which tenants may trade at which broker, in order of preference. An account at a real broker has an owner, so only the
 * tenants configured for it reach it; the paper broker is available to every tenant.
 */
export type Venue = { broker: Broker; tenants: 'all' | ReadonlySet<string> }

export type Venues = {
  choose(tenantId: string, type: InstrumentType): Broker | undefined
  byId(brokerId: string): Broker | undefined
  /** Every broker the tenant can reach, each once. */
  listFor(tenantId: string): Broker[]
}

export function createVenues(venues: readonly Venue[]): Venues {
  const mayUse = ({ tenants }: Venue, tenantId: string) => tenants === 'all' || tenants.has(tenantId)
  return {
    choose: (tenantId, type) => venues.find((venue) => mayUse(venue, tenantId) && venue.broker.supports(type))?.broker,
    byId: (brokerId) => venues.find(({ broker }) => broker.id === brokerId)?.broker,
    listFor: (tenantId) => venues.filter((venue) => mayUse(venue, tenantId)).map(({ broker }) => broker),
  }
}
