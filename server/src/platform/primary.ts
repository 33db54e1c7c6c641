import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { DatabaseUnavailable } from './database-errors.ts'
import type { Log } from './log.ts'
import { within } from './within.ts'

/**
 * Finds the server that is the primary, and decides when its data may be used. After a loss nothing is served until one
 * commit has been acknowledged: a server that crashed while a commit waited for its standby shows that commit afterwards,
 * though no other server has it and a failover would undo it. Standbys receive the log in order, so a later commit that
 * was acknowledged proves that every earlier one arrived.
 */
export type Primary = ReturnType<typeof createPrimary>

export type SyncReplication = 'required' | 'preferred' | 'off'

export type PrimaryDeps = {
  /** One for each server of the cluster. */
  addresses: readonly pg.ClientConfig[]
  createClient: (address: pg.ClientConfig) => pg.Client
  syncReplication: SyncReplication
  log: Log
}

type ServerState = {
  recovering: boolean
  read_only: boolean
  standby_names: string
  synchronous_commit: string
  /** Differs between two servers, and between one server before and after a crash. */
  identity: string
  system: string
  timeline: number
}

type Admission = { address: pg.ClientConfig; identity: string }
type Candidate = { client: pg.Client; address: pg.ClientConfig; state: ServerState }

/** How long a request waits for a primary before it is refused. */
const PATIENCE_MS = 1_000
/** How long the start waits for a cluster that is electing a primary. */
const START_PATIENCE_MS = 15_000
/** How long the servers that have not answered yet are waited for when one primary has answered: it may be the wrong one. */
const OTHERS_PATIENCE_MS = 500
const BARRIER_TIMEOUT_MS = 5_000
const CANCEL_TIMEOUT_MS = 1_000
const CHECK_TIMEOUT_MS = 5_000
const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 1_000
/** Wrong credentials or a database that does not exist: trying again does not help. */
const PERMANENT = /^(28|3D|42|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|CERT_|ERR_TLS|ENOTFOUND)/

/**
 * The reset time of the statistics is part of the identity because a crash discards them: the postmaster may survive it,
 * and then its start time does not change.
 */
const READ_STATE = `
  select pg_is_in_recovery() as recovering, current_setting('transaction_read_only') = 'on' as read_only,
         current_setting('synchronous_standby_names') as standby_names, current_setting('synchronous_commit') as synchronous_commit,
         (select system_identifier::text from pg_control_system()) as system,
         case when pg_is_in_recovery() then 0 else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end as timeline,
         concat_ws(' ', (select system_identifier from pg_control_system()),
           case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_lsn()), 8) end,
           extract(epoch from pg_postmaster_start_time()), (select extract(epoch from stats_reset) from pg_stat_wal)) as identity`

/** Writes to the log without a table; without a write, a commit would not wait for anybody. */
const BARRIER = `begin; set local synchronous_commit = on; select pg_logical_emit_message(true, 'countersign', 'barrier'); commit`

