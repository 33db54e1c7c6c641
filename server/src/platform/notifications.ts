import type pg from 'pg'
import type { Database } from './db.ts'
import type { Log } from './log.ts'
import { within } from './within.ts'

/**
 * Invalidates caches in every process over LISTEN and NOTIFY (a revoked key, a new price). After a lost connection
 * every listener is called with `undefined` and must drop its whole cache, since a message may have been missed.
 */
export type Notifications = {
  listen(channel: string, listener: (payload: string | undefined) => void): void
  /** Runs a short statement on the listening connection. One without an answer in this time ends the connection. */
  query<Row>(text: string, values: unknown[], timeoutMs: number): Promise<Row[]>
  /** How many connections there have been: what was seen on an earlier one may have changed unnoticed. */
  connectionCount(): number
  close(): Promise<void>
}

const RETRY_MS = 500
/** A query on the listening connection that takes longer means that the connection is dead. */
const QUERY_TIMEOUT_MS = 10_000

/**
 * `instance` identifies this process. Until the release after this one the listening connection holds an advisory lock of
 * that name: processes of the release before see by it that this one is alive, as `instances.ts` does for the others.
 */
export async function createNotifications(
  database: Pick<Database, 'connect'>,
  instance: string,
  log: Log,
): Promise<Notifications> {
  const listeners = new Map<string, ((payload: string | undefined) => void)[]>()
  let client: pg.Client | undefined
  let closed = false
  let connections = 0
  let pendingListen: Promise<unknown> = Promise.resolve()

  const connect = async () => {
    const newClient = await database.connect()
    newClient.on('notification', ({ channel, payload }) => {
      for (const listener of listeners.get(channel) ?? []) listener(payload)
    })
    newClient.on('error', () => newClient.end().catch(() => {}))
    newClient.on('end', () => {
      if (client !== newClient) return
      client = undefined
      if (!closed) setTimeout(reconnect, RETRY_MS).unref()
    })
    try {
      // Before the lock, which may have to be waited for: until then caches would be stale.
      const listens = [...listeners.keys()].map((channel) => `listen "${channel}"`)
      await within(QUERY_TIMEOUT_MS, newClient.query(listens.join(';') || 'select 1'))
      client = newClient
      connections += 1
      await takeLock(newClient)
    } catch (error) {
      if (client === newClient) client = undefined
      newClient.end().catch(() => {})
      throw error
    }
  }

  /** A connection that this process lost may hold the lock until the database notices; then it is tried again and again. */
  const takeLock = async (holder: pg.Client): Promise<void> => {
    const lock = `select pg_try_advisory_lock(hashtextextended($1, 0)) as taken`
    const { rows } = await within(QUERY_TIMEOUT_MS, holder.query<{ taken: boolean }>(lock, [`instance:${instance}`]))
    if (rows[0]?.taken) return
    setTimeout(() => {
      if (client === holder && !closed) takeLock(holder).catch(() => holder.end().catch(() => {}))
    }, RETRY_MS).unref()
  }

  /** An end that waits for the server would not come when the server is silent. */
  const abandon = (silent: pg.Client) => {
    ;(silent as unknown as { connection?: { stream?: { destroy(): void } } }).connection?.stream?.destroy()
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
    async query<Row>(text: string, values: unknown[], timeoutMs: number) {
      const holder = client
      if (!holder) throw new Error('The listening connection is being restored.')
      try {
        return (await within(timeoutMs, holder.query(text, values))).rows as Row[]
      } catch (error) {
        // A refusal of the server has a code; without one there was no answer.
        if (!(error as { code?: string }).code) abandon(holder)
        throw error
      }
    },
    connectionCount: () => connections,
    async close() {
      closed = true
      await pendingListen
      await client?.end()
    },
  }
}
