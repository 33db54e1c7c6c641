import type pg from 'pg'
import type { Database } from './db.ts'
import type { Log } from './log.ts'

/**
 * Tells every process at once that something cached has changed (a revoked key, a new price).
 * After a lost connection every listener is told to forget everything, since a message may have been missed.
 */
export type Notify = {
  listen(channel: string, heard: (payload: string | undefined) => void): void
  close(): Promise<void>
}

const RETRY_MS = 500

/**
 * `instance` names this process. As long as its connection lives it holds a lock by that name, so that others can see
 * whether the process that worked on something is still there: the database itself lets go of a dead one's lock.
 */
export async function createNotify(database: Pick<Database, 'connect'>, instance: string, log: Log): Promise<Notify> {
  const listeners = new Map<string, ((payload: string | undefined) => void)[]>()
  let client: pg.Client | undefined
  let closed = false
  let asking: Promise<unknown> = Promise.resolve()

  const connect = async () => {
    const fresh = await database.connect()
    fresh.on('notification', ({ channel, payload }) => {
      for (const heard of listeners.get(channel) ?? []) heard(payload)
    })
    fresh.on('error', () => fresh.end().catch(() => {}))
    fresh.on('end', () => {
      client = undefined
      if (!closed) setTimeout(reconnect, RETRY_MS).unref()
    })
    await fresh.query(`select pg_advisory_lock(hashtextextended($1, 0))`, [`instance:${instance}`])
    await fresh.query([...listeners.keys()].map((channel) => `listen "${channel}"`).join(';') || 'select 1')
    client = fresh
  }

  const reconnect = async () => {
    if (closed) return
    try {
      await connect()
      for (const heard of [...listeners.values()].flat()) heard(undefined)
    } catch (error) {
      log.debug({ err: error }, 'the listening connection is not back yet')
      setTimeout(reconnect, RETRY_MS).unref()
    }
  }

  await connect()
  return {
    listen(channel, heard) {
      listeners.set(channel, [...(listeners.get(channel) ?? []), heard])
      // One after the other: a connection answers one question at a time.
      asking = asking.then(() => client?.query(`listen "${channel}"`)).catch(() => {})
    },
    async close() {
      closed = true
      await asking
      await client?.end()
    },
  }
}
