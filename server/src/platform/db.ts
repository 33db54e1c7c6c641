import { type DatabaseConnection, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { DB } from './generated/db.ts'
import { watchForHungServer } from './hung-database.ts'
import type { Log } from './log.ts'
import { scopeConnection } from './tenant-reads.ts'

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
  /** From now on a tenant's reading requests see its own rows only; after the migrations have made the role. */
  secureReads(): void
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
}

const STATEMENT_TIMEOUT_MS = 30_000
const LOCK_TIMEOUT_MS = 20_000

export function openDatabase(connection: Connection, options: DatabaseOptions): Database {
  const address = toAddress(connection)
  const settings: pg.PoolConfig = {
    ...address,
    types,
    max: options.max,
    application_name: 'countersign',
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 30_000,
    statement_timeout: options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS,
    // Below the statement's, so that an answer names the lock and is retried.
    lock_timeout: options.lockTimeoutMs ?? LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: 30_000,
  }
  // An 'error' event without a listener would end the process when the connection of a checked-out client is lost.
  const logErrors = (client: pg.ClientBase) =>
    client.on('error', (error) => options.log.debug({ err: error }, 'a database connection in use was lost'))
  const pool = new pg.Pool(settings)
  pool.on('connect', logErrors)
  pool.on('error', (error) => options.log.warn({ err: error }, 'an idle database connection was lost'))
  let secured = false
  const onCreateConnection = async (connection: DatabaseConnection) => scopeConnection(connection, () => secured)
  const db = new Kysely<DB>({ dialect: new PostgresDialect({ pool, onCreateConnection }) })
  const connectTo = async (target: pg.ClientConfig) => {
    const client = new pg.Client({ ...target, types, application_name: 'countersign', connectionTimeoutMillis: 5_000 })
    logErrors(client)
    await client.connect()
    return client
  }
  // Without the pool's limits: migrations and LISTEN may wait and work as long as they need.
  const connect = () => connectTo(toAddress(options.direct ?? connection))
  const stopWatching = watchForHungServer(pool, () => connectTo(address), options.log)
  return {
    db,
    pool,
    secureReads: () => {
      secured = true
    },
    connect,
    async close() {
      stopWatching()
      // Kysely ends the pool only if it has used it.
      await db.destroy()
      if (!pool.ending) await pool.end()
    },
  }
}

const toAddress = (connection: Connection): pg.ClientConfig =>
  typeof connection === 'string' ? { connectionString: connection } : connection

/** Whether a later attempt may succeed: lost connections, restarts, exhausted resources and locks held too long, by SQLSTATE or Node's code. */
export function isUnavailable(error: unknown): boolean {
  const code = (error as { code?: unknown })?.code
  if (typeof code !== 'string')
    return (
      error instanceof Error &&
      /timeout exceeded when trying to connect|Connection terminated|not queryable/.test(error.message)
    )
  return /^(08|53|55P03|57|ECONN|ENOENT|EPIPE|ETIMEDOUT)/.test(code)
}
