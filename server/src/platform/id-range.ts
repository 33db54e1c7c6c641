import { sql } from 'kysely'

/**
 * Ids begin with the time at which they are made, so the index that a list follows also finds a range of time. A row's own
 * time is that of the same request, a little later; only after a clock was set back is it earlier than the id's.
 */
export const firstIdSince = (prefix: string, since: Date | string | null) =>
  sql<string>`first_id(${prefix}, ${since}::timestamptz - interval '10 minutes')`

export const endIdUntil = (prefix: string, until: Date | string | null) =>
  sql<string>`first_id(${prefix}, ${until}::timestamptz + interval '1 second')`
