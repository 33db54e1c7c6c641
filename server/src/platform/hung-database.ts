import type pg from 'pg'
import type { Log } from './log.ts'
import type { WatchedClient } from './primary-pool.ts'

/**
 * Notices a database server that accepts everything and answers nothing (stopped, swapped out, its disk gone). A query on
 * it would wait for ever, since the server enforces its own time limits. When a connection has been in use for long, a new
 * one is tried; if that gets no answer either, the connections in use are destroyed, and their requests answer 503.
 */
const CHECK_MS = 1_000
/** A connection in use for less than this is not looked at. */
const SUSPICIOUS_MS = 4_000
/** How long a new connection may take to answer. */
const PROBE_TIMEOUT_MS = 5_000
/** A timer that fires later than this means that this process itself was blocked, and its clock proves nothing. */
const MAX_TIMER_LAG_MS = 500

type Destroyable = { connection?: { stream?: { destroy(): void } } }

export function watchForHungServer(pool: pg.Pool, connect: () => Promise<pg.Client>, log: Log): () => void {
  const inUse = new Map<pg.PoolClient, number>()
  pool.on('acquire', (client) => void inUse.set(client, performance.now()))
  pool.on('release', (_error, client) => void inUse.delete(client))
  pool.on('remove', (client) => void inUse.delete(client))
  let probing = false
  let checkedAt = performance.now()

  const findSuspects = (since: number) =>
    [...inUse].filter(([, acquiredAt]) => acquiredAt <= since).map(([client]) => client)

  /** A statement has a time limit on the server, but not its commit, which may wait for a standby for ever. */
  const giveUpCommits = (now: number) => {
    const isLate = now - checkedAt > CHECK_MS + MAX_TIMER_LAG_MS
    checkedAt = now
    // The answer may have arrived while this process was blocked.
    if (isLate) return
    const overdue = [...inUse.keys()].filter((client) => ((client as WatchedClient).giveUpAt ?? now) < now)
    if (overdue.length === 0) return
    log.error({ connections: overdue.length }, 'Commits wait for a standby too long: their outcome is unknown.')
    for (const client of overdue) (client as unknown as Destroyable).connection?.stream?.destroy()
  }

  const check = async () => {
    const startedAt = performance.now()
    giveUpCommits(startedAt)
    if (probing || findSuspects(startedAt - SUSPICIOUS_MS).length === 0) return
    probing = true
    try {
      if ((await probe(connect)) !== 'silent') return
      const suspects = findSuspects(startedAt)
      log.error({ connections: suspects.length }, 'The database server does not answer: its connections are closed.')
      for (const client of suspects) (client as unknown as Destroyable).connection?.stream?.destroy()
    } finally {
      probing = false
    }
  }

  const timer = setInterval(() => void check(), CHECK_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/** `answered` also when the server refuses the connection: then it is there. `unclear`: this process was blocked itself. */
async function probe(connect: () => Promise<pg.Client>): Promise<'answered' | 'silent' | 'unclear'> {
  const startedAt = performance.now()
  let timer: NodeJS.Timeout | undefined
  const silence = new Promise<'silent'>((resolve) => {
    timer = setTimeout(resolve, PROBE_TIMEOUT_MS, 'silent')
  })
  const answer = connect().then(
    async (client) => {
      try {
        await client.query('select 1')
      } finally {
        client.end().catch(() => {})
      }
      return 'answered' as const
    },
    (error: Error) => (/timeout/i.test(error.message) ? ('silent' as const) : ('answered' as const)),
  )
  const result = await Promise.race([answer.catch(() => 'answered' as const), silence])
  clearTimeout(timer)
  const isLate = performance.now() - startedAt > PROBE_TIMEOUT_MS + MAX_TIMER_LAG_MS
  return result === 'silent' && isLate ? 'unclear' : result
}
