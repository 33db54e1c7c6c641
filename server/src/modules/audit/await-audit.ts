import { setTimeout as sleep } from 'node:timers/promises'
import type { AuditLink } from '../../platform/audit-link.ts'
import type { Db } from '../../platform/db.ts'
import { findLink } from './audit.store.ts'

const POLL_MS = 50
// How far the time in an event's id may be from the time at which it occurred.
const ID_MARGIN_MS = 5_000

export type AuditLinks = ReturnType<typeof createAuditLinks>

export function createAuditLinks({ db, waitMs }: { db: Db; waitMs: number }) {
  const find = async (tenantId: string, eventId: string): Promise<AuditLink | undefined> => {
    const madeAt = timeOfId(eventId)
    const range = { since: new Date(madeAt - ID_MARGIN_MS), until: new Date(madeAt + ID_MARGIN_MS) }
    const link = await findLink(db, tenantId, eventId, range)
    return link && { event_id: eventId, seq: Number(link.seq), hash: link.hash }
  }

  return {
    find,

    /** Asks again until the sequencer, of whichever process, has given the event its place. */
    async awaitLink(tenantId: string, eventId: string): Promise<AuditLink | undefined> {
      const deadline = performance.now() + waitMs
      for (;;) {
        const link = await find(tenantId, eventId)
        if (link || performance.now() >= deadline) return link
        await sleep(POLL_MS)
      }
    },
  }
}

/** Ids begin with their time: the first 48 bits of a UUIDv7. */
const timeOfId = (id: string) =>
  Number.parseInt(
    id
      .slice(id.indexOf('_') + 1)
      .replace('-', '')
      .slice(0, 12),
    16,
  )
