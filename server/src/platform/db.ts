import { type DatabaseConnection, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { isUnavailable } from './database-errors.ts'
import { splitDatabaseUrl } from './database-url.ts'
import type { DB } from './generated/db.ts'
import { watchForHungServer } from './hung-database.ts'
import type { Log } from './log.ts'
import { createPrimary, type SyncReplication } from './primary.ts'
import { createClientClass, createPrimaryPool } from './primary-pool.ts'
import { scopeConnection } from './tenant-reads.ts'

export { isOutcomeUnknown, isUnavailable } from './database-errors.ts'

export type Db = Kysely<DB>
/** The first argument of every store function: the database or a transaction. */
export type Tx = Kysely<DB>

/** A row of a view, whose columns are all nullable by type: only the named ones are. */
export type WithNotNull<Row, Nullable extends keyof Row> = {
  [K in keyof Row]: K extends Nullable ? Row[K] : Exclude<Row[K], null>
}

export type Connection = string | { host: string; port: number; user: string; database: string; password?: string }

export type Database = {
  db: Db
  pool: pg.Pool
  /** A client outside the pool with a session of its own, for LISTEN, migrations and leases: never through a transaction pooler. */
  connect(): Promise<pg.Client>
  /** Whether `connect` has an address of its own, because the pool's leads through a pooler. */
  hasDirectAddress: boolean
  /** From now on a tenant's reading requests see its own rows only; after the migrations have made the role. */
  secureReads(): void
  /** Whether commits wait for another server. */
  readReplication(): Promise<boolean>
  close(): Promise<void>
}

// int8 becomes bigint; numeric stays text, so that money is never a float.
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => {
    if (oid === pg.types.builtins.INT8) return BigInt
    return pg.types.getTypeParser(oid, format as 'text')
  },
} as pg.CustomTypesConfig

export type DatabaseOptions = {
  max: number
  log: Log
  /** Where `connect` goes when the pool's address leads through a transaction pooler. */
  direct?: Connection | undefined
  statementTimeoutMs?: number
  lockTimeoutMs?: number
  /** How long a commit may wait for its standby before its outcome counts as unknown. */
  commitWaitMs?: number
  /** `required` refuses a server whose commits wait for no other. */
  syncReplication?: SyncReplication | undefined
  /** Called for each commit that no standby has confirmed, because its wait was cancelled. */
  onUnknownCommit?: () => void
}

const STATEMENT_TIMEOUT_MS = 30_000
const LOCK_TIMEOUT_MS = 20_000
const COMMIT_WAIT_MS = 10_000
const CONNECT_TIMEOUT_MS = 5_000

export function openDatabase(connection: Connection, options: DatabaseOptions): Database {
  const { log, syncReplication = 'preferred' } = options
  const statementTimeoutMs = options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS
  const common = { types, application_name: 'countersign', connectionTimeoutMillis: CONNECT_TIMEOUT_MS }
  const addresses = toAddresses(connection)
  const limits = {
    commitWaitMs: options.commitWaitMs ?? COMMIT_WAIT_MS,
    onUnknownCommit: options.onUnknownCommit ?? (() => {}),
  }
  const createProbe = (address: pg.ClientConfig) => {
    const client = new pg.Client({ ...address, ...common })
    client.on('error', (error) => log.debug({ err: error }, 'the search for a primary lost a connection'))
    return client
  }
  const primary = createPrimary({ addresses, createClient: createProbe, syncReplication, log })
  const hasDirectAddress = options.direct !== undefined && options.direct !== connection
  const settings: pg.PoolConfig = {
    ...common,
    max: options.max,
    idleTimeoutMillis: 30_000,
    // A transaction pooler refuses or ignores these parameters, and sets its own limits (platform/pooler.ts).
    ...(!hasDirectAddress && {
      statement_timeout: statementTimeoutMs,
      // Below the statement's, so that an answer names the lock and is retried.
      lock_timeout: options.lockTimeoutMs ?? LOCK_TIMEOUT_MS,
      idle_in_transaction_session_timeout: 30_000,
    }),
  }
  const pool = createPrimaryPool(
    settings,
    primary,
    createClientClass(primary, { ...limits, statementTimeoutMs, isPooled: hasDirectAddress }),
  )
  pool.on('error', (error) => log.debug({ err: error }, 'an idle database connection was lost'))
  let secured = false
  const onCreateConnection = async (connection: DatabaseConnection) => scopeConnection(connection, () => secured)
  const db = new Kysely<DB>({ dialect: new PostgresDialect({ pool, onCreateConnection }) })
  // Without the pool's limits: migrations and LISTEN may wait and work as long as they need.
  const SessionClient = createClientClass(primary, { ...limits, statementTimeoutMs: undefined })
  const connectTo = async (address: pg.ClientConfig) => {
    const client = new SessionClient({ ...address, ...common })
    try {
      await client.connect()
      await primary.check(client)
      return client
    } catch (error) {
      client.end().catch(() => {})
      throw error
    }
  }
  const connect = async () => {
    const admission = await primary.admit(primary.patienceMs())
    if (!options.direct) return connectTo(admission.address)
    const failures: unknown[] = []
    for (const address of toAddresses(options.direct))
      try {
        return await connectTo(address)
      } catch (error) {
        failures.push(error)
      }
    throw failures.find((error) => !isUnavailable(error)) ?? failures[0]
  }
  const probe = async () => {
    const client = createProbe(primary.currentAddress())
    await client.connect()
    return client
  }
  const stopWatching = watchForHungServer(pool, probe, log)
  return {
    db,
    pool,
    secureReads: () => {
      secured = true
    },
    connect,
    hasDirectAddress,
    readReplication: () => primary.readReplication(pool),
    async close() {
      stopWatching()
      primary.close()
      // Kysely ends the pool only if it has used it.
      await db.destroy()
      if (!pool.ending) await pool.end()
    },
  }
}

const toAddresses = (connection: Connection): pg.ClientConfig[] =>
  typeof connection === 'string'
    ? splitDatabaseUrl(connection).map((connectionString) => ({ connectionString }))
    : [connection]
