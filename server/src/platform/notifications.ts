import type pg from 'pg'
import type { Database } from './db.ts'
import type { Log } from './log.ts'

/**
 * Invalidates caches in every process over LISTEN and NOTIFY (a revoked key, a new price). After a lost connection
 * every listener is called with `undefined` and must drop its whole cache, since a message may have been missed.
 */
export type Notifications = {
  listen(channel: string, listener: (payload: string | undefined) => void): void
  close(): Promise<void>
}

const RETRY_MS = 500

/**
 * `instance` identifies this process. The listening connection holds an advisory lock of that name, by which others see
 * whether the process that worked on something is still alive: the database releases the lock of a dead process.
 */
export async function createNotifications(
  database: Pick<Database, 'connect'>,
  instance: string,
  log: Log,
): Promise<Notifications> {
  const listeners = new Map<string, ((payload: string | undefined) => void)[]>()
  let client: pg.Client | undefined
  let closed = false
  let pendingListen: Promise<unknown> = Promise.resolve()

  const connect = async () => {
    const newClient = await database.connect()
    newClient.on('notification', ({ channel, payload }) => {
      for (const listener of listeners.get(channel) ?? []) listener(payload)
    })
    newClient.on('error', () => newClient.end().catch(() => {}))
    newClient.on('end', () => {
      client = undefined
      if (!closed) setTimeout(reconnect, RETRY_MS).unref()
    })
    await newClient.query(`select pg_advisory_lock(hashtextextended($1, 0))`, [`instance:${instance}`])
    await newClient.query([...listeners.keys()].map((channel) => `listen "${channel}"`).join(';') || 'select 1')
    client = newClient
  }

  const reconnect = async () => {
    if (closed) return
    try {
      await connect()
      for (const listener of [...listeners.values()].flat()) listener(undefined)
    } catch (error) {
      log.debug({ err: error }, 'the listening connection could not be restored yet')
      setTimeout(reconnect, RETRY_MS).unref()
    }
  }

  await connect()
  return {
    listen(channel, listener) {
      listeners.set(channel, [...(listeners.get(channel) ?? []), listener])
      // One after the other: a connection runs one query at a time.
      pendingListen = pendingListen.then(() => client?.query(`listen "${channel}"`)).catch(() => {})
    },
    async close() {
      closed = true
      await pendingListen
      await client?.end()
    },
  }
}
