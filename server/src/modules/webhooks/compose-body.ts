export type StoredEvent = { type: string; event_at: Date; data: unknown; seq: bigint }

/** The body is the same on every attempt: it does not contain the time of sending. */
export const composeBody = ({ type, event_at, data, seq }: StoredEvent): string =>
  JSON.stringify({ type, timestamp: event_at.toISOString(), data, seq: Number(seq) })