export function createPrimary({ addresses, createClient, syncReplication, log }: PrimaryDeps) {
  let admission: Admission | undefined
  let hasServed = false
  let closed = false
  let losses = 0
  let search: Promise<void> | undefined
  let failure: unknown
  /** The newest history of each cluster that was served: one that is older is a former primary's. */
  const newestTimeline = new Map<string, number>()
  let waitsForStandby: boolean | undefined
  const stop = new AbortController()

  const readState = async (client: pg.Client | pg.ClientBase): Promise<ServerState> => {
    const { rows } = await within(CHECK_TIMEOUT_MS, client.query<ServerState>(READ_STATE))
    return rows[0]!
  }

  const refusalOf = (state: ServerState): string | undefined => {
    if (state.recovering) return 'is a standby or still recovers'
    if (state.read_only) return 'is read-only'
    if (state.timeline < (newestTimeline.get(state.system) ?? 0)) return 'is a former primary, with an older history'
    if (syncReplication === 'required' && !isSynchronous(state))
      return `commits without waiting for another one: synchronous_standby_names is '${state.standby_names}' and synchronous_commit is ${state.synchronous_commit}. A failover could lose what was answered, so configure synchronous replication (docs/operations.md), or accept that with DATABASE_SYNC_REPLICATION=preferred`
    return undefined
  }

  const tryAddress = async (address: pg.ClientConfig): Promise<Candidate> => {
    const client = createClient(address)
    try {
      await client.connect()
      const state = await readState(client)
      const refusal = refusalOf(state)
      if (refusal !== undefined) throw new DatabaseUnavailable(`The database server ${refusal}.`)
      return { client, address, state }
    } catch (error) {
      endClient(client)
      throw error
    }
  }

  /** The primary with the newest history of those that answer in time. */
  const findCandidate = async (): Promise<Candidate> => {
    const candidates: Candidate[] = []
    let isOver = false
    const attempts = addresses.map(async (address) => {
      const candidate = await tryAddress(address)
      if (isOver) endClient(candidate.client)
      else candidates.push(candidate)
    })
    const all = Promise.allSettled(attempts)
    await Promise.race([
      all,
      Promise.any(attempts).then(
        () => sleep(OTHERS_PATIENCE_MS),
        () => all,
      ),
    ])
    isOver = true
    const [best, ...others] = candidates.sort((a, b) => b.state.timeline - a.state.timeline)
    for (const { client } of others) endClient(client)
    if (best) return best
    const reasons = (await all).map((result) => (result.status === 'rejected' ? result.reason : undefined))
    // What keeps a primary from being used says more than which servers are standbys.
    throw (
      reasons.find((reason) => /synchronous_standby_names/.test(reason?.message)) ??
      reasons.find((reason) => !isPermanent(reason)) ??
      reasons[0]
    )
  }

  const passBarrier = async ({ client }: Candidate) => {
    const barrier = client.query(BARRIER)
    try {
      await within(BARRIER_TIMEOUT_MS, barrier)
    } catch (error) {
      cancelQuery(client)
      await within(CANCEL_TIMEOUT_MS, barrier).catch(() => {})
      throw new DatabaseUnavailable('No standby has confirmed what the database server holds.', { cause: error })
    }
  }

  const admitServer = async () => {
    const lossesBefore = losses
    const candidate = await findCandidate()
    try {
      await passBarrier(candidate)
    } finally {
      endClient(candidate.client)
    }
    // Whatever was lost since then may be younger than the barrier.
    if (losses !== lossesBefore) throw new DatabaseUnavailable('A connection was lost meanwhile.')
    const { address, state } = candidate
    newestTimeline.set(state.system, state.timeline)
    noteReplication(state)
    admission = { address, identity: state.identity }
    if (hasServed) log.info('The database serves again.')
    hasServed = true
  }

  const noteReplication = (state: ServerState) => {
    const isWaiting = isSynchronous(state)
    if (isWaiting !== waitsForStandby && syncReplication !== 'off' && !isWaiting)
      log.info(
        'The database commits without waiting for another server: a failover may lose what was answered. See DATABASE_SYNC_REPLICATION.',
      )
    waitsForStandby = isWaiting
  }

  const runSearch = async () => {
    let pauseMs = FIRST_PAUSE_MS
    while (!admission && !closed) {
      try {
        await admitServer()
      } catch (error) {
        failure = error
        log.debug({ err: error }, 'no primary of the database was found yet')
        if (!hasServed && (isPermanent(error) || addresses.length === 1)) return
        // The jitter keeps many processes from coming back at the same moment.
        await sleep(pauseMs * (0.5 + Math.random() / 2), undefined, { signal: stop.signal }).catch(() => {})
        pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)
      }
    }
  }

  const startSearch = () => {
    search ??= runSearch().finally(() => {
      search = undefined
    })
    return search
  }

  /** Nothing is served from now on until a primary has acknowledged a commit. */
  const lose = (reason: string, error?: unknown) => {
    losses += 1
    if (!admission || closed) return
    admission = undefined
    log.warn({ err: error, reason }, 'The database serves nothing until its primary has acknowledged a commit.')
    void startSearch()
  }

  return {
    /** Undefined while nothing may be served. */
    admission: () => admission,
    currentAddress: () => admission?.address ?? addresses[0]!,
    patienceMs: () => (hasServed ? PATIENCE_MS : START_PATIENCE_MS),

    /** Waits until a server may be used. */
    async admit(patienceMs: number): Promise<Admission> {
      if (admission) return admission
      if (closed) throw new DatabaseUnavailable('The database is closed.')
      await within(patienceMs, startSearch()).catch(() => {})
      if (admission) return admission
      if (failure && !hasServed) throw failure
      throw new DatabaseUnavailable('No primary of the database can be used at the moment.', { cause: failure })
    },

    lose,

    /** Throws for a connection that leads to a server that was not admitted. */
    async check(client: pg.ClientBase): Promise<string> {
      const state = await readState(client)
      const refusal = refusalOf(state)
      if (refusal === undefined && state.identity === admission?.identity) {
        noteReplication(state)
        return state.identity
      }
      lose(refusal ?? 'a connection leads to another server, or to the same after a crash')
      throw new DatabaseUnavailable(`The database server ${refusal ?? 'is another one than before'}.`)
    },

    /** Whether commits on this connection wait for another server; the cluster's manager may change it at any time. */
    async readReplication(client: Pick<pg.Pool, 'query'>): Promise<boolean> {
      const { rows } = await client.query<ServerState>(READ_STATE)
      noteReplication(rows[0]!)
      return isSynchronous(rows[0]!)
    },

    close() {
      closed = true
      admission = undefined
      stop.abort()
    },
  }
}

/** A commit that waits for another server has both: somebody to wait for, and a mode that waits. */
const isSynchronous = (state: Pick<ServerState, 'standby_names' | 'synchronous_commit'>) =>
  state.standby_names.trim() !== '' && ['on', 'remote_write', 'remote_apply'].includes(state.synchronous_commit)

const isPermanent = (error: unknown) => PERMANENT.test(String((error as { code?: unknown })?.code ?? ''))

const CANCEL_REQUEST = 80_877_102

/**
 * The process of the server would go on waiting for its standby after its client has left. By the protocol's own request,
 * because behind a pooler a process id may belong to somebody else by now.
 */
function cancelQuery(client: pg.Client) {
  const { processID, secretKey } = client as unknown as { processID: number; secretKey: number }
  const { host, port } = client
  const request = Buffer.alloc(16)
  for (const [index, number] of [request.length, CANCEL_REQUEST, processID, secretKey].entries())
    request.writeInt32BE(number, index * 4)
  const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
  socket.on('error', () => {}).setTimeout(CANCEL_TIMEOUT_MS, () => socket.destroy())
  socket.end(request)
}

/** A server that does not answer must not be waited for. */
function endClient(client: pg.Client) {
  client.end().catch(() => {})
  ;(client as unknown as { connection?: { stream?: { destroySoon?(): void } } }).connection?.stream?.destroySoon?.()
}
